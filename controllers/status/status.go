// Package status writes, on the hub, what the target says of a native object
// into the object's own status.
package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/controllers/retry"
)

// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=replicasets/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=services/status,verbs=patch

// OwnerIndex finds ReplicaSets by the UID of their controller.
const OwnerIndex = "metadata.controller.uid"

// IndexOwner is OwnerIndex's function.
func IndexOwner(object client.Object) []string {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

// workers write statuses at the same time; they are the hub's calls to wait for.
const workers = 8

// Controller reflects one kind.
type Controller struct {
	hub      client.Client
	kind     kinds.Kind
	recorder events.EventRecorder
}

// New returns the controller of one kind. The client finds ReplicaSets by
// OwnerIndex.
func New(hub client.Client, kind kinds.Kind, recorder events.EventRecorder) *Controller {
	return &Controller{hub: hub, kind: kind, recorder: recorder}
}

// SetupWithManager adds a controller for every kind.
func SetupWithManager(mgr ctrl.Manager) error {
	for _, kind := range kinds.All {
		if kinds.HasContent(kind.GroupVersionKind()) {
			continue // Secrets and ConfigMaps have no status
		}
		c := New(mgr.GetClient(), kind, mgr.GetEventRecorder("portico"))
		b := ctrl.NewControllerManagedBy(mgr).
			Named("status-"+kind.Resource()).
			WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
			For(kinds.New(kind)).
			Watches(&v1alpha1.KubernetesApplicationResource{}, handler.EnqueueRequestsFromMapFunc(c.nativeOf))
		if kind == (kinds.Deployment{}) {
			b = b.Watches(&appsv1.ReplicaSet{}, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &appsv1.Deployment{}, handler.OnlyControllerOwner()))
		}
		if err := b.Complete(retry.Quietly(c)); err != nil {
			return fmt.Errorf("adding the status controller of %s: %w", kind.Resource(), err)
		}
	}
	return nil
}

// nativeOf is the native object a front-door resource projects.
func (c *Controller) nativeOf(_ context.Context, resource client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(resource)
	gvk := c.kind.GroupVersionKind()
	if owner == nil || owner.Kind != gvk.Kind || owner.APIVersion != gvk.GroupVersion().String() {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: resource.GetNamespace(), Name: owner.Name}}}
}

// Reconcile reflects one object.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	native := kinds.New(c.kind)
	if err := c.hub.Get(ctx, req.NamespacedName, native); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !kinds.IsRemote(native) || native.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, nil
	}
	resource := &v1alpha1.KubernetesApplicationResource{}
	key := client.ObjectKey{Namespace: req.Namespace, Name: kinds.ResourceName(c.kind.GroupVersionKind().Kind, req.Name)}
	if err := c.hub.Get(ctx, key, resource); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(resource, native) {
		return reconcile.Result{}, nil
	}
	if !c.kind.Held(native) {
		return reconcile.Result{}, nil // it still runs here, and its status is its own
	}
	err := c.write(ctx, native, resource)
	if unacceptable(err) {
		return reconcile.Result{}, c.refuse(native, err)
	}
	return reconcile.Result{}, err
}

func (c *Controller) write(ctx context.Context, native *unstructured.Unstructured, resource *v1alpha1.KubernetesApplicationResource) error {
	seen, err := observe(resource)
	if err != nil {
		return err
	}
	// The ReplicaSets first: Helm 3 looks at them once the Deployment looks done.
	if c.kind == (kinds.Deployment{}) {
		if err := c.shadows(ctx, native, seen); err != nil {
			return err
		}
	}
	return c.reflect(ctx, native, seen)
}

// errUnreadable says that what the target reports is no status of its kind.
var errUnreadable = errors.New("unreadable status")

// unacceptable tells an error that stays until the target reports something
// else, or the native object changes, and either brings the object back here.
func unacceptable(err error) bool {
	return errors.Is(err, errUnreadable) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// refuse tells why the status stays as it is.
func (c *Controller) refuse(native *unstructured.Unstructured, err error) error {
	err = fmt.Errorf("the hub does not accept the status that the target reports, and keeps the last: %s", reason(err))
	narrate.Tell(c.recorder, native, "Reflect", narrate.Event{Warning: true, Reason: v1alpha1.ReasonRefused, Note: err.Error()})
	return reconcile.TerminalError(err)
}

// reason says what is wrong with a status. The API server quotes the whole
// object when it cannot read a patched one; that is for nobody's eyes.
func reason(err error) string {
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
		return "it is no status of this kind"
	}
	return strings.Join(causes, "; ")
}

func observe(resource *v1alpha1.KubernetesApplicationResource) (kinds.Observation, error) {
	seen := kinds.Observation{
		HubGeneration: resource.Status.ObservedHubGeneration,
		Problems:      kinds.Problems(resource.Status.Conditions),
	}
	if resource.Status.Remote == nil {
		return seen, nil
	}
	remote := &unstructured.Unstructured{}
	wrapped := append(append([]byte(`{"kind":"Status","status":`), resource.Status.Remote.Raw...), '}')
	if err := remote.UnmarshalJSON(wrapped); err != nil {
		return seen, fmt.Errorf("reading the remote status of resource %s: %w: %w", client.ObjectKeyFromObject(resource), errUnreadable, err)
	}
	status, ok := remote.Object["status"].(map[string]any)
	if !ok {
		return seen, fmt.Errorf("reading the remote status of resource %s: %w: it is not an object", client.ObjectKeyFromObject(resource), errUnreadable)
	}
	seen.Status = status
	return seen, nil
}

// reflect writes the native object's status, when it differs.
func (c *Controller) reflect(ctx context.Context, native *unstructured.Unstructured, seen kinds.Observation) error {
	before := native.DeepCopy()
	want := c.kind.Reflect(native, seen)
	have, _, _ := unstructured.NestedMap(native.Object, "status")
	if equality.Semantic.DeepEqual(have, want) || len(have) == 0 && len(want) == 0 {
		return nil
	}
	native.Object["status"] = want
	if err := c.hub.Status().Patch(ctx, native, client.MergeFrom(before), client.FieldOwner(v1alpha1.StatusManager)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("writing the status of %s %s: %w", native.GetKind(), client.ObjectKeyFromObject(native), err))
	}
	return nil
}

// shadows writes the statuses of a held Deployment's ReplicaSets.
func (c *Controller) shadows(ctx context.Context, native *unstructured.Unstructured, seen kinds.Observation) error {
	var list appsv1.ReplicaSetList
	err := c.hub.List(ctx, &list, client.InNamespace(native.GetNamespace()), client.MatchingFields{OwnerIndex: string(native.GetUID())})
	if err != nil {
		return fmt.Errorf("listing the ReplicaSets of Deployment %s: %w", client.ObjectKeyFromObject(native), err)
	}
	var remote appsv1.DeploymentStatus
	if err := fromMap(seen.Status, &remote); err != nil {
		return fmt.Errorf("reading the remote status of Deployment %s: %w: %w", client.ObjectKeyFromObject(native), errUnreadable, err)
	}
	objects := make([]metav1.Object, 0, len(list.Items))
	for i := range list.Items {
		objects = append(objects, &list.Items[i])
	}
	newest := kinds.NewestShadow(objects)
	for i := range list.Items {
		rs := &list.Items[i]
		want := kinds.ShadowStatus(remote, rs.Generation, metav1.Object(rs) == newest)
		want.Conditions = rs.Status.Conditions
		if equality.Semantic.DeepEqual(rs.Status, want) {
			continue
		}
		before := rs.DeepCopy()
		rs.Status = want
		if err := c.hub.Status().Patch(ctx, rs, client.MergeFrom(before), client.FieldOwner(v1alpha1.StatusManager)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("writing the status of ReplicaSet %s: %w", client.ObjectKeyFromObject(rs), err)
		}
	}
	return nil
}

func fromMap(status map[string]any, into any) error {
	if status == nil {
		return nil
	}
	data, err := json.Marshal(status)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}
