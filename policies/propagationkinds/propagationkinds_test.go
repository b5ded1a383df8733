package propagationkinds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

func lake(change ...func(*v1alpha1.PropagationKind)) *v1alpha1.PropagationKind {
	out := &v1alpha1.PropagationKind{
		ObjectMeta: metav1.ObjectMeta{Name: "lake.example.org", Generation: 2},
		Spec:       v1alpha1.PropagationKindSpec{Group: "example.org", Kind: "Lake"},
	}
	for _, c := range change {
		c(out)
	}
	return out
}

func TestValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		kind   *v1alpha1.PropagationKind
		want   []string
	}{
		"Valid": {reason: "A group of a CustomResourceDefinition is allowed.", kind: lake(func(k *v1alpha1.PropagationKind) {
			k.Spec.StatusPaths, k.Spec.Readiness = []string{".status.level", ".status.in.one"}, "object.status.level > 1"
		})},
		"BuiltIn":       {reason: "Kubernetes' own kinds have entries of their own.", kind: lake(func(k *v1alpha1.PropagationKind) { k.Spec.Group = "apps" }), want: []string{"spec.group"}},
		"BuiltInDotted": {reason: "A RoleBinding gives rights on the hub.", kind: lake(func(k *v1alpha1.PropagationKind) { k.Spec.Group = rbacv1.GroupName }), want: []string{"spec.group"}},
		"Portico":       {reason: "A target is not sent to a target.", kind: lake(func(k *v1alpha1.PropagationKind) { k.Spec.Group = v1alpha1.Group }), want: []string{"spec.group"}},
		"Paths": {reason: "Every malformed path is named.", kind: lake(func(k *v1alpha1.PropagationKind) {
			k.Spec.StatusPaths = []string{".status.level", ".status", ".spec.level", "status.level", ".status.list[0].a", ".status..a"}
		}), want: []string{"spec.statusPaths[1]", "spec.statusPaths[2]", "spec.statusPaths[3]", "spec.statusPaths[4]", "spec.statusPaths[5]"}},
		"Readiness": {reason: "The expression does not compile.", kind: lake(func(k *v1alpha1.PropagationKind) { k.Spec.Readiness = "object.status.(" }), want: []string{"spec.readiness"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range Validate(tc.kind) {
				if len(got) == 0 || got[len(got)-1] != err.Field {
					got = append(got, err.Field)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestObserve(t *testing.T) {
	served := &Served{Version: "v1", Resource: "lakes", Namespaced: true, HasStatus: true}
	for name, tc := range map[string]struct {
		reason  string
		kind    *v1alpha1.PropagationKind
		served  *Served
		missing []rbacv1.PolicyRule
		want    string // the reason of the condition
		message string
		sent    *kinds.Custom
	}{
		"Missing": {reason: "The definition may be installed later.", kind: lake(), want: v1alpha1.ReasonKindMissing,
			message: "the hub has no kind Lake of example.org; objects are sent when its CustomResourceDefinition is installed"},
		"Invalid": {reason: "Admission was unavailable.", kind: lake(func(k *v1alpha1.PropagationKind) { k.Spec.Group = "apps" }), served: served, want: v1alpha1.ReasonInvalidKind,
			message: `spec.group: Forbidden: "apps" is a group of Kubernetes; kubectl portico kinds lists its kinds that are sent, and a KubernetesApplication sends objects of the others`},
		"ClusterScoped": {reason: "A tenant would write objects of the whole target.", kind: lake(), served: &Served{Version: "v1", Resource: "lakes"}, want: v1alpha1.ReasonKindClusterScoped,
			message: `spec.kind: Invalid value: "Lake": has no namespaces; a KubernetesApplication sends its objects to a target whose spec.allow.kinds lists the kind`},
		"NoRole": {reason: "The message has the rules that are missing.", kind: lake(), served: served, missing: Rules("example.org", *served)[1:], want: v1alpha1.ReasonRoleMissing,
			message: `Portico may not use kind Lake of example.org; apply a ClusterRole with the label rbac.workload.crossplane.io/aggregate-to-portico: "true" and ` +
				`rules: [{apiGroups: ["example.org"], resources: ["lakes/finalizers"], verbs: ["update"]}, {apiGroups: ["example.org"], resources: ["lakes/status"], verbs: ["patch"]}]`},
		"Ready": {reason: "The kind is sent in the version that the hub serves.", kind: lake(func(k *v1alpha1.PropagationKind) {
			k.Spec.StatusPaths, k.Spec.Readiness = []string{".status.in.one"}, "object.status.level > 1"
		}), served: served, want: v1alpha1.ReasonServed, message: "objects of kind Lake of example.org with the schedule label are sent",
			sent: &kinds.Custom{Served: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Lake"}, Plural: "lakes", HasStatus: true,
				StatusPaths: [][]string{{"in", "one"}}, Readiness: "object.status.level > 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, ready := KindOf(tc.kind); ready {
				t.Error("a PropagationKind without a status is ready")
			}
			Observe(tc.kind, tc.served, tc.missing)
			got := apimeta.FindStatusCondition(tc.kind.Status.Conditions, v1alpha1.Ready)
			if got.Reason != tc.want || got.Message != tc.message || got.ObservedGeneration != 2 {
				t.Errorf("%s Got %+v", tc.reason, got)
			}
			sent, _ := KindOf(tc.kind)
			if diff := cmp.Diff(tc.sent, sent); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRules(t *testing.T) {
	verbs := func(served Served) map[string][]string {
		out := map[string][]string{}
		for _, rule := range Rules("example.org", served) {
			for _, attributes := range Attributes(rule, "v1") {
				key := attributes.Group + "/" + attributes.Resource + "/" + attributes.Subresource
				out[key] = append(out[key], attributes.Verb)
			}
		}
		return out
	}
	want := map[string][]string{"example.org/lakes/": {"get", "list", "watch"}, "example.org/lakes/finalizers": {"update"}}
	if diff := cmp.Diff(want, verbs(Served{Resource: "lakes"})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want["example.org/lakes/status"] = []string{"patch"}
	if diff := cmp.Diff(want, verbs(Served{Resource: "lakes", HasStatus: true})); diff != "" {
		t.Errorf("with a status, -want +got:\n%s", diff)
	}
}

func TestFind(t *testing.T) {
	list := &metav1.APIResourceList{APIResources: []metav1.APIResource{
		{Name: "lakes", Kind: "Lake", Namespaced: true}, {Name: "lakes/status", Kind: "Lake", Namespaced: true},
		{Name: "ponds", Kind: "Pond"}, {Name: "ponds/scale", Kind: "Scale"},
	}}
	for kind, want := range map[string]*Served{
		"Lake": {Version: "v1", Resource: "lakes", Namespaced: true, HasStatus: true}, "Pond": {Version: "v1", Resource: "ponds"}, "Sea": nil, "Scale": nil,
	} {
		if diff := cmp.Diff(want, Find(list, kind, "v1")); diff != "" {
			t.Errorf("%s: -want +got:\n%s", kind, diff)
		}
	}
}

// TestControllerOfResource: only Portico makes the resource of an object, because the resource
// determines the status of the object.
func TestControllerOfResource(t *testing.T) {
	kinds.ReplaceCustom([]*kinds.Custom{{Served: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Lake"}, Plural: "lakes"}})
	t.Cleanup(func() { kinds.ReplaceCustom(nil) })
	for apiVersion, want := range map[string]int{"example.org/v1": 1, "example.org/v2": 1, "example.com/v1": 0} {
		controller := true
		resource := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
			{APIVersion: apiVersion, Kind: "Lake", Name: "one", UID: "1", Controller: &controller}}}}
		if rights := policies.RightsForResource(resource, nil); len(rights) != want {
			t.Errorf("%s: got %d rights, want %d", apiVersion, len(rights), want)
		}
	}
}
