// Package decisions asks policies in the name of webhooks and controllers, and
// keeps a record of what they decided: in the log, in metrics, and in what the
// API server's audit log is given.
package decisions

import (
	"context"

	"github.com/go-logr/logr"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies/engine"
)

// Asker asks the policies in force. It is a prometheus.Collector of what came of
// it.
type Asker struct {
	engine  *engine.Engine
	exempt  string
	metrics metrics
}

// New returns an asker of an engine. Portico's own namespace never meets a
// policy.
func New(policies *engine.Engine, portico string) *Asker {
	return &Asker{engine: policies, exempt: portico, metrics: newMetrics()}
}

// Occasion is why policies are asked.
type Occasion struct {
	// ID of the decision: that of the API request, or of the controller's run.
	ID string
	// Asks is who asks: admission, or a controller's name.
	Asks string
	// Log has the record.
	Log logr.Logger
}

// Asks tells whether policies of a type have a say about a namespace. When they
// have none, nothing needs to be gathered.
func (a *Asker) Asks(t policyv1alpha1.PolicyType, namespace string) bool {
	return namespace != a.exempt && a.engine.Asks(t)
}

// Ask asks about everything in a request, or in an application, which runs on
// one target.
func (a *Asker) Ask(ctx context.Context, why Occasion, questions ...engine.Question) *engine.Decision {
	all := make([]*engine.Decision, 0, len(questions))
	for _, q := range questions {
		d := a.engine.Decide(ctx, q)
		a.record(why, q, d)
		all = append(all, d)
	}
	return engine.Join(all...)
}

// Loaded is closed when all policies are known. Whoever decides by them waits.
func (a *Asker) Loaded() <-chan struct{} { return a.engine.Loaded() }

// Changes says when the policies in force have changed. Changes that nobody has
// looked at yet are one.
func (a *Asker) Changes() <-chan struct{} { return a.engine.Changes() }
