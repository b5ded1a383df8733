package targetselection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
)

// TestSurroundings selects targets for applications and resources as the scheduler
// does. The query contains every reason against a target.
func TestSurroundings(t *testing.T) {
	target := func(name string, edit func(*v1alpha1.KubernetesTarget)) v1alpha1.KubernetesTarget {
		out := v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Name: name}}
		meta.SetStatusCondition(&out.Status.Conditions, metav1.Condition{Type: v1alpha1.TargetReachable, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReachable})
		if edit != nil {
			edit(&out)
		}
		return out
	}
	resource := func(name, application, target, template string) v1alpha1.KubernetesApplicationResource {
		out := v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if application != "" {
			out.Labels = map[string]string{v1alpha1.ApplicationLabel: application}
		}
		if target != "" {
			out.Spec.TargetRef = &v1alpha1.TargetReference{Name: target}
		}
		out.Spec.Template = runtime.RawExtension{Raw: []byte(template)}
		return out
	}
	tainted := target("gpu", func(k *v1alpha1.KubernetesTarget) {
		k.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	})
	const (
		shop    = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}}`
		system  = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "kube-system"}}`
		portico = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "portico-system"}}`
		role    = `{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "a"}}`
	)
	app := func(templates ...string) *v1alpha2.KubernetesApplication {
		out := &v1alpha2.KubernetesApplication{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		for _, template := range templates {
			out.Spec.ResourceTemplates = append(out.Spec.ResourceTemplates,
				v1alpha2.ResourceTemplate{Spec: v1alpha2.ResourceTemplateSpec{Template: runtime.RawExtension{Raw: []byte(template)}}})
		}
		return out
	}
	tolerant := app()
	tolerant.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
	selective := app()
	selective.Spec.TargetSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	alone := resource("alone", "", "", shop)
	alone.Annotations = map[string]string{v1alpha1.TolerationsAnnotation: "gpu"}
	moving := resource("moving", "web", "b", shop)
	moving.Spec.LeavingTargetRef = &v1alpha1.TargetReference{Name: "a"}

	cases := map[string]struct {
		reason    string
		targets   []v1alpha1.KubernetesTarget
		resources []v1alpha1.KubernetesApplicationResource
		app       *v1alpha2.KubernetesApplication
		resource  *v1alpha1.KubernetesApplicationResource
		leave     string
		want      string // the target, or the reason why there is none
	}{
		"Fewest": {
			reason: "All resources on a target count as its load.", app: app(), want: "b",
			targets:   []v1alpha1.KubernetesTarget{target("a", nil), target("b", nil)},
			resources: []v1alpha1.KubernetesApplicationResource{resource("x", "other", "a", shop)},
		},
		"Selector":    {reason: "The application's selector must match.", app: selective, targets: []v1alpha1.KubernetesTarget{target("a", nil)}, want: "0 of 1 targets match: a wants env=prod, has no label env"},
		"Taint":       {reason: "A taint excludes a target.", app: app(), targets: []v1alpha1.KubernetesTarget{tainted}, want: "0 of 1 targets match: gpu has a taint that is not tolerated: gpu:NoSchedule"},
		"Tolerates":   {reason: "A tolerated taint does not exclude a target.", app: tolerant, targets: []v1alpha1.KubernetesTarget{tainted}, want: "gpu"},
		"Template":    {reason: "The objects of templates must be allowed.", app: app(shop, system), targets: []v1alpha1.KubernetesTarget{target("a", nil)}, want: "0 of 1 targets match: a does not allow namespace kube-system; its spec.allow.namespaces would have to list it"},
		"Portico":     {reason: "Portico's namespace is not allowed on targets.", app: app(portico), targets: []v1alpha1.KubernetesTarget{target("a", nil)}, want: "0 of 1 targets match: a does not allow namespace portico-system; its spec.allow.namespaces would have to list it"},
		"Scope":       {reason: "Cluster-scoped kinds are not allowed by default.", app: app(role), targets: []v1alpha1.KubernetesTarget{target("a", nil)}, want: `0 of 1 targets match: a does not allow ClusterRole.rbac.authorization.k8s.io; its spec.allow.kinds would have to list {group: "rbac.authorization.k8s.io", kind: ClusterRole}`},
		"Member":      {reason: "The objects of members must be allowed.", app: app(), targets: []v1alpha1.KubernetesTarget{target("a", nil)}, resources: []v1alpha1.KubernetesApplicationResource{resource("x", "web", "", system)}, want: "0 of 1 targets match: a does not allow namespace kube-system; its spec.allow.namespaces would have to list it"},
		"NoMember":    {reason: "The objects of other applications do not count.", app: app(), targets: []v1alpha1.KubernetesTarget{target("a", nil)}, resources: []v1alpha1.KubernetesApplicationResource{resource("x", "other", "", system), resource("y", "", "", system)}, want: "a"},
		"Leaves":      {reason: "The target to leave is excluded.", app: app(), leave: "a", targets: []v1alpha1.KubernetesTarget{target("a", nil), target("b", nil)}, want: "b"},
		"LeavesFirst": {reason: "A move has to finish before the next one begins.", app: app(), leave: "b", targets: []v1alpha1.KubernetesTarget{target("b", nil), target("c", nil)}, resources: []v1alpha1.KubernetesApplicationResource{moving}, want: "0 of 2 targets match: b is the target to leave; c has to wait until all resources have left a"},
		"Alone":       {reason: "A handwritten resource has its tolerations in an annotation.", resource: &alone, targets: []v1alpha1.KubernetesTarget{tainted}, want: "gpu"},
		"AloneLeaves": {reason: "A handwritten resource moves by itself.", resource: &alone, leave: "gpu", targets: []v1alpha1.KubernetesTarget{tainted}, resources: []v1alpha1.KubernetesApplicationResource{moving}, want: "0 of 1 targets match: gpu is the target to leave"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			around := Candidates{
				Targets: tc.targets, Resources: tc.resources, AllowDefaults: policies.AllowDefaults{PorticoNamespace: "portico-system"},
				ClusterScoped: func(kind schema.GroupVersionKind) bool { return kind.Kind == "ClusterRole" },
			}
			var q Query
			var err error
			if tc.app != nil {
				q, err = around.ForApplication(tc.app, tc.leave)
			} else {
				q, err = around.ForResource(tc.resource, tc.leave)
			}
			if err != nil {
				t.Fatal(err)
			}
			got := Decide(q)
			answer := got.Target
			if answer == "" {
				answer = got.Message("team-a")
			}
			if diff := cmp.Diff(tc.want, answer); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSurroundingsMalformed: objects that admission would deny have an error.
func TestSurroundingsMalformed(t *testing.T) {
	selects := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Like"}}}
	app := &v1alpha2.KubernetesApplication{Spec: v1alpha2.KubernetesApplicationSpec{TargetSelector: selects}}
	if _, err := (Candidates{}).ForApplication(app, ""); err == nil {
		t.Error("an invalid selector selects targets")
	}
	resource := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.TolerationsAnnotation: "a:b:c"}}}
	if _, err := (Candidates{}).ForResource(resource, ""); err == nil {
		t.Error("invalid tolerations tolerate taints")
	}
}
