package credentials

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
)

// part is one value, and where it was found.
type part struct {
	path  *field.Path
	value []byte
}

func (p part) given() bool { return len(p.value) > 0 }

// parts are what both forms of a connection Secret come down to.
type parts struct {
	root       *field.Path
	server     part
	serverName string
	ca         part
	cert, key  part
	token      part
	username   part
	password   part
	hub        bool   // the server is the hub, by Portico's own choice
	allOf      string // the credentials there can be, by their names here
}

// invalid is a problem that does not quote the value.
func invalid(path *field.Path, why string) *field.Error {
	return field.Invalid(path, field.OmitValueType{}, why)
}

// connection judges the parts, and puts them together.
func (p parts) connection(r Rules) (*Connection, field.ErrorList) {
	host, errs := p.judgeServer(r)
	errs = append(errs, p.judgeAuthority()...)
	expiry, problems := p.judgeCertificate()
	errs = append(errs, problems...)
	errs = append(errs, p.judgeRest()...)
	if errs != nil {
		return nil, errs
	}
	config := &rest.Config{
		Host: string(p.server.value),
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: p.serverName, CAData: p.ca.value, CertData: p.cert.value, KeyData: p.key.value,
		},
	}
	config.Username, config.Password, config.BearerToken = string(p.username.value), string(p.password.value), string(p.token.value)
	if ends := endOf(config.BearerToken); !ends.IsZero() && (expiry.IsZero() || ends.Before(expiry)) {
		expiry = ends
	}
	if _, err := rest.TLSConfigFor(config); err != nil { // judged above, all but what nobody thought of
		return nil, field.ErrorList{invalid(p.root, "its certificates and key do not make a usable connection")}
	}
	return &Connection{Config: config, Host: host, Expiry: expiry}, nil
}

func (p parts) judgeServer(r Rules) (host string, errs field.ErrorList) {
	if !p.server.given() {
		return "", field.ErrorList{field.Required(p.server.path, "the https URL of the cluster's API server")}
	}
	u, err := url.Parse(string(p.server.value))
	if err != nil || u.Hostname() == "" || u.Opaque != "" {
		return "", field.ErrorList{invalid(p.server.path, "is not a URL such as https://cluster.example.org:6443")}
	}
	if u.Scheme != "https" {
		errs = append(errs, invalid(p.server.path, "is not an https URL; credentials are not sent in the clear"))
	}
	if u.User != nil {
		errs = append(errs, field.Forbidden(p.server.path, "a URL with a user in it ends up in logs; give "+p.allOf))
	}
	if u.RawQuery != "" || u.Fragment != "" {
		errs = append(errs, invalid(p.server.path, "is a URL with a query or a fragment, which an API server's has not"))
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			errs = append(errs, invalid(p.server.path, "is a URL with a port that is none"))
		}
	}
	if !r.AllowLocal && !p.hub && local(u.Hostname()) {
		errs = append(errs, field.Forbidden(p.server.path,
			"an address of Portico's own machine or link leads elsewhere from here; give one that leads to the cluster from anywhere"))
	}
	return u.Host, errs
}

func local(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && (ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast())
}

func (p parts) judgeAuthority() field.ErrorList {
	if !p.ca.given() || x509.NewCertPool().AppendCertsFromPEM(p.ca.value) {
		return nil // without one, the authorities of Portico's own system decide
	}
	return field.ErrorList{invalid(p.ca.path, "holds no certificate in PEM form"+hint(p.ca.value))}
}

// judgeCertificate also tells when the client certificate ends.
func (p parts) judgeCertificate() (time.Time, field.ErrorList) {
	const together = "the certificate and its key are given together or not at all"
	switch {
	case !p.cert.given() && !p.key.given():
		return time.Time{}, nil
	case !p.cert.given():
		return time.Time{}, field.ErrorList{field.Required(p.cert.path, together)}
	case !p.key.given():
		return time.Time{}, field.ErrorList{field.Required(p.key.path, together)}
	}
	var errs field.ErrorList
	certificate := firstCertificate(p.cert.value)
	if certificate == nil {
		errs = append(errs, invalid(p.cert.path, "holds no certificate in PEM form"+hint(p.cert.value)))
	}
	switch key, encrypted := firstKey(p.key.value); {
	case encrypted:
		errs = append(errs, invalid(p.key.path, "is encrypted; Portico has no passphrase for it"))
	case !key:
		errs = append(errs, invalid(p.key.path, "holds no private key in PEM form"+hint(p.key.value)))
	}
	if errs != nil {
		return time.Time{}, errs
	}
	if _, err := tls.X509KeyPair(p.cert.value, p.key.value); err != nil {
		return time.Time{}, field.ErrorList{invalid(p.key.path, "is not the key of the client certificate, or is damaged")}
	}
	return certificate.NotAfter, nil
}

func firstCertificate(data []byte) *x509.Certificate {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			certificate, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil
			}
			return certificate
		}
	}
	return nil
}

func firstKey(data []byte) (found, encrypted bool) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			return true, strings.HasPrefix(block.Type, "ENCRYPTED") || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED")
		}
	}
	return false, false
}

// judgeRest judges what goes into headers.
func (p parts) judgeRest() field.ErrorList {
	var errs field.ErrorList
	if p.token.given() && bytes.ContainsFunc(p.token.value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		errs = append(errs, invalid(p.token.path,
			"has a space, a line break or another character inside that a token cannot have"))
	}
	if p.token.given() && p.username.given() {
		errs = append(errs, field.Forbidden(p.username.path, "two names for one caller are one too many: it is not given together with a token"))
	}
	if strings.ContainsRune(string(p.username.value), ':') {
		errs = append(errs, invalid(p.username.path, "has a colon, which a user name cannot have"))
	}
	if p.username.given() != p.password.given() && !p.token.given() && !p.cert.given() {
		missing := p.password
		if p.password.given() {
			missing = p.username
		}
		return append(errs, field.Required(missing.path, "a user name and a password are given together or not at all"))
	}
	if !p.cert.given() && !p.key.given() && !p.token.given() && !p.username.given() {
		errs = append(errs, field.Required(p.root, "it has no credential: give "+p.allOf))
	}
	return errs
}

// endOf reads when a JSON Web Token ends, and returns zero for one that is none
// or never ends. Whether the token is genuine is for the target to say.
func endOf(token string) time.Time {
	segments := strings.Split(token, ".")
	if len(segments) != 3 {
		return time.Time{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(segments[1])
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Expiry float64 `json:"exp"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil || claims.Expiry < 1 || claims.Expiry > maxTime {
		return time.Time{}
	}
	return time.Unix(int64(claims.Expiry), 0)
}

// maxTime is the end of the year 9999, beyond which a time has no text.
const maxTime = 253402300799

// hint tells the likeliest mistake.
func hint(value []byte) string {
	if twice(value) {
		return "; it looks base64-encoded twice"
	}
	return ""
}

// twice tells whether a value is base64 of text that would make sense.
func twice(value []byte) bool {
	clean := bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == ' ' {
			return -1
		}
		return r
	}, value)
	decoded, err := base64.StdEncoding.DecodeString(string(clean))
	if err != nil || len(decoded) == 0 {
		return false
	}
	return bytes.Contains(decoded, []byte("-----BEGIN ")) || bytes.Contains(decoded, []byte("clusters:")) ||
		bytes.Contains(decoded, []byte(fmt.Sprintf("%q", "clusters")))
}
