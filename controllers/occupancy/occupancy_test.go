package occupancy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
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

// resource is on a target, and may be leaving another.
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

// TestReconcile is about target eu-1, and what is on it.
func TestReconcile(t *testing.T) {
	cases := map[string]struct {
		reason string
		hub    []client.Object
		want   []string
		told   string // of the first event
	}{
		"Unused":    {reason: "Nothing is on it, and nothing keeps it.", hub: []client.Object{target(kept)}, want: []string{"target"}},
		"Elsewhere": {reason: "What is on others does not.", hub: []client.Object{target(kept), resource("web", "eu-2", "")}, want: []string{"target", "web on eu-2, held"}},
		"Used":      {reason: "What is on it does.", hub: []client.Object{target(), resource("web", "eu-1", "")}, want: []string{"target kept", "web on eu-1, held"}},
		"Left":      {reason: "So does what is leaving it.", hub: []client.Object{target(), resource("web", "eu-2", "eu-1")}, want: []string{"target kept", "web on eu-2 leaving eu-1, held"}},
		"Deleted": {
			reason: "It waits, and says for what.", hub: []client.Object{target(kept, deleted), resource("web", "eu-1", "")},
			want: []string{"target kept", "web on eu-1, held"}, told: "Warning InUse 1 KubernetesApplicationResource is on target eu-1",
		},
		"DeletedUnused": {reason: "With nothing on it, it goes.", hub: []client.Object{target(kept, deleted)}},
		"MayGo":         {reason: "A release is for deletion, and does nothing before.", hub: []client.Object{target(released), resource("web", "eu-1", "")}, want: []string{"target kept", "web on eu-1, held"}},
		"Released": {
			reason: "Everything is taken off it, and listed. Where it goes is for the scheduler to say.",
			hub: []client.Object{target(kept, deleted, released), resource("web", "eu-1", ""), resource("db", "eu-1", "eu-2"), resource("back", "eu-2", "eu-1"),
				resource("other", "eu-2", ""), application("shop", "eu-1"), application("blog", "eu-2")},
			want: []string{"target kept", "back on eu-2, held", "db leaving eu-2, held, TargetReleased", "other on eu-2, held", "web, TargetReleased", "application blog on eu-2", "application shop, TargetReleased"},
			told: "Warning TargetReleased given up with 3 resources on it; on its cluster stays behind: ConfigMap shop/back, ConfigMap shop/db, ConfigMap shop/web",
		},
		"Gone": {reason: "There is nothing to do.", want: nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, v1alpha2.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.hub...).
				WithStatusSubresource(&v1alpha1.KubernetesApplicationResource{}, &v1alpha2.KubernetesApplication{}).Build()
			recorder := events.NewFakeRecorder(20)
			c := &Controller{hub: hub, recorder: recorder}
			for range 2 { // the second time changes nothing
				if _, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "team-a", Name: "eu-1"}}); err != nil {
					t.Fatal(err)
				}
				if name == "Released" {
					break // the target goes then
				}
			}
			if diff := cmp.Diff(tc.want, tell(t, hub)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			var told []string
			for len(recorder.Events) > 0 {
				told = append(told, <-recorder.Events)
			}
			if (tc.told == "") != (len(told) == 0) || !slices.ContainsFunc(append(told, ""), func(e string) bool { return strings.HasPrefix(e, tc.told) }) {
				t.Errorf("%s It tells %q", tc.reason, told)
			}
		})
	}
}

// tell describes what is on the hub, a line for each object.
func tell(t *testing.T, hub client.Client) []string {
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

// TestLetGo looks at what is left of the status of a resource that is nowhere.
func TestLetGo(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	web := resource("web", "eu-1", "")
	meta.SetStatusCondition(&web.Status.Conditions, metav1.Condition{Type: v1alpha1.TargetReachable, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnreachable})
	meta.SetStatusCondition(&web.Status.Conditions, metav1.Condition{Type: v1alpha1.Ready, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAvailable})
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(web).WithStatusSubresource(web).Build()
	key := client.ObjectKeyFromObject(web)
	if err := hub.Get(t.Context(), key, web); err != nil {
		t.Fatal(err)
	}
	if err := (&Controller{hub: hub, recorder: events.NewFakeRecorder(5)}).letGo(t.Context(), "eu-1", web); err != nil {
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
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is nowhere must not seem to run (-want +got):\n%s", diff)
	}
}

// TestFound takes what is a resource's again off the list of what was left behind.
func TestFound(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	eu := target(func(t *v1alpha1.KubernetesTarget) {
		t.Status.LeftBehind = []v1alpha1.LeftObject{{Object: "ConfigMap shop/web", Resource: "web"}, {Object: "ConfigMap shop/db", Resource: "db"}}
	})
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(eu, resource("web", "eu-1", "")).WithStatusSubresource(&v1alpha1.KubernetesTarget{}).Build()
	c := &Controller{hub: hub, recorder: events.NewFakeRecorder(5)}
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

// TestComesOrGoes passes what changes which targets a resource is on.
func TestComesOrGoes(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after *v1alpha1.KubernetesApplicationResource
		want          bool
	}{
		"Same":    {resource("web", "a", ""), resource("web", "a", ""), false},
		"Placed":  {resource("web", "", ""), resource("web", "a", ""), true},
		"Moves":   {resource("web", "a", ""), resource("web", "b", "a"), true},
		"Arrives": {resource("web", "b", "a"), resource("web", "b", ""), true},
	} {
		if got := comesOrGoes().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
			t.Errorf("%s: passed: %t, want %t", name, got, tc.want)
		}
	}
	if got := targetsOf(t.Context(), resource("web", "b", "a")); len(got) != 2 || got[0].Name != "b" || got[1].Name != "a" {
		t.Errorf("a resource on its way concerns %v", got)
	}
}
