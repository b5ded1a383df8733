package policies

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/references"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func TestTargetsOfDependency(t *testing.T) {
	resource := func(spec string) v1alpha1.KubernetesApplicationResource {
		return *read[v1alpha1.KubernetesApplicationResource](t, `{spec: `+spec+`}`)
	}
	deleted := resource(`{targetRef: {name: old}, dependencies: [{kind: ServiceAccount, name: checkout, shared: true}]}`)
	deleted.DeletionTimestamp = &metav1.Time{}
	lost := resource(`{targetRef: {name: lost}, dependencies: [{kind: ServiceAccount, name: checkout, shared: true}]}`)
	lost.Labels = map[string]string{v1alpha1.FrontDoorLabel: v1alpha1.FrontDoor}
	need, keep := TargetsOfDependency([]v1alpha1.KubernetesApplicationResource{
		lost,
		resource(`{targetRef: {name: b}, leavingTargetRef: {name: c}, dependencies: [{kind: ServiceAccount, name: checkout, shared: true}]}`),
		resource(`{targetRef: {name: a}, dependencies: [{kind: Secret, name: x}, {kind: ServiceAccount, name: checkout, shared: true}]}`),
		resource(`{targetRef: {name: a}, dependencies: [{kind: ServiceAccount, name: checkout, shared: true}]}`),
		resource(`{targetRef: {name: copied}, dependencies: [{kind: ServiceAccount, name: checkout}]}`),
		resource(`{targetRef: {name: other}, dependencies: [{kind: ServiceAccount, name: other, shared: true}]}`),
		resource(`{targetRef: {name: sender}}`),
		resource(`{dependencies: [{kind: ServiceAccount, name: checkout, shared: true}]}`),
		*read[v1alpha1.KubernetesApplicationResource](t, `{spec: {targetRef: {name: changed}}, status: {dependencies: [{kind: ServiceAccount, name: checkout, shared: true}]}}`),
		deleted,
	}, kinds.ServiceAccountKind, "checkout")
	if diff := cmp.Diff([]string{"a", "b"}, need); diff != "" {
		t.Errorf("it is sent to each target once (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "changed", "lost", "old"}, keep); diff != "" {
		t.Errorf("it stays while an object is moved away or deleted (-want +got):\n%s", diff)
	}
}

func TestDependenciesInUse(t *testing.T) {
	resource := read[v1alpha1.KubernetesApplicationResource](t, `{
  spec: {dependencies: [{kind: Secret, name: copied}, {kind: ServiceAccount, name: now, shared: true, optional: true}]},
  status: {dependencies: [{kind: ServiceAccount, name: before, shared: true}, {kind: ServiceAccount, name: now, shared: true}]}}`)
	now, before := v1alpha1.Dependency{Kind: "ServiceAccount", Name: "now", Shared: true}, v1alpha1.Dependency{Kind: "ServiceAccount", Name: "before", Shared: true}
	if diff := cmp.Diff([]v1alpha1.Dependency{now, before}, DependenciesInUse(resource, false)); diff != "" {
		t.Errorf("Pods of the last spec may run (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]v1alpha1.Dependency{now}, DependenciesInUse(resource, true)); diff != "" {
		t.Errorf("the object is ready (-want +got):\n%s", diff)
	}
}

func TestSharedDependency(t *testing.T) {
	resource := func(labels map[string]string, kind string) *v1alpha1.KubernetesApplicationResource {
		return &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Labels: labels,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: "checkout", Controller: new(true)}}}}
	}
	marked := map[string]string{v1alpha1.FrontDoorLabel: v1alpha1.FrontDoor, v1alpha1.DependencyLabel: v1alpha1.DependencyShared}
	for name, tc := range map[string]struct {
		reason   string
		resource *v1alpha1.KubernetesApplicationResource
		shared   bool
		owner    string
	}{
		"ServiceAccount": {reason: "Portico made it.", resource: resource(marked, "ServiceAccount"), shared: true, owner: "checkout"},
		"Labelled":       {reason: "A Secret with the schedule label.", resource: resource(map[string]string{v1alpha1.FrontDoorLabel: v1alpha1.FrontDoor}, "Secret"), owner: "checkout"},
		"ByHand":         {reason: "A user may set the label, and it means nothing then.", resource: resource(map[string]string{v1alpha1.DependencyLabel: v1alpha1.DependencyShared}, "Pack")},
		"Service":        {reason: "Nothing depends on a Service.", resource: resource(map[string]string{v1alpha1.FrontDoorLabel: v1alpha1.FrontDoor}, "Service")},
	} {
		t.Run(name, func(t *testing.T) {
			var owner string
			if ref := DependencyOwner(tc.resource); ref != nil {
				owner = ref.Name
			}
			if got := IsSharedDependency(tc.resource); got != tc.shared || owner != tc.owner {
				t.Errorf("shared %t, owner %q: %s", got, owner, tc.reason)
			}
		})
	}
}

func TestRequiredReferences(t *testing.T) {
	pods := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {
  serviceAccountName: checkout, imagePullSecrets: [{name: pull}],
  containers: [{name: web, env: [{name: A, value: b}, {name: B, valueFrom: {configMapKeyRef: {name: settings, key: b}}}], envFrom: [{secretRef: {name: maybe, optional: true}}]}]}}}}`)
	want := []references.Reference{
		{Kind: "ServiceAccount", Name: "checkout", Field: "spec.template.spec.serviceAccountName"},
		{Kind: "ConfigMap", Name: "settings", Env: true, Field: "spec.template.spec.containers[0].env[1].valueFrom.configMapKeyRef.name"},
		{Kind: "Secret", Name: "pull", Field: "spec.template.spec.imagePullSecrets[0].name"},
	}
	if diff := cmp.Diff(want, RequiredReferences(pods)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := RequiredReferences(object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [{name: web}]}}}}`)); len(got) > 0 {
		t.Errorf("the default ServiceAccount is everywhere: %v", got)
	}
}

func TestSharedDependencyNamespace(t *testing.T) {
	const elsewhere = `{metadata: {name: web, namespace: team-a}, spec: {template: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: NAMESPACE}}, dependencies: [{kind: Secret, name: a}, {kind: ServiceAccount, name: checkout, shared: true}]}}`
	for name, tc := range map[string]struct {
		reason, namespace string
		want              []problem
	}{
		"Same":  {reason: "The Pods find it.", namespace: "team-a"},
		"Other": {reason: "The Pods would not find it.", namespace: "team-b", want: []problem{{field.ErrorTypeForbidden, "spec.dependencies[1].shared"}}},
	} {
		t.Run(name, func(t *testing.T) {
			resource := read[v1alpha1.KubernetesApplicationResource](t, strings.ReplaceAll(elsewhere, "NAMESPACE", tc.namespace))
			if diff := cmp.Diff(tc.want, problems(ValidateResource(resource, nil))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
