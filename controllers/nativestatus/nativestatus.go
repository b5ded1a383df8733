// Package nativestatus copies the status of an object on a target to the native object
// on the hub.
package nativestatus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/reconciler"
)

// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch

// OwnerIndex finds ReplicaSets and ControllerRevisions by the UID of their controller.
const OwnerIndex = "metadata.controller.uid"

// IndexOwner is the function of OwnerIndex.
func IndexOwner(object client.Object) []string {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

// maxConcurrentReconciles bounds the parallel reconciles of one kind. They wait for
// requests to the hub.
const maxConcurrentReconciles = 8

// Controller writes the statuses of one native kind.
type Controller struct {
	hub      client.Client
	writer   reconciler.Writer
	kind     kinds.Kind
	recorder events.Recorder
}

// New returns the controller of one kind. The client finds ReplicaSets by OwnerIndex.
func New(hub client.Client, kind kinds.Kind, recorder events.Recorder) *Controller {
	return &Controller{hub: hub, writer: reconciler.Writer{Client: hub, Owner: v1alpha1.StatusManager}, kind: kind, recorder: recorder}
}

// SetupWithManager adds a controller for every kind that has a status.
func SetupWithManager(mgr ctrl.Manager) error {
	for _, kind := range kinds.All {
		if err := SetupKind(mgr, kind); err != nil {
			return err
		}
	}
	return nil
}

// SetupKind adds a controller for one kind, if the kind has a status.
func SetupKind(mgr ctrl.Manager, kind kinds.Kind) error {
	if !kind.Properties().HasStatus {
		return nil
	}
	c := New(mgr.GetClient(), kind, mgr.GetEventRecorder("portico"))
	b := ctrl.NewControllerManagedBy(mgr).
		Named("status-"+kind.Resource()).
		WithOptions(controller.Options{MaxConcurrentReconciles: maxConcurrentReconciles}).
		For(kinds.New(kind), builder.WithPredicates(reconciler.Remote())).
		Watches(&v1alpha1.KubernetesApplicationResource{}, handler.EnqueueRequestsFromMapFunc(c.nativeOf))
	switch kind {
	case kinds.StatefulSet{}:
		b = b.Watches(ControllerRevision(), handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &appsv1.StatefulSet{}, handler.OnlyControllerOwner()))
	case kinds.HorizontalPodAutoscaler{}:
		b = c.watchScaleTargets(b)
	case kinds.Deployment{}:
		b = b.Watches(kinds.New(kinds.ReplicaSet{}), handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &appsv1.Deployment{}, handler.OnlyControllerOwner()))
	}
	if err := b.Complete(reconciler.RetryOnConflict(c)); err != nil {
		return fmt.Errorf("adding the status controller of %s: %w", kind.Resource(), err)
	}
	return nil
}

// nativeOf returns the native object that controls a resource.
func (c *Controller) nativeOf(_ context.Context, resource client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(resource)
	gvk := c.kind.GroupVersionKind()
	if owner == nil || owner.Kind != gvk.Kind || owner.APIVersion != gvk.GroupVersion().String() {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: resource.GetNamespace(), Name: owner.Name}}}
}

// scope is the state of one reconcile.
type scope struct {
	native   *unstructured.Unstructured
	resource *v1alpha1.KubernetesApplicationResource
	// observation is the status that the target reported last.
	observation kinds.Observation
	// requeueAfter is the delay until the statuses of ReplicaSets are written; 0 for no delay.
	requeueAfter time.Duration
}

// rolloutDelay is the time for which the statuses of ReplicaSets wait for the end of a
// rollout. A short rollout then writes each status once.
const rolloutDelay = 5 * time.Second

// holdReplicaSets tells whether the statuses of ReplicaSets are written later: with the
// first status of the target, at the end of the rollout, or after a delay. The ready Pods
// of an earlier generation are not those of the newest ReplicaSet.
func (s *scope) holdReplicaSets() (hold bool, requeueAfter time.Duration) {
	if s.observation.HubGeneration < s.native.GetGeneration() {
		return true, 0
	}
	ready := meta.FindStatusCondition(s.resource.Status.Conditions, v1alpha1.Ready)
	if ready == nil {
		return s.observation.Status == nil, 0
	}
	if ready.Status == metav1.ConditionFalse && ready.Reason == v1alpha1.ReasonProgressing {
		requeueAfter = rolloutDelay - time.Since(ready.LastTransitionTime.Time)
	}
	return requeueAfter > 0, max(0, requeueAfter)
}

// Reconcile writes the status of one native object.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	native := kinds.New(c.kind)
	if err := c.hub.Get(ctx, req.NamespacedName, native); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !kinds.IsRemote(native) || native.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, nil
	}
	ctx = reconciler.WithLogValues(ctx, "kind", native.GetKind(), "object", klog.KObj(native))
	steps := []reconciler.Step[*scope]{
		{Name: "get resource", Run: c.getResource},
		{Name: "read remote status", Run: readRemoteStatus},
		{Name: "find revision", Run: c.findRevision},
		// Helm 3 reads the ReplicaSets once the Deployment is complete, so they come first.
		{Name: "patch ReplicaSets", Run: c.patchReplicaSets},
		{Name: "patch replicas", Run: c.patchReplicas},
		{Name: "patch status", Run: c.patchNativeStatus},
	}
	s := &scope{native: native}
	result, err := reconciler.Run(ctx, s, steps, nil)
	if isPermanent(err) {
		return reconcile.Result{}, c.rejectStatus(native, err)
	}
	return result, err
}

// getResource reads the resource of the native object. A Deployment that still runs on
// the hub keeps its own status.
func (c *Controller) getResource(ctx context.Context, s *scope) error {
	resource := &v1alpha1.KubernetesApplicationResource{}
	key := client.ObjectKey{Namespace: s.native.GetNamespace(), Name: kinds.ResourceNameOf(s.native.GroupVersionKind().GroupKind(), s.native.GetName())}
	found, err := reconciler.Find(ctx, c.hub, key, resource)
	switch {
	case err != nil:
		return err
	case !found:
		return reconciler.ErrDone
	case !metav1.IsControlledBy(resource, s.native) || !c.kind.Held(s.native):
		return reconciler.ErrDone
	}
	s.resource = resource
	return nil
}

// errUnreadable means that the status of the target does not have the form of its kind.
var errUnreadable = errors.New("unreadable status")

// readRemoteStatus reads the status that the target reported from the resource.
func readRemoteStatus(_ context.Context, s *scope) error {
	status := s.resource.Status
	s.observation = kinds.Observation{HubGeneration: status.ObservedHubGeneration, Problems: kinds.Problems(status.Conditions)}
	if status.Remote == nil {
		return nil
	}
	remote := &unstructured.Unstructured{}
	wrapped := append(append([]byte(`{"kind":"Status","status":`), status.Remote.Raw...), '}')
	if err := remote.UnmarshalJSON(wrapped); err != nil {
		return fmt.Errorf("reading the remote status of resource %s: %w: %w", client.ObjectKeyFromObject(s.resource), errUnreadable, err)
	}
	object, ok := remote.Object["status"].(map[string]any)
	if !ok {
		return fmt.Errorf("reading the remote status of resource %s: %w: it is not an object", client.ObjectKeyFromObject(s.resource), errUnreadable)
	}
	s.observation.Status = object
	return nil
}

// patchReplicaSets writes the statuses of a Deployment's ReplicaSets on the hub.
func (c *Controller) patchReplicaSets(ctx context.Context, s *scope) error {
	if c.kind != (kinds.Deployment{}) {
		return nil
	}
	var hold bool
	if hold, s.requeueAfter = s.holdReplicaSets(); hold {
		return nil
	}
	replicaSets, err := c.listOwned(ctx, s, "ReplicaSet")
	if err != nil {
		return err
	}
	var remote appsv1.DeploymentStatus
	if err := decode(s.observation.Status, &remote); err != nil {
		return fmt.Errorf("reading the remote status of Deployment %s: %w: %w", client.ObjectKeyFromObject(s.native), errUnreadable, err)
	}
	objects := make([]metav1.Object, 0, len(replicaSets))
	for i := range replicaSets {
		objects = append(objects, &replicaSets[i])
	}
	newest := kinds.NewestReplicaSet(objects)
	for i := range replicaSets {
		cached := &replicaSets[i]
		status := kinds.HeldReplicaSetStatus(remote, cached.GetGeneration(), metav1.Object(cached) == newest)
		want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
		if err != nil {
			return fmt.Errorf("encoding the status of ReplicaSet %s: %w", client.ObjectKeyFromObject(cached), err)
		}
		if conditions, found, _ := unstructured.NestedSlice(cached.Object, "status", "conditions"); found {
			want["conditions"] = conditions
		}
		if equality.Semantic.DeepEqual(cached.Object["status"], want) {
			continue
		}
		rs := cached.DeepCopy()
		rs.Object["status"] = want
		if _, err := c.writer.PatchStatus(ctx, cached, rs, reconciler.Unlocked()); err != nil {
			return err
		}
	}
	return nil
}

// ControllerRevision returns an empty object of the cache.
func ControllerRevision() *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ControllerRevision"))
	return out
}

// findRevision finds the ControllerRevision of a StatefulSet's Pod template on the hub.
func (c *Controller) findRevision(ctx context.Context, s *scope) error {
	if c.kind != (kinds.StatefulSet{}) {
		return nil
	}
	revisions, err := c.listOwned(ctx, s, "ControllerRevision")
	if err != nil {
		return err
	}
	s.observation.HubRevision = kinds.RevisionOf(s.native, revisions)
	return nil
}

// listOwned lists the objects of a kind of group apps that the native object owns. The
// cache owns them.
func (c *Controller) listOwned(ctx context.Context, s *scope, kind string) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(kind + "List"))
	err := c.hub.List(ctx, list, client.InNamespace(s.native.GetNamespace()),
		client.MatchingFields{OwnerIndex: string(s.native.GetUID())}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the %ss of %s %s: %w", kind, s.native.GetKind(), client.ObjectKeyFromObject(s.native), err)
	}
	return list.Items, nil
}

// decode reads a status strictly: JSON rejects numbers that do not fit.
func decode(status map[string]any, into any) error {
	if status == nil {
		return nil
	}
	data, err := json.Marshal(status)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// patchNativeStatus writes the status of the native object.
func (c *Controller) patchNativeStatus(ctx context.Context, s *scope) error {
	want := c.kind.Reflect(s.native, s.observation)
	have, _, _ := unstructured.NestedMap(s.native.Object, "status")
	if len(have) > 0 || len(want) > 0 {
		after := s.native.DeepCopy()
		after.Object["status"] = want
		if _, err := c.writer.PatchStatus(ctx, s.native, after, reconciler.Unlocked()); err != nil {
			return err
		}
	}
	if s.requeueAfter > 0 {
		return reconciler.RequeueAfter(s.requeueAfter)
	}
	return nil
}

// isPermanent tells whether an error remains until the target reports another status,
// or the native object changes. Both queue the object again.
func isPermanent(err error) bool {
	return errors.Is(err, errUnreadable) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// rejectStatus emits the reason why the hub keeps the last status.
func (c *Controller) rejectStatus(native *unstructured.Unstructured, err error) error {
	err = fmt.Errorf("the hub rejects the status from the target, and keeps the previous one: %s", describeRejection(err))
	events.Emit(c.recorder, native, "Reflect", events.Event{Warning: true, Reason: v1alpha1.ReasonRefused, Note: err.Error()})
	return reconcile.TerminalError(err)
}

// describeRejection names the rejected fields of a status. It leaves out the message of
// the API server, which quotes the whole object if it cannot decode the patched object.
func describeRejection(err error) string {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return err.Error()
	}
	var causes []string
	if details := answer.Status().Details; details != nil {
		for _, cause := range details.Causes {
			if strings.HasPrefix(cause.Field, "status") {
				causes = append(causes, cause.Field+": "+cause.Message)
			}
		}
	}
	if len(causes) == 0 {
		return "it does not have the form of a status of this kind"
	}
	return strings.Join(causes, "; ")
}
