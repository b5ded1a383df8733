package credentials

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Rules validate a connection Secret, beyond the form of its values.
type Rules struct {
	// AllowLocal allows an endpoint on the machine that Portico runs on, or on its
	// link. Such an address means another machine to Portico than to the user.
	AllowLocal bool
	// Hub is the endpoint of the cluster that Portico runs on. The token Secret of a
	// ServiceAccount has no endpoint, and connects to it (S3).
	Hub string
	// HubHosts are the names and addresses of the hub's API server. Only an
	// endpoint that names the hub may resolve to them.
	HubHosts []string
}

// Connection is the content of a connection Secret.
type Connection struct {
	// Config is the REST configuration. It impersonates no user.
	Config *rest.Config
	// Host of the endpoint, with its port.
	Host string
	// Expiry of the credential; zero if it has none or cannot be known.
	Expiry time.Time
	// AddressRules are the rules for the addresses of the endpoint.
	AddressRules AddressRules
}

// ReadSecret reads the data of a connection Secret. A kubeconfig wins over the
// separate keys. It denies everything that would make Portico run a program, read a
// local file, impersonate a user, or trust a server that it cannot verify.
func (r Rules) ReadSecret(data map[string][]byte) (*Connection, field.ErrorList) {
	path := field.NewPath("data")
	for _, key := range keys {
		if len(data[key]) > maxValue {
			return nil, field.ErrorList{field.TooLong(path.Key(key), field.OmitValueType{}, maxValue)}
		}
	}
	var p parts
	var errs field.ErrorList
	switch {
	case len(data[v1alpha1.SecretKubeconfig]) > 0:
		p, errs = fromKubeconfig(data[v1alpha1.SecretKubeconfig], path.Key(v1alpha1.SecretKubeconfig))
		if errs == nil {
			return p.newConnection(r)
		}
	default:
		p, errs = r.fromKeys(data, path)
		if errs == nil {
			return p.newConnection(r)
		}
	}
	return nil, errs
}

// maxValue is more than any of the values needs.
const maxValue = 512 << 10

// ConnectionKeys are the keys of a connection Secret. No other key is copied.
var ConnectionKeys = []string{
	v1alpha1.SecretKubeconfig, v1alpha1.SecretEndpoint, v1alpha1.SecretClusterCA, v1alpha1.SecretClientCert,
	v1alpha1.SecretClientKey, v1alpha1.SecretUsername, v1alpha1.SecretPassword, v1alpha1.SecretToken,
}

// keys are the keys that are read. The last one is that of a ServiceAccount's token
// Secret, which leads to the hub.
var keys = append(slices.Clone(ConnectionKeys), corev1.ServiceAccountRootCAKey)

// fromKeys reads the separate keys.
func (r Rules) fromKeys(data map[string][]byte, path *field.Path) (parts, field.ErrorList) {
	at := func(key string) part { return part{path: path.Key(key), value: data[key]} }
	// Files that Secrets are made from end in a line break.
	trimmed := func(key string) part { return part{path: path.Key(key), value: bytes.TrimSpace(data[key])} }
	p := parts{
		root:     path,
		server:   trimmed(v1alpha1.SecretEndpoint),
		ca:       at(v1alpha1.SecretClusterCA),
		cert:     at(v1alpha1.SecretClientCert),
		key:      at(v1alpha1.SecretClientKey),
		token:    trimmed(v1alpha1.SecretToken),
		username: at(v1alpha1.SecretUsername),
		password: at(v1alpha1.SecretPassword),
		choices: fmt.Sprintf("%s and %s, or %s, or %s and %s", v1alpha1.SecretClientCert, v1alpha1.SecretClientKey,
			v1alpha1.SecretToken, v1alpha1.SecretUsername, v1alpha1.SecretPassword),
	}
	if !p.ca.isSet() {
		p.ca = at(corev1.ServiceAccountRootCAKey)
	}
	if p.server.isSet() {
		return p, nil
	}
	if r.Hub != "" && p.token.isSet() && len(data[corev1.ServiceAccountRootCAKey]) > 0 {
		p.server.value, p.hub = []byte(r.Hub), true
		return p, nil
	}
	return p, field.ErrorList{field.Required(path, fmt.Sprintf("it has neither key %s nor key %s", v1alpha1.SecretKubeconfig, v1alpha1.SecretEndpoint))}
}

// Digest distinguishes the data of two Secrets without revealing it. It covers the data
// and the additional texts.
func Digest(data map[string][]byte, more ...string) string {
	hash := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		_, _ = fmt.Fprintf(hash, "%d:%s=%d:", len(key), key, len(data[key]))
		hash.Write(data[key])
	}
	for _, text := range more {
		_, _ = fmt.Fprintf(hash, ";%d:%s", len(text), text)
	}
	return hex.EncodeToString(hash.Sum(nil))
}
