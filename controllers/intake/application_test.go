package intake

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
	"github.com/portico-io/portico/policies"
)

func native(name string) *unstructured.Unstructured {
	out := kinds.New(kinds.Deployment{})
	out.SetNamespace("team-a")
	out.SetName(name)
	out.SetUID(types.UID("uid-of-" + name))
	return out
}

func memberFor(env string) policies.Membership {
	return policies.Membership{Application: "shop", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": env}}}
}

// resourceOf returns a native object's resource, on a target or without one.
func resourceOf(name, target string) *v1alpha1.KubernetesApplicationResource {
	out := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team-a", Name: name + "-deployment",
		Labels:          map[string]string{v1alpha1.FrontDoorLabel: v1alpha1.FrontDoor, v1alpha1.ApplicationLabel: "shop"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(native(name), kinds.Deployment{}.GroupVersionKind())},
	}}
	if target != "" {
		out.Spec.TargetRef = &v1alpha1.TargetReference{Name: target}
	}
	return out
}

func shop(env, target string, change ...func(*v1alpha2.KubernetesApplication)) *v1alpha2.KubernetesApplication {
	out := applicationFor("team-a", memberFor(env))
	if target != "" {
		out.Spec.TargetRef = &v1alpha1.TargetReference{Name: target}
	}
	for _, c := range change {
		c(out)
	}
	return out
}

func controllerOf(t *testing.T, objects ...client.Object) *Controller {
	t.Helper()
	scheme := reconcilertest.Scheme(t, v1alpha1.AddToScheme, v1alpha2.AddToScheme)
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&v1alpha1.KubernetesApplicationResource{}, policies.ApplicationIndex, func(o client.Object) []string { return policies.ApplicationKeys(o) }).Build()
	return newController(hub, hub, kinds.Deployment{}, events.NewFakeRecorder(100))
}

// TestApplication ensures the application of a Deployment "web" with the selector
// env=prod.
func TestApplication(t *testing.T) {
	written := func(app *v1alpha2.KubernetesApplication) { app.Labels = nil }
	cases := map[string]struct {
		reason string
		hub    []client.Object
		want   string // selector and target of the application afterwards
		err    error
	}{
		"None":                   {reason: "The first object of a group makes the application.", want: "env=prod on "},
		"Deleted":                {reason: "A deleted application is made again with the target of its resources.", hub: []client.Object{resourceOf("web", "eu-1")}, want: "env=prod on eu-1"},
		"Agrees":                 {reason: "An object that asks for the same targets joins the application.", hub: []client.Object{shop("prod", "eu-1"), resourceOf("db", "eu-1")}, want: "env=prod on eu-1"},
		"Changed":                {reason: "The selector of a single object may change until it has a target.", hub: []client.Object{shop("typo", ""), resourceOf("web", "")}, want: "env=prod on "},
		"ChangedWithoutResource": {reason: "The selector may change before the object has a resource.", hub: []client.Object{shop("typo", "")}, want: "env=prod on "},
		"OthersWait":             {reason: "An object does not move other objects. Two objects would move the application back and forth.", hub: []client.Object{shop("dev", ""), resourceOf("web", ""), resourceOf("db", "")}, want: "env=dev on ", err: errTargetConflict},
		"OthersRun":              {reason: "An object that asks for prod does not run on dev, although admission was unavailable.", hub: []client.Object{shop("dev", "dev-1"), resourceOf("db", "dev-1")}, want: "env=dev on dev-1", err: errTargetConflict},
		"Placed":                 {reason: "The object does not run on dev if the application is placed and the resource is not.", hub: []client.Object{shop("dev", "dev-1"), resourceOf("web", "")}, want: "env=dev on dev-1", err: errTargetConflict},
		"RunsAlready":            {reason: "An object that runs on a target keeps it, whatever its selector.", hub: []client.Object{shop("dev", "dev-1"), resourceOf("web", "dev-1")}, want: "env=dev on dev-1"},
		"RunsWithOthers":         {reason: "An object that runs on a target beside other objects keeps it.", hub: []client.Object{shop("dev", "dev-1"), resourceOf("db", "dev-1"), resourceOf("web", "dev-1")}, want: "env=dev on dev-1"},
		"Written":                {reason: "Portico does not replace an application of a user.", hub: []client.Object{shop("dev", "", written)}, want: "env=dev on ", err: errTargetConflict},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := controllerOf(t, tc.hub...)
			if _, err := c.ensureApplication(t.Context(), native("web"), memberFor("prod")); !errors.Is(err, tc.err) {
				t.Errorf("error %v, want %v: %s", err, tc.err, tc.reason)
			}
			app := &v1alpha2.KubernetesApplication{}
			if err := c.hub.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: "shop"}, app); err != nil {
				t.Fatal(err)
			}
			got := policies.FormatSelector(app.Spec.TargetSelector) + " on "
			if app.Spec.TargetRef != nil {
				got += app.Spec.TargetRef.Name
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTargetConflictEnds reconciles two objects of one application with different
// selectors, several times. One of them gets its target, and the other has no resource.
func TestTargetConflictEnds(t *testing.T) {
	c := controllerOf(t)
	wants := map[string]policies.Membership{"web": memberFor("prod"), "db": memberFor("dev")}
	won := map[string]bool{}
	for round := range 5 {
		for _, name := range []string{"web", "db"} {
			app, err := c.ensureApplication(t.Context(), native(name), wants[name])
			switch {
			case errors.Is(err, errTargetConflict):
				if err := c.rejectMember(t.Context(), native(name), err); !reconciler.IsEnd(err) {
					t.Fatal(err)
				}
			case err != nil:
				t.Fatal(err)
			default:
				won[policies.FormatSelector(app.Spec.TargetSelector)] = true
				if round == 0 {
					if err := c.hub.Create(t.Context(), resourceOf(name, "")); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	if diff := cmp.Diff(map[string]bool{"env=prod": true}, won); diff != "" {
		t.Errorf("selectors of the application (-want +got):\n%s", diff)
	}
	var list v1alpha1.KubernetesApplicationResourceList
	if err := c.hub.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Name != "web-deployment" {
		t.Errorf("resources %v, want the one of web alone", list.Items)
	}
}

func TestRejectMember(t *testing.T) {
	c := controllerOf(t, resourceOf("web", ""), resourceOf("db", ""))
	result, err := reconciler.Result(c.rejectMember(t.Context(), native("web"), errTargetConflict))
	if err != nil || result.RequeueAfter <= 0 {
		t.Errorf("result %v and error %v, want a delay", result, err)
	}
	var list v1alpha1.KubernetesApplicationResourceList
	if err := c.hub.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Name != "db-deployment" {
		t.Errorf("resources %v, want the one of the other object", list.Items)
	}
}
