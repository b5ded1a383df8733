// Package badsecrets makes connection Secrets that do not connect, each with a
// canary in it: a text that must never come out again, in no condition, event,
// log or answer.
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
	// Reason it is bad.
	Reason string
	// Message is part of what a person is told.
	Message string
	// Reaches is set for a Secret that looks right: only the target can tell.
	Reaches bool

	values map[string]string
}

// mark stands for the canary in a value.
const mark = "CANARY"

// Data returns the Secret's data, with a canary.
func (c Case) Data(canary string) map[string][]byte {
	out := map[string][]byte{}
	for key, value := range c.values {
		out[key] = []byte(strings.ReplaceAll(value, mark, canary))
	}
	return out
}

// long are the words of a value that only that value has: lines of a key or a
// certificate, and encoded files.
var long = regexp.MustCompile(`[A-Za-z0-9+/=_-]{40,}`)

// Leaks tells whether a text holds the canary that the Secret was given, or any
// long word of what else it holds.
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

// sings tells whether a text holds the canary, as it is or in base64.
func sings(text, canary string) bool {
	if strings.Contains(text, canary) {
		return true
	}
	for shift := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat(" ", shift) + canary))
		// The first and last characters depend on what is around it.
		if inner := encoded[shift+1 : len(encoded)-2]; strings.Contains(text, inner) {
			return true
		}
	}
	return false
}

// Server is an API server that the Secrets lead to.
type Server struct {
	URL string
	CA  []byte
}

// pair is a certificate and its key, in PEM.
type pair struct{ certificate, key string }

// newPair makes a pair of its own authority, which ends at some time.
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

// token looks like a service account's, which ends at some time. Nobody signed
// it.
func token(ends time.Time) string {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	return part(`{"alg":"RS256"}`) + "." + part(fmt.Sprintf(`{"sub":"nobody","exp":%d}`, ends.Unix())) + "." + part("signature") + mark
}

// kubeconfig returns one with the lines of its cluster and its user.
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

// noise is what no parser was made for.
func noise(size int) string {
	data := make([]byte, size)
	_, _ = rand.Read(data) // never fails
	return string(bytes.ReplaceAll(data, []byte(mark[:3]), nil)) + mark
}

// Corpus returns all of them.
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

// endpoint returns separate keys that lead to the server.
func (m maker) endpoint(pairs ...string) map[string]string {
	out := map[string]string{"endpoint": m.server.URL, "clusterCA": string(m.server.CA)}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

// there is the line of a kubeconfig that leads to the server.
func (m maker) there() string {
	return fmt.Sprintf("server: %q, certificate-authority-data: %s", m.server.URL, encode(string(m.server.CA)))
}
