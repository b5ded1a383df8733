package cluster

import (
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// User is somebody who may talk to a cluster.
type User struct {
	// Name is what the API server calls the user.
	Name string
	// Config is the user's client configuration.
	Config *rest.Config
	// Kubeconfig is the same as a file, credentials included.
	Kubeconfig []byte
}

// AddUser makes a user with a client certificate. What the user may do is for
// RBAC to say.
func (c *Cluster) AddUser(name string, groups ...string) (*User, error) {
	return c.AddUserUntil(time.Time{}, name, groups...)
}

// AddUserUntil makes a user whose certificate ends; the zero time is as good as
// never.
func (c *Cluster) AddUserUntil(ends time.Time, name string, groups ...string) (*User, error) {
	certificate, key, err := c.ca.clientUntil(ends, name, groups...)
	if err != nil {
		return nil, err
	}
	return c.user(name, &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key})
}

// WithToken is a user who has a bearer token.
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
	// Enough for a test to be limited by the API server, as a person is.
	config.QPS, config.Burst = 200, 400
	data, err := clientcmd.Write(*file)
	if err != nil {
		return nil, err
	}
	return &User{Name: name, Config: config, Kubeconfig: data}, nil
}

// writeKubeconfig makes a user whose kubeconfig is kept in a file of the
// cluster's directory.
func (c *Cluster) writeKubeconfig(file, name string, groups ...string) (*User, error) {
	user, err := c.AddUser(name, groups...)
	if err != nil {
		return nil, err
	}
	return user, os.WriteFile(c.path(file), user.Kubeconfig, 0o600)
}
