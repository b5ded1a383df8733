// Package badsecrets makes connection Secrets that do not connect. Each contains a
// canary: a text that must not appear in any condition, event, log or response.
package badsecrets

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"time"
)

// Case is one bad Secret.
type Case struct {
	Name string
	// Reason why the Secret is bad.
	Reason string
	// Message is a part of the error message.
	Message string
	// Reaches is set for a Secret that looks valid: only the target can refuse it.
	Reaches bool

	values map[string]string
}

// mark is replaced by the canary.
const mark = "CANARY"

// Data returns the data of the Secret, with a canary.
func (c Case) Data(canary string) map[string][]byte {
	out := map[string][]byte{}
	for key, value := range c.values {
		out[key] = []byte(strings.ReplaceAll(value, mark, canary))
	}
	return out
}

// long matches words that only one value has: lines of a key or a certificate, and
// encoded files.
var long = regexp.MustCompile(`[A-Za-z0-9+/=_-]{40,}`)

// Leaks tells whether a text contains the canary, or another long word of the Secret.
func (c Case) Leaks(text, canary string) bool {
	if sings(text, canary) {
		return true
	}
	for _, value := range c.Data(canary) {
		for _, word := range long.FindAllString(string(value), -1) {
			if strings.Contains(text, word) {
				return true
			}
		}
	}
	return false
}

// sings tells whether a text contains the canary, as text or in base64.
func sings(text, canary string) bool {
	if strings.Contains(text, canary) {
		return true
	}
	for shift := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat(" ", shift) + canary))
		// The first and the last character depend on the surrounding text.
		if inner := encoded[shift+1 : len(encoded)-2]; strings.Contains(text, inner) {
			return true
		}
	}
	return false
}

// Server is the API server in the endpoints of the Secrets.
type Server struct {
	URL string
	CA  []byte
}

// pair is a certificate and its key, in PEM.
type pair struct{ certificate, key string }

// newPair returns a certificate of a new CA, which expires at a time, and its key.
func newPair(ends time.Time) (pair, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: mark},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: ends,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return pair{}, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return pair{}, err
	}
	return pair{certificate: armour("CERTIFICATE", der), key: armour("PRIVATE KEY", keyDER)}, nil
}

func armour(kind string, data []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}))
}

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// token returns a token that looks like that of a service account, and expires at a
// time. Its signature is not valid.
func token(ends time.Time) string {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	return part(`{"alg":"RS256"}`) + "." + part(fmt.Sprintf(`{"sub":"nobody","exp":%d}`, ends.Unix())) + "." + part("signature") + mark
}

// kubeconfig returns a kubeconfig with the given lines in its cluster and its user.
func kubeconfig(cluster, user string) map[string]string {
	return map[string]string{"kubeconfig": `
apiVersion: v1
kind: Config
current-context: main
contexts: [{name: main, context: {cluster: there, user: me}}]
clusters: [{name: there, cluster: {` + cluster + `}}]
users: [{name: me, user: {` + user + `}}]
`}
}

// noise returns bytes that no parser accepts.
func noise(size int) string {
	data := make([]byte, size)
	_, _ = rand.Read(data) // it never fails
	return string(bytes.ReplaceAll(data, []byte(mark[:3]), nil)) + mark
}

// Corpus returns all bad Secrets.
func Corpus(s Server) ([]Case, error) {
	mine, err := newPair(time.Now().Add(time.Hour))
	if err != nil {
		return nil, err
	}
	other, err := newPair(time.Now().Add(time.Hour))
	if err != nil {
		return nil, err
	}
	expired, err := newPair(time.Now().Add(-time.Hour))
	if err != nil {
		return nil, err
	}
	m := maker{server: s, mine: mine, other: other, expired: expired}
	return append(append(m.keys(), m.kubeconfigs()...), m.reaching()...), nil
}

type maker struct {
	server               Server
	mine, other, expired pair
}

// endpoint returns separate keys with the address of the server.
func (m maker) endpoint(pairs ...string) map[string]string {
	out := map[string]string{"endpoint": m.server.URL, "clusterCA": string(m.server.CA)}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

// there returns the line of a kubeconfig with the address of the server.
func (m maker) there() string {
	return fmt.Sprintf("server: %q, certificate-authority-data: %s", m.server.URL, encode(string(m.server.CA)))
}
