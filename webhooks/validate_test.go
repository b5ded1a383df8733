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

// answer is what an API server passes on of a validating webhook's answer.
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

// invalid refuses the way the API server does, field by field.
func invalid(audit string, causes ...cause) answer {
	return answer{
		Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Causes: causes,
		Audit: map[string]string{"decision": "refused", "fields": audit},
	}
}

func summary(t testing.TB, hooks http.Handler, a ask) answer {
	t.Helper()
	resp := review(t, hooks, a)
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

		prod = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/target-selector: env=prod}}}`
		dev  = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/target-selector: env=dev}}}`
		shop = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote, workload.crossplane.io/application: shop}}}`
		typo = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: Remote}}}`
	)
	cases := map[string]struct {
		reason string
		hub    []client.Object
		ask
		want answer
	}{
		"Placed": {
			reason: "Where an object runs is in the audit log.",
			hub:    []client.Object{application("default", "eu-1")},
			ask:    ask{object: deployment},
			want:   answer{Allowed: true, Code: http.StatusOK, Audit: map[string]string{"target": "eu-1"}},
		},
		"Matches": {
			reason: "An object that a target will take needs no words.",
			hub:    []client.Object{target("eu-1", map[string]string{"env": "prod"})},
			ask:    ask{object: prod},
			want:   allowed,
		},
		"MatchesByApplication": {
			reason: "One that asks for nothing is foreseen to go where its application asks to.",
			hub:    []client.Object{application("default", ""), target("eu-1", map[string]string{"env": "prod"})},
			ask:    ask{object: deployment},
			want:   allowed,
		},
		"MatchesNothing": {
			reason: "The scheduler would say this later, to somebody who no longer looks.",
			hub:    []client.Object{target("eu-1", map[string]string{"env": "prod"})},
			ask:    ask{object: dev},
			want: answer{
				Allowed: true, Code: http.StatusOK,
				Warnings: []string{"accepted, and waiting for a target: 0 of 1 targets match: eu-1 wants env=dev, has env=prod"},
				Audit:    map[string]string{"decision": "unschedulable"},
			},
		},
		"MatchesNothingDry": {
			reason: "A dry run has the same answer.",
			ask:    ask{object: dev, dryRun: true},
			want: answer{
				Allowed: true, Code: http.StatusOK,
				Warnings: []string{"accepted, and waiting for a target: no KubernetesTarget is published in namespace team-a"},
				Audit:    map[string]string{"decision": "unschedulable"},
			},
		},
		"MatchesNothingByApplication": {
			reason: "What the application asks for counts for its silent members.",
			hub:    []client.Object{application("default", ""), target("dev-1", map[string]string{"env": "dev"})},
			ask:    ask{object: deployment},
			want: answer{
				Allowed: true, Code: http.StatusOK,
				Warnings: []string{"accepted, and waiting for a target: 0 of 1 targets match: dev-1 wants env=prod, has env=dev"},
				Audit:    map[string]string{"decision": "unschedulable"},
			},
		},
		"OtherNamespaces": {
			reason: "A target serves the namespace it is published in.",
			hub:    []client.Object{&v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "eu-1", Labels: map[string]string{"env": "dev"}}}},
			ask:    ask{object: dev},
			want: answer{
				Allowed: true, Code: http.StatusOK,
				Warnings: []string{"accepted, and waiting for a target: no KubernetesTarget is published in namespace team-a"},
				Audit:    map[string]string{"decision": "unschedulable"},
			},
		},
		"Disagrees": {
			reason: "The refusal names the field.",
			hub:    []client.Object{application("default", "eu-1")},
			ask:    ask{object: dev},
			want:   invalid(selectorField, cause{metav1.CauseTypeFieldValueInvalid, selectorField}),
		},
		"Moves": {
			reason: "The application of what runs is immutable.",
			hub:    []client.Object{application("default", "eu-1")},
			ask:    ask{object: shop, old: deployment},
			want:   invalid(applicationField, cause{metav1.CauseTypeForbidden, applicationField}),
		},
		"Reselects": {
			reason: "So is its selector.",
			hub:    []client.Object{application("default", "eu-1")},
			ask:    ask{object: dev, old: prod},
			want:   invalid(selectorField, cause{metav1.CauseTypeForbidden, selectorField}),
		},
		"Typo": {
			reason: "An object nobody would run where its label says is refused.",
			ask:    ask{object: typo},
			want:   invalid(scheduleField, cause{metav1.CauseTypeFieldValueNotSupported, scheduleField}),
		},
		"TypoBefore": {
			reason: "One that was stored all the same can be edited.",
			ask:    ask{object: typo, old: typo},
			want:   allowed,
		},
		"NamespaceTypo": {
			reason: "What the namespace says wrongly is refused here, too, and all at once.",
			hub:    []client.Object{namespace(map[string]string{v1alpha1.TargetSelectorAnnotation: "env in prod"})},
			ask:    ask{object: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote, workload.crossplane.io/application: Shop_1}}}`},
			want: invalid(applicationField+","+selectorField,
				cause{metav1.CauseTypeFieldValueInvalid, applicationField}, cause{metav1.CauseTypeFieldValueInvalid, selectorField}),
		},
		"ComesHome": {
			reason: "An object that comes home is not placed any more.",
			hub:    []client.Object{application("default", "eu-1")},
			ask:    ask{object: localDeployment, old: heldDeployment},
			want:   allowed,
		},
		"Finalizer": {
			reason: "Whatever is wrong with it, what is being deleted may go.",
			hub:    []client.Object{application("default", "eu-1")},
			ask:    ask{old: prod, object: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, deletionTimestamp: "2030-01-01T00:00:00Z", labels: {workload.crossplane.io/schedule: Remote}}}`},
			want:   allowed,
		},
		"Subresource": {
			reason: "A subresource is another object than its kind says.",
			ask:    ask{object: typo, old: deployment, subresource: "scale"},
			want:   allowed,
		},
		"OtherKind": {
			reason: "A kind Portico does not know passes.",
			ask:    ask{object: `{apiVersion: v1, kind: ServiceAccount, metadata: {name: c, labels: {workload.crossplane.io/schedule: Remote}}}`},
			want:   allowed,
		},
		"GeneratedName": {
			reason: "An object whose name is not known yet is refused like any other.",
			ask:    ask{object: `{apiVersion: apps/v1, kind: Deployment, metadata: {generateName: web-, labels: {workload.crossplane.io/schedule: Remote}}}`},
			want:   invalid(scheduleField, cause{metav1.CauseTypeFieldValueNotSupported, scheduleField}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.path = NativePath
			if diff := cmp.Diff(tc.want, summary(t, front(t, tc.hub...), tc.ask)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLongWarning cuts a warning where the API server would drop it, or cut it.
func TestLongWarning(t *testing.T) {
	for _, shift := range []string{"", "a", "ab"} {
		hub := []client.Object{target(shift+strings.Repeat("é", 100), nil), target(shift+strings.Repeat("語", 100), nil)}
		resp := review(t, front(t, hub...), ask{path: NativePath, object: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/target-selector: env=dev}}}`})
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
		ask
		want answer
	}{
		"Application":         {reason: "An application that can run.", ask: ask{object: app}, want: allowed},
		"ApplicationTwice":    {reason: "Two templates of one name are one resource.", ask: ask{object: twice}, want: invalid("spec.resourceTemplates[1].metadata.name", cause{metav1.CauseTypeFieldValueDuplicate, "spec.resourceTemplates[1].metadata.name"})},
		"ApplicationSecond":   {reason: "Nor may the second come later.", ask: ask{object: twice, old: app}, want: invalid("spec.resourceTemplates[1].metadata.name", cause{metav1.CauseTypeFieldValueDuplicate, "spec.resourceTemplates[1].metadata.name"})},
		"ApplicationBefore":   {reason: "One that has two already can be edited.", ask: ask{object: twice, old: twice}, want: allowed},
		"ApplicationPutRight": {reason: "And put right.", ask: ask{object: app, old: twice}, want: allowed},
		"ApplicationGoes":     {reason: "And its finalizers come off.", ask: ask{old: app, object: strings.Replace(twice, "name: shop", `name: shop, deletionTimestamp: "2030-01-01T00:00:00Z"`, 1)}, want: allowed},
		"Resource":            {reason: "A resource that can run.", ask: ask{object: resource}, want: allowed},
		"ResourceMoved":       {reason: "The namespace of an object on a target is immutable.", ask: ask{object: moved, old: resource}, want: invalid("spec.template.metadata.namespace", cause{metav1.CauseTypeForbidden, "spec.template.metadata.namespace"})},
		"ResourceWrong": {
			reason: "Every problem at once.",
			ask:    ask{object: withUID},
			want: invalid("spec.template.metadata.uid,spec.template.status",
				cause{metav1.CauseTypeForbidden, "spec.template.metadata.uid"}, cause{metav1.CauseTypeForbidden, "spec.template.status"}),
		},
		"ResourcePlaced": {reason: "A resource that was stored while admission was away can be placed.", ask: ask{object: placed, old: withUID}, want: allowed},
		"ResourceGoes":   {reason: "And goes, whatever is wrong with it.", ask: ask{old: placed, object: strings.Replace(withUID, "name: web", `name: web, deletionTimestamp: "2030-01-01T00:00:00Z"`, 1)}, want: allowed},
		"ResourceStatus": {reason: "A status is a subresource.", ask: ask{object: withUID, old: resource, subresource: "status"}, want: allowed},
		"Target":         {reason: "A target that can be reached.", ask: ask{object: reached}, want: allowed},
		"TargetLost":     {reason: "One that cannot.", ask: ask{object: lost}, want: invalid("spec.connectionSecretRef.name", cause{metav1.CauseTypeFieldValueRequired, "spec.connectionSecretRef.name"})},
		"TargetBefore":   {reason: "One that never could can be labelled.", ask: ask{object: lost, old: lost}, want: allowed},
		"TargetGoes":     {reason: "And deleted.", ask: ask{old: reached, object: strings.Replace(lost, "name: eu-1", `name: eu-1, deletionTimestamp: "2030-01-01T00:00:00Z"`, 1)}, want: allowed},
		"OtherKind":      {reason: "A kind of the group that has no rules passes.", ask: ask{object: `{apiVersion: workload.crossplane.io/v1, kind: KubernetesCluster, metadata: {name: c}}`}, want: allowed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.path = WorkloadPath
			hooks := front(t, target("eu-1", nil))
			if diff := cmp.Diff(tc.want, summary(t, hooks, tc.ask)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			tc.dryRun = true
			if diff := cmp.Diff(tc.want, summary(t, hooks, tc.ask)); diff != "" {
				t.Errorf("in a dry run (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDamagedRecord refuses at the first webhook, which could not go on.
func TestDamagedRecord(t *testing.T) {
	const damaged = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/intent: '{'}}}`
	const field = "metadata.annotations[workload.crossplane.io/intent]"
	want := invalid(field, cause{metav1.CauseTypeFieldValueInvalid, field})
	if diff := cmp.Diff(want, summary(t, front(t), ask{path: HoldPath, object: damaged, old: damaged})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRefusal is what a person reads.
func TestRefusal(t *testing.T) {
	resp := review(t, front(t), ask{path: NativePath, object: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: Remote}}}`})
	const want = `Deployment.apps "web" is invalid: metadata.labels[workload.crossplane.io/schedule]: Unsupported value: "Remote": supported values: "remote", "local"`
	if diff := cmp.Diff(want, resp.Result.Message); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&metav1.StatusDetails{Group: "apps", Kind: "Deployment", Name: "web"},
		&metav1.StatusDetails{Group: resp.Result.Details.Group, Kind: resp.Result.Details.Kind, Name: resp.Result.Details.Name}); diff != "" {
		t.Errorf("what it is about (-want +got):\n%s", diff)
	}
}
