package webhooks

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// TestPlacementPreview: a user reads at once that an object waits for a target.
func TestPlacementPreview(t *testing.T) {
	const (
		template       = `template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}`
		app            = `{apiVersion: workload.crossplane.io/v1alpha2, kind: KubernetesApplication, metadata: {name: web, namespace: team-a}, spec: {targetSelector: {matchLabels: {env: dev}}, resourceTemplates: [{metadata: {name: web}, spec: {` + template + `}}]}}`
		open           = `{apiVersion: workload.crossplane.io/v1alpha2, kind: KubernetesApplication, metadata: {name: web, namespace: team-a}, spec: {}}`
		tolerant       = `{apiVersion: workload.crossplane.io/v1alpha2, kind: KubernetesApplication, metadata: {name: web, namespace: team-a}, spec: {tolerations: [{key: gpu, operator: Exists}]}}`
		resource       = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesApplicationResource, metadata: {name: a, namespace: team-a}, spec: {targetSelector: {matchLabels: {env: dev}}, ` + template + `}}`
		role           = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesApplicationResource, metadata: {name: a, namespace: team-a}, spec: {template: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}}}`
		member         = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesApplicationResource, metadata: {name: a, namespace: team-a, labels: {workload.crossplane.io/application: web}}, spec: {` + template + `}}`
		theirs         = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesApplicationResource, metadata: {name: a, namespace: team-a, ownerReferences: [{apiVersion: example.org/v1, kind: Shop, name: shop, uid: u1, controller: true}]}, spec: {` + template + `}}`
		tainted        = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesTarget, metadata: {name: eu-1, namespace: team-a, labels: {env: dev}}, spec: {taints: [{key: gpu, effect: NoSchedule}]}, status: {conditions: [{type: TargetReachable, status: "True"}]}}`
		narrow         = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesTarget, metadata: {name: eu-1, namespace: team-a, labels: {env: dev}}, spec: {allow: {kinds: [{group: "", kind: Service}]}}, status: {conditions: [{type: TargetReachable, status: "True"}]}}`
		prod           = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesTarget, metadata: {name: eu-1, namespace: team-a, labels: {env: prod}}, spec: {}, status: {conditions: [{type: TargetReachable, status: "True"}]}}`
		dev            = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesTarget, metadata: {name: eu-1, namespace: team-a, labels: {env: dev}}, spec: {}, status: {conditions: [{type: TargetReachable, status: "True"}]}}`
		withExclusions = "no KubernetesTarget is published in namespace team-a"
		selects        = "0 of 1 targets match: eu-1 wants env=dev, has env=prod"
	)
	cases := map[string]struct {
		reason       string
		hub          []string
		object, user string
		want         string // without "accepted, and waiting for a target: "; empty if there is no warning
	}{
		"AppFits":         {reason: "An application with a target has no warning.", hub: []string{dev}, object: app},
		"AppNowhere":      {reason: "The namespace has no target.", object: app, want: withExclusions},
		"AppSelects":      {reason: "The selector does not match the target.", hub: []string{prod}, object: app, want: selects},
		"AppTainted":      {reason: "The target has a taint.", hub: []string{tainted}, object: open, want: "0 of 1 targets match: eu-1 has a taint that is not tolerated: gpu:NoSchedule"},
		"AppTolerates":    {reason: "The application tolerates the taint.", hub: []string{tainted}, object: tolerant},
		"AppNotAllowed":   {reason: "The target does not allow a template.", hub: []string{narrow}, object: app, want: `0 of 1 targets match: eu-1 does not allow ConfigMap; its spec.allow.kinds would have to list {group: "", kind: ConfigMap}`},
		"AppMember":       {reason: "The target does not allow a member.", hub: []string{narrow, member}, object: open, want: `0 of 1 targets match: eu-1 does not allow ConfigMap; its spec.allow.kinds would have to list {group: "", kind: ConfigMap}`},
		"AppByUs":         {reason: "Portico's own requests have no warnings.", object: app, user: porticoUser},
		"ResourceFits":    {reason: "A resource with a target has no warning.", hub: []string{dev}, object: resource},
		"ResourceNowhere": {reason: "The namespace has no target.", object: resource, want: withExclusions},
		"ResourceSelects": {reason: "The selector does not match the target.", hub: []string{prod}, object: resource, want: selects},
		"ResourceScope":   {reason: "A cluster-scoped kind has to be listed.", hub: []string{prod}, object: role, want: `0 of 1 targets match: eu-1 does not allow ClusterRole.rbac.authorization.k8s.io; its spec.allow.kinds would have to list {group: "rbac.authorization.k8s.io", kind: ClusterRole}`},
		"ResourceByUs":    {reason: "Portico's own requests have no warnings.", object: resource, user: porticoUser},
		"ResourceTheirs":  {reason: "Another controller places its resources.", object: theirs},
		"MemberFits":      {reason: "A member runs on the target of its application.", hub: []string{app, dev}, object: member},
		"MemberWaits":     {reason: "A member waits with its application.", hub: []string{app, prod}, object: member, want: selects},
		"MemberForbidden": {reason: "The member itself may be the reason.", hub: []string{open, narrow}, object: member, want: `0 of 1 targets match: eu-1 does not allow ConfigMap; its spec.allow.kinds would have to list {group: "", kind: ConfigMap}`},
		"MemberOfNothing": {reason: "The member may be created before its application.", hub: []string{dev}, object: member, want: "the label workload.crossplane.io/application names KubernetesApplication web, which does not exist in namespace team-a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			hooks := front(t, objectsOf(t, tc.hub)...)
			for _, a := range []testRequest{{object: tc.object}, {object: tc.object, old: tc.object}, {object: tc.object, dryRun: true}} {
				a.path, a.user = WorkloadPath, tc.user
				want := allowed
				if tc.want != "" {
					want.Warnings = []string{shorten("accepted, and waiting for a target: " + tc.want)}
					want.Audit = map[string]string{"decision": "unschedulable"}
				}
				if diff := cmp.Diff(want, summary(t, hooks, a)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			}
		})
	}
}

// TestPlacementPreviewWithoutCache allows a valid object when the targets cannot be
// listed.
func TestPlacementPreviewWithoutCache(t *testing.T) {
	blind := fake.NewClientBuilder().WithScheme(scheme()).WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			if _, targets := list.(*v1alpha1.KubernetesTargetList); targets {
				return errors.New("cache is not started")
			}
			return nil
		},
	}).Build()
	resp := submit(t, serve(blind), testRequest{path: WorkloadPath, object: `{apiVersion: workload.crossplane.io/v1alpha2, kind: KubernetesApplication, metadata: {name: web}, spec: {}}`})
	if !resp.Allowed || strings.Contains(strings.Join(resp.Warnings, " "), "waiting") {
		t.Errorf("a warning that cannot be had is no refusal: %t, %v, %q", resp.Allowed, resp.Result, resp.Warnings)
	}
}
