package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// authority is the CA of one cluster. A second CA with another key signs the API
// server's own client certificate for aggregated API servers.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// lifetime is longer than the life of a test cluster.
const lifetime = 10 * 365 * 24 * time.Hour

// loadAuthority reads a CA from two files, and creates it if there is none.
func loadAuthority(name, certFile, keyFile string) (*authority, error) {
	certs, err := cert.CertsFromFile(certFile)
	if errors.Is(err, fs.ErrNotExist) {
		return newAuthority(name, certFile, keyFile)
	}
	if err != nil {
		return nil, err
	}
	key, err := keyutil.PrivateKeyFromFile(keyFile)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("reading %s: a %T does not sign", keyFile, key)
	}
	return &authority{certificate: certs[0], key: signer}, nil
}

func newAuthority(name, certFile, keyFile string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		return nil, err
	}
	// The key is first: the certificate means that both files are there.
	if err := writeKey(keyFile, key); err != nil {
		return nil, err
	}
	if err := cert.WriteCert(certFile, encodeCertificate(certificate.Raw)); err != nil {
		return nil, err
	}
	return &authority{certificate: certificate, key: key}, nil
}

func (a *authority) pem() []byte { return encodeCertificate(a.certificate.Raw) }

// server signs a certificate for a server on loopback.
func (a *authority) server(names []string, addresses ...net.IP) (certPEM, keyPEM []byte, err error) {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: names[0]},
		DNSNames:    names,
		IPAddresses: addresses,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// client signs a certificate for a user, with groups.
func (a *authority) client(name string, groups ...string) (certPEM, keyPEM []byte, err error) {
	return a.clientUntil(time.Time{}, name, groups...)
}

// clientUntil does the same as client, with an expiry.
func (a *authority) clientUntil(ends time.Time, name string, groups ...string) (certPEM, keyPEM []byte, err error) {
	return a.sign(&x509.Certificate{
		NotAfter:    ends,
		Subject:     pkix.Name{CommonName: name, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) sign(template *x509.Certificate) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, nil, err
	}
	template.NotBefore = time.Now().Add(-time.Minute) // for differences between clocks
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(lifetime)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key)
	return encodeCertificate(der), keyPEM, err
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
}

func writeKey(file string, key crypto.PrivateKey) error {
	data, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}
