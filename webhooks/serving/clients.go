package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// Clients verifies the client certificates of API servers.
type Clients struct {
	ca    *dynamiccertificates.DynamicFileCAContent
	names sets.Set[string]
}

// NewClients returns Clients for a CA file and a list of common names. An empty list
// allows every common name. A change of the file applies to new connections.
func NewClients(file string, names []string) (*Clients, error) {
	ca, err := dynamiccertificates.NewDynamicCAContentFromFile("webhook-client-ca", file)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authority of the API servers: %w", err)
	}
	return &Clients{ca: ca, names: sets.New(names...)}, nil
}

// Start implements manager.Runnable. It watches the file.
func (c *Clients) Start(ctx context.Context) error {
	c.ca.Run(ctx, 1)
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*Clients) NeedLeaderElection() bool { return false }

// Configure makes a TLS server verify client certificates. It does not require a
// certificate: an API server has none when it converts a custom resource, and neither
// has a readiness probe. Authenticate requires the certificate.
func (c *Clients) Configure(config *tls.Config) {
	config.ClientAuth = tls.VerifyClientCertIfGiven
	// A resumed connection would be verified with an earlier version of the file.
	config.SessionTicketsDisabled = true
	template := config.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		options, ok := c.ca.VerifyOptions()
		if !ok {
			return nil, errors.New("there is no certificate authority for clients")
		}
		current := template.Clone()
		current.ClientCAs = options.Roots
		return current, nil
	}
}

// Authenticate returns an error for a request without a verified certificate, or
// with one of another name.
func (c *Clients) Authenticate(r *http.Request) error {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return errors.New("a client certificate is required; configure the API server with --admission-control-config-file")
	}
	if name := r.TLS.VerifiedChains[0][0].Subject.CommonName; c.names.Len() > 0 && !c.names.Has(name) {
		return fmt.Errorf("the client certificate of %q is not one of an API server; --webhook-client-name lists the allowed names", name)
	}
	return nil
}
