package credentials

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
)

// part is one value of a Secret, and its path.
type part struct {
	path  *field.Path
	value []byte
}

func (p part) isSet() bool { return len(p.value) > 0 }

// parts are the values of a connection Secret, in either form.
type parts struct {
	root       *field.Path
	server     part
	serverName string
	ca         part
	cert, key  part
	token      part
	username   part
	password   part
	hub        bool   // Portico itself set the hub as server
	choices    string // the names of the possible credentials, in this form
}

// invalid returns a problem that does not quote the value.
func invalid(path *field.Path, why string) *field.Error {
	return field.Invalid(path, field.OmitValueType{}, why)
}

// newConnection validates the parts, and returns the connection.
func (p parts) newConnection(r Rules) (*Connection, field.ErrorList) {
	host, errs := p.validateServer(r)
	errs = append(errs, p.validateCA()...)
	expiry, problems := p.validateClientCertificate()
	errs = append(errs, problems...)
	errs = append(errs, p.validateHeaderCredentials()...)
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
	if ends := tokenExpiry(config.BearerToken); !ends.IsZero() && (expiry.IsZero() || ends.Before(expiry)) {
		expiry = ends
	}
	if _, err := rest.TLSConfigFor(config); err != nil { // all known problems are reported above
		return nil, field.ErrorList{invalid(p.root, "its certificates and key do not make a usable connection")}
	}
	hostname := host
	if u, err := url.Parse(config.Host); err == nil { // the URL was validated above
		hostname = u.Hostname()
	}
	return &Connection{Config: config, Host: host, Expiry: expiry, AddressRules: r.addressRules(hostname, p.hub)}, nil
}

func (p parts) validateServer(r Rules) (host string, errs field.ErrorList) {
	if !p.server.isSet() {
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
		errs = append(errs, field.Forbidden(p.server.path, "a URL with a user would appear in logs; give "+p.choices))
	}
	if u.RawQuery != "" || u.Fragment != "" {
		errs = append(errs, invalid(p.server.path, "is a URL with a query or a fragment, which the URL of an API server does not have"))
	}
	if port := u.Port(); port != "" && !isPortNumber(port) {
		errs = append(errs, invalid(p.server.path, "is a URL with an invalid port"))
	}
	if !r.AllowLocal && !p.hub && isLocalHost(u.Hostname()) {
		errs = append(errs, field.Forbidden(p.server.path,
			"a loopback or link-local address is another machine for Portico; give an address that reaches the cluster from anywhere"))
	}
	return u.Host, errs
}

func isPortNumber(port string) bool {
	n, err := strconv.Atoi(port)
	return err == nil && n >= 1 && n <= 65535
}

func isLocalHost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && isLocalAddress(ip.Unmap())
}

func (p parts) validateCA() field.ErrorList {
	if !p.ca.isSet() || x509.NewCertPool().AppendCertsFromPEM(p.ca.value) {
		return nil // without a CA, the system's trusted CAs apply
	}
	return field.ErrorList{invalid(p.ca.path, "holds no certificate in PEM form"+encodingHint(p.ca.value))}
}

// validateClientCertificate also returns the expiry of the client certificate.
func (p parts) validateClientCertificate() (time.Time, field.ErrorList) {
	const together = "the certificate and its key are given together or not at all"
	switch {
	case !p.cert.isSet() && !p.key.isSet():
		return time.Time{}, nil
	case !p.cert.isSet():
		return time.Time{}, field.ErrorList{field.Required(p.cert.path, together)}
	case !p.key.isSet():
		return time.Time{}, field.ErrorList{field.Required(p.key.path, together)}
	}
	var errs field.ErrorList
	certificate := firstCertificate(p.cert.value)
	if certificate == nil {
		errs = append(errs, invalid(p.cert.path, "holds no certificate in PEM form"+encodingHint(p.cert.value)))
	}
	switch key, encrypted := firstKey(p.key.value); {
	case encrypted:
		errs = append(errs, invalid(p.key.path, "is encrypted; Portico has no passphrase for it"))
	case !key:
		errs = append(errs, invalid(p.key.path, "holds no private key in PEM form"+encodingHint(p.key.value)))
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

// validateHeaderCredentials validates the credentials that are sent in headers.
func (p parts) validateHeaderCredentials() field.ErrorList {
	var errs field.ErrorList
	if p.token.isSet() && bytes.ContainsFunc(p.token.value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		errs = append(errs, invalid(p.token.path,
			"contains a space, a line break or another character that a token cannot have"))
	}
	if p.token.isSet() && p.username.isSet() {
		errs = append(errs, field.Forbidden(p.username.path, "cannot be given together with a token"))
	}
	if strings.ContainsRune(string(p.username.value), ':') {
		errs = append(errs, invalid(p.username.path, "has a colon, which a user name cannot have"))
	}
	if p.username.isSet() != p.password.isSet() && !p.token.isSet() && !p.cert.isSet() {
		missing := p.password
		if p.password.isSet() {
			missing = p.username
		}
		return append(errs, field.Required(missing.path, "a user name and a password are given together or not at all"))
	}
	if !p.cert.isSet() && !p.key.isSet() && !p.token.isSet() && !p.username.isSet() {
		errs = append(errs, field.Required(p.root, "it has no credential: give "+p.choices))
	}
	return errs
}

// tokenExpiry returns the expiry of a JSON Web Token; zero for another token, and for
// one without an expiry. The target verifies the token.
func tokenExpiry(token string) time.Time {
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

// encodingHint returns a hint at the most likely mistake.
func encodingHint(value []byte) string {
	if isDoubleEncoded(value) {
		return "; it looks base64-encoded twice"
	}
	return ""
}

// isDoubleEncoded tells whether a value is base64 of a certificate or a kubeconfig.
func isDoubleEncoded(value []byte) bool {
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
