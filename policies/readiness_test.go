package policies

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func parsed(t testing.TB, manifest string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	if err := out.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestReadinessOf(t *testing.T) {
	const (
		deployment   = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, "
		definition   = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, status: {conditions: [{type: NamesAccepted, status: 'True'}, {type: Established, status: "
		queue        = "{apiVersion: example.org/v1, kind: Queue, metadata: {name: a, generation: 2}, "
		secret       = "{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: 'hunter2', team: red}}, stringData: {more: hunter2}, data: {password: aHVudGVyMg==}}"
		running      = "object.status.phase == 'Running'"
		notYet       = "spec.readiness is not true yet: "
		undetermined = "spec.readiness cannot be evaluated: "
		combination  = "object.items.all(a, object.items.all(b, object.items.all(c, a + b + c >= 0)))"
	)
	unknown := func(message string) Readiness {
		return Readiness{metav1.ConditionUnknown, v1alpha1.ReasonReadinessFailed, undetermined + message}
	}
	cases := map[string]struct {
		reason     string
		object     string
		expression string
		want       Readiness
	}{
		"Available": {
			reason: "A built-in kind has its own rules.",
			object: deployment + "replicas: 1, readyReplicas: 1, availableReplicas: 1, updatedReplicas: 1, conditions: [{type: Available, status: 'True'}]}}",
			want:   ready,
		},
		"DeadlineExceeded": {
			reason: "An object that its cluster has given up is Failed, not Progressing.",
			object: deployment + "conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}}",
			want:   Readiness{metav1.ConditionFalse, v1alpha1.ReasonFailed, "Progress deadline exceeded"},
		},
		"NotEstablished": {
			reason: "Custom resources wait until their definition is established.",
			object: definition + "'False', reason: Installing}]}}",
			want:   progressing("Install in progress"),
		},
		"Established": {reason: "Custom resources do not wait for an established definition.", object: definition + "'True'}]}}", want: ready},
		"Conditions": {
			reason: "Another kind is ready by its usual conditions.",
			object: queue + "status: {conditions: [{type: Ready, status: 'False', message: no disk}]}}",
			want:   progressing("no disk"),
		},
		"NoConditions": {reason: "An object without conditions is ready.", object: queue + "spec: {size: 1}}", want: ready},
		"True":         {reason: "An expression overrides the usual conditions.", object: queue + "status: {phase: Running}}", expression: running, want: ready},
		"TrueOfBuiltIn": {
			reason:     "An expression overrides the rules of a built-in kind.",
			object:     deployment + "replicas: 2, readyReplicas: 1}}",
			expression: "object.status.readyReplicas >= 1", want: ready,
		},
		"False": {
			reason: "The message quotes the expression, not the object.", object: queue + "status: {phase: Filling}}", expression: running,
			want: progressing(notYet + running),
		},
		"FieldMissing": {
			reason: "A missing field may be a mistake in the expression.", object: queue + "spec: {size: 1}}", expression: running,
			want: unknown("no such key: status"),
		},
		"Optional": {
			reason: "An expression can handle a missing field.", object: queue + "spec: {size: 1}}", expression: "object.?status.?phase.orValue('') == 'Running'",
			want: progressing(notYet + "object.?status.?phase.orValue('') == 'Running'"),
		},
		"Kubernetes": {
			reason: "The functions of Kubernetes' CEL library are available.", object: queue + "status: {free: 2Gi}}",
			expression: "quantity(object.status.free).isGreaterThan(quantity('1Gi'))", want: ready,
		},
		"TooCostly": {
			reason: "The cost of an expression is limited.", object: queue + "items: [" + strings.Repeat("1, ", 200) + "1]}", expression: combination,
			want: unknown("it takes more than 100000 steps, the limit"),
		},
		"NoExpression": {
			reason: "An invalid expression may exist, because webhooks can be down.", object: queue + "spec: {}}", expression: "object.",
			want: unknown("line 1, column 8: Syntax error: no viable alternative at input '.'"),
		},
		"Outdated": {
			reason: "The status of an earlier generation does not count.",
			object: queue + "status: {phase: Running, observedGeneration: 1}}", expression: running,
			want: progressing("generation is 2, but latest observed generation is 1"),
		},
		"Deleted": {
			reason:     "An object that is being deleted is not ready.",
			object:     "{apiVersion: example.org/v1, kind: Queue, metadata: {name: a, deletionTimestamp: '2026-01-01T00:00:00Z'}, status: {phase: Running}}",
			expression: running, want: progressing("is being deleted"),
		},
		"SecretHasKey": {reason: "An expression can find whether a Secret has a key.", object: secret, expression: "'password' in object.data", want: ready},
		"SecretValue": {
			reason: "An expression cannot read a value of a Secret.", object: secret, expression: "object.data.password == '' && object.stringData.more == ''", want: ready,
		},
		"SecretAnnotation": {
			reason: "An expression cannot read the Secret in kubectl's annotation.", object: secret,
			expression: "object.metadata.annotations == {'team': 'red'}", want: ready,
		},
		"SecretMessage": {
			reason: "An error message cannot reveal a value of a Secret.", object: secret, expression: "int(object.data.password) > 1",
			want: unknown("type conversion error from 'string' to 'int'"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := parsed(t, tc.object)
			before := o.DeepCopy()
			for range 2 { // the second time the expression is in the cache
				if diff := cmp.Diff(tc.want, ReadinessOf(o, tc.expression)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			}
			if diff := cmp.Diff(before, o); diff != "" {
				t.Errorf("the object was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestProblemsOfReadiness(t *testing.T) {
	path := field.NewPath("spec", "readiness")
	cases := map[string]struct {
		expression string
		want       []string
	}{
		"None": {"", nil},
		"Bool": {"has(object.status) && object.status.phase in ['Running', 'Idle']", nil},
		"Syntax": {"object.status.phase = 'Running'", []string{
			"line 1, column 21: Syntax error: token recognition error at: '= '",
			"line 1, column 23: Syntax error: extraneous input ''Running'' expecting <EOF>",
		}},
		"Undeclared": {"object.ready == true &&\n  self.ready == 1", []string{
			"line 2, column 3: undeclared reference to 'self' (in container '')",
		}},
		"NoBool":    {"size(object.items)", []string{`gives int, and must give true or false; compare it, as in "object.status.ready == true"`}},
		"Anything":  {"object.status.ready", []string{`gives dyn, and must give true or false; compare it, as in "object.status.ready == true"`}},
		"TooLong":   {"true" + strings.Repeat(" ", maxReadiness), []string{"may not be more than 4096 bytes"}},
		"TwoFaults": {"a && b", []string{"line 1, column 1: undeclared reference to 'a' (in container '')", "line 1, column 6: undeclared reference to 'b' (in container '')"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, problem := range ValidateReadiness(tc.expression, path) {
				if problem.Field != "spec.readiness" {
					t.Errorf("the problem is said to be of %s", problem.Field)
				}
				got = append(got, problem.Detail)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
