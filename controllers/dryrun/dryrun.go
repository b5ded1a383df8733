// Package dryrun tests, by a server-side dry run, whether a target accepts an object.
package dryrun

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/namespaceobjects"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/connectionsecret"
	"github.com/portico-io/portico/policies/credentials"
)

// Options of a Runner.
type Options struct {
	// HubID is the identity of this hub. It marks the hub's objects on the targets.
	HubID string
	// AllowDefaults apply to targets without spec.allow.
	AllowDefaults policies.AllowDefaults
	// Rules are the rules for connection Secrets.
	Rules credentials.Rules
	// Connections say where the connections of managed clusters are kept.
	Connections connectionsecret.Options
}

// Runner makes dry runs on targets for admission: the same requests that propagation
// would make, with the same credentials and field manager. It runs on every replica.
type Runner struct {
	options Options
	hub     client.Reader // reads from the cache
	live    client.Reader // reads Secrets, whose content is not cached
	direct  *clusters.DirectClients
	seconds *prometheus.HistogramVec

	connections connections
	answers     targetAnswers
}

// New returns a Runner. cached and live read the hub.
func New(cached, live client.Reader, direct *clusters.DirectClients, o Options) *Runner {
	return &Runner{options: o, hub: cached, live: live, direct: direct, answers: targetAnswers{lifetime: answerLifetime}, seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "portico_dry_run_seconds",
		Help:    "Duration of dry runs on targets during admission, by result.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2, 5},
	}, []string{"result"})}
}

// Describe implements prometheus.Collector.
func (r *Runner) Describe(to chan<- *prometheus.Desc) { r.seconds.Describe(to) }

// Collect implements prometheus.Collector.
func (r *Runner) Collect(to chan<- prometheus.Metric) { r.seconds.Collect(to) }

// ObjectsInNamespace counts the objects of others in the Namespace that a resource created
// on a target. It fails if the target does not answer.
func (r *Runner) ObjectsInNamespace(ctx context.Context, target *v1alpha1.KubernetesTarget, resource *v1alpha1.KubernetesApplicationResource) (policies.ObjectCounts, error) {
	s := &scope{target: target, resource: resource}
	if result := r.connect(ctx, s); result != nil {
		return policies.ObjectCounts{}, errors.New(result.Message)
	}
	return namespaceobjects.Count(ctx, r.hub, s.connection, resource, target.Name, r.options.HubID)
}

// scope is the state of one dry run.
type scope struct {
	target     *v1alpha1.KubernetesTarget
	resource   *v1alpha1.KubernetesApplicationResource
	alongside  []*unstructured.Unstructured
	connection *clusters.DirectClient
	// desired is the object to apply. observed is the object on the target, or nil.
	desired, observed *unstructured.Unstructured
	// state compares them. Before the object is read, state is the expected state.
	state plan.State
	read  bool
	// applied is the digest of the last applied object; "" if the hub does not know the
	// digest.
	applied string
	// clusterScoped says that the kind is not namespaced on the target.
	clusterScoped bool
	// missing are the warnings about cluster-scoped objects that the target does not have.
	missing []string
	// replaces says that the object on the target is of an earlier object of the hub, and
	// is being deleted.
	replaces bool
}

// step returns the result that ends the dry run, or nil.
type step func(context.Context, *scope) *policies.DryRun

// DryRun applies the object of a resource on a target as a dry run. alongside are the
// objects that the same request sends there, such as the namespace of the object, or the
// definition of its kind.
func (r *Runner) DryRun(ctx context.Context, target *v1alpha1.KubernetesTarget, resource *v1alpha1.KubernetesApplicationResource, alongside []*unstructured.Unstructured) policies.DryRun {
	var mu sync.Mutex
	var warnings []string
	ctx = clusters.WithWarningHandler(ctx, func(warning string) {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(warnings, warning) {
			warnings = append(warnings, warning)
		}
	})
	started := time.Now()
	s := &scope{target: target, resource: resource.DeepCopy(), alongside: alongside}
	out := policies.DryRun{Result: policies.DryRunAccepted}
	for _, run := range []step{r.connect, r.buildDesired, r.checkKind, r.checkAllowed, r.expectObject, r.apply} {
		if result := run(ctx, s); result != nil {
			out = *result
			break
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, warning := range warnings {
		out.Warnings = append(out.Warnings, fmt.Sprintf("target %s: %s", target.Name, warning))
	}
	if out.Result != policies.DryRunRefused {
		out.Warnings = append(out.Warnings, s.missing...)
	}
	r.seconds.WithLabelValues(string(out.Result)).Observe(time.Since(started).Seconds())
	log.FromContext(ctx).V(2).Info("Made dry run on target", "target", klog.KObj(target), "resource", klog.KObj(resource), "result", out.Result, "message", out.Message)
	return out
}

// buildDesired builds the object to apply. The marks of an object have the UID of a
// resource that exists.
func (r *Runner) buildDesired(ctx context.Context, s *scope) *policies.DryRun {
	stored := &v1alpha1.KubernetesApplicationResource{}
	if err := r.hub.Get(ctx, client.ObjectKeyFromObject(s.resource), stored); err == nil {
		s.resource.UID, s.resource.Status, s.resource.Spec.LeavingTargetRef = stored.UID, stored.Status, stored.Spec.LeavingTargetRef
		s.replaces = replaces(s.resource, stored)
	}
	var err error
	if s.desired, err = plan.Desired(s.resource, r.options.HubID); err != nil {
		return &policies.DryRun{Result: policies.DryRunSkipped} // admission denies an invalid template
	}
	if before, err := plan.Desired(stored, r.options.HubID); err == nil && policies.ContentOwner(stored) == nil {
		s.applied = plan.DigestOf(before)
	}
	return nil
}

// replaces tells whether the stored resource is of an earlier object of the hub that had
// the same name.
func replaces(resource, stored *v1alpha1.KubernetesApplicationResource) bool {
	now, before := metav1.GetControllerOf(resource), metav1.GetControllerOf(stored)
	return stored.DeletionTimestamp != nil || now != nil && before != nil && now.UID != before.UID
}

// checkKind checks that the target has the kind, and reads its scope. A kind whose
// definition Portico sends is not missing.
func (r *Runner) checkKind(ctx context.Context, s *scope) *policies.DryRun {
	gvk := s.desired.GroupVersionKind()
	namespaced, err := s.connection.Namespaced(ctx, gvk)
	switch {
	case meta.IsNoMatchError(err) && r.isSent(ctx, s, policies.DefinitionKey(gvk.Group, gvk.Kind)):
		return &policies.DryRun{Result: policies.DryRunSkipped}
	case meta.IsNoMatchError(err):
		return &policies.DryRun{Result: policies.DryRunRefused, Message: plan.UnknownKindMessage(s.target.Name, gvk)}
	case err != nil:
		return r.resultOf(ctx, s, err)
	case namespaced && s.desired.GetNamespace() == "":
		s.desired.SetNamespace(metav1.NamespaceDefault)
	}
	s.clusterScoped = !namespaced
	return nil
}

// checkAllowed makes the same check as propagation. If the object is on the target
// already, the user only reads that it remains unchanged there.
func (r *Runner) checkAllowed(_ context.Context, s *scope) *policies.DryRun {
	item := policies.AllowItemOf(s.desired, func(schema.GroupVersionKind) bool { return s.clusterScoped })
	if denied := r.options.AllowDefaults.DeniedReason(s.target, item); denied != "" {
		return notSent(fmt.Sprintf("target %s %s", s.target.Name, denied))
	}
	return nil
}

// expectObject finds the state of the object. The object is read from the target only if
// the status of the resource does not tell the state. Propagation does not apply an
// object that is in sync.
func (r *Runner) expectObject(ctx context.Context, s *scope) *policies.DryRun {
	s.state, s.observed = plan.Expected(s.desired, s.resource, s.target.Name)
	switch {
	case s.state == "":
		return r.readObject(ctx, s)
	case s.state == plan.Drifted && s.applied == plan.DigestOf(s.desired):
		return &policies.DryRun{Result: policies.DryRunSkipped}
	}
	return nil
}

// readObject reads the object on the target. Propagation would not apply an object that
// the resource does not own, or that is in sync.
func (r *Runner) readObject(ctx context.Context, s *scope) *policies.DryRun {
	observed := &unstructured.Unstructured{}
	observed.SetGroupVersionKind(s.desired.GroupVersionKind())
	err := s.connection.Get(ctx, client.ObjectKeyFromObject(s.desired), observed)
	if err != nil && !apierrors.IsNotFound(err) {
		return r.resultOf(ctx, s, err)
	}
	if s.read, s.observed = true, nil; err == nil {
		s.observed = observed
	}
	kinds.Retain(s.desired, s.observed)
	switch s.state = plan.StateOf(s.desired, s.observed, s.resource, r.options.HubID); s.state {
	case plan.NativeObject, plan.Foreign:
		if plan.SiblingOf(s.observed, s.resource, r.options.HubID) != "" {
			return &policies.DryRun{Result: policies.DryRunSkipped} // Portico applies it for another resource
		}
		return notSent(plan.NotOwnedMessage(s.target.Name, s.desired, s.observed, s.state, s.resource, r.options.HubID))
	case plan.InSync:
		return &policies.DryRun{Result: policies.DryRunSkipped}
	}
	return nil
}

// apply applies the object as a dry run. At the same time it creates a Pod of the object
// as a dry run, if the object has Pods, and reads the cluster-scoped objects that the
// object names.
func (r *Runner) apply(ctx context.Context, s *scope) *policies.DryRun {
	pod, missing := r.createPod(ctx, s), r.findMissingObjects(ctx, s)
	result := r.applyObject(ctx, s)
	if result != nil && result.Result == policies.DryRunRefused && bringsServiceAccount(s) {
		kinds.UseDefaultServiceAccount(s.desired) // the account of the Pod is sent before the Pod
		result = r.applyObject(ctx, s)
	}
	s.missing = <-missing
	if refused := <-pod; result == nil && refused != "" {
		result = &policies.DryRun{Result: policies.DryRunAccepted, Message: refused}
	}
	return result
}

func (r *Runner) applyObject(ctx context.Context, s *scope) *policies.DryRun {
	apply := func(with plan.ApplyOptions) error {
		object, force := plan.ApplyRequest(s.desired, s.observed, s.state, with)
		options := []client.ApplyOption{client.FieldOwner(v1alpha1.PropagationManager), client.DryRunAll}
		if force {
			options = append(options, client.ForceOwnership)
		}
		return s.connection.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...)
	}
	err := apply(plan.ApplyOptions{Force: policies.HasForceAnnotation(s.resource)})
	if plan.IsNamespaceMissing(err) {
		return r.createNamespace(ctx, s)
	}
	if plan.IsUnexpected(err) && (!s.read || s.state == plan.Absent) {
		expected := s.state
		if result := r.readObject(ctx, s); result != nil {
			return result
		}
		if s.state != expected || len(plan.ConflictingFields(err)) == 0 {
			err = apply(plan.ApplyOptions{Force: policies.HasForceAnnotation(s.resource)})
		}
	}
	if fields := plan.ConflictingFields(err); len(fields) > 0 && s.state != plan.Absent {
		with, conflicts := plan.ResolveConflicts(plan.FieldOwnersOf(s.observed, fields))
		if len(conflicts) > 0 {
			return notSent(plan.FieldConflictMessage(s.target.Name, s.desired, conflicts))
		}
		err = apply(with)
	}
	if s.replaces && apierrors.IsInvalid(err) {
		return r.createObject(ctx, s)
	}
	return r.resultOf(ctx, s, err)
}

// createObject creates the object under a generated name. The immutable fields of the
// object that it replaces may differ. What is then invalid is only so while that object
// exists, such as a node port: the hub validates the rest.
func (r *Runner) createObject(ctx context.Context, s *scope) *policies.DryRun {
	object := s.desired.DeepCopy()
	object.SetGenerateName(object.GetName() + "-")
	object.SetName("")
	err := s.connection.Create(ctx, object, client.FieldOwner(v1alpha1.PropagationManager), client.DryRunAll)
	if apierrors.IsInvalid(err) {
		return &policies.DryRun{Result: policies.DryRunSkipped}
	}
	return r.resultOf(ctx, s, err)
}

// createNamespace creates a missing namespace as a dry run. An object in it can only be
// applied once the namespace exists.
func (r *Runner) createNamespace(ctx context.Context, s *scope) *policies.DryRun {
	if r.isSent(ctx, s, policies.NamespaceKey(s.desired.GetNamespace())) {
		return &policies.DryRun{Result: policies.DryRunSkipped}
	}
	s.desired = plan.NamespaceObject(s.desired)
	err := s.connection.Create(ctx, s.desired, client.FieldOwner(v1alpha1.PropagationManager), client.DryRunAll)
	return r.resultOf(ctx, s, client.IgnoreAlreadyExists(err))
}

// isSent tells whether an object is sent to the target in the same request, or by another
// resource of the same namespace. key is a value of policies.PrerequisiteIndex.
func (r *Runner) isSent(ctx context.Context, s *scope, key string) bool {
	if slices.ContainsFunc(s.alongside, func(o *unstructured.Unstructured) bool { return o != nil && policies.PrerequisiteKey(o) == key }) {
		return true
	}
	var others v1alpha1.KubernetesApplicationResourceList
	if err := r.hub.List(ctx, &others, client.InNamespace(s.resource.Namespace), client.MatchingFields{policies.PrerequisiteIndex: key}, client.UnsafeDisableDeepCopy); err != nil {
		return false
	}
	return slices.ContainsFunc(others.Items, func(other v1alpha1.KubernetesApplicationResource) bool {
		return other.DeletionTimestamp == nil && (other.Spec.TargetRef == nil || other.Spec.TargetRef.Name == s.target.Name)
	})
}

// dryRunUnsupported is the end of the error message of a target that has a webhook with
// side effects. The error has no reason or field for this case.
const dryRunUnsupported = "does not support dry run"

// resultOf returns the result of a request. Only an error about the object is a
// refusal: a target that is unreachable, busy or broken may accept the object later.
// For an unknown field the API server responds with 500 as well, but without a reason.
func (r *Runner) resultOf(ctx context.Context, s *scope, err error) *policies.DryRun {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded):
		s.connection.CloseIdleConnections()
		return unavailable(s, "does not answer in time")
	case clusters.IsUnreachable(err):
		s.connection.CloseIdleConnections()
		return unavailable(s, "does not answer")
	case !errors.As(err, &status):
		return unavailable(s, "does not answer")
	case apierrors.IsUnauthorized(err): // a rotation may have replaced the credential
		r.connections.forget(client.ObjectKeyFromObject(s.target))
		return unavailable(s, "does not accept Portico's credential")
	case apierrors.ReasonForError(err) == metav1.StatusReasonInternalError, status.Status().Code > http.StatusInternalServerError, apierrors.IsTooManyRequests(err),
		apierrors.IsBadRequest(err) && strings.HasSuffix(plan.ErrorMessage(err), dryRunUnsupported):
		return unavailable(s, "cannot tell ("+plan.ErrorMessage(err)+")")
	case apierrors.IsConflict(err):
		return notSent(plan.RefusalMessage(s.target.Name, s.desired, err))
	}
	return &policies.DryRun{Result: policies.DryRunRefused, Message: plan.RefusalMessage(s.target.Name, s.desired, err)}
}

// notSent is the result for an object that admission accepts, and that propagation does
// not send.
func notSent(message string) *policies.DryRun {
	return &policies.DryRun{Result: policies.DryRunConflicted, Message: "accepted, and not sent: " + message}
}

// unavailable is the result for a target that does not answer.
func unavailable(s *scope, problem string) *policies.DryRun {
	out := policies.UnansweredDryRun(s.target.Name, problem)
	return &out
}
