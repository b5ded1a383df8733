package intake

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
)

// podOf returns a Pod of team-a with the labels of web and a controller with a UID.
func podOf(name string, controller types.UID) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web"}}}
	if controller != "" {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: controller, Controller: ptr.To(true)}}
	}
	return pod
}

// TestStopPods: only Pods that the object controls are deleted, and the move ends after
// several checks in a row that find none.
func TestStopPods(t *testing.T) {
	for name, tc := range map[string]struct {
		kind     kinds.Kind
		selector any
	}{
		"StatefulSet":           {kinds.StatefulSet{}, map[string]any{"matchLabels": map[string]any{"app": "web"}}},
		"ReplicationController": {kinds.ReplicationController{}, map[string]any{"app": "web"}},
	} {
		t.Run(name, func(t *testing.T) {
			object := kinds.New(tc.kind)
			object.SetNamespace("team-a")
			object.SetName("web")
			object.SetUID("uid-web")
			object.Object["spec"] = map[string]any{"selector": tc.selector}
			unselected := podOf("unselected", "uid-web")
			unselected.Labels = nil
			hub := fake.NewClientBuilder().WithScheme(reconcilertest.Scheme(t, clientgoscheme.AddToScheme)).
				WithObjects(podOf("web-0", "uid-web"), podOf("web-1", "uid-web"), podOf("other", "uid-other"), podOf("alone", ""), unselected).Build()
			c := newController(hub, hub, tc.kind, events.NewFakeRecorder(1))

			checks := 0
			stop := func() bool {
				checks++
				stopped, _ := c.pods.stop(t.Context(), object)
				return stopped
			}
			stop()
			if diff := cmp.Diff([]string{"alone", "other", "unselected"}, podNames(t, hub)); diff != "" {
				t.Errorf("Pods after the first check, -want +got:\n%s", diff)
			}
			if err := hub.Create(t.Context(), podOf("web-2", "uid-web")); err != nil { // by a controller that has not seen the hold
				t.Fatal(err)
			}
			for !stop() && checks < 10 {
			}
			if checks != 2+checksWithoutPods {
				t.Errorf("the move ended after %d checks; the second found a new Pod", checks)
			}
			if diff := cmp.Diff([]string{"alone", "other", "unselected"}, podNames(t, hub)); diff != "" {
				t.Errorf("Pods at the end, -want +got:\n%s", diff)
			}
		})
	}
}

// TestStopPodsSelector: a selector that cannot be read deletes no Pod.
func TestStopPodsSelector(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"selector": "app=web"}}}
	object.SetGroupVersionKind(kinds.StatefulSet{}.GroupVersionKind())
	object.SetNamespace("team-a")
	object.SetUID("uid-web")
	hub := fake.NewClientBuilder().WithScheme(reconcilertest.Scheme(t, clientgoscheme.AddToScheme)).WithObjects(podOf("web-0", "uid-web")).Build()
	c := newController(hub, hub, kinds.StatefulSet{}, events.NewFakeRecorder(1))
	if stopped, err := c.pods.stop(t.Context(), object); err == nil || stopped {
		t.Errorf("stopped: %t, %v", stopped, err)
	}
	if diff := cmp.Diff([]string{"web-0"}, podNames(t, hub)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func podNames(t *testing.T, hub client.Client) []string {
	t.Helper()
	var list corev1.PodList
	if err := hub.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	out := make([]string, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, list.Items[i].Name)
	}
	return out
}
