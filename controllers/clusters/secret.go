package clusters

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Config reads a connection Secret's data. A kubeconfig wins over the separate
// keys. Whatever would make Portico run a program, read a file of its own, or
// trust a server it cannot verify is refused. Errors name keys, never values.
func Config(data map[string][]byte) (*rest.Config, error) {
	if raw := data[v1alpha1.SecretKubeconfig]; len(raw) > 0 {
		return fromKubeconfig(raw)
	}
	return fromKeys(data)
}

func fromKubeconfig(raw []byte) (*rest.Config, error) {
	// What a parser says of the file may quote it, and with it a credential; so
	// may its names, which anything can be pasted into.
	config, err := clientcmd.Load(raw)
	if err != nil {
		return nil, errors.New("key kubeconfig is not a kubeconfig in YAML or JSON")
	}
	current, ok := config.Contexts[config.CurrentContext]
	if !ok {
		return nil, errors.New("key kubeconfig: its current-context is not among its contexts")
	}
	cluster, ok := config.Clusters[current.Cluster]
	if !ok {
		return nil, errors.New("key kubeconfig: its current context names a cluster that is not in the file")
	}
	user, ok := config.AuthInfos[current.AuthInfo]
	if !ok {
		return nil, errors.New("key kubeconfig: its current context names a user that is not in the file")
	}
	if err := refuse(cluster, user); err != nil {
		return nil, fmt.Errorf("key kubeconfig: %w", err)
	}
	out, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return nil, errors.New("key kubeconfig does not describe a usable connection")
	}
	if err := verifyServer(out.Host, "key kubeconfig: server"); err != nil {
		return nil, err
	}
	if !credential(out) {
		return nil, errors.New("key kubeconfig: its current user has no credential; embed a client certificate and key, or a token")
	}
	return out, verifyTLS(out)
}

// refuse names what Portico does not follow in somebody else's kubeconfig.
func refuse(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) error {
	switch {
	case user.Exec != nil:
		return errors.New("exec plugins are not run; use a token or a client certificate")
	case user.AuthProvider != nil:
		return errors.New("auth providers are not supported; use a token or a client certificate")
	case user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != "" || cluster.CertificateAuthority != "":
		return errors.New("files are not read; embed the data (kubectl config view --raw --flatten)")
	case cluster.InsecureSkipTLSVerify:
		return errors.New("insecure-skip-tls-verify is not accepted; give the cluster's certificate-authority-data")
	}
	return nil
}

func fromKeys(data map[string][]byte) (*rest.Config, error) {
	// Files that Secrets are made from end in a line break.
	endpoint := strings.TrimSpace(string(data[v1alpha1.SecretEndpoint]))
	if endpoint == "" {
		return nil, fmt.Errorf("has neither key %s nor key %s", v1alpha1.SecretKubeconfig, v1alpha1.SecretEndpoint)
	}
	if err := verifyServer(endpoint, "key endpoint"); err != nil {
		return nil, err
	}
	config := &rest.Config{
		Host:        endpoint,
		Username:    string(data[v1alpha1.SecretUsername]),
		Password:    string(data[v1alpha1.SecretPassword]),
		BearerToken: strings.TrimSpace(string(data[v1alpha1.SecretToken])),
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   data[v1alpha1.SecretClusterCA],
			CertData: data[v1alpha1.SecretClientCert],
			KeyData:  data[v1alpha1.SecretClientKey],
		},
	}
	switch {
	case (len(config.CertData) == 0) != (len(config.KeyData) == 0):
		return nil, fmt.Errorf("keys %s and %s are given together or not at all", v1alpha1.SecretClientCert, v1alpha1.SecretClientKey)
	case config.BearerToken != "" && config.Username != "":
		return nil, fmt.Errorf("keys %s and %s are not given together", v1alpha1.SecretToken, v1alpha1.SecretUsername)
	case !credential(config):
		return nil, fmt.Errorf("has no credential: give %s and %s, or %s, or %s and %s", v1alpha1.SecretClientCert,
			v1alpha1.SecretClientKey, v1alpha1.SecretToken, v1alpha1.SecretUsername, v1alpha1.SecretPassword)
	}
	return config, verifyTLS(config)
}

func credential(config *rest.Config) bool {
	return len(config.CertData) > 0 || config.BearerToken != "" || config.Username != ""
}

func verifyServer(server, what string) error {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.Scheme != "https" {
		return fmt.Errorf("%s is not an https URL", what)
	}
	if u.User != nil {
		return fmt.Errorf("%s contains a user name; give credentials apart from it", what)
	}
	return nil
}

// verifyTLS tries what the connection would, which quotes what it cannot use.
func verifyTLS(config *rest.Config) error {
	if _, err := rest.TLSConfigFor(config); err != nil {
		return errors.New("its certificates or key are not PEM, or do not belong together")
	}
	return nil
}

// Digest tells one connection Secret's content from another's, without telling
// the content.
func Digest(data map[string][]byte) string {
	hash := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		_, _ = fmt.Fprintf(hash, "%d:%s=%d:", len(key), key, len(data[key]))
		hash.Write(data[key])
	}
	return hex.EncodeToString(hash.Sum(nil))
}
