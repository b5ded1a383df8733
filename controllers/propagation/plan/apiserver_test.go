package plan

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/test/apiserver"
)

// testCreation: when two writers create an object at the same time on a real API
// server, only one succeeds.
func testCreation(ctx context.Context, t *testing.T, target client.Client, desired *unstructured.Unstructured) {
	t.Helper()
	write := func(at State, observed *unstructured.Unstructured, of string, dryRun bool) error {
		object := desired.DeepCopy()
		object.SetAnnotations(map[string]string{v1alpha1.ResourceNameAnnotation: of})
		request, force := ApplyRequest(object, observed, at, ApplyOptions{})
		options := []client.ApplyOption{client.FieldOwner(v1alpha1.PropagationManager)}
		if force {
			options = append(options, client.ForceOwnership)
		}
		if dryRun {
			options = append(options, client.DryRunAll)
		}
		return target.Apply(ctx, client.ApplyConfigurationFromUnstructured(request), options...)
	}
	for _, dryRun := range []bool{true, false} {
		if err := write(Absent, nil, "first", dryRun); err != nil {
			t.Fatalf("making a %s: %v", desired.GetKind(), err)
		}
	}
	for _, dryRun := range []bool{true, false} {
		if err := write(Absent, nil, "second", dryRun); !apierrors.IsConflict(err) || len(ConflictingFields(err)) > 0 {
			t.Errorf("making a %s that another made meanwhile: %v", desired.GetKind(), err)
		}
	}
	live := desired.DeepCopy()
	get := func() {
		t.Helper()
		if err := target.Get(ctx, client.ObjectKeyFromObject(desired), live); err != nil {
			t.Fatal(err)
		}
	}
	get()
	seen := live.DeepCopy()
	if diff := cmp.Diff("first", live.GetAnnotations()[v1alpha1.ResourceNameAnnotation]); diff != "" {
		t.Errorf("owner (-want +got):\n%s", diff)
	}
	live.SetLabels(map[string]string{"meanwhile": "changed"})
	if err := target.Update(ctx, live, client.FieldOwner("user")); err != nil {
		t.Fatal(err)
	}
	if err := write(Adoptable, seen, "second", false); !apierrors.IsConflict(err) {
		t.Errorf("taking a %s that changed since it was looked at: %v", desired.GetKind(), err)
	}
	get()
	if err := write(Adoptable, live, "second", false); err != nil {
		t.Errorf("taking a %s: %v", desired.GetKind(), err)
	}
	other := live.DeepCopy()
	other.SetUID("other")
	for _, dryRun := range []bool{true, false} {
		if err := write(Drifted, other, "second", dryRun); !IsUnexpected(err) || len(ConflictingFields(err)) > 0 {
			t.Errorf("applying a replaced %s: %v", desired.GetKind(), err)
		}
	}
	if err := target.Delete(ctx, live); err != nil {
		t.Fatal(err)
	}
	for _, dryRun := range []bool{true, false} {
		if err := write(Drifted, live, "second", dryRun); !IsUnexpected(err) || len(ConflictingFields(err)) > 0 {
			t.Errorf("applying a deleted %s: %v", desired.GetKind(), err)
		}
	}
}

// TestFieldsOnAnAPIServer tests the rules with the managed fields of a real API server.
func TestFieldsOnAnAPIServer(t *testing.T) {
	target, err := client.New(apiserver.Start(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	object := func(text string) *unstructured.Unstructured {
		out := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &out.Object); err != nil {
			t.Fatal(err)
		}
		return out
	}
	const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "nginx:1"}]
`
	desired := object(web)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	now := func() *unstructured.Unstructured {
		t.Helper()
		live := desired.DeepCopy()
		must(target.Get(ctx, client.ObjectKeyFromObject(desired), live))
		return live
	}
	write := func(at State, with ApplyOptions) error {
		observed := desired
		if at == Drifted {
			observed = now()
		}
		request, force := ApplyRequest(desired, observed, at, with)
		options := []client.ApplyOption{client.FieldOwner(v1alpha1.PropagationManager)}
		if force {
			options = append(options, client.ForceOwnership)
		}
		return target.Apply(ctx, client.ApplyConfigurationFromUnstructured(request), options...)
	}
	patch := func(text, manager string, subresource ...string) {
		t.Helper()
		change := client.RawPatch(types.MergePatchType, []byte(text))
		if len(subresource) > 0 {
			must(target.SubResource(subresource[0]).Patch(ctx, now(), change, client.FieldOwner(manager)))
			return
		}
		must(target.Patch(ctx, now(), change, client.FieldOwner(manager)))
	}
	image := func() string {
		containers, _, _ := unstructured.NestedSlice(now().Object, "spec", "template", "spec", "containers")
		first, _ := containers[0].(map[string]any)
		name, _ := first["image"].(string)
		return name
	}
	replicas := func() int64 {
		n, _, _ := unstructured.NestedInt64(now().Object, "spec", "replicas")
		return n
	}

	made := desired.DeepCopy()
	made.SetName("race")
	testCreation(ctx, t, target, made)
	must(target.Create(ctx, object(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.org}
spec:
  group: example.org
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  scope: Cluster
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`)))
	thing := object(`{apiVersion: example.org/v1, kind: Thing, metadata: {name: race}, size: 1}`)
	must(wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return apierrors.IsNotFound(target.Get(ctx, client.ObjectKey{Name: "none"}, thing.DeepCopy())), nil
	}))
	testCreation(ctx, t, target, thing)

	must(write(Absent, ApplyOptions{}))
	patch(`{"spec":{"replicas":5}}`, "kube-controller-manager", "scale")
	patch(`{"spec":{"minReadySeconds":7,"template":{"metadata":{"annotations":{"theirs":"kept"}},"spec":{"containers":[{"name":"web","image":"nginx:hacked"},{"name":"sidecar","image":"envoy:1"}]}}}}`, "kubectl-edit")

	refused := write(Drifted, ApplyOptions{})
	if diff := cmp.Diff([]string{".spec.replicas", `.spec.template.spec.containers[name="web"].image`}, ConflictingFields(refused)); diff != "" {
		t.Fatalf("fields in conflict (-want +got):\n%s\n%v", diff, refused)
	}
	with, conflicts := ResolveConflicts(FieldOwnersOf(now(), ConflictingFields(refused)))
	if len(conflicts) > 0 || listFieldOwners(with.Yielded) != `.spec.replicas, managed by "kube-controller-manager"` {
		t.Fatalf("conflicts: %s; yielded: %s", listFieldOwners(conflicts), listFieldOwners(with.Yielded))
	}
	must(write(Drifted, with))
	if image() != "nginx:1" || replicas() != 5 {
		t.Errorf("image %s, %d replicas; want the manual change reverted, and the autoscaler's replicas kept", image(), replicas())
	}
	containers, _, _ := unstructured.NestedSlice(now().Object, "spec", "template", "spec", "containers")
	theirs, _, _ := unstructured.NestedString(now().Object, "spec", "template", "metadata", "annotations", "theirs")
	if len(containers) != 2 || theirs != "kept" {
		t.Errorf("%d containers, annotation %q; want the additions of other managers kept", len(containers), theirs)
	}
	version := now().GetResourceVersion()
	must(write(Drifted, with))
	if now().GetResourceVersion() != version {
		t.Error("the same again was a change")
	}

	team := object(web)
	unstructured.RemoveNestedField(team.Object, "spec", "replicas")
	must(unstructured.SetNestedSlice(team.Object, []any{map[string]any{"name": "web", "image": "nginx:theirs"}}, "spec", "template", "spec", "containers"))
	must(target.Apply(ctx, client.ApplyConfigurationFromUnstructured(team), client.FieldOwner("team"), client.ForceOwnership))
	refused = write(Drifted, ApplyOptions{})
	if _, conflicts = ResolveConflicts(FieldOwnersOf(now(), ConflictingFields(refused))); listFieldOwners(conflicts) != `.spec.template.spec.containers[name="web"].image, managed by "team"` {
		t.Errorf("conflicts: %s", listFieldOwners(conflicts))
	}
	must(write(Drifted, ApplyOptions{Force: policies.HasForceAnnotation(&unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{v1alpha1.ForceAnnotation: "true"}}}})}))
	if image() != "nginx:1" || replicas() != 2 {
		t.Errorf("image %s, %d replicas; want all of it by force", image(), replicas())
	}
}
