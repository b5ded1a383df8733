package webhooks

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/policies"
)

// authorizer is a hub that allows everything, except for the listed users.
type authorizer struct {
	users     []string            // the users without all rights
	may       map[string][]string // their rights: "<verb> <resource> <name>"
	requested *[]authorizationv1.SubjectAccessReviewSpec
	err       error
}

func (a authorizer) Resource(_ context.Context, kind schema.GroupVersionKind) (string, bool, error) {
	switch kind.Kind {
	case "GKECluster", "ClusterRole":
		return strings.ToLower(kind.Kind) + "s", false, a.err
	case "Nothing":
		return "", false, &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
	default:
		return strings.ToLower(kind.Kind) + "s", true, a.err
	}
}

func (a authorizer) Allows(_ context.Context, user authenticationv1.UserInfo, what *authorizationv1.ResourceAttributes) (bool, error) {
	if a.requested != nil {
		*a.requested = append(*a.requested, authorizationv1.SubjectAccessReviewSpec{User: user.Username, ResourceAttributes: what})
	}
	if !slices.Contains(a.users, user.Username) {
		return true, a.err
	}
	return slices.Contains(a.may[user.Username], what.Verb+" "+what.Resource+" "+what.Name), a.err
}

// TestRights: a user needs the rights that Portico uses on the user's behalf.
func TestRights(t *testing.T) {
	const (
		head    = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesTarget, metadata: {name: eu-1, namespace: team-a}, spec: `
		bySec   = head + `{connectionSecretRef: {name: eu-1}}}`
		byOther = head + `{connectionSecretRef: {name: other}}}`
		cordon  = head + `{connectionSecretRef: {name: other}, unschedulable: true}}`
		widened = head + `{connectionSecretRef: {name: other}, allow: {namespaces: [kube-system]}}}`
		loosed  = head + `{connectionSecretRef: {name: other}, impersonate: {user: root}}}`
		byRef   = head + `{connectionSecretRef: {name: eu-1}, clusterRef: {apiVersion: gcp.example.org/v1, kind: GKECluster, name: dev}}}`
		byRef2  = head + `{connectionSecretRef: {name: eu-1}, clusterRef: {apiVersion: gcp.example.org/v1, kind: GKECluster, name: prod}}}`
		claims  = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesTarget, metadata: {name: eu-1, namespace: team-a, ownerReferences: [{apiVersion: compute.crossplane.io/v1alpha1, kind: KubernetesCluster, name: eu-1, uid: "1", controller: true}]}, spec: {connectionSecretRef: {name: other}}}`
		unknown = head + `{connectionSecretRef: {name: eu-1}, clusterRef: {apiVersion: gcp.example.org/v1, kind: Nothing, name: dev}}}`

		kar     = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesApplicationResource, metadata: {name: web-deployment, namespace: team-a`
		body    = `}, spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}`
		plain   = kar + body + `}}`
		front   = kar + `, labels: {workload.crossplane.io/front-door: "true"}` + body + `}}`
		speaks  = kar + `, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: "1", controller: true}]` + body + `}}`
		grouped = kar + `, ownerReferences: [{apiVersion: example.org/v1, kind: Release, name: web, uid: "1", controller: true}]` + body + `}}`
		secrets = kar + body + `, secrets: [{name: eu-1}, {name: other}]}}`

		app        = `{apiVersion: workload.crossplane.io/v1alpha2, kind: KubernetesApplication, metadata: {name: shop, namespace: team-a`
		appBody    = `}, spec: {resourceTemplates: [{metadata: {name: web}, spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`
		appPlain   = app + appBody + `}}]}}`
		appFront   = app + `, labels: {workload.crossplane.io/front-door: "true"}` + appBody + `}}]}}`
		appSecrets = app + appBody + `, secrets: [{name: other}]}}]}}`
	)
	hub := authorizer{users: []string{"jane"}, may: map[string][]string{"jane": {"get secrets eu-1", "publish gkeclusters dev"}}}
	cases := map[string]struct {
		reason string
		testRequest
		want      []string // the refused fields
		requested int
	}{
		"OwnSecret":       {reason: "A user with the right to read a Secret may publish it.", testRequest: testRequest{object: bySec}, requested: 1},
		"OthersSecret":    {reason: "A user without this right may not.", testRequest: testRequest{object: byOther}, want: []string{"spec.connectionSecretRef.name"}, requested: 1},
		"ChangedSecret":   {reason: "A change of the Secret requires the right, too.", testRequest: testRequest{old: bySec, object: byOther}, want: []string{"spec.connectionSecretRef.name"}, requested: 1},
		"Cordoned":        {reason: "A change of another field requires no right.", testRequest: testRequest{old: byOther, object: cordon}},
		"Widened":         {reason: "Fewer limits require the right to the connection.", testRequest: testRequest{old: byOther, object: widened}, want: []string{"spec.connectionSecretRef.name"}, requested: 1},
		"Loosed":          {reason: "Another impersonated user requires the right to the connection.", testRequest: testRequest{old: byOther, object: loosed}, want: []string{"spec.connectionSecretRef.name"}, requested: 1},
		"Cluster":         {reason: "A user with the verb publish may publish a cluster.", testRequest: testRequest{object: byRef}, requested: 2},
		"OthersCluster":   {reason: "A user without it may not, although the Secret exists.", testRequest: testRequest{old: byRef, object: byRef2}, want: []string{"spec.clusterRef"}, requested: 1},
		"LeavesClaim":     {reason: "The removal of the claim requires the right to the Secret.", testRequest: testRequest{old: claims, object: byOther}, want: []string{"spec.connectionSecretRef.name"}, requested: 1},
		"OtherClaim":      {reason: "Another claim requires the right to the Secret.", testRequest: testRequest{old: claims, object: strings.Replace(claims, `uid: "1"`, `uid: "2"`, 1)}, want: []string{"spec.connectionSecretRef.name"}, requested: 1},
		"KeepsClaim":      {reason: "An unchanged claim requires no right.", testRequest: testRequest{old: claims, object: strings.Replace(claims, "other}", "other}, unschedulable: true", 1)}},
		"UnknownKind":     {reason: "The right to an unknown kind cannot be checked.", testRequest: testRequest{object: unknown}, want: []string{"spec.clusterRef.kind"}, requested: 1},
		"Portico":         {reason: "Portico's own requests require no right.", testRequest: testRequest{object: byOther, user: porticoUser}},
		"Other":           {reason: "Other users need rights of their own.", testRequest: testRequest{object: byOther, user: "joe"}, requested: 1},
		"ChangedGoing":    {reason: "A target that is being deleted requires the same rights.", testRequest: testRequest{old: going(bySec), object: going(byOther)}, want: []string{"spec.connectionSecretRef.name"}, requested: 1},
		"WidenedGoing":    {reason: "Fewer limits require the right to the connection.", testRequest: testRequest{old: going(byOther), object: going(widened)}, want: []string{"spec.connectionSecretRef.name"}, requested: 1},
		"LoosedGoing":     {reason: "Another impersonated user requires the right to the connection.", testRequest: testRequest{old: going(byOther), object: going(loosed)}, want: []string{"spec.connectionSecretRef.name"}, requested: 1},
		"FinalizerGoes":   {reason: "A change of finalizers requires no right.", testRequest: testRequest{old: strings.Replace(going(byOther), "name: eu-1,", "name: eu-1, finalizers: [a/b],", 1), object: going(byOther)}},
		"SecretsGoing":    {reason: "A resource that is being deleted requires the same rights.", testRequest: testRequest{old: going(plain), object: going(secrets)}, want: []string{"spec.secrets[1].name"}, requested: 2},
		"SpeaksGoing":     {reason: "A resource that is being deleted cannot get a native object as controller.", testRequest: testRequest{old: going(plain), object: going(speaks)}, want: []string{"metadata.ownerReferences"}, requested: 1},
		"AppSecretsGoing": {reason: "An application that is being deleted requires the same rights.", testRequest: testRequest{old: going(appPlain), object: going(appSecrets)}, want: []string{"spec.resourceTemplates[0].spec.secrets[0].name"}, requested: 1},
		"Resource":        {reason: "A resource without Secrets requires no further right.", testRequest: testRequest{object: plain}},
		"FrontDoor":       {reason: "Only Portico sets its label.", testRequest: testRequest{object: front}, want: []string{"metadata.labels[workload.crossplane.io/front-door]"}, requested: 1},
		"FrontDoorLater":  {reason: "Only Portico sets its label in an update, too.", testRequest: testRequest{old: plain, object: front}, want: []string{"metadata.labels[workload.crossplane.io/front-door]"}, requested: 1},
		"FrontDoorKept":   {reason: "An existing label may remain.", testRequest: testRequest{old: front, object: front}},
		"FrontDoorOff":    {reason: "The label may be removed.", testRequest: testRequest{old: front, object: plain}},
		"FrontDoorMade":   {reason: "Portico may set its label.", testRequest: testRequest{object: front, user: porticoUser}},
		"FrontDoorBackup": {reason: "A user who may write the status may restore a backup.", testRequest: testRequest{object: front, user: "joe"}, requested: 1},
		"Speaks":          {reason: "Other users must not determine the status of a Deployment.", testRequest: testRequest{object: speaks}, want: []string{"metadata.ownerReferences"}, requested: 1},
		"SpeaksLater":     {reason: "They must not do so in an update.", testRequest: testRequest{old: plain, object: speaks}, want: []string{"metadata.ownerReferences"}, requested: 1},
		"SpeaksOn":        {reason: "An existing controller may remain.", testRequest: testRequest{old: speaks, object: speaks}},
		"Grouped":         {reason: "Other controllers may create resources.", testRequest: testRequest{object: grouped}},
		"Secrets":         {reason: "A resource requires the right to read its Secrets.", testRequest: testRequest{object: secrets}, want: []string{"spec.secrets[1].name"}, requested: 2},
		"SecretsAsBefore": {reason: "Secrets that were listed before require no right.", testRequest: testRequest{old: secrets, object: secrets}},
		"AppPlain":        {reason: "An application without Secrets requires no further right.", testRequest: testRequest{object: appPlain}},
		"AppFront":        {reason: "Only Portico sets its label.", testRequest: testRequest{object: appFront}, want: []string{"metadata.labels[workload.crossplane.io/front-door]"}, requested: 1},
		"AppSecrets":      {reason: "The Secrets of a template require the right to read them.", testRequest: testRequest{old: appPlain, object: appSecrets}, want: []string{"spec.resourceTemplates[0].spec.secrets[0].name"}, requested: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var reviews []authorizationv1.SubjectAccessReviewSpec
			hub := hub
			hub.requested = &reviews
			tc.path = WorkloadPath
			if tc.user == "" {
				tc.user = "jane"
			}
			resp := submit(t, serveWith(hub), tc.testRequest)
			var refused []string
			if resp.Result != nil && resp.Result.Details != nil {
				for _, c := range resp.Result.Details.Causes {
					refused = append(refused, c.Field)
				}
			}
			if diff := cmp.Diff(tc.want, refused); diff != "" || resp.Allowed != (len(tc.want) == 0) {
				t.Errorf("%s Allowed: %t, %v (-want +got):\n%s", tc.reason, resp.Allowed, resp.Result, diff)
			}
			if len(reviews) != tc.requested {
				t.Errorf("%s want %d questions to the hub, got %v", tc.reason, tc.requested, reviews)
			}
		})
	}
}

func serveWith(hub Hub) http.Handler {
	server := webhook.NewServer(webhook.Options{})
	Register(server, Options{
		Secrets: liveSecrets{fake.NewClientBuilder().WithScheme(scheme()).Build()},
		Reader:  fake.NewClientBuilder().WithScheme(scheme()).Build(), Identity: porticoUser, Scheme: scheme(),
		Hub: hub, AllowDefaults: policies.AllowDefaults{PorticoNamespace: "portico-system"},
	})
	return server.WebhookMux()
}

// TestRightsUnknown: a request is denied when the hub does not answer, because the
// user's rights are not known.
func TestRightsUnknown(t *testing.T) {
	resp := submit(t, serveWith(authorizer{err: errors.New("hub is away")}), testRequest{path: WorkloadPath, user: "jane",
		object: `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesTarget, metadata: {name: eu-1}, spec: {connectionSecretRef: {name: eu-1}}}`})
	if resp.Allowed || resp.Result.Code != http.StatusInternalServerError || !strings.Contains(resp.Result.Message, "hub is away") {
		t.Errorf("answers %t, %v", resp.Allowed, resp.Result)
	}
}

// TestRefusalOfRight compares the whole message.
func TestRefusalOfRight(t *testing.T) {
	hub := authorizer{users: []string{"jane"}}
	resp := submit(t, serveWith(hub), testRequest{path: WorkloadPath, user: "jane", object: `
apiVersion: workload.crossplane.io/v1alpha1
kind: KubernetesTarget
metadata: {name: eu-1, namespace: team-a}
spec:
  connectionSecretRef: {name: eu-1}
  clusterRef: {apiVersion: gcp.example.org/v1, kind: GKECluster, name: dev}
`})
	const want = `KubernetesTarget.workload.crossplane.io "eu-1" is invalid: [` +
		`spec.connectionSecretRef.name: Forbidden: user "jane" may not get secrets "eu-1" in namespace team-a; ` +
		`a Role in namespace team-a with this rule would allow it: {apiGroups: [""], resources: [secrets], resourceNames: [eu-1], verbs: [get]}, ` +
		`spec.clusterRef: Forbidden: user "jane" may not publish gkeclusters.gcp.example.org "dev"; ` +
		`a ClusterRole with this rule would allow it: {apiGroups: ["gcp.example.org"], resources: [gkeclusters], resourceNames: [dev], verbs: [publish]}]`
	if diff := cmp.Diff(want, resp.Result.Message); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLetIn checks objects against spec.allow of their target.
func TestLetIn(t *testing.T) {
	target := func(allow string) string {
		return `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesTarget, metadata: {name: eu-1, namespace: team-a}, spec: {connectionSecretRef: {name: eu-1}` + allow + `}}`
	}
	const (
		placed = `{apiVersion: workload.crossplane.io/v1alpha2, kind: KubernetesApplication, metadata: {name: default, namespace: team-a}, spec: {targetRef: {name: eu-1}}}`
		svc    = `, allow: {kinds: [{group: "", kind: Service}]}`
		remote = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: team-a, labels: {workload.crossplane.io/schedule: remote}}, spec: {replicas: 1}}`
		more   = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: team-a, labels: {workload.crossplane.io/schedule: remote}}, spec: {replicas: 2}}`
		here   = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: team-a}, spec: {replicas: 1}}`
		why    = `does not allow Deployment.apps; its spec.allow.kinds would have to list {group: "apps", kind: Deployment}`
	)
	kar := func(ref, kind, namespace string) string {
		return `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesApplicationResource, metadata: {name: a, namespace: team-a}, spec: {` + ref +
			`template: {apiVersion: v1, kind: ` + kind + `, metadata: {name: a` + namespace + `}}}}`
	}
	const ref = `targetRef: {name: eu-1}, `
	app := func(templates string) string {
		return `{apiVersion: workload.crossplane.io/v1alpha2, kind: KubernetesApplication, metadata: {name: shop, namespace: team-a}, spec: {targetRef: {name: eu-1}, resourceTemplates: [` + templates + `]}}`
	}
	held := func(target string) string {
		return strings.Replace(going(target), "name: eu-1,", "name: eu-1, finalizers: [example.org/own],", 1)
	}
	const shop = `{metadata: {name: a}, spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}}}`
	const system = `{metadata: {name: a}, spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-system}}}}`
	cases := map[string]struct {
		reason string
		hub    []string
		testRequest
		refused, warned string
	}{
		"Free":            {reason: "A target without limits allows the object.", hub: []string{target(""), placed}, testRequest: testRequest{path: NativePath, object: remote}},
		"Refused":         {reason: "An object that the target of its application excludes is denied.", hub: []string{target(svc), placed}, testRequest: testRequest{path: NativePath, object: remote}, refused: "its target is eu-1, which " + why},
		"OptsIn":          {reason: "An object that opts in is denied, too.", hub: []string{target(svc), placed}, testRequest: testRequest{path: NativePath, old: here, object: remote}, refused: "its target is eu-1, which " + why},
		"There":           {reason: "An existing object can be changed, with a warning.", hub: []string{target(svc), placed}, testRequest: testRequest{path: NativePath, old: remote, object: more}, warned: "accepted, and not sent: its target is eu-1, which " + why},
		"ComesHome":       {reason: "An existing object can return to the hub.", hub: []string{target(svc), placed}, testRequest: testRequest{path: NativePath, old: remote, object: here}},
		"NotPlaced":       {reason: "An object without a matching target waits.", hub: []string{target(svc)}, testRequest: testRequest{path: NativePath, object: remote}, warned: "eu-1 " + why},
		"TargetGone":      {reason: "An unreachable target checks the object later.", hub: []string{placed}, testRequest: testRequest{path: NativePath, object: remote}},
		"Resource":        {reason: "Other namespaces are allowed unless they are excluded.", hub: []string{target("")}, testRequest: testRequest{path: WorkloadPath, object: kar(ref, "ConfigMap", ", namespace: shop")}},
		"ResourceSystem":  {reason: "The namespaces kube-* are excluded unless they are listed.", hub: []string{target("")}, testRequest: testRequest{path: WorkloadPath, object: kar(ref, "ConfigMap", ", namespace: kube-system")}, refused: "does not allow namespace kube-system"},
		"ResourcePortico": {reason: "Portico's own namespace is excluded.", hub: []string{target("")}, testRequest: testRequest{path: WorkloadPath, object: kar(ref, "ConfigMap", ", namespace: portico-system")}, refused: "does not allow namespace portico-system"},
		"ResourceCluster": {reason: "Cluster-scoped kinds are excluded.", hub: []string{target("")}, testRequest: testRequest{path: WorkloadPath, object: kar(ref, "ClusterRole", "")}, refused: "does not allow ClusterRole"},
		"ResourceFeigned": {reason: "The namespace of a cluster-scoped object is ignored.", hub: []string{target("")}, testRequest: testRequest{path: WorkloadPath, object: kar(ref, "ClusterRole", ", namespace: shop")}, refused: "does not allow ClusterRole"},
		"ResourceUnknown": {reason: "The target knows the scope of a kind that the hub does not have.", hub: []string{target("")}, testRequest: testRequest{path: WorkloadPath, object: kar(ref, "Nothing", "")}},
		"ResourceEdited":  {reason: "An existing object may be changed.", hub: []string{target("")}, testRequest: testRequest{path: WorkloadPath, old: kar(ref, "ConfigMap", ", namespace: kube-system"), object: kar(ref, "ConfigMap", ", namespace: kube-system, labels: {a: b}")}},
		"ResourceSent":    {reason: "A waiting object is not sent to a target that does not allow it.", hub: []string{target("")}, testRequest: testRequest{path: WorkloadPath, old: kar("", "ConfigMap", ", namespace: kube-system"), object: kar(ref, "ConfigMap", ", namespace: kube-system")}, refused: "does not allow namespace kube-system"},
		"ResourceByUs":    {reason: "Portico writes the reason into the status.", hub: []string{target("")}, testRequest: testRequest{path: WorkloadPath, user: porticoUser, object: kar(ref, "ConfigMap", ", namespace: kube-system")}},
		"ResourceMember":  {reason: "A member runs on the target of its application.", hub: []string{target(svc), placed}, testRequest: testRequest{path: WorkloadPath, object: strings.Replace(kar("", "ConfigMap", ", namespace: shop"), "name: a, namespace: team-a", "name: a, namespace: team-a, labels: {workload.crossplane.io/application: default}", 1)}, refused: "does not allow ConfigMap"},
		"Going":           {reason: "A target that is being deleted accepts no new objects.", hub: []string{held(target(""))}, testRequest: testRequest{path: WorkloadPath, object: kar(ref, "ConfigMap", ", namespace: shop")}, refused: "its target is eu-1, which is being deleted and accepts no new objects"},
		"GoingMoved":      {reason: "A target that is being deleted accepts no waiting objects.", hub: []string{held(target(""))}, testRequest: testRequest{path: WorkloadPath, old: kar("", "ConfigMap", ", namespace: shop"), object: kar(ref, "ConfigMap", ", namespace: shop")}, refused: "accepts no new objects"},
		"GoingThere":      {reason: "An existing object may be changed.", hub: []string{held(target(""))}, testRequest: testRequest{path: WorkloadPath, old: kar(ref, "ConfigMap", ", namespace: shop"), object: kar(ref, "ConfigMap", ", namespace: shop, labels: {a: b}")}},
		"GoingMember":     {reason: "A member runs on the target of its application.", hub: []string{held(target("")), placed}, testRequest: testRequest{path: WorkloadPath, object: strings.Replace(kar("", "ConfigMap", ", namespace: shop"), "name: a, namespace: team-a", "name: a, namespace: team-a, labels: {workload.crossplane.io/application: default}", 1)}, refused: "accepts no new objects"},
		"GoingApp":        {reason: "A target that is being deleted accepts no application.", hub: []string{held(target(""))}, testRequest: testRequest{path: WorkloadPath, object: app("")}, refused: "accepts no new objects"},
		"GoingTemplate":   {reason: "An application there gets no new templates.", hub: []string{held(target(""))}, testRequest: testRequest{path: WorkloadPath, old: app(""), object: app(shop)}, refused: "spec.resourceTemplates[0]"},
		"GoingAppThere":   {reason: "An existing template may be changed.", hub: []string{held(target(""))}, testRequest: testRequest{path: WorkloadPath, old: app(shop), object: app(strings.Replace(shop, "namespace: shop", "namespace: shop, labels: {a: b}", 1))}},
		"GoingNative":     {reason: "A native object waits until its application has moved.", hub: []string{held(target("")), placed}, testRequest: testRequest{path: NativePath, object: remote}, warned: "accepted, and not sent: its target is eu-1, which is being deleted"},
		"GoingNativeOn":   {reason: "An existing object is changed there.", hub: []string{held(target("")), placed}, testRequest: testRequest{path: NativePath, old: remote, object: more}},
		"App":             {reason: "Every template is checked.", hub: []string{target("")}, testRequest: testRequest{path: WorkloadPath, object: app(system)}, refused: "does not allow namespace kube-system"},
		"AppBefore":       {reason: "Only new templates are checked.", hub: []string{target("")}, testRequest: testRequest{path: WorkloadPath, old: app(system), object: app(system)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			resp := submit(t, front(t, objectsOf(t, tc.hub)...), tc.testRequest)
			if tc.refused == "" {
				if !resp.Allowed || (hasWarning(resp, "does not allow") || hasWarning(resp, "not sent")) != (tc.warned != "") || !hasWarning(resp, tc.warned) {
					t.Errorf("%s Answers %t, %v, %q", tc.reason, resp.Allowed, resp.Result, resp.Warnings)
				}
				return
			}
			if resp.Allowed || !strings.Contains(resp.Result.Message, tc.refused) {
				t.Errorf("%s Answers %t, %v", tc.reason, resp.Allowed, resp.Result)
			}
		})
	}
}

func hasWarning(resp *admissionv1.AdmissionResponse, text string) bool {
	return strings.Contains(strings.Join(resp.Warnings, " "), text)
}

func objectsOf(t *testing.T, manifests []string) []client.Object {
	t.Helper()
	var out []client.Object
	for _, manifest := range manifests {
		data, err := yaml.YAMLToJSON([]byte(manifest))
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := serializer.NewCodecFactory(scheme()).UniversalDeserializer().Decode(data, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, object.(client.Object))
	}
	return out
}
