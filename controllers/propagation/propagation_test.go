package propagation

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/propagation/memory"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
)

var eu1 = types.NamespacedName{Namespace: "team-a", Name: "eu-1"}

// placed returns a resource on target eu-1 that has not been propagated.
func placed(t *testing.T, edits ...func(*v1alpha1.KubernetesApplicationResource)) *v1alpha1.KubernetesApplicationResource {
	t.Helper()
	out := resourceWith(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}}`)
	out.Spec.TargetRef = &v1alpha1.TargetReference{Name: "eu-1"}
	for _, edit := range edits {
		edit(out)
	}
	return out
}

func deletedNow(r *v1alpha1.KubernetesApplicationResource) {
	r.DeletionTimestamp, r.Finalizers = &metav1.Time{Time: time.Unix(1e9, 0)}, []string{v1alpha1.PropagationFinalizer}
}

// TestSteps tests the order of the steps for each state of a resource.
func TestSteps(t *testing.T) {
	cases := map[string]struct {
		resource *v1alpha1.KubernetesApplicationResource
		want     string
	}{
		"Apply": {placed(t), "validate, resolve content, resolve dependencies, connect, read object, check owner, keep finished, share object, check allowed, wait for scale target, read drift policy, " +
			"fill content, apply copies, apply, record content revision, delete excess copies, mirror status, settle dependencies"},
		"Delete": {placed(t, deletedNow), "validate, connect, read object, withdraw object"},
		"Orphan": {placed(t, deletedNow, func(r *v1alpha1.KubernetesApplicationResource) {
			r.Annotations = map[string]string{v1alpha1.DeletionAnnotation: string(v1alpha1.DeletionOrphan)}
		}), "validate, connect, read object, release object"},
		"Leave": {placed(t, func(r *v1alpha1.KubernetesApplicationResource) {
			r.Spec.TargetRef, r.Spec.LeavingTargetRef = &v1alpha1.TargetReference{Name: "eu-2"}, r.Spec.TargetRef
		}), "wait for application, build desired, connect, read object, remove from old target"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &scope.Scope{Target: eu1, Resource: tc.resource, SkipStatus: !plan.RefersTo(tc.resource.Spec.TargetRef, eu1)}
			var names []string
			for _, step := range controllerOn(t).steps(s) {
				names = append(names, step.Name)
			}
			if diff := cmp.Diff(tc.want, strings.Join(names, ", ")); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReconcile tests the result and the status of reconciles that do not reach a
// target.
func TestReconcile(t *testing.T) {
	refused := apierrors.NewInternalError(errors.New("etcd"))
	conflict := apierrors.NewConflict(schema.GroupResource{}, "settings", errors.New("changed"))
	cases := map[string]struct {
		reason    string
		resource  *v1alpha1.KubernetesApplicationResource
		fails     func(reconcilertest.Request) error
		version   string // of the last status in the memory of this process
		err       error
		terminal  bool
		requeued  bool
		condition string
		want      string // reason of the condition
	}{
		"Gone":        {reason: "A deleted resource needs no work."},
		"OtherTarget": {reason: "The queue of another target works on it.", resource: placed(t, func(r *v1alpha1.KubernetesApplicationResource) { r.Spec.TargetRef.Name = "eu-2" })},
		"Unpublished": {reason: "The status names the missing target; its event enqueues the resource.", resource: placed(t), condition: v1alpha1.TargetReachable, want: v1alpha1.ReasonTargetMissing},
		"Behind":      {reason: "The cache lacks the last status.", resource: placed(t), version: "999999", requeued: true},
		"ReadFails":   {reason: "The resource cannot be read.", resource: placed(t), fails: reconcilertest.FailOn("get KubernetesApplicationResource", refused), err: refused},
		"TargetFails": {reason: "The target cannot be read, and the status is written nevertheless.", resource: placed(t), fails: reconcilertest.FailOn("get KubernetesTarget", refused), err: refused, condition: v1alpha1.Scheduled, want: v1alpha1.ReasonScheduled},
		"StatusFails": {reason: "The status cannot be written.", resource: placed(t), fails: reconcilertest.FailOn("patch status KubernetesApplicationResource", conflict), err: conflict},
		"Invalid":     {reason: "A retry cannot correct a template.", resource: placed(t, func(r *v1alpha1.KubernetesApplicationResource) { r.Spec.Template.Raw = []byte(`{"kind":"ConfigMap"}`) }), terminal: true, condition: v1alpha1.Synced, want: v1alpha1.ReasonInvalidTemplate},
		"BothFail":    {reason: "The error of the step is returned with the error of the status.", resource: placed(t, func(r *v1alpha1.KubernetesApplicationResource) { r.Spec.Template.Raw = []byte(`{"kind":"ConfigMap"}`) }), fails: reconcilertest.FailOn("patch status KubernetesApplicationResource", conflict), err: conflict, terminal: true},
		"Uninstalled": {reason: "A deletion waits for a target that is not published.", resource: placed(t, deletedNow), requeued: true, condition: v1alpha1.Synced, want: v1alpha1.ReasonWithdrawing},
		"DeletedThere": {reason: "A released resource without a target is deleted.", resource: placed(t, deletedNow, func(r *v1alpha1.KubernetesApplicationResource) {
			r.Annotations = map[string]string{v1alpha1.ReleaseAnnotation: "true"}
		})},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme := reconcilertest.Scheme(t, v1alpha1.AddToScheme)
			build := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.KubernetesApplicationResource{}).WithInterceptorFuncs(reconcilertest.Before(tc.fails))
			if tc.resource != nil {
				build = build.WithObjects(tc.resource)
			}
			hub := build.Build()
			recorder := &recorder{}
			c := newController(base{hub: hub, live: hub, clusters: clusters.New(clusters.Options{}), recorder: recorder, options: Options{HubID: testHub, Resync: time.Hour}}, lister{reader: hub})
			c.memory.Writes.Update("u1", func(w *memory.LastWrite) { w.StatusVersion = tc.version })
			result, err := c.reconcile(t.Context(), eu1, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team-a", Name: "settings"}})
			if tc.err != nil && !errors.Is(err, tc.err) || errors.Is(err, reconcile.TerminalError(nil)) != tc.terminal || tc.err == nil && !tc.terminal && err != nil {
				t.Errorf("error %v: %s", err, tc.reason)
			}
			if (result.RequeueAfter > 0) != tc.requeued {
				t.Errorf("requeued after %s: %s", result.RequeueAfter, tc.reason)
			}
			if tc.condition == "" {
				return
			}
			stored := &v1alpha1.KubernetesApplicationResource{}
			if err := hub.Get(t.Context(), types.NamespacedName{Namespace: "team-a", Name: "settings"}, stored); err != nil {
				t.Fatal(err)
			}
			if condition := meta.FindStatusCondition(stored.Status.Conditions, tc.condition); condition == nil || condition.Reason != tc.want {
				t.Errorf("condition %+v, want reason %s: %s", condition, tc.want, tc.reason)
			}
		})
	}
}

type recorder struct{}

func (*recorder) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}

// TestEnsureFinalizer: the object of a deleted resource is not applied.
func TestEnsureFinalizer(t *testing.T) {
	resource := placed(t)
	c := controllerOn(t) // without the resource
	s := &scope.Scope{Target: eu1, Resource: resource, Before: resource.DeepCopy()}
	if err := c.ensureFinalizer(t.Context(), s); !errors.Is(err, reconciler.ErrDone) || !s.SkipStatus {
		t.Errorf("want the reconcile ended, got %v", err)
	}
	c = controllerOn(t, placed(t))
	s = &scope.Scope{Target: eu1, Resource: &v1alpha1.KubernetesApplicationResource{}}
	if err := c.hub.Get(t.Context(), types.NamespacedName{Namespace: "team-a", Name: "settings"}, s.Resource); err != nil {
		t.Fatal(err)
	}
	s.Before = s.Resource.DeepCopy()
	if err := c.ensureFinalizer(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{v1alpha1.PropagationFinalizer}, s.Before.Finalizers); diff != "" {
		t.Errorf("finalizers of the base of the status patch (-want +got):\n%s", diff)
	}
}
