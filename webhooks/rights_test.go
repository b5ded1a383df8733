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

// authorizer is a hub on which everybody may do anything, except what its users
// may not.
type authorizer struct {
	users []string            // who may not do everything
	may   map[string][]string // what they may: "verb resource name"
	asked *[]authorizationv1.SubjectAccessReviewSpec
	err   error
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
	if a.asked != nil {
		*a.asked = append(*a.asked, authorizationv1.SubjectAccessReviewSpec{User: user.Username, ResourceAttributes: what})
	}
	if !slices.Contains(a.users, user.Username) {
		return true, a.err
	}
	return slices.Contains(a.may[user.Username], what.Verb+" "+what.Resource+" "+what.Name), a.err
}

// TestRights asks for rights that a change takes of its author.
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
		ask
		want  []string // fields that are refused
		asked int
	}{
		"OwnSecret":       {reason: "Who may read a Secret may lend it.", ask: ask{object: bySec}, asked: 1},
		"OthersSecret":    {reason: "Nobody else may.", ask: ask{object: byOther}, want: []string{"spec.connectionSecretRef.name"}, asked: 1},
		"ChangedSecret":   {reason: "Nor by a change.", ask: ask{old: bySec, object: byOther}, want: []string{"spec.connectionSecretRef.name"}, asked: 1},
		"Cordoned":        {reason: "A change of something else asks nobody.", ask: ask{old: byOther, object: cordon}},
		"Widened":         {reason: "To lend more of a connection is to lend it.", ask: ask{old: byOther, object: widened}, want: []string{"spec.connectionSecretRef.name"}, asked: 1},
		"Loosed":          {reason: "As somebody with more rights, too.", ask: ask{old: byOther, object: loosed}, want: []string{"spec.connectionSecretRef.name"}, asked: 1},
		"Cluster":         {reason: "Who may publish a cluster publishes it.", ask: ask{object: byRef}, asked: 2},
		"OthersCluster":   {reason: "Nobody else does; the Secret was there before.", ask: ask{old: byRef, object: byRef2}, want: []string{"spec.clusterRef"}, asked: 1},
		"UnknownKind":     {reason: "Of a kind that is not there, nobody knows what its rights are called.", ask: ask{object: unknown}, want: []string{"spec.clusterRef.kind"}, asked: 1},
		"Portico":         {reason: "Portico carries out what others were asked about.", ask: ask{object: byOther, user: porticoUser}},
		"Other":           {reason: "Others have rights of their own.", ask: ask{object: byOther, user: "joe"}, asked: 1},
		"Deleted":         {reason: "A finalizer may always go.", ask: ask{old: bySec, object: strings.Replace(byOther, "name: eu-1,", `name: eu-1, deletionTimestamp: "2030-01-01T00:00:00Z",`, 1)}},
		"Resource":        {reason: "A resource takes no right but that to write it.", ask: ask{object: plain}},
		"FrontDoor":       {reason: "What Portico made, Portico says.", ask: ask{object: front}, want: []string{"metadata.labels[workload.crossplane.io/front-door]"}, asked: 1},
		"FrontDoorLater":  {reason: "Later, too.", ask: ask{old: plain, object: front}, want: []string{"metadata.labels[workload.crossplane.io/front-door]"}, asked: 1},
		"FrontDoorKept":   {reason: "What has it keeps it.", ask: ask{old: front, object: front}},
		"FrontDoorOff":    {reason: "To take it off is to let go.", ask: ask{old: front, object: plain}},
		"FrontDoorMade":   {reason: "Portico does.", ask: ask{object: front, user: porticoUser}},
		"FrontDoorBackup": {reason: "Who may write the status may restore a backup.", ask: ask{object: front, user: "joe"}, asked: 1},
		"Speaks":          {reason: "Nobody else puts words into a Deployment's status.", ask: ask{object: speaks}, want: []string{"metadata.ownerReferences"}, asked: 1},
		"SpeaksLater":     {reason: "Later, too.", ask: ask{old: plain, object: speaks}, want: []string{"metadata.ownerReferences"}, asked: 1},
		"SpeaksOn":        {reason: "What does goes on.", ask: ask{old: speaks, object: speaks}},
		"Grouped":         {reason: "Other controllers may make resources.", ask: ask{object: grouped}},
		"Secrets":         {reason: "Portico sends nobody a Secret that they may not read.", ask: ask{object: secrets}, want: []string{"spec.secrets[1].name"}, asked: 2},
		"SecretsAsBefore": {reason: "What was sent before is not asked about.", ask: ask{old: secrets, object: secrets}},
		"AppPlain":        {reason: "An application takes no right but that to write it.", ask: ask{object: appPlain}},
		"AppFront":        {reason: "What Portico made, Portico says.", ask: ask{object: appFront}, want: []string{"metadata.labels[workload.crossplane.io/front-door]"}, asked: 1},
		"AppSecrets":      {reason: "A template sends Secrets as well.", ask: ask{old: appPlain, object: appSecrets}, want: []string{"spec.resourceTemplates[0].spec.secrets[0].name"}, asked: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var asked []authorizationv1.SubjectAccessReviewSpec
			hub := hub
			hub.asked = &asked
			tc.path = WorkloadPath
			if tc.user == "" {
				tc.user = "jane"
			}
			resp := review(t, serveWith(hub), tc.ask)
			var refused []string
			if resp.Result != nil && resp.Result.Details != nil {
				for _, c := range resp.Result.Details.Causes {
					refused = append(refused, c.Field)
				}
			}
			if diff := cmp.Diff(tc.want, refused); diff != "" || resp.Allowed != (len(tc.want) == 0) {
				t.Errorf("%s Allowed: %t, %v (-want +got):\n%s", tc.reason, resp.Allowed, resp.Result, diff)
			}
			if len(asked) != tc.asked {
				t.Errorf("%s want %d questions to the hub, got %v", tc.reason, tc.asked, asked)
			}
		})
	}
}

func serveWith(hub Hub) http.Handler {
	server := webhook.NewServer(webhook.Options{})
	Register(server, Options{
		Secrets: liveSecrets{fake.NewClientBuilder().WithScheme(scheme()).Build()},
		Reader:  fake.NewClientBuilder().WithScheme(scheme()).Build(), Identity: porticoUser, Scheme: scheme(),
		Hub: hub, Frontier: policies.Frontier{Portico: "portico-system"},
	})
	return server.WebhookMux()
}

// TestRightsUnknown refuses when the hub does not answer: a right that cannot be
// shown is not there.
func TestRightsUnknown(t *testing.T) {
	resp := review(t, serveWith(authorizer{err: errors.New("hub is away")}), ask{path: WorkloadPath, user: "jane",
		object: `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesTarget, metadata: {name: eu-1}, spec: {connectionSecretRef: {name: eu-1}}}`})
	if resp.Allowed || resp.Result.Code != http.StatusInternalServerError || !strings.Contains(resp.Result.Message, "hub is away") {
		t.Errorf("answers %t, %v", resp.Allowed, resp.Result)
	}
}

// TestRefusalOfRight is what a person reads.
func TestRefusalOfRight(t *testing.T) {
	hub := authorizer{users: []string{"jane"}}
	resp := review(t, serveWith(hub), ask{path: WorkloadPath, user: "jane", object: `
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

// TestLetIn judges what is sent by the target that it goes to.
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
	const system = `{metadata: {name: a}, spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-system}}}}`
	cases := map[string]struct {
		reason string
		hub    []string
		ask
		refused, warned string
	}{
		"Free":            {reason: "A target takes what it does not exclude.", hub: []string{target(""), placed}, ask: ask{path: NativePath, object: remote}},
		"Refused":         {reason: "What the application's target excludes is refused.", hub: []string{target(svc), placed}, ask: ask{path: NativePath, object: remote}, refused: "its target is eu-1, which " + why},
		"OptsIn":          {reason: "So is opting in.", hub: []string{target(svc), placed}, ask: ask{path: NativePath, old: here, object: remote}, refused: "its target is eu-1, which " + why},
		"There":           {reason: "What is there already can be edited, and is told.", hub: []string{target(svc), placed}, ask: ask{path: NativePath, old: remote, object: more}, warned: "accepted, and not sent: its target is eu-1, which " + why},
		"ComesHome":       {reason: "And come home.", hub: []string{target(svc), placed}, ask: ask{path: NativePath, old: remote, object: here}},
		"NotPlaced":       {reason: "What would fit nowhere waits.", hub: []string{target(svc)}, ask: ask{path: NativePath, object: remote}, warned: "eu-1 " + why},
		"TargetGone":      {reason: "A target that is away is asked when it is back.", hub: []string{placed}, ask: ask{path: NativePath, object: remote}},
		"Resource":        {reason: "Another namespace is allowed unless excluded.", hub: []string{target("")}, ask: ask{path: WorkloadPath, object: kar(ref, "ConfigMap", ", namespace: shop")}},
		"ResourceSystem":  {reason: "The target's own are excluded unless named.", hub: []string{target("")}, ask: ask{path: WorkloadPath, object: kar(ref, "ConfigMap", ", namespace: kube-system")}, refused: "does not allow namespace kube-system"},
		"ResourcePortico": {reason: "So is Portico's.", hub: []string{target("")}, ask: ask{path: WorkloadPath, object: kar(ref, "ConfigMap", ", namespace: portico-system")}, refused: "does not allow namespace portico-system"},
		"ResourceCluster": {reason: "And what is above namespaces.", hub: []string{target("")}, ask: ask{path: WorkloadPath, object: kar(ref, "ClusterRole", "")}, refused: "does not allow ClusterRole"},
		"ResourceFeigned": {reason: "A namespace that the kind does not have hides nothing.", hub: []string{target("")}, ask: ask{path: WorkloadPath, object: kar(ref, "ClusterRole", ", namespace: shop")}, refused: "does not allow ClusterRole"},
		"ResourceUnknown": {reason: "Of a kind that the hub does not have, the target knows more.", hub: []string{target("")}, ask: ask{path: WorkloadPath, object: kar(ref, "Nothing", "")}},
		"ResourceEdited":  {reason: "What is there may be edited.", hub: []string{target("")}, ask: ask{path: WorkloadPath, old: kar(ref, "ConfigMap", ", namespace: kube-system"), object: kar(ref, "ConfigMap", ", namespace: kube-system, labels: {a: b}")}},
		"ResourceSent":    {reason: "What waited is not sent where it is not let in.", hub: []string{target("")}, ask: ask{path: WorkloadPath, old: kar("", "ConfigMap", ", namespace: kube-system"), object: kar(ref, "ConfigMap", ", namespace: kube-system")}, refused: "does not allow namespace kube-system"},
		"ResourceByUs":    {reason: "Portico says so in a status.", hub: []string{target("")}, ask: ask{path: WorkloadPath, user: porticoUser, object: kar(ref, "ConfigMap", ", namespace: kube-system")}},
		"ResourceMember":  {reason: "A member goes where its application is.", hub: []string{target(svc), placed}, ask: ask{path: WorkloadPath, object: strings.Replace(kar("", "ConfigMap", ", namespace: shop"), "name: a, namespace: team-a", "name: a, namespace: team-a, labels: {workload.crossplane.io/application: default}", 1)}, refused: "does not allow ConfigMap"},
		"App":             {reason: "Every template is judged.", hub: []string{target("")}, ask: ask{path: WorkloadPath, object: app(system)}, refused: "does not allow namespace kube-system"},
		"AppBefore":       {reason: "Only what is new.", hub: []string{target("")}, ask: ask{path: WorkloadPath, old: app(system), object: app(system)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			resp := review(t, front(t, objectsOf(t, tc.hub)...), tc.ask)
			if tc.refused == "" {
				if !resp.Allowed || told(resp, "does not allow") != (tc.warned != "") || !told(resp, tc.warned) {
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

func told(resp *admissionv1.AdmissionResponse, text string) bool {
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
