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

// Rules are what a connection Secret is judged by, beyond its content.
type Rules struct {
	// AllowLocal lets an endpoint be on the machine that Portico runs on, or on
	// its link. There a name means something else to Portico than to the user.
	AllowLocal bool
	// Hub is the endpoint of the cluster that Portico runs on. It is where a
	// Secret of a ServiceAccount's token leads, which names no endpoint (S3).
	Hub string
}

// Connection is what a connection Secret says.
type Connection struct {
	// Config connects. It impersonates nobody.
	Config *rest.Config
	// Host of the endpoint, with its port.
	Host string
	// Expiry is when the credential ends, zero where that cannot be known.
	Expiry time.Time
}

// Read reads a connection Secret's data. A kubeconfig wins over the separate
// keys. Whatever would make Portico run a program, read a file of its own, act
// as somebody else, or trust a server it cannot verify is refused.
func (r Rules) Read(data map[string][]byte) (*Connection, field.ErrorList) {
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
			return p.connection(r)
		}
	default:
		p, errs = r.fromKeys(data, path)
		if errs == nil {
			return p.connection(r)
		}
	}
	return nil, errs
}

// maxValue is far beyond what any of the values needs.
const maxValue = 512 << 10

// keys are all that are read.
var keys = []string{
	v1alpha1.SecretKubeconfig, v1alpha1.SecretEndpoint, v1alpha1.SecretClusterCA, v1alpha1.SecretClientCert,
	v1alpha1.SecretClientKey, v1alpha1.SecretUsername, v1alpha1.SecretPassword, v1alpha1.SecretToken,
	corev1.ServiceAccountRootCAKey,
}

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
		allOf: fmt.Sprintf("%s and %s, or %s, or %s and %s", v1alpha1.SecretClientCert, v1alpha1.SecretClientKey,
			v1alpha1.SecretToken, v1alpha1.SecretUsername, v1alpha1.SecretPassword),
	}
	if !p.ca.given() {
		p.ca = at(corev1.ServiceAccountRootCAKey)
	}
	if p.server.given() {
		return p, nil
	}
	if r.Hub != "" && p.token.given() && len(data[corev1.ServiceAccountRootCAKey]) > 0 {
		p.server.value, p.hub = []byte(r.Hub), true
		return p, nil
	}
	return p, field.ErrorList{field.Required(path, fmt.Sprintf("it has neither key %s nor key %s", v1alpha1.SecretKubeconfig, v1alpha1.SecretEndpoint))}
}

// Digest tells one connection from another, without telling what it says: the
// Secret's data, and what else it is made of.
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
