package clusters

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"go.opentelemetry.io/otel"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/component-base/tracing"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters/limits"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/credentials"
)

// ConnectionConfig is the configuration of a target's connection.
type ConnectionConfig struct {
	*credentials.Connection
	// Impersonate is the user that Portico acts as on the target. By default it acts
	// as the user of the credential.
	Impersonate rest.ImpersonationConfig
	// Digest distinguishes configurations. Targets with the same digest share a
	// connection.
	Digest string
}

// NewConnectionConfig returns the configuration of a target's connection by the data
// of its connection Secret.
func NewConnectionConfig(target *v1alpha1.KubernetesTarget, data map[string][]byte, rules credentials.Rules) (ConnectionConfig, field.ErrorList) {
	connection, problems := rules.ReadSecret(data)
	if problems != nil {
		return ConnectionConfig{}, problems
	}
	user, groups := policies.ImpersonatedUser(target)
	return ConnectionConfig{
		Connection:  connection,
		Impersonate: rest.ImpersonationConfig{UserName: user, Groups: groups},
		Digest:      connection.Digest(append([]string{user}, groups...)...),
	}, nil
}

// newHTTPClient returns the REST configuration and the HTTP client of a connection.
// The resolver resolves the name of the endpoint; nil for Go's resolver. The limiter
// bounds the responses. closeAll closes all its TCP connections.
func (w ConnectionConfig) newHTTPClient(qps float32, burst int, warnings rest.WarningHandlerWithContext, resolver *net.Resolver, limiter *limits.Limiter) (_ *rest.Config, _ *http.Client, closeAll func(), _ error) {
	config := rest.CopyConfig(w.Config)
	rotatingDialer := connrotation.NewDialer(dialerFor(config.Host, w.AddressRules, resolver))
	config.Dial = rotatingDialer.DialContext
	config.Wrap(limiter.Wrap(config.Host))
	config.Wrap(tracing.WrapperFor(otel.GetTracerProvider()))
	config.Impersonate = w.Impersonate
	config.QPS, config.Burst = qps, burst
	config.UserAgent = v1alpha1.PropagationManager
	config.WarningHandlerWithContext = warnings
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, nil, err
	}
	// An API server does not redirect. A server in the place of a target must not
	// direct Portico, with its credentials, to another server.
	httpClient.CheckRedirect = refuseRedirects
	return config, httpClient, rotatingDialer.CloseAll, nil
}

func refuseRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// warningHandler passes the warnings of a target to the caller of the request.
type warningHandler struct{}

type warningHandlerKey struct{}

// WithWarningHandler returns a context for calls of a DirectClient. handle is called
// with every warning of the target, also by several calls at a time.
func WithWarningHandler(ctx context.Context, handle func(warning string)) context.Context {
	return context.WithValue(ctx, warningHandlerKey{}, handle)
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (warningHandler) HandleWarningHeaderWithContext(ctx context.Context, code int, _ string, text string) {
	const miscellaneous = 299 // the only code with a text for users
	if handle, ok := ctx.Value(warningHandlerKey{}).(func(string)); ok && code == miscellaneous && text != "" {
		handle(boundText(text, maxWarning))
	}
}

func prepareError(target fmt.Stringer, err error) error {
	return fmt.Errorf("preparing the connection to target %s: %w", target, err)
}
