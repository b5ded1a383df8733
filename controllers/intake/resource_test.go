package intake

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := out.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return out
}

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team-a, uid: u1, generation: 7, labels: {app: web, workload.crossplane.io/schedule: remote}}
spec: {template: {metadata: {labels: {app: web, workload.crossplane.io/schedule: remote}}}}
`

func TestResourceFor(t *testing.T) {
	const template = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{"workload.crossplane.io/hub-generation":"7"},"labels":{"app":"web"},"name":"web","namespace":"team-a"},"spec":{"template":{"metadata":{"labels":{"app":"web"}}}}}`
	want := func(target *v1alpha1.TargetReference, finalizers ...string) *v1alpha1.KubernetesApplicationResource {
		return &v1alpha1.KubernetesApplicationResource{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "team-a", Name: "web-deployment", Finalizers: finalizers,
				Labels:      map[string]string{v1alpha1.FrontDoorLabel: "true", v1alpha1.ApplicationLabel: "shop"},
				Annotations: map[string]string{v1alpha1.HubGenerationAnnotation: "7"},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "u1", Controller: new(true), BlockOwnerDeletion: new(true),
				}},
			},
			Spec: v1alpha1.KubernetesApplicationResourceSpec{TargetRef: target, Template: runtime.RawExtension{Raw: []byte(template)}},
		}
	}
	cases := map[string]struct {
		reason string
		target *v1alpha1.TargetReference
		want   *v1alpha1.KubernetesApplicationResource
	}{
		"Waiting": {reason: "A resource without a target needs no finalizer.", want: want(nil)},
		"Placed":  {reason: "A resource with a target stays until its object is deleted there.", target: &v1alpha1.TargetReference{Name: "eu-1"}, want: want(&v1alpha1.TargetReference{Name: "eu-1"}, v1alpha1.PropagationFinalizer)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			native := object(t, web)
			got, err := ResourceFor(kinds.Deployment{}, native, "shop", tc.target)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(object(t, web), native); diff != "" {
				t.Errorf("the native object changed (-before +after):\n%s", diff)
			}
		})
	}

	damaged := object(t, web)
	damaged.SetAnnotations(map[string]string{v1alpha1.IntentAnnotation: "{"})
	var malformed *field.Error
	if _, err := ResourceFor(kinds.Deployment{}, damaged, "shop", nil); !errors.As(err, &malformed) || malformed.Field != kinds.IntentPath.String() {
		t.Errorf("a damaged record ended with %v, want an error that names it", err)
	}
}

func TestUpdateResource(t *testing.T) {
	stored := func(change func(*v1alpha1.KubernetesApplicationResource)) *v1alpha1.KubernetesApplicationResource {
		out, err := ResourceFor(kinds.Deployment{}, object(t, web), "shop", nil)
		if err != nil {
			t.Fatal(err)
		}
		change(out)
		return out
	}
	cases := map[string]struct {
		reason  string
		current func(*v1alpha1.KubernetesApplicationResource)
		want    func(*v1alpha1.KubernetesApplicationResource)
	}{
		"Same": {reason: "An equal resource stays as it is, byte for byte.", current: func(*v1alpha1.KubernetesApplicationResource) {}, want: func(*v1alpha1.KubernetesApplicationResource) {}},
		"Reordered": {reason: "The API server may reorder JSON.", current: func(r *v1alpha1.KubernetesApplicationResource) {
			r.Spec.Template.Raw = append([]byte(" "), r.Spec.Template.Raw...)
		}, want: func(r *v1alpha1.KubernetesApplicationResource) {
			r.Spec.Template.Raw = append([]byte(" "), r.Spec.Template.Raw...)
		}},
		"Changed": {reason: "A changed template is updated.", current: func(r *v1alpha1.KubernetesApplicationResource) { r.Spec.Template.Raw = []byte(`{"kind":"Old"}`) }, want: func(*v1alpha1.KubernetesApplicationResource) {}},
		"Damaged": {reason: "An unreadable template is replaced.", current: func(r *v1alpha1.KubernetesApplicationResource) { r.Spec.Template.Raw = nil }, want: func(*v1alpha1.KubernetesApplicationResource) {}},
		"Target": {reason: "Intake does not change the target.", current: func(r *v1alpha1.KubernetesApplicationResource) {
			r.Spec.TargetRef = &v1alpha1.TargetReference{Name: "eu-1"}
		}, want: func(r *v1alpha1.KubernetesApplicationResource) {
			r.Spec.TargetRef = &v1alpha1.TargetReference{Name: "eu-1"}
		}},
		"Labels":     {reason: "Removed labels come back.", current: func(r *v1alpha1.KubernetesApplicationResource) { r.Labels = nil }, want: func(*v1alpha1.KubernetesApplicationResource) {}},
		"Others":     {reason: "Labels and annotations of other writers stay.", current: func(r *v1alpha1.KubernetesApplicationResource) { r.Labels["team"], r.Annotations["note"] = "a", "b" }, want: func(r *v1alpha1.KubernetesApplicationResource) { r.Labels["team"], r.Annotations["note"] = "a", "b" }},
		"Finalizers": {reason: "Finalizers of other writers stay.", current: func(r *v1alpha1.KubernetesApplicationResource) { r.Finalizers = []string{"a/b"} }, want: func(r *v1alpha1.KubernetesApplicationResource) { r.Finalizers = []string{"a/b"} }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := stored(tc.current)
			updateResource(got, stored(func(*v1alpha1.KubernetesApplicationResource) {}))
			if diff := cmp.Diff(stored(tc.want), got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestHasCurrentTemplate(t *testing.T) {
	replicaSet := func(change func(*corev1.PodTemplateSpec)) *appsv1.ReplicaSet {
		out := &appsv1.ReplicaSet{}
		out.Spec.Template.Labels = map[string]string{"app": "web", appsv1.DefaultDeploymentUniqueLabelKey: "5d4f", v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote}
		change(&out.Spec.Template)
		return out
	}
	cases := map[string]struct {
		reason string
		change func(*corev1.PodTemplateSpec)
		want   bool
	}{
		"Same":  {reason: "The hash of the Deployment controller is no difference.", change: func(*corev1.PodTemplateSpec) {}, want: true},
		"Label": {reason: "A template without the label differs.", change: func(p *corev1.PodTemplateSpec) { delete(p.Labels, v1alpha1.ScheduleLabel) }},
		"Image": {reason: "A template with another image differs.", change: func(p *corev1.PodTemplateSpec) { p.Spec.Containers = []corev1.Container{{Image: "nginx"}} }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := hasCurrentTemplate(object(t, web), replicaSet(tc.change)); got != tc.want {
				t.Errorf("current = %t, want %t: %s", got, tc.want, tc.reason)
			}
		})
	}
	if hasCurrentTemplate(object(t, `{apiVersion: apps/v1, kind: Deployment, spec: {template: 5}}`), replicaSet(func(*corev1.PodTemplateSpec) {})) {
		t.Error("a Deployment that cannot be read has a current ReplicaSet")
	}
}
