package kinds

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// sampleOf reads the sample object of a kind, as a user writes it.
func sampleOf(t *testing.T, kind Kind) *unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "samples", kind.Resource()+".yaml"))
	if err != nil {
		t.Fatalf("every kind has a sample: %v", err)
	}
	sample := read(t, string(data))
	if sample.GroupVersionKind() != kind.GroupVersionKind() {
		t.Fatalf("the sample of %s is a %s", kind.Resource(), sample.GroupVersionKind())
	}
	return sample
}

func schedule(object *unstructured.Unstructured, value string) *unstructured.Unstructured {
	out := object.DeepCopy()
	labels := out.GetLabels()
	delete(labels, v1alpha1.ScheduleLabel)
	if value != "" {
		labels[v1alpha1.ScheduleLabel] = value
	}
	out.SetLabels(labels)
	return out
}

// TestKinds checks the rules that hold for every kind of the registry.
func TestKinds(t *testing.T) {
	for _, kind := range All {
		t.Run(kind.Resource(), func(t *testing.T) {
			sample := sampleOf(t, kind)
			remote := schedule(sample, v1alpha1.ScheduleRemote)
			held, err := admit(t, kind, remote, nil, Anyone)
			if err != nil {
				t.Fatal(err)
			}
			if IsSent(kind, held) && !kind.Held(held) {
				t.Errorf("the hub must run nothing of a new object: %v", held.Object)
			}
			if changed := !cmp.Equal(remote.Object, held.Object); changed != kind.Properties().Held {
				t.Errorf("Hold changes the object: %t, and the property Held is %t", changed, kind.Properties().Held)
			}
			released, err := admit(t, kind, schedule(held, ""), held, Anyone)
			if err != nil {
				t.Fatal(err)
			}
			dropEmpty(released, "metadata", "annotations")
			if kind.Properties().HeldAtCreation {
				released = sample // intake ends the hold of a Pod
			}
			immovable, _ := ImmovableReason(kind, held) // validation refuses to remove the label
			if diff := cmp.Diff(sample.Object, released.Object); diff != "" && immovable == "" {
				t.Errorf("an object without the label must be as its user wrote it (-wrote +released):\n%s", diff)
			}
			want := sample.DeepCopy()
			if HasContent(kind.GroupVersionKind()) {
				RemoveContent(want)
			}
			sent, err := Project(kind, held)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Object, sent.Object); diff != "" {
				t.Errorf("the target must get the object as its user wrote it (-wrote +sent):\n%s", diff)
			}
			if got := IsRemote(patch(t, sample, OptIn(sample.DeepCopy(), nil))); got != kind.Properties().OptIn {
				t.Errorf("the label of the namespace opts in the object: %t, and the property OptIn is %t", got, kind.Properties().OptIn)
			}
			if status := kind.Reflect(held, Observation{Problems: []metav1.Condition{{Type: v1alpha1.Synced}}}); (status != nil) != kind.Properties().HasStatus {
				t.Errorf("the status is %v, and the property HasStatus is %t", status, kind.Properties().HasStatus)
			}
		})
	}
}
