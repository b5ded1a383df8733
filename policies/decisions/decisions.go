// Package decisions evaluates policies for webhooks and controllers, and records each
// decision: in the log, in metrics, and in the annotations of the API server's audit log.
package decisions

import (
	"context"
	"time"

	"github.com/go-logr/logr"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies/engine"
)

// Evaluator evaluates the policies in force. It is a prometheus.Collector of the
// results.
type Evaluator struct {
	engine          *engine.Engine
	exemptNamespace string
	metrics         metrics
}

// New returns an evaluator of an engine's policies. No policy applies to Portico's own
// namespace.
func New(policies *engine.Engine, porticoNamespace string) *Evaluator {
	return &Evaluator{engine: policies, exemptNamespace: porticoNamespace, metrics: newMetrics()}
}

// Caller identifies, in the log, the component and the request of an evaluation.
type Caller struct {
	// ID of the decision: that of the API request, or of the controller's reconcile.
	ID string
	// Component is admission, or the name of a controller.
	Component string
	// Log receives the record.
	Log logr.Logger
}

// Applies tells whether there are policies of a type, and the namespace is not exempt.
// Otherwise no question has to be built.
func (a *Evaluator) Applies(t policyv1alpha1.PolicyType, namespace string) bool {
	return namespace != a.exemptNamespace && a.engine.HasPolicies(t)
}

// Evaluate decides on all objects of one request, or of one application, which run on
// one target.
func (a *Evaluator) Evaluate(ctx context.Context, caller Caller, questions ...engine.Question) *engine.Decision {
	all := make([]*engine.Decision, 0, len(questions))
	for _, q := range questions {
		d := a.engine.Decide(ctx, q)
		a.record(caller, q, d)
		all = append(all, d)
	}
	return engine.Merge(all...)
}

// Now returns the time that policies see.
func (a *Evaluator) Now() time.Time { return a.engine.Now() }

// Loaded is closed when all policies are known. Callers wait for it before they decide.
func (a *Evaluator) Loaded() <-chan struct{} { return a.engine.Loaded() }

// Changes returns a channel that receives when the policies in force have changed.
// Changes that were not received yet count as one.
func (a *Evaluator) Changes() <-chan struct{} { return a.engine.Changes() }
