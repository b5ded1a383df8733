package reconciler

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
)

const finalizer = "example.org/keep"

func target(change ...func(*v1alpha1.KubernetesTarget)) *v1alpha1.KubernetesTarget {
	out := &v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "eu-1"}}
	for _, c := range change {
		c(out)
	}
	return out
}

// counted returns a writer with a fake hub that counts its requests.
func counted(t *testing.T, refuse error, objects ...client.Object) (Writer, *int) {
	t.Helper()
	scheme := reconcilertest.Scheme(t, v1alpha1.AddToScheme)
	var requests int
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.KubernetesTarget{}).
		WithInterceptorFuncs(reconcilertest.Before(func(r reconcilertest.Request) error {
			if r.Verb != "patch" {
				return nil
			}
			requests++
			return refuse
		})).Build()
	return Writer{Client: hub, Owner: "test"}, &requests
}

func read(t *testing.T, w Writer) *v1alpha1.KubernetesTarget {
	t.Helper()
	out := &v1alpha1.KubernetesTarget{}
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(target()), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func setReady(target *v1alpha1.KubernetesTarget) {
	meta.SetStatusCondition(&target.Status.Conditions, metav1.Condition{Type: v1alpha1.Synced, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonApplied, Message: "applied"})
}

func TestPatchStatus(t *testing.T) {
	w, requests := counted(t, nil, target())
	recorder := events.NewFakeRecorder(10)
	before := read(t, w)
	after := before.DeepCopy()
	after.Labels = map[string]string{"env": "prod"}
	if written, err := w.PatchStatus(t.Context(), before, after, Emit(recorder, after, "Test")); written || err != nil || *requests != 0 {
		t.Errorf("wrote %t with %d requests and error %v, want no request for an equal status", written, *requests, err)
	}
	setReady(after)
	if written, err := w.PatchStatus(t.Context(), before, after, Emit(recorder, after, "Test")); !written || err != nil {
		t.Errorf("wrote %t with error %v, want a write", written, err)
	}
	if !meta.IsStatusConditionTrue(read(t, w).Status.Conditions, v1alpha1.Synced) {
		t.Error("the condition was not written")
	}
	if len(recorder.Events) != 1 {
		t.Errorf("%d events, want one for the changed condition", len(recorder.Events))
	}
}

// TestPatchStatusConflict tests a cache that is behind.
func TestPatchStatusConflict(t *testing.T) {
	w, _ := counted(t, nil, target())
	stale, newer := read(t, w), read(t, w)
	newer.Labels = map[string]string{"env": "prod"}
	if err := w.Client.Update(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	recorder := events.NewFakeRecorder(10)
	after := stale.DeepCopy()
	setReady(after)
	if _, err := w.PatchStatus(t.Context(), stale, after.DeepCopy(), Emit(recorder, after, "Test")); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}
	if len(recorder.Events) != 0 {
		t.Error("an event was emitted for a write that failed")
	}
	if written, err := w.PatchStatus(t.Context(), stale, after, Unlocked()); !written || err != nil {
		t.Errorf("wrote %t with error %v, want a write without a lock", written, err)
	}
}

// TestPatchKeepsStatus adds a finalizer between a change of the status in memory and
// its write.
func TestPatchKeepsStatus(t *testing.T) {
	w, requests := counted(t, nil, target())
	before := read(t, w)
	after := before.DeepCopy()
	setReady(after)
	if err := w.AddFinalizer(t.Context(), after, finalizer); err != nil {
		t.Fatal(err)
	}
	if stored := read(t, w); len(stored.Status.Conditions) != 0 || !cmp.Equal([]string{finalizer}, stored.Finalizers) {
		t.Errorf("stored %v, want the finalizer alone", stored)
	}
	if written, err := w.PatchStatus(t.Context(), before, after); !written || err != nil {
		t.Errorf("wrote %t with error %v, want that the own write before is no conflict", written, err)
	}
	if err := w.AddFinalizer(t.Context(), after, finalizer); err != nil || *requests != 2 {
		t.Errorf("%d requests and error %v, want none for a finalizer that is there", *requests, err)
	}
	if err := w.RemoveFinalizer(t.Context(), after, finalizer); err != nil || len(read(t, w).Finalizers) != 0 {
		t.Errorf("error %v, want the finalizer removed", err)
	}
	if !meta.IsStatusConditionTrue(after.Status.Conditions, v1alpha1.Synced) {
		t.Error("the status in memory was lost")
	}
}

// TestGone deletes the object before the writes.
func TestGone(t *testing.T) {
	w, _ := counted(t, nil, target())
	before := read(t, w)
	if err := w.Delete(t.Context(), before, "deleting"); err != nil {
		t.Fatal(err)
	}
	after := before.DeepCopy()
	setReady(after)
	if written, err := w.PatchStatus(t.Context(), before, after); written || err != nil {
		t.Errorf("status: wrote %t with error %v, want neither", written, err)
	}
	after.Labels = map[string]string{"env": "prod"}
	if written, err := w.Patch(t.Context(), before, after, "labelling"); written || err != nil {
		t.Errorf("object: wrote %t with error %v, want neither", written, err)
	}
	if err := w.Delete(t.Context(), before, "deleting"); err != nil {
		t.Errorf("deleting again: %v", err)
	}
}

// TestDeleteAsRead tests an object that changed since it was read.
func TestDeleteAsRead(t *testing.T) {
	w, _ := counted(t, nil, target())
	stale, newer := read(t, w), read(t, w)
	newer.Labels = map[string]string{"env": "prod"}
	if err := w.Client.Update(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), stale, "deleting"); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}
}

func TestErrorsNameTheObject(t *testing.T) {
	refusal := errors.New("refused")
	w, _ := counted(t, refusal, target())
	before := read(t, w)
	after := before.DeepCopy()
	after.Labels = map[string]string{"env": "prod"}
	setReady(after)
	_, err := w.Patch(t.Context(), before, after, "labelling")
	if want := "labelling KubernetesTarget team-a/eu-1: refused"; !errors.Is(err, refusal) || err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	_, err = w.PatchStatus(t.Context(), before, after)
	if want := "writing the status of KubernetesTarget team-a/eu-1: refused"; !errors.Is(err, refusal) || err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

func TestUnstructuredStatus(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	setStatus(object, map[string]any{"replicas": int64(1)})
	if diff := cmp.Diff(map[string]any{"replicas": int64(1)}, statusOf(object)); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	setStatus(object, nil)
	if _, found := object.Object["status"]; found {
		t.Error("the status was not removed")
	}
	metadata := &metav1.PartialObjectMetadata{}
	setStatus(metadata, statusOf(metadata)) // its type has none
}
