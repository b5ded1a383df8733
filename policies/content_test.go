package policies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// handwritten returns a resource that Secret sql controls.
func handwritten(name, template string) *v1alpha1.KubernetesApplicationResource {
	raw, err := yaml.YAMLToJSON([]byte(template))
	if err != nil {
		panic(err)
	}
	return &v1alpha1.KubernetesApplicationResource{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Secret", Name: "sql", UID: "s1", Controller: new(true)},
		}},
		Spec: v1alpha1.KubernetesApplicationResourceSpec{Template: runtime.RawExtension{Raw: raw}},
	}
}

// sharedLabels are the labels of the resource of a shared dependency.
var sharedLabels = map[string]string{v1alpha1.FrontDoorLabel: v1alpha1.FrontDoor, v1alpha1.DependencyLabel: v1alpha1.DependencyShared}

const sqlTemplate = `{apiVersion: v1, kind: Secret, metadata: {name: sql, namespace: shop}, type: Opaque}`

func TestValidateHandwritten(t *testing.T) {
	forbidden := func(at string) []problem { return []problem{{field.ErrorTypeForbidden, at}} }
	cases := map[string]struct {
		reason, name, template string
		want                   []problem
	}{
		"Made":      {reason: "A resource that Portico makes for a Secret is valid.", name: "sql-secret", template: sqlTemplate},
		"Renamed":   {reason: "A resource for a Secret has the name that Portico gives it.", name: "mine", template: sqlTemplate, want: []problem{{field.ErrorTypeInvalid, "metadata.name"}}},
		"Elsewhere": {reason: "A Secret is not sent to another namespace.", name: "sql-secret", template: `{apiVersion: v1, kind: Secret, metadata: {name: sql, namespace: open}}`, want: forbidden("spec.template")},
		"Other":     {reason: "A Secret is not sent with another name.", name: "sql-secret", template: `{apiVersion: v1, kind: Secret, metadata: {name: other, namespace: shop}}`, want: forbidden("spec.template")},
		"OtherKind": {reason: "A Secret is not sent as a ConfigMap.", name: "sql-secret", template: `{apiVersion: v1, kind: ConfigMap, metadata: {name: sql, namespace: shop}}`, want: forbidden("spec.template")},
		"Data":      {reason: "The template has no data of the Secret.", name: "sql-secret", template: `{apiVersion: v1, kind: Secret, metadata: {name: sql, namespace: shop}, data: {a: Yg==}}`, want: forbidden("spec.template.data")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, problems(ValidateResource(handwritten(tc.name, tc.template), nil))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	for name, tc := range map[string]struct {
		reason, name, target string
		labels               map[string]string
		want                 []problem
	}{
		"Shared":      {reason: "A resource that Portico makes for a shared dependency is valid.", name: "sql.dev-secret", target: "dev", labels: sharedLabels},
		"OtherTarget": {reason: "A shared dependency is sent only to the target in the name of its resource.", name: "sql.dev-secret", target: "mine", labels: sharedLabels, want: []problem{{field.ErrorTypeInvalid, "metadata.name"}}},
		"OtherSecret": {reason: "A shared dependency is not sent as another one.", name: "other.dev-secret", target: "dev", labels: sharedLabels, want: []problem{{field.ErrorTypeInvalid, "metadata.name"}}},
		"NoTarget":    {reason: "A shared dependency has a target.", name: "sql.-secret", labels: sharedLabels, want: []problem{{field.ErrorTypeInvalid, "metadata.name"}}},
		"Relabelled":  {reason: "The resource for the label of a Secret is not one of a shared dependency.", name: "sql-secret", target: "dev", labels: sharedLabels, want: []problem{{field.ErrorTypeInvalid, "metadata.name"}}},
		"Unmarked":    {reason: "A resource without Portico's labels is no shared dependency.", name: "sql.dev-secret", target: "dev", want: []problem{{field.ErrorTypeInvalid, "metadata.name"}}},
	} {
		t.Run(name, func(t *testing.T) {
			resource := handwritten(tc.name, sqlTemplate)
			resource.Labels = tc.labels
			if tc.target != "" {
				resource.Spec.TargetRef = &v1alpha1.TargetReference{Name: tc.target}
			}
			if diff := cmp.Diff(tc.want, problems(ValidateResource(resource, nil))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	free := handwritten("mine", `{apiVersion: v1, kind: Secret, metadata: {name: other, namespace: shop}, data: {a: Yg==}}`)
	free.OwnerReferences = nil
	if errs := ValidateResource(free, nil); len(errs) > 0 {
		t.Errorf("a Secret in a handwritten resource was refused: %v", errs)
	}
}

func TestWithholds(t *testing.T) {
	remote := map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote}
	made := func(change func(*metav1.ObjectMeta)) *metav1.ObjectMeta {
		out := &metav1.ObjectMeta{Name: "sql", Namespace: "shop", UID: "s1", Labels: remote}
		change(out)
		return out
	}
	cases := map[string]struct {
		reason string
		native metav1.Object
		want   string
	}{
		"Labelled":  {reason: "A labelled Secret is sent.", native: made(func(*metav1.ObjectMeta) {})},
		"Gone":      {reason: "A Secret that does not exist is not sent.", want: "Secret sql does not exist in namespace shop"},
		"Anew":      {reason: "A Secret with the same name and another UID is not sent.", native: made(func(o *metav1.ObjectMeta) { o.UID = "s2" }), want: "Secret sql is not the one that the resource was made for"},
		"Elsewhere": {reason: "A Secret in another namespace is not sent.", native: made(func(o *metav1.ObjectMeta) { o.Namespace = "bank" }), want: "Secret sql is not the one that the resource was made for"},
		"Unlabelled": {reason: "A Secret without the label is not sent.", native: made(func(o *metav1.ObjectMeta) { o.Labels = nil }),
			want: "Secret sql has no label workload.crossplane.io/schedule=remote"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := ContentDeniedReason(handwritten("sql-secret", sqlTemplate), tc.native); got != tc.want {
				t.Errorf("%s\nwant %q\n got %q", tc.reason, tc.want, got)
			}
		})
	}
	shared := handwritten("sql.dev-secret", sqlTemplate)
	shared.Labels = sharedLabels
	if got := ContentDeniedReason(shared, made(func(o *metav1.ObjectMeta) { o.Labels = nil })); got != "" {
		t.Errorf("a Secret without the label is not sent as a shared dependency: %s", got)
	}
	if ContentDeniedReason(shared, made(func(o *metav1.ObjectMeta) { o.Labels, o.UID = nil, "s2" })) == "" {
		t.Error("a Secret with another UID is sent as a shared dependency")
	}
	if ContentDeniedReason(&v1alpha1.KubernetesApplicationResource{}, made(func(*metav1.ObjectMeta) {})) == "" {
		t.Error("a resource that no Secret controls stands for none")
	}
}

func TestKeeps(t *testing.T) {
	native := func(kind, name, of string) *unstructured.Unstructured {
		out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
		out.SetName(name)
		if of != "" {
			out.Object["type"] = of
		}
		return out
	}
	for _, tc := range []struct {
		native *unstructured.Unstructured
		kept   bool
	}{
		{native("Secret", "sql", "Opaque"), false},
		{native("Secret", "token", "kubernetes.io/service-account-token"), true},
		{native("Secret", "token", "bootstrap.kubernetes.io/token"), true},
		{native("ConfigMap", "settings", ""), false},
		{native("ConfigMap", "kube-root-ca.crt", ""), true},
		{native("Secret", "kube-root-ca.crt", "Opaque"), false},
		{native("Service", "kube-root-ca.crt", ""), false},
	} {
		if why := HubOnlyReason(tc.native); (why != "") != tc.kept {
			t.Errorf("%s %s: kept because it %q, want kept: %t", tc.native.GetKind(), tc.native.GetName(), why, tc.kept)
		}
	}
	targets := []v1alpha1.KubernetesTarget{{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}}, {ObjectMeta: metav1.ObjectMeta{Name: "us-1"}}}
	targets[0].Spec.ConnectionSecretRef = &v1alpha1.SecretReference{Name: "key"}
	if why := HubOnlyConnectionReason(types.NamespacedName{Namespace: targets[0].Namespace, Name: "key"}, targets); why != "connects to target eu-1, and is never sent" {
		t.Errorf("want the key to a target kept, got %q", why)
	}
	if why := HubOnlyConnectionReason(types.NamespacedName{Namespace: targets[0].Namespace, Name: "sql"}, targets); why != "" {
		t.Errorf("want a Secret sent that opens nothing; it %q", why)
	}
}
