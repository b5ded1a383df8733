package targetselection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// TestDecideAllowed: a target that does not allow all objects is not selected, although
// it has less load.
func TestDecideAllowed(t *testing.T) {
	target := func(name string, allow *v1alpha1.Allowance) v1alpha1.KubernetesTarget {
		out := v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.KubernetesTargetSpec{Allow: allow}}
		meta.SetStatusCondition(&out.Status.Conditions, metav1.Condition{Type: v1alpha1.TargetReachable, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReachable})
		return out
	}
	item := func(kind, namespace string) policies.AllowItem {
		return policies.AllowItem{Kind: schema.GroupVersionKind{Version: "v1", Kind: kind}, Namespace: namespace}
	}
	question := Query{
		Selector:      labels.Everything(),
		Placed:        map[string]int{"open": 3, "services": 2, "shop": 1},
		AllowDefaults: policies.AllowDefaults{PorticoNamespace: "portico-system"},
		Targets: []v1alpha1.KubernetesTarget{
			target("open", nil),
			target("services", &v1alpha1.Allowance{Kinds: []metav1.GroupKind{{Kind: "Service"}}}),
			target("shop", &v1alpha1.Allowance{Namespaces: []string{"shop"}}),
		},
	}
	noSecret := `does not allow Secret; its spec.allow.kinds would have to list {group: "", kind: Secret}`
	noNamespace := func(name string) string {
		return "does not allow namespace " + name + "; its spec.allow.namespaces would have to list it"
	}
	cases := map[string]struct {
		reason string
		items  []policies.AllowItem
		want   Decision
	}{
		"All":        {reason: "Among the targets that allow all items, the least loaded one is selected.", items: []policies.AllowItem{item("Service", "shop")}, want: Decision{Target: "shop"}},
		"Kind":       {reason: "A target that denies the kind is excluded.", items: []policies.AllowItem{item("Secret", "shop")}, want: Decision{Target: "shop", Exclusions: []Exclusion{{"services", noSecret}}}},
		"Namespace":  {reason: "A target that denies the namespace is excluded.", items: []policies.AllowItem{item("Service", "blog")}, want: Decision{Target: "services", Exclusions: []Exclusion{{"shop", noNamespace("blog")}}}},
		"OneOfTwo":   {reason: "Each item must be allowed, because an application runs on one target.", items: []policies.AllowItem{item("Service", "blog"), item("Secret", "shop")}, want: Decision{Target: "open", Exclusions: []Exclusion{{"services", noSecret}, {"shop", noNamespace("blog")}}}},
		"Everywhere": {reason: "No target is selected if none allows all items.", items: []policies.AllowItem{item("Service", "kube-system")}, want: Decision{Exclusions: []Exclusion{{"open", noNamespace("kube-system")}, {"services", noNamespace("kube-system")}, {"shop", noNamespace("kube-system")}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			question.AllowItems = tc.items
			if diff := cmp.Diff(tc.want, Decide(question)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
