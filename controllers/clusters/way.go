package clusters

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/credentials"
)

// Way is how a target is reached.
type Way struct {
	*credentials.Connection
	// ActAs is whom Portico acts as there; nobody else by default.
	ActAs rest.ImpersonationConfig
	// Digest tells one way from another.
	Digest string
}

// WayTo reads how a target is reached from what its connection Secret holds.
func WayTo(target *v1alpha1.KubernetesTarget, data map[string][]byte, rules credentials.Rules) (Way, field.ErrorList) {
	connection, problems := rules.Read(data)
	if problems != nil {
		return Way{}, problems
	}
	user, groups := policies.ActAs(target)
	return Way{
		Connection: connection,
		ActAs:      rest.ImpersonationConfig{UserName: user, Groups: groups},
		Digest:     credentials.Digest(data, append([]string{user}, groups...)...),
	}, nil
}

// prepare returns what calls are made with that go this way.
func (w Way) prepare(qps float32, burst int, warnings rest.WarningHandlerWithContext) (*rest.Config, *http.Client, error) {
	config := rest.CopyConfig(w.Config)
	config.Impersonate = w.ActAs
	config.QPS, config.Burst = qps, burst
	config.UserAgent = v1alpha1.PropagationManager
	config.WarningHandlerWithContext = warnings
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, err
	}
	// An API server does not redirect. Whoever answers in a target's place must
	// not send Portico, with its credentials, wherever they like.
	httpClient.CheckRedirect = stay
	return config, httpClient, nil
}

func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// heard passes what a target warns of to whoever made the call.
type heard struct{}

type listener struct{}

// Listening returns a context for calls of a Line, of which told is given every
// warning of the target. It may be called by several calls at a time.
func Listening(ctx context.Context, told func(warning string)) context.Context {
	return context.WithValue(ctx, listener{}, told)
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (heard) HandleWarningHeaderWithContext(ctx context.Context, code int, _ string, text string) {
	const miscellaneous = 299 // the only code there is for a person
	if told, ok := ctx.Value(listener{}).(func(string)); ok && code == miscellaneous && text != "" {
		told(text)
	}
}

func unprepared(target fmt.Stringer, err error) error {
	return fmt.Errorf("preparing the connection to target %s: %w", target, err)
}
