package clusters

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"

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
	config, err := clientcmd.Load(raw)
	if err != nil {
		// The parser's error may quote the file, and with it a credential.
		return nil, errors.New("key kubeconfig is not a kubeconfig in YAML or JSON")
	}
	current, ok := config.Contexts[config.CurrentContext]
	if !ok {
		return nil, fmt.Errorf("key kubeconfig: current-context %q is not among its contexts", config.CurrentContext)
	}
	cluster, ok := config.Clusters[current.Cluster]
	if !ok {
		return nil, fmt.Errorf("key kubeconfig: context %q names cluster %q, which is not in the file", config.CurrentContext, current.Cluster)
	}
	user, ok := config.AuthInfos[current.AuthInfo]
	if !ok {
		return nil, fmt.Errorf("key kubeconfig: context %q names user %q, which is not in the file", config.CurrentContext, current.AuthInfo)
	}
	if err := refuse(cluster, user); err != nil {
		return nil, fmt.Errorf("key kubeconfig: %w", err)
	}
	out, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return nil, errors.New("key kubeconfig does not describe a usable connection")
	}
	return out, verifyServer(out.Host, "key kubeconfig: server")
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
	endpoint := string(data[v1alpha1.SecretEndpoint])
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
		BearerToken: string(data[v1alpha1.SecretToken]),
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   data[v1alpha1.SecretClusterCA],
			CertData: data[v1alpha1.SecretClientCert],
			KeyData:  data[v1alpha1.SecretClientKey],
		},
	}
	if (len(config.CertData) == 0) != (len(config.KeyData) == 0) {
		return nil, fmt.Errorf("keys %s and %s are given together or not at all", v1alpha1.SecretClientCert, v1alpha1.SecretClientKey)
	}
	if len(config.CertData) == 0 && config.BearerToken == "" && config.Username == "" {
		return nil, fmt.Errorf("has no credential: give %s and %s, or %s, or %s and %s", v1alpha1.SecretClientCert,
			v1alpha1.SecretClientKey, v1alpha1.SecretToken, v1alpha1.SecretUsername, v1alpha1.SecretPassword)
	}
	if _, err := rest.TLSConfigFor(config); err != nil {
		return nil, errors.New("its certificates or key are not PEM, or do not belong together")
	}
	return config, nil
}

func verifyServer(server, what string) error {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.Scheme != "https" {
		return fmt.Errorf("%s is not an https URL", what)
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
