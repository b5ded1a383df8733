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
		"Default":         {reason: "By default a target allows a user's namespace.", allow: `{}`, item: AllowItem{deployment, "shop"}},
		"System":          {reason: "By default a target does not allow namespaces that begin with kube-.", allow: `{}`, item: AllowItem{deployment, "kube-system"}, want: noNamespace("kube-system")},
		"SystemToo":       {reason: "The prefix kube- suffices, whatever follows.", allow: `{}`, item: AllowItem{deployment, "kube-flannel"}, want: noNamespace("kube-flannel")},
		"LikeSystem":      {reason: "A name without the hyphen is allowed.", allow: `{}`, item: AllowItem{deployment, "kubeflow"}},
		"Portico":         {reason: "By default a target does not allow Portico's namespace.", allow: `{}`, item: AllowItem{deployment, "portico-system"}, want: noNamespace("portico-system")},
		"ClusterScoped":   {reason: "By default a target allows no cluster-scoped kind.", allow: `{}`, item: AllowItem{Kind: role}, want: noRole},
		"Named":           {reason: "A list of namespaces can name a kube- namespace.", allow: `{namespaces: [kube-system]}`, item: AllowItem{deployment, "kube-system"}},
		"NamedAlike":      {reason: "A pattern that begins with kube- matches kube- namespaces.", allow: `{namespaces: ["kube-*"]}`, item: AllowItem{deployment, "kube-system"}},
		"NamedPortico":    {reason: "A list of namespaces can name Portico's namespace.", allow: `{namespaces: [portico-system]}`, item: AllowItem{deployment, "portico-system"}},
		"NamedKind":       {reason: "A list of kinds can name a cluster-scoped kind.", allow: `{kinds: [{group: rbac.authorization.k8s.io, kind: ClusterRole}]}`, item: AllowItem{Kind: role}},
		"StarSystem":      {reason: "A star alone does not match a kube- namespace.", allow: `{namespaces: ["*"]}`, item: AllowItem{deployment, "kube-system"}, want: noNamespace("kube-system")},
		"StarPortico":     {reason: "Only its full name matches Portico's namespace.", allow: `{namespaces: ["p*"]}`, item: AllowItem{deployment, "portico-system"}, want: noNamespace("portico-system")},
		"StarKind":        {reason: "A star for kinds does not match cluster-scoped kinds.", allow: `{kinds: [{group: "*", kind: "*"}]}`, item: AllowItem{Kind: role}, want: noRole},
		"Star":            {reason: "A star matches all other namespaces and kinds.", allow: `{namespaces: ["*"], kinds: [{group: "*", kind: "*"}]}`, item: AllowItem{deployment, "shop"}},
		"Alike":           {reason: "A star at the end matches names with the same prefix.", allow: `{namespaces: ["team-*"]}`, item: AllowItem{deployment, "team-a"}},
		"NotAlike":        {reason: "A pattern does not match in the middle of a name.", allow: `{namespaces: ["team-*"]}`, item: AllowItem{deployment, "steam-a"}, want: noNamespace("steam-a")},
		"OtherNamespace":  {reason: "A namespace outside the list is denied.", allow: `{namespaces: [team-a, team-b]}`, item: AllowItem{deployment, "team-c"}, want: noNamespace("team-c")},
		"OtherKind":       {reason: "A kind outside the list is denied.", allow: `{kinds: [{group: "", kind: Secret}]}`, item: AllowItem{deployment, "shop"}, want: noDeployment},
		"Core":            {reason: "The empty group is the core group.", allow: `{kinds: [{group: "", kind: Secret}]}`, item: AllowItem{secret, "shop"}},
		"CoreIsNotAll":    {reason: "The empty group does not match other groups.", allow: `{kinds: [{group: "", kind: "*"}]}`, item: AllowItem{deployment, "shop"}, want: noDeployment},
		"OneGroup":        {reason: "A star matches each kind of a group.", allow: `{kinds: [{group: apps, kind: "*"}]}`, item: AllowItem{deployment, "shop"}},
		"KindFirst":       {reason: "If kind and namespace are denied, the message names the kind.", allow: `{kinds: [{group: "", kind: Secret}], namespaces: [a]}`, item: AllowItem{deployment, "b"}, want: noDeployment},
		"KindsNotSystem":  {reason: "A list of kinds does not allow kube- namespaces.", allow: `{kinds: [{group: apps, kind: Deployment}]}`, item: AllowItem{deployment, "kube-system"}, want: noNamespace("kube-system")},
		"NamespaceNotAll": {reason: "A list of namespaces does not allow cluster-scoped kinds.", allow: `{namespaces: [a]}`, item: AllowItem{Kind: role}, want: noRole},
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
		"Right": {reason: "Items are names, or names that end in a star.", allow: `{kinds: [{group: apps, kind: Deployment}, {group: "*", kind: "*"}, {group: "", kind: Pod}], namespaces: [a, "team-*", "team*", "*", kube-system]}`},
		"Wrong": {
			reason: "An item that can match no namespace and no kind is invalid.",
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
