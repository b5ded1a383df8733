package plan

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

func conflict(fields ...string) error {
	var causes []metav1.StatusCause
	for _, field := range fields {
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: field, Message: "conflict"})
	}
	return apierrors.NewApplyConflict(causes, "conflicts")
}

// managed returns an entry of managedFields.
func managed(manager string, operation metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, Subresource: subresource, APIVersion: "apps/v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func TestResolveConflicts(t *testing.T) {
	const (
		replicas = `{"f:spec":{"f:replicas":{}}}`
		image    = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{"f:image":{}}}}}}}`

		imagePath = `.spec.template.spec.containers[name="web"].image`
	)
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	ours := managed(v1alpha1.PropagationManager, apply, "", `{"f:spec":{"f:replicas":{},"f:paused":{}}}`)
	type outcome struct {
		Forced          bool
		Replicas        bool // the object still has spec.replicas
		Conflicts, Left string
	}
	cases := map[string]struct {
		reason string
		fields []string
		owners []metav1.ManagedFieldsEntry
		want   outcome
	}{
		"ByHand": {
			reason: "A manual change is reverted.", fields: []string{imagePath},
			owners: []metav1.ManagedFieldsEntry{ours, managed("kubectl-edit", update, "", image)},
			want:   outcome{Forced: true, Replicas: true},
		},
		"Autoscaled": {
			reason: "The replicas that an autoscaler set are kept.", fields: []string{".spec.replicas"},
			owners: []metav1.ManagedFieldsEntry{managed("kube-controller-manager", update, "scale", replicas)},
			want:   outcome{Forced: true, Left: `.spec.replicas, managed by "kube-controller-manager"`},
		},
		"ScaledByHand": {
			reason: "Replicas that a user set are reverted.", fields: []string{".spec.replicas"},
			owners: []metav1.ManagedFieldsEntry{managed("kubectl", update, "scale", replicas)},
			want:   outcome{Forced: true, Replicas: true},
		},
		"Applied": {
			reason: "A field that another manager applies is a conflict.", fields: []string{imagePath},
			owners: []metav1.ManagedFieldsEntry{managed("flux", apply, "", image)},
			want:   outcome{Forced: true, Replicas: true, Conflicts: imagePath + `, managed by "flux"`},
		},
		"Mixed": {
			reason: "Conflicts and fields of autoscalers are returned separately.", fields: []string{imagePath, ".spec.replicas"},
			owners: []metav1.ManagedFieldsEntry{managed("flux", apply, "", image), managed("keda", update, "scale", replicas), managed("kubectl-edit", update, "", image)},
			want:   outcome{Forced: true, Conflicts: imagePath + `, managed by "flux"`, Left: `.spec.replicas, managed by "keda"`},
		},
		"Elsewhere": {
			reason: "Other managers' fields that Portico does not set are ignored.", fields: []string{".spec.replicas"},
			owners: []metav1.ManagedFieldsEntry{managed("flux", apply, "", image), managed("odd", update, "", `{`)},
			want:   outcome{Forced: true, Replicas: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: map[string]any{}}
			live.SetUID("there")
			live.SetManagedFields(tc.owners)
			with, conflicts := ResolveConflicts(FieldOwnersOf(live, ConflictingFields(conflict(tc.fields...))))
			desired := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(2)}}}
			object, force := ApplyRequest(desired, live, Drifted, with)
			_, found, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
			got := outcome{Forced: force, Replicas: found, Conflicts: listFieldOwners(conflicts), Left: listFieldOwners(with.Yielded)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if object.GetUID() != "there" || desired.GetUID() != "" {
				t.Error("the request is for another object, or changed the desired object")
			}
		})
	}
}

func TestForAutoscalers(t *testing.T) {
	autoscaler := func(apiVersion, kind, name string) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
			"spec": map[string]any{"scaleTargetRef": map[string]any{"apiVersion": apiVersion, "kind": kind, "name": name}},
		}}
	}
	const controller = "kube-controller-manager"
	type outcome struct {
		Depends bool
		Left    string
	}
	for name, tc := range map[string]struct {
		reason      string
		manager     string
		autoscalers []unstructured.Unstructured
		want        outcome
	}{
		"Scaled": {
			reason: "An autoscaler that names the object keeps its replicas.", manager: controller,
			autoscalers: []unstructured.Unstructured{autoscaler("apps/v1", "Deployment", "other"), autoscaler("apps/v1", "Deployment", "web")},
			want:        outcome{Depends: true, Left: `.spec.replicas, managed by "kube-controller-manager"`},
		},
		"OtherVersion": {
			reason: "The API server serves the object in several versions.", manager: controller,
			autoscalers: []unstructured.Unstructured{autoscaler("apps/v1beta1", "Deployment", "web")},
			want:        outcome{Depends: true, Left: `.spec.replicas, managed by "kube-controller-manager"`},
		},
		"Deleted": {
			reason: "The controller remains a manager after its autoscaler is deleted.", manager: controller,
			want: outcome{Depends: true},
		},
		"OtherObjects": {
			reason: "An autoscaler of another name, kind or group does not scale the object.", manager: controller,
			autoscalers: []unstructured.Unstructured{
				autoscaler("apps/v1", "Deployment", "other"), autoscaler("apps/v1", "StatefulSet", "web"), autoscaler("example.org/v1", "Deployment", "web"),
			},
			want: outcome{Depends: true},
		},
		"AnotherAutoscaler": {
			reason: "An autoscaler that is no HorizontalPodAutoscaler keeps the replicas.", manager: "platform-autoscaler",
			want: outcome{Left: `.spec.replicas, managed by "platform-autoscaler"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
			live.SetName("web")
			live.SetManagedFields([]metav1.ManagedFieldsEntry{
				managed(tc.manager, metav1.ManagedFieldsOperationUpdate, "scale", `{"f:spec":{"f:replicas":{}}}`),
			})
			with, _ := ResolveConflicts(FieldOwnersOf(live, []string{replicasPath}))
			got := outcome{Depends: with.DependsOnAutoscalers(), Left: listFieldOwners(with.ForAutoscalers(live, tc.autoscalers).Yielded)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestConflictingFields(t *testing.T) {
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	for name, tc := range map[string]struct {
		err  error
		want []string
	}{
		"Fields":   {err: conflict(".spec.a", ".spec.b", ".spec.a"), want: []string{".spec.a", ".spec.b"}},
		"Replaced": {err: apierrors.NewConflict(resource, "web", errors.New("another UID"))},
		"Refused":  {err: apierrors.NewForbidden(resource, "web", errors.New("no"))},
		"None":     {},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ConflictingFields(tc.err), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestApplyRequestForce(t *testing.T) {
	desired, observed := &unstructured.Unstructured{Object: map[string]any{}}, &unstructured.Unstructured{Object: map[string]any{}}
	for name, tc := range map[string]struct {
		reason string
		state  State
		value  string
		want   bool
	}{
		"Owned":     {reason: "The annotation takes over fields of an object of this resource.", state: Drifted, value: "true", want: true},
		"OtherText": {reason: "Another value of the annotation has no effect.", state: Drifted, value: "yes"},
		"Absent":    {reason: "The annotation does not take over an object that was created meanwhile.", state: Absent, value: "true"},
	} {
		t.Run(name, func(t *testing.T) {
			resource := &metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.ForceAnnotation: tc.value}}
			if _, force := ApplyRequest(desired, observed, tc.state, ApplyOptions{Force: policies.HasForceAnnotation(resource)}); force != tc.want {
				t.Errorf("force = %t, want %t: %s", force, tc.want, tc.reason)
			}
		})
	}
}
