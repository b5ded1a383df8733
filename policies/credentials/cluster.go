package credentials

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// ClusterID identifies the cluster of a connection: a digest of the endpoint, of the
// name in its certificate, and of the CA. The credential is not part of it. Nothing
// in it comes from the cluster: a hostile cluster could respond with the identity of
// another cluster, but cannot prove to be at its endpoint.
func (c *Connection) ClusterID() string {
	hash := sha256.New()
	for _, part := range append([]string{endpointOf(c.Config), c.Config.ServerName}, caCertificates(c.Config.CAData)...) {
		_, _ = fmt.Fprintf(hash, "%d:%s;", len(part), part)
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// Digest distinguishes two connections without revealing them. It covers the cluster,
// the credential and the additional texts.
func (c *Connection) Digest(more ...string) string {
	return Digest(map[string][]byte{
		v1alpha1.SecretEndpoint:   []byte(c.Config.Host),
		v1alpha1.SecretClusterCA:  []byte(c.ClusterID()),
		v1alpha1.SecretClientCert: c.Config.CertData,
		v1alpha1.SecretClientKey:  c.Config.KeyData,
		v1alpha1.SecretUsername:   []byte(c.Config.Username),
		v1alpha1.SecretPassword:   []byte(c.Config.Password),
		v1alpha1.SecretToken:      []byte(c.Config.BearerToken),
	}, more...)
}

// endpointOf returns the normal form of the endpoint, which is the same for all its
// spellings.
func endpointOf(config *rest.Config) string {
	u, err := url.Parse(config.Host)
	if err != nil {
		return config.Host
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	return net.JoinHostPort(host, port) + strings.TrimRight(u.Path, "/")
}

// caCertificates returns the certificates of a CA bundle, without order, comments or
// repetition.
func caCertificates(bundle []byte) []string {
	var out []string
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		out = append(out, string(block.Bytes))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
