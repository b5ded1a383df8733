package webhooks

import (
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// answer is the part of a validating webhook's response that the API server uses.
type answer struct {
	Allowed  bool
	Code     int32
	Reason   metav1.StatusReason
	Causes   []cause
	Warnings []string
	Audit    map[string]string
}

type cause struct {
	Type  metav1.CauseType
	Field string
}

var allowed = answer{Allowed: true, Code: http.StatusOK}

// invalid returns the denial with field errors.
func invalid(audit string, causes ...cause) answer {
	return answer{
		Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Causes: causes,
		Audit: map[string]string{"decision": "refused", "fields": audit},
	}
}

func summary(t testing.TB, hooks http.Handler, a testRequest) answer {
	t.Helper()
	resp := submit(t, hooks, a)
	out := answer{Allowed: resp.Allowed, Warnings: resp.Warnings, Audit: resp.AuditAnnotations}
	if resp.Result != nil {
		out.Code, out.Reason = resp.Result.Code, resp.Result.Reason
		if resp.Result.Details != nil {
			for _, c := range resp.Result.Details.Causes {
				out.Causes = append(out.Causes, cause{c.Type, c.Field})
			}
		}
	}
	if len(resp.Patch) > 0 {
		t.Errorf("a validating webhook changes the object: %s", resp.Patch)
	}
	return out
}

func named[T client.Object](object T, name string) T {
	object.SetName(name)
	object.SetNamespace("team-a")
	return object
}

func target(name string, labels map[string]string) client.Object {
	out := named(&v1alpha1.KubernetesTarget{}, name)
	out.Labels = labels
	out.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TargetReachable, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReachable}}
	return out
}

func application(name, on string) client.Object {
	out := named(&v1alpha2.KubernetesApplication{}, name)
	out.Spec.TargetSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	if on != "" {
		out.Spec.TargetRef = &v1alpha1.TargetReference{Name: on}
	}
	return out
}

func namespace(annotations map[string]string) client.Object {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Annotations: annotations}}
}

func TestValidateNative(t *testing.T) {
	const (
		selectorField    = "metadata.annotations[workload.crossplane.io/target-selector]"
		applicationField = "metadata.labels[workload.crossplane.io/application]"
		scheduleField    = "metadata.labels[workload.crossplane.io/schedule]"

		prod  = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/target-selector: env=prod}}}`
		dev   = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/target-selector: env=dev}}}`
		shop  = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote, workload.crossplane.io/application: shop}}}`
		quota = `{apiVersion: v1, kind: ResourceQuota, metadata: {name: team, labels: {workload.crossplane.io/schedule: remote}}, spec: {hard: {pods: "1"}}}`
		typo  = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: Remote}}}`
	)
	cases := map[string]struct {
		reason string
		hub    []client.Object
		testRequest
		want answer
	}{
		"Placed": {
			reason:      "The audit log has the application and the target of an object.",
			hub:         []client.Object{application("default", "eu-1")},
			testRequest: testRequest{object: deployment},
			want:        answer{Allowed: true, Code: http.StatusOK, Audit: map[string]string{"target": "eu-1"}},
		},
		"Matches": {
			reason:      "An object that its target accepts has no warning.",
			hub:         []client.Object{target("eu-1", map[string]string{"env": "prod"})},
			testRequest: testRequest{object: prod},
			want:        allowed,
		},
		"Enforced": {
			reason:      "The user reads that the hub enforces the object, too.",
			hub:         []client.Object{target("eu-1", map[string]string{"env": "prod"})},
			testRequest: testRequest{object: quota},
			want: answer{
				Allowed: true, Code: http.StatusOK,
				Warnings: []string{"ResourceQuota team has an effect on the hub, too: the hub counts the objects of this namespace on the hub, and the target counts its own"},
			},
		},
		"EnforcedUnchanged": {
			reason:      "The author of an unchanged object knows.",
			hub:         []client.Object{target("eu-1", map[string]string{"env": "prod"})},
			testRequest: testRequest{object: quota, old: quota},
			want:        allowed,
		},
		"MatchesByApplication": {
			reason:      "A resource without a selector is previewed with the selector of its application.",
			hub:         []client.Object{application("default", ""), target("eu-1", map[string]string{"env": "prod"})},
			testRequest: testRequest{object: deployment},
			want:        allowed,
		},
		"MatchesNothing": {
			reason:      "The user reads at once that no target matches.",
			hub:         []client.Object{target("eu-1", map[string]string{"env": "prod"})},
			testRequest: testRequest{object: dev},
			want: answer{
				Allowed: true, Code: http.StatusOK,
				Warnings: []string{"accepted, and waiting for a target: 0 of 1 targets match: eu-1 wants env=dev, has env=prod"},
				Audit:    map[string]string{"decision": "unschedulable"},
			},
		},
		"MatchesNothingDry": {
			reason:      "A dry run has the same result.",
			testRequest: testRequest{object: dev, dryRun: true},
			want: answer{
				Allowed: true, Code: http.StatusOK,
				Warnings: []string{"accepted, and waiting for a target: no KubernetesTarget is published in namespace team-a"},
				Audit:    map[string]string{"decision": "unschedulable"},
			},
		},
		"MatchesNothingByApplication": {
			reason:      "The selector of the application applies to members without one.",
			hub:         []client.Object{application("default", ""), target("dev-1", map[string]string{"env": "dev"})},
			testRequest: testRequest{object: deployment},
			want: answer{
				Allowed: true, Code: http.StatusOK,
				Warnings: []string{"accepted, and waiting for a target: 0 of 1 targets match: dev-1 wants env=prod, has env=dev"},
				Audit:    map[string]string{"decision": "unschedulable"},
			},
		},
		"OtherNamespaces": {
			reason:      "Targets of other namespaces do not count.",
			hub:         []client.Object{&v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "eu-1", Labels: map[string]string{"env": "dev"}}}},
			testRequest: testRequest{object: dev},
			want: answer{
				Allowed: true, Code: http.StatusOK,
				Warnings: []string{"accepted, and waiting for a target: no KubernetesTarget is published in namespace team-a"},
				Audit:    map[string]string{"decision": "unschedulable"},
			},
		},
		"Disagrees": {
			reason:      "The error names the field.",
			hub:         []client.Object{application("default", "eu-1")},
			testRequest: testRequest{object: dev},
			want:        invalid(selectorField, cause{metav1.CauseTypeFieldValueInvalid, selectorField}),
		},
		"Moves": {
			reason:      "The application of a running object is immutable.",
			hub:         []client.Object{application("default", "eu-1")},
			testRequest: testRequest{object: shop, old: deployment},
			want:        invalid(applicationField, cause{metav1.CauseTypeForbidden, applicationField}),
		},
		"Reselects": {
			reason:      "The selector of a running object is immutable.",
			hub:         []client.Object{application("default", "eu-1")},
			testRequest: testRequest{object: dev, old: prod},
			want:        invalid(selectorField, cause{metav1.CauseTypeForbidden, selectorField}),
		},
		"Typo": {
			reason:      "An unknown value of the label is refused.",
			testRequest: testRequest{object: typo},
			want:        invalid(scheduleField, cause{metav1.CauseTypeFieldValueNotSupported, scheduleField}),
		},
		"TypoBefore": {
			reason:      "A stored object with an unknown value can be changed.",
			testRequest: testRequest{object: typo, old: typo},
			want:        allowed,
		},
		"NamespaceTypo": {
			reason:      "Errors in the annotations of the namespace are reported on the object.",
			hub:         []client.Object{namespace(map[string]string{v1alpha1.TargetSelectorAnnotation: "env in prod"})},
			testRequest: testRequest{object: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote, workload.crossplane.io/application: Shop_1}}}`},
			want: invalid(applicationField+","+selectorField,
				cause{metav1.CauseTypeFieldValueInvalid, applicationField}, cause{metav1.CauseTypeFieldValueInvalid, selectorField}),
		},
		"ComesHome": {
			reason:      "An object that returns to the hub is not placed.",
			hub:         []client.Object{application("default", "eu-1")},
			testRequest: testRequest{object: localDeployment, old: heldDeployment},
			want:        allowed,
		},
		"FinalizerGoes": {
			reason:      "The finalizers of an invalid object can be removed.",
			hub:         []client.Object{application("default", "eu-1")},
			testRequest: testRequest{old: strings.Replace(going(typo), "name: web", "name: web, finalizers: [a/b]", 1), object: going(typo)},
			want:        allowed,
		},
		"ChangedGoing": {
			reason:      "Other changes of an object that is being deleted are validated.",
			hub:         []client.Object{application("default", "eu-1")},
			testRequest: testRequest{old: going(prod), object: going(typo)},
			want:        invalid(scheduleField, cause{metav1.CauseTypeFieldValueNotSupported, scheduleField}),
		},
		"Subresource": {
			reason:      "A subresource may be of another kind than the request.",
			testRequest: testRequest{object: typo, old: deployment, subresource: "scale"},
			want:        allowed,
		},
		"OtherKind": {
			reason:      "A kind that Portico does not support is allowed.",
			testRequest: testRequest{object: `{apiVersion: v1, kind: ServiceAccount, metadata: {name: c, labels: {workload.crossplane.io/schedule: Remote}}}`},
			want:        allowed,
		},
		"GeneratedName": {
			reason:      "An object with generateName is validated, too.",
			testRequest: testRequest{object: `{apiVersion: apps/v1, kind: Deployment, metadata: {generateName: web-, labels: {workload.crossplane.io/schedule: Remote}}}`},
			want:        invalid(scheduleField, cause{metav1.CauseTypeFieldValueNotSupported, scheduleField}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.path = NativePath
			if diff := cmp.Diff(tc.want, summary(t, front(t, tc.hub...), tc.testRequest)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLongWarning: a long warning is cut before the API server would cut or drop it.
func TestLongWarning(t *testing.T) {
	for _, shift := range []string{"", "a", "ab"} {
		hub := []client.Object{target(shift+strings.Repeat("é", 100), nil), target(shift+strings.Repeat("語", 100), nil)}
		resp := submit(t, front(t, hub...), testRequest{path: NativePath, object: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/target-selector: env=dev}}}`})
		if len(resp.Warnings) != 1 {
			t.Fatalf("want one warning, got %q", resp.Warnings)
		}
		warning := resp.Warnings[0]
		if len(warning) > 256 || !utf8.ValidString(warning) || strings.ContainsRune(warning, utf8.RuneError) || !strings.HasSuffix(warning, "...") {
			t.Errorf("an API server would not pass on %d bytes: %q", len(warning), warning)
		}
	}
}

func TestValidateWorkload(t *testing.T) {
	const releaseField = "metadata.annotations[workload.crossplane.io/release]"
	const (
		app      = `{apiVersion: workload.crossplane.io/v1alpha2, kind: KubernetesApplication, metadata: {name: shop}, spec: {resourceTemplates: [{metadata: {name: web}, spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}}]}}`
		twice    = `{apiVersion: workload.crossplane.io/v1alpha2, kind: KubernetesApplication, metadata: {name: shop}, spec: {resourceTemplates: [{metadata: {name: web}, spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}}, {metadata: {name: web}, spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}}]}}`
		resource = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesApplicationResource, metadata: {name: web}, spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}}}`
		moved    = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesApplicationResource, metadata: {name: web}, spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: other}}}}`
		withUID  = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesApplicationResource, metadata: {name: web}, spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: u}, status: {}}}}`
		placed   = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesApplicationResource, metadata: {name: web, finalizers: [workload.crossplane.io/propagation]}, spec: {targetRef: {name: eu-1}, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: u}, status: {}}}}`
		reached  = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesTarget, metadata: {name: eu-1}, spec: {connectionSecretRef: {name: eu-1}}}`
		lost     = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesTarget, metadata: {name: eu-1}, spec: {}}`
	)
	cases := map[string]struct {
		reason string
		testRequest
		want answer
	}{
		"Application":         {reason: "A valid application is accepted.", testRequest: testRequest{object: app}, want: allowed},
		"ApplicationTwice":    {reason: "Two templates of one name would be one resource.", testRequest: testRequest{object: twice}, want: invalid("spec.resourceTemplates[1].metadata.name", cause{metav1.CauseTypeFieldValueDuplicate, "spec.resourceTemplates[1].metadata.name"})},
		"ApplicationSecond":   {reason: "An update must not add a template of the same name.", testRequest: testRequest{object: twice, old: app}, want: invalid("spec.resourceTemplates[1].metadata.name", cause{metav1.CauseTypeFieldValueDuplicate, "spec.resourceTemplates[1].metadata.name"})},
		"ApplicationBefore":   {reason: "An application with two such templates can be changed.", testRequest: testRequest{object: twice, old: twice}, want: allowed},
		"ApplicationPutRight": {reason: "It can be corrected.", testRequest: testRequest{object: app, old: twice}, want: allowed},
		"ApplicationGoes":     {reason: "Its finalizers can be removed.", testRequest: testRequest{old: strings.Replace(going(twice), "name: shop", "name: shop, finalizers: [a/b]", 1), object: going(twice)}, want: allowed},
		"ApplicationGoing":    {reason: "It must not get further errors.", testRequest: testRequest{old: going(app), object: going(twice)}, want: invalid("spec.resourceTemplates[1].metadata.name", cause{metav1.CauseTypeFieldValueDuplicate, "spec.resourceTemplates[1].metadata.name"})},
		"ApplicationReleased": {reason: "An object that is being deleted may be released.", testRequest: testRequest{old: going(app), object: released(going(app))}, want: allowed},
		"ReleasedTooEarly":    {reason: "Other objects may not.", testRequest: testRequest{old: app, object: released(app)}, want: invalid(releaseField, cause{metav1.CauseTypeForbidden, releaseField})},
		"Resource":            {reason: "A valid resource is accepted.", testRequest: testRequest{object: resource}, want: allowed},
		"ResourceMoved":       {reason: "The namespace of an object on a target is immutable.", testRequest: testRequest{object: moved, old: resource}, want: invalid("spec.template.metadata.namespace", cause{metav1.CauseTypeForbidden, "spec.template.metadata.namespace"})},
		"ResourceWrong": {
			reason:      "All errors are reported at once.",
			testRequest: testRequest{object: withUID},
			want: invalid("spec.template.metadata.uid,spec.template.status",
				cause{metav1.CauseTypeForbidden, "spec.template.metadata.uid"}, cause{metav1.CauseTypeForbidden, "spec.template.status"}),
		},
		"ResourcePlaced": {reason: "An invalid resource can be placed.", testRequest: testRequest{object: placed, old: withUID}, want: allowed},
		"ResourceGoes":   {reason: "Its finalizers can be removed.", testRequest: testRequest{old: going(placed), object: strings.Replace(going(placed), ", finalizers: [workload.crossplane.io/propagation]", "", 1)}, want: allowed},
		"ResourceGoing":  {reason: "An invalid resource that is being deleted is still immutable.", testRequest: testRequest{object: going(moved), old: going(resource)}, want: invalid("spec.template.metadata.namespace", cause{metav1.CauseTypeForbidden, "spec.template.metadata.namespace"})},
		"ResourceStatus": {reason: "The status is not validated.", testRequest: testRequest{object: withUID, old: resource, subresource: "status"}, want: allowed},
		"Target":         {reason: "A valid target is accepted.", testRequest: testRequest{object: reached}, want: allowed},
		"TargetLost":     {reason: "An invalid target is refused.", testRequest: testRequest{object: lost}, want: invalid("spec.connectionSecretRef.name", cause{metav1.CauseTypeFieldValueRequired, "spec.connectionSecretRef.name"})},
		"TargetBefore":   {reason: "The labels of an invalid target can be changed.", testRequest: testRequest{object: lost, old: lost}, want: allowed},
		"TargetGoes":     {reason: "Its finalizers can be removed.", testRequest: testRequest{old: strings.Replace(going(lost), "name: eu-1", "name: eu-1, finalizers: [a/b]", 1), object: going(lost)}, want: allowed},
		"TargetGoing":    {reason: "It must not get further errors while it is being deleted.", testRequest: testRequest{old: going(reached), object: going(lost)}, want: invalid("spec.connectionSecretRef.name", cause{metav1.CauseTypeFieldValueRequired, "spec.connectionSecretRef.name"})},
		"OtherKind":      {reason: "A kind of the group without rules is allowed.", testRequest: testRequest{object: `{apiVersion: workload.crossplane.io/v1, kind: KubernetesCluster, metadata: {name: c}}`}, want: allowed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.path = WorkloadPath
			hooks := front(t, target("eu-1", nil))
			if diff := cmp.Diff(tc.want, summary(t, hooks, tc.testRequest)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			tc.dryRun = true
			if diff := cmp.Diff(tc.want, summary(t, hooks, tc.testRequest)); diff != "" {
				t.Errorf("in a dry run (-want +got):\n%s", diff)
			}
		})
	}
}

// going adds a deletion timestamp to an object, and released adds the release
// annotation.
func going(object string) string {
	return strings.Replace(object, "metadata: {", `metadata: {deletionTimestamp: "2030-01-01T00:00:00Z", `, 1)
}

func released(object string) string {
	return strings.Replace(object, "metadata: {", `metadata: {annotations: {workload.crossplane.io/release: "true"}, `, 1)
}

// TestDamagedRecord: the first webhook denies an object with a malformed record,
// because it cannot update it.
func TestDamagedRecord(t *testing.T) {
	const damaged = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/intent: '{'}}}`
	const field = "metadata.annotations[workload.crossplane.io/intent]"
	want := invalid(field, cause{metav1.CauseTypeFieldValueInvalid, field})
	if diff := cmp.Diff(want, summary(t, front(t), testRequest{path: HoldPath, object: damaged, old: damaged})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRefusal compares the whole message.
func TestRefusal(t *testing.T) {
	resp := submit(t, front(t), testRequest{path: NativePath, object: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: Remote}}}`})
	const want = `Deployment.apps "web" is invalid: metadata.labels[workload.crossplane.io/schedule]: Unsupported value: "Remote": supported values: "remote", "local"`
	if diff := cmp.Diff(want, resp.Result.Message); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&metav1.StatusDetails{Group: "apps", Kind: "Deployment", Name: "web"},
		&metav1.StatusDetails{Group: resp.Result.Details.Group, Kind: resp.Result.Details.Kind, Name: resp.Result.Details.Name}); diff != "" {
		t.Errorf("fields of the log (-want +got):\n%s", diff)
	}
}
