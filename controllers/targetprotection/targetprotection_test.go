package targetprotection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
	"github.com/portico-io/portico/policies"
)

func target(edits ...func(*v1alpha1.KubernetesTarget)) client.Object {
	out := &v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "eu-1"}}
	for _, edit := range edits {
		edit(out)
	}
	return out
}

func kept(t *v1alpha1.KubernetesTarget) { t.Finalizers = append(t.Finalizers, v1alpha1.InUseFinalizer) }

func deleted(t *v1alpha1.KubernetesTarget) {
	now := metav1.Now()
	t.DeletionTimestamp = &now
}

func released(t *v1alpha1.KubernetesTarget) {
	t.Annotations = map[string]string{v1alpha1.ReleaseAnnotation: "true"}
}

// resource returns a resource on a target, which may leave another target.
func resource(name, on, leaving string) *v1alpha1.KubernetesApplicationResource {
	out := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team-a", Name: name, Finalizers: []string{v1alpha1.PropagationFinalizer, "example.org/other"},
	}}
	if on != "" {
		out.Spec.TargetRef = &v1alpha1.TargetReference{Name: on}
	}
	if leaving != "" {
		out.Spec.LeavingTargetRef = &v1alpha1.TargetReference{Name: leaving}
	}
	out.Spec.Template.Raw = fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":%q}}`, name)
	out.Status.State, out.Status.Target, out.Status.ObservedHubGeneration = v1alpha1.StateSubmitted, on, 7
	return out
}

func application(name, on string) *v1alpha2.KubernetesApplication {
	out := &v1alpha2.KubernetesApplication{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}}
	if on != "" {
		out.Spec.TargetRef = &v1alpha1.TargetReference{Name: on}
	}
	return out
}

// TestReconcile reconciles target eu-1, with resources on it and elsewhere.
func TestReconcile(t *testing.T) {
	cases := map[string]struct {
		reason string
		hub    []client.Object
		want   []string
		event  string // the beginning of one event
	}{
		"Unused":    {reason: "An unused target has no finalizer.", hub: []client.Object{target(kept)}, want: []string{"target"}},
		"Elsewhere": {reason: "Resources on other targets do not count.", hub: []client.Object{target(kept), resource("web", "eu-2", "")}, want: []string{"target", "web on eu-2, held"}},
		"Used":      {reason: "A target with a resource has a finalizer.", hub: []client.Object{target(), resource("web", "eu-1", "")}, want: []string{"target kept", "web on eu-1, held"}},
		"Left":      {reason: "A target that a resource is leaving has a finalizer.", hub: []client.Object{target(), resource("web", "eu-2", "eu-1")}, want: []string{"target kept", "web on eu-2 leaving eu-1, held"}},
		"Deleted": {
			reason: "A target with resources is not deleted. An event names the resources.", hub: []client.Object{target(kept, deleted), resource("web", "eu-1", "")},
			want: []string{"target kept", "web on eu-1, held"}, event: "Warning InUse 1 KubernetesApplicationResource is on target eu-1",
		},
		"DeletedUnused": {reason: "A target without resources is deleted.", hub: []client.Object{target(kept, deleted)}},
		"MayGo":         {reason: "A release of a target that is not being deleted has no effect.", hub: []client.Object{target(released), resource("web", "eu-1", "")}, want: []string{"target kept", "web on eu-1, held"}},
		"Released": {
			reason: "Resources are removed from a released target, and listed in status. The scheduler selects another target.",
			hub: []client.Object{target(kept, deleted, released), resource("web", "eu-1", ""), resource("db", "eu-1", "eu-2"), resource("back", "eu-2", "eu-1"),
				resource("other", "eu-2", ""), application("shop", "eu-1"), application("blog", "eu-2")},
			want:  []string{"target kept", "back on eu-2, held", "db leaving eu-2, held, TargetReleased", "other on eu-2, held", "web, TargetReleased", "application blog on eu-2", "application shop, TargetReleased"},
			event: "Warning TargetReleased released with 3 resources on it; these objects remain on its cluster: ConfigMap shop/back, ConfigMap shop/db, ConfigMap shop/web",
		},
		"Gone": {reason: "A missing target needs no work.", want: nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme := reconcilertest.Scheme(t, v1alpha1.AddToScheme, v1alpha2.AddToScheme)
			hub := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&v1alpha1.KubernetesApplicationResource{}, policies.TargetIndex, byTarget).
				WithIndex(&v1alpha2.KubernetesApplication{}, policies.TargetIndex, IndexApplication).WithObjects(tc.hub...).
				WithStatusSubresource(&v1alpha1.KubernetesApplicationResource{}, &v1alpha2.KubernetesApplication{}).Build()
			recorder := events.NewFakeRecorder(20)
			c := newController(hub, recorder)
			for range 2 { // the second reconcile changes nothing
				if _, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "team-a", Name: "eu-1"}}); err != nil {
					t.Fatal(err)
				}
				if name == "Released" {
					break // the target is gone
				}
			}
			if diff := gocmp.Diff(tc.want, describe(t, hub)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			var emitted []string
			for len(recorder.Events) > 0 {
				emitted = append(emitted, <-recorder.Events)
			}
			if (tc.event == "") != (len(emitted) == 0) || !slices.ContainsFunc(append(emitted, ""), func(e string) bool { return strings.HasPrefix(e, tc.event) }) {
				t.Errorf("%s: events %q", tc.reason, emitted)
			}
		})
	}
}

// describe returns a line for each object of the hub.
func describe(t *testing.T, hub client.Client) []string {
	t.Helper()
	var out []string
	ref := func(word string, ref *v1alpha1.TargetReference) string {
		if ref == nil {
			return ""
		}
		return " " + word + " " + ref.Name
	}
	why := func(conditions []metav1.Condition) string {
		if c := meta.FindStatusCondition(conditions, v1alpha1.Scheduled); c != nil {
			return ", " + c.Reason
		}
		return ""
	}
	list := func(list client.ObjectList) {
		if err := hub.List(context.Background(), list); err != nil {
			t.Fatal(err)
		}
	}
	var targets v1alpha1.KubernetesTargetList
	list(&targets)
	for _, target := range targets.Items {
		line := "target"
		if slices.Contains(target.Finalizers, v1alpha1.InUseFinalizer) {
			line += " kept"
		}
		out = append(out, line)
	}
	var resources v1alpha1.KubernetesApplicationResourceList
	list(&resources)
	for _, r := range resources.Items {
		line := r.Name + ref("on", r.Spec.TargetRef) + ref("leaving", r.Spec.LeavingTargetRef)
		if slices.Contains(r.Finalizers, v1alpha1.PropagationFinalizer) {
			line += ", held"
		}
		out = append(out, line+why(r.Status.Conditions))
	}
	var apps v1alpha2.KubernetesApplicationList
	list(&apps)
	for _, app := range apps.Items {
		out = append(out, "application "+app.Name+ref("on", app.Spec.TargetRef)+why(app.Status.Conditions))
	}
	return out
}

// TestReleaseResource tests the status of a resource without a target.
func TestReleaseResource(t *testing.T) {
	scheme := reconcilertest.Scheme(t, v1alpha1.AddToScheme)
	web := resource("web", "eu-1", "")
	meta.SetStatusCondition(&web.Status.Conditions, metav1.Condition{Type: v1alpha1.TargetReachable, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnreachable})
	meta.SetStatusCondition(&web.Status.Conditions, metav1.Condition{Type: v1alpha1.Ready, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAvailable})
	hub := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&v1alpha1.KubernetesApplicationResource{}, policies.TargetIndex, byTarget).WithObjects(web).WithStatusSubresource(web).Build()
	key := client.ObjectKeyFromObject(web)
	if err := hub.Get(t.Context(), key, web); err != nil {
		t.Fatal(err)
	}
	if err := newController(hub, events.NewFakeRecorder(5)).releaseResource(t.Context(), "eu-1", web); err != nil {
		t.Fatal(err)
	}
	if err := hub.Get(t.Context(), key, web); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{"state": string(web.Status.State), "target": web.Status.Target, "generation": fmt.Sprint(web.Status.ObservedHubGeneration)}
	for _, c := range web.Status.Conditions {
		got[c.Type] = string(c.Status) + " " + c.Reason
	}
	want := map[string]string{"state": "Pending", "target": "", "generation": "0",
		"Scheduled": "False TargetReleased", "Synced": "False TargetReleased", "Ready": "False TargetReleased"}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("a resource on no target must not seem to run (-want +got):\n%s", diff)
	}
}

// TestLeftBehind removes from status.leftBehind an object that belongs to a resource again.
func TestLeftBehind(t *testing.T) {
	scheme := reconcilertest.Scheme(t, v1alpha1.AddToScheme)
	eu := target(func(t *v1alpha1.KubernetesTarget) {
		t.Status.LeftBehind = []v1alpha1.OrphanedObject{{Object: "ConfigMap shop/web", Resource: "web"}, {Object: "ConfigMap shop/db", Resource: "db"}}
	})
	hub := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&v1alpha1.KubernetesApplicationResource{}, policies.TargetIndex, byTarget).WithObjects(eu, resource("web", "eu-1", "")).WithStatusSubresource(&v1alpha1.KubernetesTarget{}).Build()
	c := newController(hub, events.NewFakeRecorder(5))
	if _, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(eu)}); err != nil {
		t.Fatal(err)
	}
	now := &v1alpha1.KubernetesTarget{}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(eu), now); err != nil {
		t.Fatal(err)
	}
	if len(now.Status.LeftBehind) != 1 || now.Status.LeftBehind[0].Resource != "db" {
		t.Errorf("left behind: %v", now.Status.LeftBehind)
	}
}

// TestTargetsChanged passes updates that change the targets of a resource.
func TestProtectionChanged(t *testing.T) {
	cases := map[string]struct {
		reason        string
		before, after client.Object
		want          bool
	}{
		"Status":           {reason: "A status needs no other protection.", before: target(kept), after: target(kept, func(t *v1alpha1.KubernetesTarget) { t.Status.Cluster = "eu.example.org" })},
		"FinalizerRemoved": {reason: "A resource may have got the target meanwhile.", before: target(kept), after: target(), want: true},
		"FinalizerAdded":   {reason: "The resource may have left the target meanwhile.", before: target(), after: target(kept), want: true},
		"Released":         {reason: "A user released the target.", before: target(kept), after: target(kept, released), want: true},
		"Deleted":          {reason: "The deletion waits for the resources.", before: target(kept, deleted), after: target(kept, deleted), want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			event := event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}
			if got := reconciler.Updated(protectionChanged).Update(event); got != tc.want {
				t.Errorf("%s\ngot %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

func TestTargetsChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after *v1alpha1.KubernetesApplicationResource
		want          bool
	}{
		"Same":    {resource("web", "a", ""), resource("web", "a", ""), false},
		"Placed":  {resource("web", "", ""), resource("web", "a", ""), true},
		"Moves":   {resource("web", "a", ""), resource("web", "b", "a"), true},
		"Arrives": {resource("web", "b", "a"), resource("web", "b", ""), true},
	} {
		if got := targetsChanged(tc.before, tc.after); got != tc.want {
			t.Errorf("%s: passed: %t, want %t", name, got, tc.want)
		}
	}
	if got := targetsOfResource(t.Context(), resource("web", "b", "a")); len(got) != 2 || got[0].Name != "b" || got[1].Name != "a" {
		t.Errorf("a resource on its way concerns %v", got)
	}
}

// byTarget is the index of resources by target in the cache.
func byTarget(object client.Object) []string {
	return policies.TargetsOf(object.(*v1alpha1.KubernetesApplicationResource))
}

// TestSteps runs the steps in their order, and returns the error of each call.
func TestSteps(t *testing.T) {
	failure := errors.New("the hub is away")
	all := []string{"read target", "check protection", "list resources", "protect", "release"}
	everything := []client.Object{target(kept, deleted, released), resource("web", "eu-1", ""), application("shop", "eu-1")}
	cases := map[string]struct {
		reason string
		hub    []client.Object
		// fail is the request that fails, as "verb kind".
		fail  string
		steps int
	}{
		"Gone":                  {reason: "A missing target needs no work.", steps: 1},
		"Protected":             {reason: "For a target in use with a finalizer the resources are not listed.", hub: []client.Object{target(kept), resource("web", "eu-1", "")}, steps: 2},
		"Unused":                {reason: "An unused target is not released.", hub: []client.Object{target(kept)}, steps: 4},
		"Released":              {reason: "A released target runs every step.", hub: everything, steps: 5},
		"ReadFails":             {reason: "An error to read the target is returned.", hub: everything, fail: "get KubernetesTarget", steps: 1},
		"ProtectionFails":       {reason: "An error to find a resource is returned.", hub: []client.Object{target(kept)}, fail: "list KubernetesApplicationResourceList", steps: 2},
		"ListFails":             {reason: "An error to list resources is returned.", hub: everything, fail: "list KubernetesApplicationResourceList", steps: 3},
		"FinalizerFails":        {reason: "An error to write the finalizer is returned.", hub: []client.Object{target(), resource("web", "eu-1", "")}, fail: "patch KubernetesTarget", steps: 4},
		"RemovalFails":          {reason: "An error to remove the finalizer is returned.", hub: []client.Object{target(kept)}, fail: "patch KubernetesTarget", steps: 4},
		"ApplicationsFail":      {reason: "An error to list applications is returned.", hub: everything, fail: "list KubernetesApplicationList", steps: 5},
		"ApplicationFails":      {reason: "An error to release an application is returned.", hub: everything, fail: "patch KubernetesApplication", steps: 5},
		"ApplicationStatusFail": {reason: "An error to write the status of an application is returned.", hub: everything, fail: "patch status KubernetesApplication", steps: 5},
		"ResourceFails":         {reason: "An error to release a resource is returned.", hub: everything, fail: "patch KubernetesApplicationResource", steps: 5},
		"ResourceStatusFails":   {reason: "An error to write the status of a resource is returned.", hub: everything, fail: "patch status KubernetesApplicationResource", steps: 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme := reconcilertest.Scheme(t, v1alpha1.AddToScheme, v1alpha2.AddToScheme)
			hub := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&v1alpha1.KubernetesApplicationResource{}, policies.TargetIndex, byTarget).
				WithIndex(&v1alpha2.KubernetesApplication{}, policies.TargetIndex, IndexApplication).WithObjects(tc.hub...).
				WithStatusSubresource(&v1alpha1.KubernetesApplicationResource{}, &v1alpha2.KubernetesApplication{}).
				WithInterceptorFuncs(reconcilertest.Before(reconcilertest.FailOn(tc.fail, failure))).Build()
			var steps []string
			log := reconcilertest.Steps(&steps)
			c := newController(hub, events.NewFakeRecorder(20))
			_, err := c.Reconcile(ctrl.LoggerInto(t.Context(), log), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "team-a", Name: "eu-1"}})
			if errors.Is(err, failure) != (tc.fail != "") || tc.fail == "" && err != nil {
				t.Errorf("%s: error %v", tc.reason, err)
			}
			if diff := gocmp.Diff(all[:tc.steps], steps); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
