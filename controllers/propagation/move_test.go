package propagation

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/credentials"
)

// lister is a cache with the methods that a move needs.
type lister struct {
	cache.Cache
	reader client.Reader
}

func (l lister) List(ctx context.Context, list client.ObjectList, o ...client.ListOption) error {
	return l.reader.List(ctx, list, o...)
}

func controllerOn(t *testing.T, objects ...client.Object) *Controller {
	t.Helper()
	scheme := reconcilertest.Scheme(t, v1alpha1.AddToScheme)
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&v1alpha1.KubernetesApplicationResource{}, policies.ApplicationIndex, func(o client.Object) []string { return policies.ApplicationKeys(o) }).
		WithIndex(&v1alpha1.KubernetesApplicationResource{}, policies.PrerequisiteIndex, IndexPrerequisite).Build()
	return newController(base{
		hub: hub, live: hub, clusters: clusters.New(clusters.Options{}),
		options: Options{HubID: testHub, AllowDefaults: policies.AllowDefaults{PorticoNamespace: "portico-system"}},
	}, lister{reader: hub})
}

// moving returns a resource of application shop that moves between targets. shown is
// the target in its status.
func moving(name, from, to, shown string) *v1alpha1.KubernetesApplicationResource {
	out := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team-a", Name: name, Labels: map[string]string{v1alpha1.ApplicationLabel: "shop"},
	}}
	if to != "" {
		out.Spec.TargetRef = &v1alpha1.TargetReference{Name: to}
	}
	if from != "" {
		out.Spec.LeavingTargetRef = &v1alpha1.TargetReference{Name: from}
	}
	out.Status.Target = shown
	return out
}

func published(name string, edits ...func(*v1alpha1.KubernetesTarget)) *v1alpha1.KubernetesTarget {
	out := &v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, Finalizers: []string{v1alpha1.InUseFinalizer}}}
	for _, edit := range edits {
		edit(out)
	}
	return out
}

// TestWaitForApplication tests whether "web" may be deleted on target old.
func TestWaitForApplication(t *testing.T) {
	deleted := func(o client.Object) {
		o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1e9, 0)})
		o.SetFinalizers([]string{v1alpha1.PropagationFinalizer})
	}
	given := func(o *v1alpha1.KubernetesTarget) {
		deleted(o)
		o.Annotations = map[string]string{v1alpha1.ReleaseAnnotation: "true"}
	}
	dying := moving("web", "old", "new", "old")
	deleted(dying)
	gone := moving("db", "old", "new", "old")
	deleted(gone)
	foreign := moving("db", "old", "new", "old")
	foreign.Labels[v1alpha1.ApplicationLabel] = "blog"
	cases := map[string]struct {
		reason string
		web    *v1alpha1.KubernetesApplicationResource
		cached *v1alpha1.KubernetesApplicationResource // set if the cache is behind
		others []client.Object
		want   error
	}{
		"Ready":         {reason: "The object is ready on the new target.", web: moving("web", "old", "new", "new")},
		"NotReady":      {reason: "The object is not ready on the new target yet.", web: moving("web", "old", "new", "old"), want: reconciler.RequeueAfter(scope.PollInterval)},
		"OtherReady":    {reason: "All objects of the application are ready on the new target.", web: moving("web", "old", "new", "new"), others: []client.Object{moving("db", "old", "new", "new")}},
		"OtherNotReady": {reason: "Another object of the application is not ready yet.", web: moving("web", "old", "new", "new"), others: []client.Object{moving("db", "old", "new", "old")}, want: reconciler.RequeueAfter(scope.PollInterval)},
		"OtherLeft":     {reason: "Another object of the application has left the old target.", web: moving("web", "old", "new", "new"), others: []client.Object{moving("db", "", "new", "new")}},
		"OtherNotBegun": {reason: "Another object of the application does not move yet.", web: moving("web", "old", "new", "new"), others: []client.Object{moving("db", "", "old", "old")}, want: reconciler.RequeueAfter(scope.PollInterval)},
		"OtherGoes":     {reason: "An object that is being deleted does not count.", web: moving("web", "old", "new", "new"), others: []client.Object{gone}},
		"OtherStranger": {reason: "An object of another application does not count.", web: moving("web", "old", "new", "new"), others: []client.Object{foreign}},
		"Deleted":       {reason: "An object that is being deleted waits for no other.", web: dying},
		"TurnedBack":    {reason: "The object turned back, and the cache does not have this yet.", web: moving("web", "new", "old", "old"), cached: moving("web", "old", "new", "new"), want: reconciler.ErrDone},
		"Unplaced":      {reason: "The new target was released.", web: moving("web", "old", "", ""), want: reconciler.ErrDone},
		"GivenUp":       {reason: "The object stays on an old target that is released.", web: moving("web", "old", "new", "new"), others: []client.Object{published("old", given)}, want: reconciler.ErrDone},
		"DeletedInUse":  {reason: "Deletion of a target without a release deletes its objects.", web: moving("web", "old", "new", "new"), others: []client.Object{published("old", func(o *v1alpha1.KubernetesTarget) { deleted(o) })}},
		"ReleasedNotYet": {reason: "A release of a target that is not being deleted has no effect.", web: moving("web", "old", "new", "new"), others: []client.Object{published("old", func(o *v1alpha1.KubernetesTarget) {
			o.Annotations = map[string]string{v1alpha1.ReleaseAnnotation: "true"}
		})}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := controllerOn(t, append(tc.others, tc.web.DeepCopy())...)
			seen := tc.cached
			if seen == nil {
				seen = tc.web
			}
			c.memory.Progress.Set(seen)
			for _, other := range tc.others {
				if other, ok := other.(*v1alpha1.KubernetesApplicationResource); ok {
					c.memory.Progress.Set(other)
				}
			}
			s := &scope.Scope{Target: types.NamespacedName{Namespace: "team-a", Name: "old"}, Resource: seen.DeepCopy()}
			if err := c.remover.waitForApplication(t.Context(), s); !errors.Is(err, tc.want) {
				t.Errorf("%s It says %v, want %v", tc.reason, err, tc.want)
			}
		})
	}
}

// TestScheduledMessage describes the targets of a resource of application shop on
// target new.
func TestScheduledMessage(t *testing.T) {
	for name, tc := range map[string]struct {
		resource *v1alpha1.KubernetesApplicationResource
		want     string
	}{
		"There":   {moving("web", "", "new", "new"), "application shop runs on target new"},
		"Moves":   {moving("web", "old", "new", "old"), "application shop moves from target old to target new"},
		"OldAway": {moving("web", "old", "new", "new"), "application shop runs on target new; its objects on target old are deleted when that target is reachable"},
	} {
		s := &scope.Scope{Target: types.NamespacedName{Namespace: "team-a", Name: "new"}, Resource: tc.resource}
		if got := controllerOn(t).observer.scheduledMessage(s); got != tc.want {
			t.Errorf("%s: it says %q, want %q", name, got, tc.want)
		}
	}
}

// connected returns a connection to a target that serves ConfigMaps, which are
// namespaced, and Namespaces, which are not.
func connected(t *testing.T, c *Controller, target types.NamespacedName) *clusters.TargetConnection {
	t.Helper()
	answers := map[string]any{
		"/version": version.Info{GitVersion: "v1.36.3"},
		"/api":     metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}},
		"/apis":    metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}},
		"/api/v1": metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}, {Name: "namespaces", Kind: "Namespace"},
		}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.URL.Path]
		if !known {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // the client reports an encoding error
	}))
	t.Cleanup(server.Close)
	config := clusters.ConnectionConfig{Connection: &credentials.Connection{Config: &rest.Config{Host: server.URL}, AddressRules: credentials.AddressRules{AllowLocal: true}}, Digest: "1"}
	if err := c.clusters.Connect(t.Context(), target, config); err != nil {
		t.Fatal(err)
	}
	connection, err := c.clusters.Get(target)
	for err == nil && !connection.State().IsReachable() && t.Context().Err() == nil {
		time.Sleep(5 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	return connection
}

// TestCheckAllowed tests whether a target allows an object that it does not have yet.
func TestCheckAllowed(t *testing.T) {
	cases := map[string]struct {
		reason, template string
		allow            *v1alpha1.Allowance
		deleted          bool       // the target
		state            plan.State // of the object; absent by default
		want             string     // the message of condition Synced; empty if the object is allowed
	}{
		"Open":      {reason: "By default namespaced objects are allowed.", template: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}`},
		"System":    {reason: "Namespaces that begin with kube- are not allowed.", template: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-system}}`, want: "target eu-1 does not allow namespace kube-system; its spec.allow.namespaces would have to list it"},
		"Portico":   {reason: "Portico's namespace is not allowed.", template: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: portico-system}}`, want: "target eu-1 does not allow namespace portico-system; its spec.allow.namespaces would have to list it"},
		"Scope":     {reason: "The target determines whether a kind is namespaced, not the template.", template: `{apiVersion: v1, kind: Namespace, metadata: {name: a, namespace: shop}}`, want: `target eu-1 does not allow Namespace; its spec.allow.kinds would have to list {group: "", kind: Namespace}`},
		"Named":     {reason: "A cluster-scoped kind in the list is allowed.", template: `{apiVersion: v1, kind: Namespace, metadata: {name: a}}`, allow: &v1alpha1.Allowance{Kinds: []metav1.GroupKind{{Kind: "Namespace"}}}},
		"Default":   {reason: "An object without a namespace is in namespace default.", template: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`, allow: &v1alpha1.Allowance{Namespaces: []string{"shop"}}, want: "target eu-1 does not allow namespace default; its spec.allow.namespaces would have to list it"},
		"Deleted":   {reason: "A target that is being deleted accepts no new objects.", template: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}`, deleted: true, want: "target eu-1 is being deleted and accepts no new objects; delete this resource, or move it to another target"},
		"Taken":     {reason: "A target that is being deleted lets no object be adopted.", template: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}`, deleted: true, state: plan.Adoptable, want: "target eu-1 is being deleted and accepts no new objects; delete this resource, or move it to another target"},
		"There":     {reason: "An existing object is corrected on a target that is being deleted.", template: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}`, deleted: true, state: plan.Drifted},
		"OtherKind": {reason: "A kind outside the list is denied.", template: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}`, allow: &v1alpha1.Allowance{Kinds: []metav1.GroupKind{{Kind: "Service"}}}, want: `target eu-1 does not allow ConfigMap; its spec.allow.kinds would have to list {group: "", kind: ConfigMap}`},
	}
	target := types.NamespacedName{Namespace: "team-a", Name: "eu-1"}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := controllerOn(t, published("eu-1", func(o *v1alpha1.KubernetesTarget) {
				o.Spec.Allow = tc.allow
				if tc.deleted {
					o.Finalizers, o.DeletionTimestamp = []string{"example.org/own"}, &metav1.Time{Time: time.Unix(1e9, 0)}
				}
			}))
			if tc.state == "" {
				tc.state = plan.Absent
			}
			s := &scope.Scope{Target: target, Resource: resourceWith(t, tc.template), State: tc.state, Connection: connected(t, c, target)}
			s.Resource.Status.ObservedHubGeneration = 7
			if err := c.buildDesired(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			err := c.applier.checkAllowed(t.Context(), s)
			if errors.Is(err, reconciler.ErrDone) != (tc.want != "") || !errors.Is(err, reconciler.ErrDone) && err != nil {
				t.Fatalf("%s It says %v", tc.reason, err)
			}
			got := ""
			if synced := meta.FindStatusCondition(s.Resource.Status.Conditions, v1alpha1.Synced); synced != nil {
				got = synced.Message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if tc.want != "" && (s.Resource.Status.ObservedHubGeneration != 0 || !meta.IsStatusConditionFalse(s.Resource.Status.Conditions, v1alpha1.Ready)) {
				t.Errorf("the object does not exist, and the status is %+v", s.Resource.Status)
			}
		})
	}
}
