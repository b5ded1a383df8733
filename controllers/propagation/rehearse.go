package propagation

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
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/credentials"
)

// RehearsalOptions of a Rehearser.
type RehearsalOptions struct {
	// HubID marks this hub's objects on the targets.
	HubID string
	// Frontier is what targets let in by default.
	Frontier policies.Frontier
	// Rules that connection Secrets are judged by.
	Rules credentials.Rules
}

// Rehearser asks targets whether they would take what Portico would write there:
// the same object, by the same rights, under the same name of a field manager,
// but as a dry run. It runs on every replica.
type Rehearser struct {
	options RehearsalOptions
	cached  client.Reader
	live    client.Reader // for Secrets, which are not kept in memory
	direct  *clusters.Direct
	seconds *prometheus.HistogramVec
}

// NewRehearser returns one. cached and live read the hub.
func NewRehearser(cached, live client.Reader, direct *clusters.Direct, o RehearsalOptions) *Rehearser {
	return &Rehearser{options: o, cached: cached, live: live, direct: direct, seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "portico_dry_run_seconds",
		Help:    "How long a dry run on a target took that somebody waited for, by what came of it.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2, 5},
	}, []string{"result"})}
}

// Describe implements prometheus.Collector.
func (r *Rehearser) Describe(to chan<- *prometheus.Desc) { r.seconds.Describe(to) }

// Collect implements prometheus.Collector.
func (r *Rehearser) Collect(to chan<- prometheus.Metric) { r.seconds.Collect(to) }

// trial is one rehearsal: what its steps find out.
type trial struct {
	target   *v1alpha1.KubernetesTarget
	resource *v1alpha1.KubernetesApplicationResource
	with     []*unstructured.Unstructured
	line     *clusters.Line
	desired  *unstructured.Unstructured
	observed *unstructured.Unstructured
	standing standing
	// clusterScoped says that the kind has no namespaces on the target.
	clusterScoped bool
}

// Rehearse tries a resource on a target. with is what else is sent there in the
// same request, such as its namespace, or the definition of its kind.
func (r *Rehearser) Rehearse(ctx context.Context, target *v1alpha1.KubernetesTarget, resource *v1alpha1.KubernetesApplicationResource, with []*unstructured.Unstructured) policies.Rehearsal {
	var mu sync.Mutex
	var warnings []string
	ctx = clusters.Listening(ctx, func(warning string) {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(warnings, warning) {
			warnings = append(warnings, warning)
		}
	})
	started := time.Now()
	t := &trial{target: target, resource: resource.DeepCopy(), with: with}
	out := policies.Rehearsal{Result: policies.RehearsalAccepted}
	for _, step := range []func(context.Context, *trial) *policies.Rehearsal{r.call, r.project, r.know, r.permit, r.look, r.apply} {
		if ended := step(ctx, t); ended != nil {
			out = *ended
			break
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, warning := range warnings {
		out.Warnings = append(out.Warnings, fmt.Sprintf("target %s: %s", target.Name, warning))
	}
	r.seconds.WithLabelValues(string(out.Result)).Observe(time.Since(started).Seconds())
	return out
}

// call finds the line to the target. One that is known not to answer is not
// waited for.
func (r *Rehearser) call(ctx context.Context, t *trial) *policies.Rehearsal {
	if known := meta.FindStatusCondition(t.target.Status.Conditions, v1alpha1.TargetReachable); known != nil && known.Status == metav1.ConditionFalse {
		return unanswered(t, "is not reachable ("+known.Reason+")")
	}
	if t.target.Spec.ConnectionSecretRef == nil {
		return unanswered(t, "is not connected yet")
	}
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: t.target.Namespace, Name: t.target.Spec.ConnectionSecretRef.Name}
	if err := r.live.Get(ctx, key, secret); err != nil {
		return unanswered(t, "has no connection")
	}
	way, problems := clusters.WayTo(t.target, secret.Data, r.options.Rules)
	if problems != nil {
		return unanswered(t, "has no usable connection")
	}
	line, err := r.direct.Line(client.ObjectKeyFromObject(t.target), way)
	if err != nil { // its words are about certificates, and may quote them
		return unanswered(t, "has no usable connection")
	}
	t.line = line
	return nil
}

// project returns the object that would be written. A resource that is stored
// has its UID on it already.
func (r *Rehearser) project(ctx context.Context, t *trial) *policies.Rehearsal {
	stored := &v1alpha1.KubernetesApplicationResource{}
	if err := r.cached.Get(ctx, client.ObjectKeyFromObject(t.resource), stored); err == nil {
		t.resource.UID, t.resource.Status.RemoteUID = stored.UID, stored.Status.RemoteUID
	}
	var err error
	if t.desired, err = desire(t.resource, r.options.HubID); err != nil {
		return &policies.Rehearsal{Result: policies.RehearsalSkipped} // what is no template is refused already
	}
	return nil
}

// know finds out whether the target has the kind, and whether its objects have
// namespaces there. A kind that Portico brings itself is not missing.
func (r *Rehearser) know(ctx context.Context, t *trial) *policies.Rehearsal {
	gvk := t.desired.GroupVersionKind()
	namespaced, err := t.line.Namespaced(ctx, gvk)
	switch {
	case meta.IsNoMatchError(err) && r.brought(ctx, t, func(o *unstructured.Unstructured) bool { return defines(o, gvk.GroupKind()) }):
		return &policies.Rehearsal{Result: policies.RehearsalSkipped}
	case meta.IsNoMatchError(err):
		return &policies.Rehearsal{Result: policies.RehearsalRefused, Message: unknownKind(t.target.Name, gvk)}
	case err != nil:
		return r.answer(ctx, t, err)
	case namespaced && t.desired.GetNamespace() == "":
		t.desired.SetNamespace(metav1.NamespaceDefault)
	}
	t.clusterScoped = !namespaced
	return nil
}

// permit asks what is asked again before anything is written. Who edits what is
// there already has to hear no more of it than that it stays as it is.
func (r *Rehearser) permit(_ context.Context, t *trial) *policies.Rehearsal {
	cargo := policies.CargoOf(t.desired, func(schema.GroupVersionKind) bool { return t.clusterScoped })
	if why := r.options.Frontier.Refuses(t.target, cargo); why != "" {
		return &policies.Rehearsal{Result: policies.RehearsalDisputed, Message: fmt.Sprintf("accepted, and not sent: target %s %s", t.target.Name, why)}
	}
	return nil
}

// look finds the object on the target. What is not ours would not be written, and
// so it is not tried; what is as it should be would not be written either.
func (r *Rehearser) look(ctx context.Context, t *trial) *policies.Rehearsal {
	observed := &unstructured.Unstructured{}
	observed.SetGroupVersionKind(t.desired.GroupVersionKind())
	err := t.line.Get(ctx, client.ObjectKeyFromObject(t.desired), observed)
	if err != nil && !apierrors.IsNotFound(err) {
		return r.answer(ctx, t, err)
	}
	if err == nil {
		t.observed = observed
	}
	switch t.standing = stand(t.desired, t.observed, t.resource, r.options.HubID); t.standing {
	case itself, foreign:
		return &policies.Rehearsal{Result: policies.RehearsalDisputed,
			Message: "accepted, and not sent: " + others(t.target.Name, t.desired, t.observed, t.standing, t.resource, r.options.HubID)}
	case inSync:
		return &policies.Rehearsal{Result: policies.RehearsalSkipped}
	}
	return nil
}

// apply asks for what Portico would, as a dry run, and at the same time for a Pod
// of it, if it has any.
func (r *Rehearser) apply(ctx context.Context, t *trial) *policies.Rehearsal {
	pods := r.startPod(ctx, t)
	ended := r.write(ctx, t)
	if why := <-pods; ended == nil && why != "" {
		ended = &policies.Rehearsal{Result: policies.RehearsalAccepted, Message: why}
	}
	return ended
}

func (r *Rehearser) write(ctx context.Context, t *trial) *policies.Rehearsal {
	try := func(with insistence) error {
		object, options := request(t.desired, t.observed, t.standing, with)
		return t.line.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), append(options, client.DryRunAll)...)
	}
	err := try(insistence{force: forced(t.resource)})
	if missingNamespace(err) {
		return r.makeNamespace(ctx, t)
	}
	if apierrors.IsConflict(err) && t.standing == absent { // it was made since it was looked at
		if ended := r.look(ctx, t); ended != nil {
			return ended
		}
		err = try(insistence{force: forced(t.resource)})
	}
	if fields := contested(err); len(fields) > 0 && t.standing != absent {
		with, disputed := settle(claims(t.observed, fields))
		if len(disputed) > 0 {
			return &policies.Rehearsal{Result: policies.RehearsalDisputed, Message: "accepted, and not sent: " + fieldConflict(t.target.Name, t.desired, disputed)}
		}
		err = try(with)
	}
	return r.answer(ctx, t, err)
}

// makeNamespace tries what Portico does about a missing namespace. What is in it
// can only be tried once it is there.
func (r *Rehearser) makeNamespace(ctx context.Context, t *trial) *policies.Rehearsal {
	name := t.desired.GetNamespace()
	if r.brought(ctx, t, func(o *unstructured.Unstructured) bool { return isNamespace(o, name) }) {
		return &policies.Rehearsal{Result: policies.RehearsalSkipped}
	}
	t.desired = namespaceOf(t.desired)
	err := t.line.Create(ctx, t.desired, client.FieldOwner(v1alpha1.PropagationManager), client.DryRunAll)
	return r.answer(ctx, t, client.IgnoreAlreadyExists(err))
}

// brought tells whether some object is sent to the target in the same request, or
// by another resource of the same namespace, which may have been applied a moment
// ago.
func (r *Rehearser) brought(ctx context.Context, t *trial, is func(*unstructured.Unstructured) bool) bool {
	sent := func(object *unstructured.Unstructured) bool { return object != nil && is(object) }
	if slices.ContainsFunc(t.with, sent) {
		return true
	}
	var others v1alpha1.KubernetesApplicationResourceList
	if err := r.live.List(ctx, &others, client.InNamespace(t.resource.Namespace)); err != nil {
		return false
	}
	return slices.ContainsFunc(others.Items, func(other v1alpha1.KubernetesApplicationResource) bool {
		return other.DeletionTimestamp == nil && (other.Spec.TargetRef == nil || other.Spec.TargetRef.Name == t.target.Name) &&
			sent(policies.Template(other.Spec.Template))
	})
}

// noDryRun ends the target's words when one of its own webhooks cannot be asked
// without effect. There is nothing else to tell such a refusal by.
const noDryRun = "does not support dry run"

// answer judges what came of a call. Only what speaks of the object is a refusal:
// a target that is away, busy or broken may take it later. An API server says 500
// of a field that it does not know, too, but gives no reason then.
func (r *Rehearser) answer(ctx context.Context, t *trial, err error) *policies.Rehearsal {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded):
		t.line.Lost()
		return unanswered(t, "does not answer in time")
	case clusters.Lost(err):
		t.line.Lost()
		return unanswered(t, "does not answer")
	case !errors.As(err, &status):
		return unanswered(t, "does not answer")
	case apierrors.ReasonForError(err) == metav1.StatusReasonInternalError, status.Status().Code > http.StatusInternalServerError, apierrors.IsTooManyRequests(err),
		apierrors.IsBadRequest(err) && strings.HasSuffix(inItsWords(err), noDryRun):
		return unanswered(t, "cannot tell ("+inItsWords(err)+")")
	case apierrors.IsConflict(err):
		return &policies.Rehearsal{Result: policies.RehearsalDisputed, Message: "accepted, and not sent: " + refusal(t.target.Name, t.desired, err)}
	}
	return &policies.Rehearsal{Result: policies.RehearsalRefused, Message: refusal(t.target.Name, t.desired, err)}
}

func unanswered(t *trial, why string) *policies.Rehearsal {
	out := policies.Unanswered(t.target.Name, why)
	return &out
}
