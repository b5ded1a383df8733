package policies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func TestRefuses(t *testing.T) {
	gvk := func(group, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
	}
	deployment, role, secret := gvk("apps", "Deployment"), gvk("rbac.authorization.k8s.io", "ClusterRole"), gvk("", "Secret")
	const (
		noDeployment = `does not allow Deployment.apps; its spec.allow.kinds would have to list {group: "apps", kind: Deployment}`
		noRole       = `does not allow ClusterRole.rbac.authorization.k8s.io; its spec.allow.kinds would have to list {group: "rbac.authorization.k8s.io", kind: ClusterRole}`
	)
	noNamespace := func(name string) string {
		return "does not allow namespace " + name + "; its spec.allow.namespaces would have to list it"
	}
	cases := map[string]struct {
		reason string
		allow  string
		item   AllowItem
		want   string
	}{
		"Default":         {reason: "A target takes what people run.", allow: `{}`, item: AllowItem{deployment, "shop"}},
		"System":          {reason: "Not into what its cluster runs from.", allow: `{}`, item: AllowItem{deployment, "kube-system"}, want: noNamespace("kube-system")},
		"SystemToo":       {reason: "Whichever of those it is.", allow: `{}`, item: AllowItem{deployment, "kube-flannel"}, want: noNamespace("kube-flannel")},
		"LikeSystem":      {reason: "What only sounds alike is not.", allow: `{}`, item: AllowItem{deployment, "kubeflow"}},
		"Portico":         {reason: "Nor into what a Portico there runs from.", allow: `{}`, item: AllowItem{deployment, "portico-system"}, want: noNamespace("portico-system")},
		"ClusterScoped":   {reason: "What is in no namespace is in all of them.", allow: `{}`, item: AllowItem{Kind: role}, want: noRole},
		"Named":           {reason: "What is named is allowed.", allow: `{namespaces: [kube-system]}`, item: AllowItem{deployment, "kube-system"}},
		"NamedAlike":      {reason: "By how it begins as well.", allow: `{namespaces: ["kube-*"]}`, item: AllowItem{deployment, "kube-system"}},
		"NamedPortico":    {reason: "Portico's as well.", allow: `{namespaces: [portico-system]}`, item: AllowItem{deployment, "portico-system"}},
		"NamedKind":       {reason: "Kinds as well.", allow: `{kinds: [{group: rbac.authorization.k8s.io, kind: ClusterRole}]}`, item: AllowItem{Kind: role}},
		"StarSystem":      {reason: "A star does not stand for what nobody thinks of.", allow: `{namespaces: ["*"]}`, item: AllowItem{deployment, "kube-system"}, want: noNamespace("kube-system")},
		"StarPortico":     {reason: "A star does not stand for what nobody thinks of.", allow: `{namespaces: ["p*"]}`, item: AllowItem{deployment, "portico-system"}, want: noNamespace("portico-system")},
		"StarKind":        {reason: "A star does not stand for what nobody thinks of.", allow: `{kinds: [{group: "*", kind: "*"}]}`, item: AllowItem{Kind: role}, want: noRole},
		"Star":            {reason: "It stands for the rest.", allow: `{namespaces: ["*"], kinds: [{group: "*", kind: "*"}]}`, item: AllowItem{deployment, "shop"}},
		"Alike":           {reason: "A star at the end stands for all that begin alike.", allow: `{namespaces: ["team-*"]}`, item: AllowItem{deployment, "team-a"}},
		"NotAlike":        {reason: "And not for others.", allow: `{namespaces: ["team-*"]}`, item: AllowItem{deployment, "steam-a"}, want: noNamespace("steam-a")},
		"OtherNamespace":  {reason: "A list is all there is.", allow: `{namespaces: [team-a, team-b]}`, item: AllowItem{deployment, "team-c"}, want: noNamespace("team-c")},
		"OtherKind":       {reason: "A list is all there is.", allow: `{kinds: [{group: "", kind: Secret}]}`, item: AllowItem{deployment, "shop"}, want: noDeployment},
		"Core":            {reason: "The group without a name has one kind here.", allow: `{kinds: [{group: "", kind: Secret}]}`, item: AllowItem{secret, "shop"}},
		"CoreIsNotAll":    {reason: "It does not stand for every group.", allow: `{kinds: [{group: "", kind: "*"}]}`, item: AllowItem{deployment, "shop"}, want: noDeployment},
		"OneGroup":        {reason: "A star stands for every kind of a group.", allow: `{kinds: [{group: apps, kind: "*"}]}`, item: AllowItem{deployment, "shop"}},
		"KindFirst":       {reason: "Of two reasons one is told.", allow: `{kinds: [{group: "", kind: Secret}], namespaces: [a]}`, item: AllowItem{deployment, "b"}, want: noDeployment},
		"KindsNotSystem":  {reason: "A list of kinds opens no namespace.", allow: `{kinds: [{group: apps, kind: Deployment}]}`, item: AllowItem{deployment, "kube-system"}, want: noNamespace("kube-system")},
		"NamespaceNotAll": {reason: "A list of namespaces lets nothing stand above them.", allow: `{namespaces: [a]}`, item: AllowItem{Kind: role}, want: noRole},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			target := &v1alpha1.KubernetesTarget{}
			target.Spec.Allow = read[v1alpha1.Allowance](t, tc.allow)
			if got := (AllowDefaults{PorticoNamespace: "portico-system"}).DeniedReason(target, tc.item); got != tc.want {
				t.Errorf("%s\nwant %q\ngot  %q", tc.reason, tc.want, got)
			}
		})
	}
}

func TestValidateAllowance(t *testing.T) {
	cases := map[string]struct {
		reason, allow string
		want          []problem
	}{
		"Right": {reason: "Names, and names that end in a star.", allow: `{kinds: [{group: apps, kind: Deployment}, {group: "*", kind: "*"}, {group: "", kind: Pod}], namespaces: [a, "team-*", "team*", "*", kube-system]}`},
		"Wrong": {
			reason: "What no namespace or kind is called would never match.",
			allow:  `{kinds: [{group: apps, kind: ""}, {group: "*apps", kind: "De*ment"}], namespaces: ["", "Team", "a*b", "**", "-*"]}`,
			want: []problem{
				{field.ErrorTypeRequired, "spec.allow.kinds[0].kind"},
				{field.ErrorTypeInvalid, "spec.allow.kinds[1].group"},
				{field.ErrorTypeInvalid, "spec.allow.kinds[1].kind"},
				{field.ErrorTypeInvalid, "spec.allow.namespaces[0]"},
				{field.ErrorTypeInvalid, "spec.allow.namespaces[1]"},
				{field.ErrorTypeInvalid, "spec.allow.namespaces[2]"},
				{field.ErrorTypeInvalid, "spec.allow.namespaces[3]"},
				{field.ErrorTypeInvalid, "spec.allow.namespaces[4]"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := validateAllowance(read[v1alpha1.Allowance](t, tc.allow), field.NewPath("spec", "allow"))
			if diff := cmp.Diff(tc.want, problems(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
