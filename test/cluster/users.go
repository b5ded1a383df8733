package cluster

import (
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// User is a user of a cluster.
type User struct {
	// Name is the user name.
	Name string
	// Config is the user's client configuration.
	Config *rest.Config
	// Kubeconfig is the same configuration as a file, with credentials.
	Kubeconfig []byte
}

// AddUser creates a user with a client certificate. RBAC decides about the user's
// rights.
func (c *Cluster) AddUser(name string, groups ...string) (*User, error) {
	return c.AddUserUntil(time.Time{}, name, groups...)
}

// AddUserUntil creates a user whose certificate expires at a time; the zero time means
// a long lifetime.
func (c *Cluster) AddUserUntil(ends time.Time, name string, groups ...string) (*User, error) {
	certificate, key, err := c.ca.clientUntil(ends, name, groups...)
	if err != nil {
		return nil, err
	}
	return c.user(name, &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key})
}

// WithToken returns a user with a bearer token.
func (c *Cluster) WithToken(name, token string) (*User, error) {
	return c.user(name, &clientcmdapi.AuthInfo{Token: token})
}

func (c *Cluster) user(name string, credentials *clientcmdapi.AuthInfo) (*User, error) {
	file := clientcmdapi.NewConfig()
	file.Clusters[c.opts.Name] = &clientcmdapi.Cluster{
		Server:                   c.server(),
		CertificateAuthorityData: c.ca.pem(),
	}
	file.AuthInfos[name] = credentials
	file.Contexts[c.opts.Name] = &clientcmdapi.Context{Cluster: c.opts.Name, AuthInfo: name}
	file.CurrentContext = c.opts.Name

	config, err := clientcmd.NewDefaultClientConfig(*file, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	// The API server limits a test, as it limits a user.
	config.QPS, config.Burst = 200, 400
	data, err := clientcmd.Write(*file)
	if err != nil {
		return nil, err
	}
	return &User{Name: name, Config: config, Kubeconfig: data}, nil
}

// writeKubeconfig creates a user, and writes the kubeconfig to a file in the cluster's
// directory.
func (c *Cluster) writeKubeconfig(file, name string, groups ...string) (*User, error) {
	user, err := c.AddUser(name, groups...)
	if err != nil {
		return nil, err
	}
	return user, os.WriteFile(c.path(file), user.Kubeconfig, 0o600)
}
