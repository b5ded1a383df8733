package policies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

const tolerationsField = "metadata.annotations[workload.crossplane.io/tolerations]"

func tolerating(text string) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.TolerationsAnnotation: text}}
}

func TestTolerationsOf(t *testing.T) {
	exists, equal := corev1.TolerationOpExists, corev1.TolerationOpEqual
	cases := map[string]struct {
		reason            string
		object, namespace *metav1.ObjectMeta
		want              []corev1.Toleration
		text              string
		problems          []problem
	}{
		"Nothing": {reason: "An object without the annotation follows its application."},
		"Forms": {
			reason: "The annotation has the forms of kubectl taint. An omitted value or effect matches all.",
			object: tolerating("gpu=a100:NoSchedule, spot:NoExecute,example.org/team=ml,old"),
			want: []corev1.Toleration{
				{Key: "gpu", Operator: equal, Value: "a100", Effect: corev1.TaintEffectNoSchedule},
				{Key: "spot", Operator: exists, Effect: corev1.TaintEffectNoExecute},
				{Key: "example.org/team", Operator: equal, Value: "ml"},
				{Key: "old", Operator: exists},
			},
			text: "example.org/team=ml,gpu=a100:NoSchedule,old,spot:NoExecute",
		},
		"Empty": {
			reason: "An empty annotation tolerates nothing and overrides the namespace's.",
			object: tolerating(""), namespace: tolerating("gpu"),
			want: []corev1.Toleration{},
		},
		"EmptyValue":    {reason: "A taint may have an empty value.", object: tolerating("gpu="), want: []corev1.Toleration{{Key: "gpu", Operator: equal}}, text: "gpu="},
		"Namespace":     {reason: "The annotation of a namespace applies to its objects.", namespace: tolerating("gpu"), want: []corev1.Toleration{{Key: "gpu", Operator: exists}}, text: "gpu"},
		"UnknownEffect": {reason: "A misspelt effect would match no taint.", object: tolerating("gpu:Noschedule"), problems: []problem{{field.ErrorTypeInvalid, tolerationsField}}},
		"NoEffect":      {reason: "A colon must be followed by an effect.", object: tolerating("gpu:"), problems: []problem{{field.ErrorTypeInvalid, tolerationsField}}},
		"NoKey":         {reason: "A value needs a key.", object: tolerating("=a100"), problems: []problem{{field.ErrorTypeInvalid, tolerationsField}}},
		"NotAKey":       {reason: "No taint can have this key.", object: tolerating("g p u"), problems: []problem{{field.ErrorTypeInvalid, tolerationsField}}},
		"NotAValue":     {reason: "No taint can have this value.", object: tolerating("gpu=a/100"), problems: []problem{{field.ErrorTypeInvalid, tolerationsField}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.object == nil {
				tc.object = &metav1.ObjectMeta{}
			}
			if tc.namespace == nil {
				tc.namespace = &metav1.ObjectMeta{}
			}
			got, errs := TolerationsOf(tc.object, tc.namespace)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.problems, problems(errs)); diff != "" {
				t.Errorf("\n%s\nproblems: -want, +got:\n%s", tc.reason, diff)
			}
			if text := FormatTolerations(got); text != tc.text {
				t.Errorf("\n%s\nwritten as %q, want %q", tc.reason, text, tc.text)
			}
		})
	}
}

func TestTolerationsAgree(t *testing.T) {
	app := &v1alpha2.KubernetesApplication{}
	app.Spec.Tolerations = []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists}, {Key: "gpu", Value: "a100"}}
	for text, want := range map[string]bool{"gpu=a100,spot": true, "spot,gpu=a100,spot": true, "spot": false, "": false, "gpu,spot": false} {
		tolerations, errs := TolerationsOf(tolerating(text), &metav1.ObjectMeta{})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		if got := (Membership{Tolerations: tolerations}).Agrees(app); got != want {
			t.Errorf("%q agrees: %v, want %v: order and repetition mean nothing, and the rest does", text, got, want)
		}
	}
	if !(Membership{}).Agrees(app) {
		t.Error("an object without tolerations must agree")
	}
}

func TestValidateTolerationsAndTaints(t *testing.T) {
	cases := map[string]struct {
		reason string
		app    string
		target string
		want   []problem
	}{
		"Right": {
			reason: "Tolerations and taints of the core API are valid.",
			app:    `{spec: {tolerations: [{key: gpu, value: a100, effect: NoSchedule}, {operator: Exists}, {key: a, operator: Exists, effect: PreferNoSchedule}]}}`,
			target: `{spec: {connectionSecretRef: {name: dev}, taints: [{key: gpu, value: a100, effect: NoSchedule}, {key: gpu, effect: NoExecute}]}}`,
		},
		"Tolerations": {
			reason: "A toleration that matches no taint is invalid.",
			app: `{spec: {tolerations: [{value: a}, {key: a b, operator: Exists}, {key: a, operator: Exists, value: v}, {key: a, operator: Gt, value: "1"},
  {key: a, effect: Never}, {key: a, value: "a b"}, {key: a, effect: NoExecute, tolerationSeconds: 60}]}}`,
			want: []problem{
				{field.ErrorTypeRequired, "spec.tolerations[0].key"},
				{field.ErrorTypeInvalid, "spec.tolerations[1].key"},
				{field.ErrorTypeInvalid, "spec.tolerations[2].value"},
				{field.ErrorTypeNotSupported, "spec.tolerations[3].operator"},
				{field.ErrorTypeNotSupported, "spec.tolerations[4].effect"},
				{field.ErrorTypeInvalid, "spec.tolerations[5].value"},
				{field.ErrorTypeForbidden, "spec.tolerations[6].tolerationSeconds"},
			},
		},
		"Taints": {
			reason: "A taint without a possible toleration is invalid, and a duplicate is too.",
			target: `{spec: {connectionSecretRef: {name: dev}, taints: [{key: a b, effect: NoSchedule}, {key: a, value: "a b", effect: NoSchedule},
  {key: b}, {key: c, value: x, effect: NoSchedule}, {key: c, value: y, effect: NoSchedule}]}}`,
			want: []problem{
				{field.ErrorTypeInvalid, "spec.taints[0].key"},
				{field.ErrorTypeInvalid, "spec.taints[1].value"},
				{field.ErrorTypeNotSupported, "spec.taints[2].effect"},
				{field.ErrorTypeDuplicate, "spec.taints[4]"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var errs field.ErrorList
			if tc.app != "" {
				errs = append(errs, ValidateApplication(read[v1alpha2.KubernetesApplication](t, tc.app), nil)...)
			}
			if tc.target != "" {
				errs = append(errs, ValidateTarget(read[v1alpha1.KubernetesTarget](t, tc.target), nil)...)
			}
			if diff := cmp.Diff(tc.want, problems(errs)); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
