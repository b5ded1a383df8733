package propagation

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// patience is how long a test waits for what happens at once.
const patience = time.Minute

// TestLanes sends more resources to a target that hangs than it has workers,
// and one to a target that does not.
func TestLanes(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	hangs := types.NamespacedName{Namespace: "team-a", Name: "hangs"}
	answers := types.NamespacedName{Namespace: "team-a", Name: "answers"}
	arrived := make(chan string, 10)
	l := &lanes{
		workers: 2,
		limiter: func() workqueue.TypedRateLimiter[reconcile.Request] {
			return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second)
		},
		travel: func(target types.NamespacedName) reconcile.Reconciler {
			return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				if target == hangs {
					<-ctx.Done()
					return reconcile.Result{}, nil
				}
				arrived <- target.Name + " " + req.String()
				return reconcile.Result{}, nil
			})
		},
	}
	expect := func(want string) {
		t.Helper()
		select {
		case got := <-arrived:
			if got != want {
				t.Errorf("arrived: %s, want %s", got, want)
			}
		case <-time.After(patience):
			t.Errorf("%s never arrived", want)
		}
	}

	l.add(answers, "early", false)
	if l.byTarget != nil {
		t.Error("a lane was opened before its time")
	}
	l.start(ctx)
	for _, name := range []string{"a", "b", "c", "d"} {
		l.add(hangs, name, false)
	}
	l.add(answers, "first", false)
	expect("answers team-a/first")
	l.close(answers)
	l.close(answers)
	l.add(answers, "second", true)
	expect("answers team-a/second")
	stop()
	l.add(types.NamespacedName{Name: "late"}, "a", false)
	if _, opened := l.byTarget[types.NamespacedName{Name: "late"}]; opened {
		t.Error("a lane was opened after the end")
	}
}

func TestChanged(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.KubernetesApplicationResource)
		want   bool
	}{
		"Status":   {reason: "Our own report asks for nothing.", change: func(r *v1alpha1.KubernetesApplicationResource) { r.Status.State = v1alpha1.StateSubmitted }},
		"Version":  {reason: "Nor does any other write by itself.", change: func(r *v1alpha1.KubernetesApplicationResource) { r.ResourceVersion = "2" }},
		"Spec":     {reason: "A new generation does.", change: func(r *v1alpha1.KubernetesApplicationResource) { r.Generation = 2 }, want: true},
		"Deletion": {reason: "So does the end.", change: func(r *v1alpha1.KubernetesApplicationResource) { r.DeletionTimestamp = &metav1.Time{} }, want: true},
		"Orphaned": {reason: "And that its owner let go of it.", change: func(r *v1alpha1.KubernetesApplicationResource) { r.OwnerReferences = nil }, want: true},
		"Foreground": {reason: "And how it is being deleted.", change: func(r *v1alpha1.KubernetesApplicationResource) {
			r.Finalizers = []string{metav1.FinalizerDeleteDependents}
		}, want: true},
		"Counted": {reason: "And that the hub counted on, which the target has seen.", change: func(r *v1alpha1.KubernetesApplicationResource) {
			metav1.SetMetaDataAnnotation(&r.ObjectMeta, v1alpha1.HubGenerationAnnotation, "7")
		}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := &v1alpha1.KubernetesApplicationResource{}
			before.Generation = 1
			before.OwnerReferences = []metav1.OwnerReference{{Name: "web"}}
			after := before.DeepCopy()
			tc.change(after)
			if got := changed(before, after); got != tc.want {
				t.Errorf("changed = %t, want %t: %s", got, tc.want, tc.reason)
			}
		})
	}
}

func TestMissingNamespace(t *testing.T) {
	missing := func(resource string) error {
		return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, "shop")
	}
	if !missingNamespace(missing("namespaces")) {
		t.Error("a namespace that is missing was not noticed")
	}
	for _, err := range []error{nil, missing("configmaps"), errors.New("namespaces"), apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "shop", nil)} {
		if missingNamespace(err) {
			t.Errorf("%v is taken for a namespace that is missing", err)
		}
	}
}

// TestPropagationPolicy is about how the object on the target is deleted.
func TestPropagationPolicy(t *testing.T) {
	by := func(apiVersion, kind, name string, finalizers ...string) *v1alpha1.KubernetesApplicationResource {
		return &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", Name: "web-deployment", Finalizers: finalizers,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: "u1", Controller: new(true)}},
		}}
	}
	owned := func(name string, finalizers ...string) *v1alpha1.KubernetesApplicationResource {
		return by("apps/v1", "Deployment", name, finalizers...)
	}
	answers := map[string]error{
		"gone":  apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, "gone"),
		"fails": apierrors.NewInternalError(errors.New("etcd")),
	}
	live := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			o.SetUID("u1")
			if key.Name != "background" {
				o.SetFinalizers([]string{metav1.FinalizerDeleteDependents})
			}
			return answers[key.Name]
		},
	}).Build()
	cases := map[string]struct {
		reason   string
		resource *v1alpha1.KubernetesApplicationResource
		want     metav1.DeletionPropagation
	}{
		"Alone":        {reason: "What nobody owns is deleted as usual.", resource: &v1alpha1.KubernetesApplicationResource{}, want: metav1.DeletePropagationBackground},
		"Itself":       {reason: "Who waits for the resource waits for what is below it.", resource: owned("background", metav1.FinalizerDeleteDependents), want: metav1.DeletePropagationForeground},
		"Background":   {reason: "The owner goes as usual.", resource: owned("background"), want: metav1.DeletePropagationBackground},
		"Foreground":   {reason: "The owner waits for what is below.", resource: owned("foreground"), want: metav1.DeletePropagationForeground},
		"Gone":         {reason: "The owner is gone, so nobody waits.", resource: owned("gone"), want: metav1.DeletePropagationBackground},
		"NotOurs":      {reason: "An owner of a kind that Portico may not read does not keep the resource for ever.", resource: by("example.org/v1", "Thing", "foreground"), want: metav1.DeletePropagationBackground},
		"CannotBeRead": {reason: "One that cannot be read now is asked again.", resource: owned("fails")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := (&Controller{live: live}).propagationPolicy(t.Context(), tc.resource)
			if got != tc.want || (err != nil) != (tc.want == "") {
				t.Errorf("policy %q and error %v, want %q: %s", got, err, tc.want, tc.reason)
			}
		})
	}
}

func TestOrphaned(t *testing.T) {
	frontDoor := map[string]string{v1alpha1.FrontDoorLabel: v1alpha1.FrontDoor}
	owner := []metav1.OwnerReference{{Name: "web", Controller: new(true)}}
	for name, tc := range map[string]struct {
		labels map[string]string
		owners []metav1.OwnerReference
		want   bool
	}{
		"Owned":     {frontDoor, owner, false},
		"Orphaned":  {frontDoor, nil, true},
		"ByItself":  {nil, nil, false},
		"Templated": {nil, owner, false},
	} {
		resource := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels, OwnerReferences: tc.owners}}
		if got := orphaned(resource); got != tc.want {
			t.Errorf("%s: orphaned = %t, want %t", name, got, tc.want)
		}
		resource.Annotations = map[string]string{v1alpha1.DeletionAnnotation: string(v1alpha1.DeletionOrphan)}
		if got := orphaned(resource); got != tc.want {
			t.Errorf("%s: what is not being deleted is not left alone because it will be", name)
		}
		now := metav1.Now()
		resource.DeletionTimestamp = &now
		if !orphaned(resource) {
			t.Errorf("%s: it is deleted although it shall stay", name)
		}
	}
}
