package intake

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
)

func native(name string) *unstructured.Unstructured {
	out := kinds.New(kinds.Deployment{})
	out.SetNamespace("team-a")
	out.SetName(name)
	out.SetUID(types.UID("uid-of-" + name))
	return out
}

func asking(env string) policies.Membership {
	return policies.Membership{Application: "shop", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": env}}}
}

// resourceOf is a native object's resource, on a target or on none.
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
	out := applicationFor("team-a", asking(env))
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
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, v1alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	return &Controller{hub: hub, live: hub, kind: kinds.Deployment{}, recorder: events.NewFakeRecorder(100)}
}

// TestApplication is about a Deployment "web" that asks for env=prod.
func TestApplication(t *testing.T) {
	written := func(app *v1alpha2.KubernetesApplication) { app.Labels = nil }
	cases := map[string]struct {
		reason string
		hub    []client.Object
		want   string // selector and target of what there is afterwards
		err    error
	}{
		"None":            {reason: "The first of its group makes it.", want: "env=prod on "},
		"Deleted":         {reason: "An application that was deleted under its resources comes back where they are.", hub: []client.Object{resourceOf("web", "eu-1")}, want: "env=prod on eu-1"},
		"Agrees":          {reason: "Others join it.", hub: []client.Object{shop("prod", "eu-1"), resourceOf("db", "eu-1")}, want: "env=prod on eu-1"},
		"ChangedMind":     {reason: "An object by itself may ask for something else until it runs.", hub: []client.Object{shop("typo", ""), resourceOf("web", "")}, want: "env=prod on "},
		"ChangedMindSoon": {reason: "Also before it has a resource.", hub: []client.Object{shop("typo", "")}, want: "env=prod on "},
		"OthersWait":      {reason: "It does not take others along, who would take it back, and so on for ever.", hub: []client.Object{shop("dev", ""), resourceOf("web", ""), resourceOf("db", "")}, want: "env=dev on ", err: errDisagrees},
		"OthersRun":       {reason: "What asks for prod does not run on dev, though admission was away.", hub: []client.Object{shop("dev", "dev-1"), resourceOf("db", "dev-1")}, want: "env=dev on dev-1", err: errDisagrees},
		"Placed":          {reason: "Nor when the application is placed and this is the first to know.", hub: []client.Object{shop("dev", "dev-1"), resourceOf("web", "")}, want: "env=dev on dev-1", err: errDisagrees},
		"RunsAlready":     {reason: "What runs there, runs there: a selector is not a reason to stop it.", hub: []client.Object{shop("dev", "dev-1"), resourceOf("web", "dev-1")}, want: "env=dev on dev-1"},
		"RunsWithOthers":  {reason: "Not even in company.", hub: []client.Object{shop("dev", "dev-1"), resourceOf("db", "dev-1"), resourceOf("web", "dev-1")}, want: "env=dev on dev-1"},
		"Written":         {reason: "An application that a user wrote is the user's.", hub: []client.Object{shop("dev", "", written)}, want: "env=dev on ", err: errDisagrees},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := controllerOf(t, tc.hub...)
			if _, err := c.application(t.Context(), native("web"), asking("prod")); !errors.Is(err, tc.err) {
				t.Errorf("error %v, want %v: %s", err, tc.err, tc.reason)
			}
			app := &v1alpha2.KubernetesApplication{}
			if err := c.hub.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: "shop"}, app); err != nil {
				t.Fatal(err)
			}
			got := policies.SelectorText(app.Spec.TargetSelector) + " on "
			if app.Spec.TargetRef != nil {
				got += app.Spec.TargetRef.Name
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDisagreementEnds lets two members of one application that ask for
// different targets be taken in again and again: one of them gets its way, and
// the other has nothing that could be placed with it.
func TestDisagreementEnds(t *testing.T) {
	c := controllerOf(t)
	wants := map[string]policies.Membership{"web": asking("prod"), "db": asking("dev")}
	won := map[string]bool{}
	for round := range 5 {
		for _, name := range []string{"web", "db"} {
			app, err := c.application(t.Context(), native(name), wants[name])
			switch {
			case errors.Is(err, errDisagrees):
				if _, err := c.turnAway(t.Context(), native(name), err); err != nil {
					t.Fatal(err)
				}
			case err != nil:
				t.Fatal(err)
			default:
				won[policies.SelectorText(app.Spec.TargetSelector)] = true
				if round == 0 {
					if err := c.hub.Create(t.Context(), resourceOf(name, "")); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	if diff := cmp.Diff(map[string]bool{"env=prod": true}, won); diff != "" {
		t.Errorf("whose selector the application had (-want +got):\n%s", diff)
	}
	var list v1alpha1.KubernetesApplicationResourceList
	if err := c.hub.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Name != "web-deployment" {
		t.Errorf("what could be placed is %v, want web's alone", list.Items)
	}
}

func TestTurnAway(t *testing.T) {
	c := controllerOf(t, resourceOf("web", ""), resourceOf("db", ""))
	result, err := c.turnAway(t.Context(), native("web"), errDisagrees)
	if err != nil || result.RequeueAfter <= 0 {
		t.Errorf("result %v and error %v, want another look later", result, err)
	}
	var list v1alpha1.KubernetesApplicationResourceList
	if err := c.hub.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Name != "db-deployment" {
		t.Errorf("left are %v, want the other's", list.Items)
	}
}
