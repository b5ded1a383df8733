// Package optin finds the objects that run on the hub although their namespace
// opts in. Admission labels an object that is created in such a namespace. An API
// server whose cache does not have the namespace's label yet does not call admission.
package optin

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/reconciler"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Options of the controller.
type Options struct {
	// Portico is the namespace that Portico runs in.
	Portico string
	// Resync is the interval of checks of a namespace without an event; jittered.
	Resync time.Duration
}

// recheckDelays are the delays of the next checks of a namespace after it opted in. After
// the last one every API server has the label in its cache.
var recheckDelays = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second}

// pageSize is the number of objects in a page of a list.
const pageSize = 500

// Controller checks namespaces that opt in. No cache has objects without the label, so
// the controller lists their metadata. It sends no request for other namespaces.
type Controller struct {
	options  Options
	hub      client.Client
	live     client.Reader
	writer   reconciler.Writer
	recorder events.Recorder
	memory   memory
}

// SetupWithManager adds the controller.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	c := newController(o, mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("portico"))
	return ctrl.NewControllerManagedBy(mgr).
		Named("opt-in").
		For(namespaceMetadata(), builder.OnlyMetadata, builder.WithPredicates(namespaceChanged())).
		Complete(reconciler.RetryOnConflict(c))
}

func newController(o Options, hub client.Client, live client.Reader, recorder events.Recorder) *Controller {
	return &Controller{options: o, hub: hub, live: live, recorder: recorder, writer: reconciler.Writer{Client: hub, Owner: v1alpha1.OptInManager}}
}

func namespaceMetadata() *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{}
	out.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return out
}

// namespaceChanged passes namespaces that opt in, or opted in before the update.
func namespaceChanged() predicate.Predicate {
	optsIn := func(o client.Object) bool { return kinds.HasRemoteLabel(o) }
	settings := func(o client.Object) [2]string {
		return [2]string{o.GetLabels()[v1alpha1.ScheduleLabel], o.GetAnnotations()[v1alpha1.AdoptExistingAnnotation]}
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return optsIn(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return optsIn(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return (optsIn(e.ObjectOld) || optsIn(e.ObjectNew)) && !equality.Semantic.DeepEqual(settings(e.ObjectOld), settings(e.ObjectNew))
		},
	}
}

// scope is the state of one reconcile of a namespace.
type scope struct {
	name      string
	namespace *metav1.PartialObjectMetadata
}

// Reconcile checks the objects of one namespace.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconciler.Run(ctx, &scope{name: req.Name}, []reconciler.Step[*scope]{
		{Name: "read namespace", Run: c.readNamespace},
		{Name: "read managed fields", Run: c.readManagedFields},
		{Name: "check objects", Run: c.checkObjects},
	}, nil)
}

// readNamespace reads a namespace from the cache. A namespace that does not opt in ends
// the reconcile.
func (c *Controller) readNamespace(ctx context.Context, s *scope) error {
	s.namespace = namespaceMetadata()
	found, err := reconciler.Find(ctx, c.hub, types.NamespacedName{Name: s.name}, s.namespace)
	if err != nil {
		return err
	}
	if !found || !OptsIn(s.namespace, c.options.Portico) {
		c.memory.forget(s.name)
		return reconciler.ErrDone
	}
	return nil
}

// readManagedFields reads the namespace from the hub, because caches have no managed
// fields.
func (c *Controller) readManagedFields(ctx context.Context, s *scope) error {
	found, err := reconciler.Find(ctx, c.live, types.NamespacedName{Name: s.name}, s.namespace)
	if err == nil && !found {
		return reconciler.ErrDone
	}
	return err
}

// checkObjects checks the objects of every kind that a namespace opts in, and asks for
// the next check.
func (c *Controller) checkObjects(ctx context.Context, s *scope) error {
	for _, kind := range kinds.All {
		if !kind.Properties().OptIn {
			continue
		}
		if err := c.checkKind(ctx, kind, s.namespace); err != nil {
			return fmt.Errorf("checking %s in namespace %s: %w", kind.Resource(), s.name, err)
		}
	}
	return reconciler.RequeueAfter(c.memory.next(s.name, c.options.Resync))
}

// unlabelledSelector selects the objects without a schedule label that no Portico sent
// to this hub. controllerlessSelector leaves out most objects that have a controller, by
// the labels that stock controllers set.
var (
	unlabelledSelector     = absent(v1alpha1.ScheduleLabel, v1alpha1.ManagedByLabel)
	controllerlessSelector = absent(v1alpha1.ScheduleLabel, v1alpha1.ManagedByLabel,
		appsv1.DefaultDeploymentUniqueLabelKey, appsv1.ControllerRevisionHashLabelKey, batchv1.ControllerUidLabel)
)

// absent selects the objects that have none of the labels.
func absent(keys ...string) labels.Selector {
	out := labels.NewSelector()
	for _, key := range keys {
		requirement, err := labels.NewRequirement(key, selection.DoesNotExist, nil)
		if err != nil {
			panic(err) // a constant
		}
		out = out.Add(*requirement)
	}
	return out
}

// selectorFor returns the selector of the objects of a kind to check. A namespace has many
// Pods, and few without a controller.
func selectorFor(kind kinds.Kind) labels.Selector {
	if kind == (kinds.Pod{}) {
		return controllerlessSelector
	}
	return unlabelledSelector
}

// checkKind checks the objects of one kind.
func (c *Controller) checkKind(ctx context.Context, kind kinds.Kind, namespace *metav1.PartialObjectMetadata) error {
	gvk := kind.GroupVersionKind()
	since, adopt := optedInAt(namespace), namespace.Annotations[v1alpha1.AdoptExistingAnnotation] == "true"
	page := &metav1.PartialObjectMetadataList{}
	for {
		page.SetGroupVersionKind(schema.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind + "List"})
		options := []client.ListOption{client.InNamespace(namespace.Name), client.MatchingLabelsSelector{Selector: selectorFor(kind)}, client.Limit(pageSize), client.Continue(page.Continue)}
		if err := c.live.List(ctx, page, options...); err != nil {
			return err
		}
		for i := range page.Items {
			object := &page.Items[i]
			object.SetGroupVersionKind(gvk)
			d := decide(object, "", since, adopt)
			if d == (decision{}) {
				continue
			}
			immovable, err := c.immovableReason(ctx, kind, object)
			if err != nil {
				return err
			}
			if immovable != "" {
				d = decide(object, immovable, since, adopt)
			}
			if err := c.applyDecision(ctx, object, d); err != nil {
				return err
			}
		}
		if page.Continue == "" {
			return nil
		}
	}
}

// immovableReason reads an object of a kind that may not be able to move. Its metadata
// does not have the reason.
func (c *Controller) immovableReason(ctx context.Context, kind kinds.Kind, object *metav1.PartialObjectMetadata) (string, error) {
	switch {
	case kind.Properties().HeldAtCreation:
		return fmt.Sprintf("a %s cannot move to a target after its creation", object.Kind), nil
	case !kinds.MayBeImmovable(kind):
		return "", nil
	}
	native := kinds.New(kind)
	err := c.live.Get(ctx, client.ObjectKeyFromObject(object), native)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	reason, _ := kinds.ImmovableReason(kind, native)
	return reason, err
}

// applyDecision labels an object, and emits each event once.
func (c *Controller) applyDecision(ctx context.Context, object *metav1.PartialObjectMetadata, d decision) error {
	if d.OptIn {
		before := object.DeepCopy()
		metav1.SetMetaDataLabel(&object.ObjectMeta, v1alpha1.ScheduleLabel, v1alpha1.ScheduleRemote)
		_, err := c.writer.Patch(ctx, before, object, "opting in with its namespace")
		switch {
		case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
			d = decision{Reason: v1alpha1.ReasonCannotMove, Warning: true, Note: fmt.Sprintf("runs on the hub, although namespace %s opts in: %v", object.Namespace, err)}
		case err != nil:
			return err
		}
	}
	if d.Reason != "" && c.memory.isNew(object, d.Reason) {
		log.FromContext(ctx).V(2).Info("Found object that runs on the hub in a namespace that opts in",
			"kind", object.Kind, "object", client.ObjectKeyFromObject(object), "reason", d.Reason)
		events.Emit(c.recorder, object, "OptIn", events.Event{Warning: d.Warning, Reason: d.Reason, Note: d.Note})
	}
	return nil
}

// memory is the state that the controller keeps in the process. All of it may be lost
// at any moment: a new process checks every namespace again.
type memory struct {
	mu sync.Mutex
	// byNamespace has the namespaces that opt in.
	byNamespace map[string]*remembered
}

type remembered struct {
	// checks is the number of checks since the namespace opted in. Without it the short
	// delays of recheckDelays begin again.
	checks int
	// reported is the reason of the last event of each object. Without it the event is
	// emitted once more.
	reported map[types.UID]string
}

func (m *memory) of(namespace string) *remembered {
	if m.byNamespace == nil {
		m.byNamespace = map[string]*remembered{}
	}
	if m.byNamespace[namespace] == nil {
		m.byNamespace[namespace] = &remembered{reported: map[types.UID]string{}}
	}
	return m.byNamespace[namespace]
}

// next returns the delay until the next check of a namespace.
func (m *memory) next(namespace string, resync time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(namespace)
	r.checks++
	if r.checks <= len(recheckDelays) {
		return recheckDelays[r.checks-1]
	}
	return wait.Jitter(resync, 0.5)
}

// isNew tells whether a reason differs from the last one that was reported for an
// object.
func (m *memory) isNew(object metav1.Object, reason string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	reported := m.of(object.GetNamespace()).reported
	if reported[object.GetUID()] == reason {
		return false
	}
	reported[object.GetUID()] = reason
	return true
}

func (m *memory) forget(namespace string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byNamespace, namespace)
}
