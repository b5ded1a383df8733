package watches

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

var (
	clusters = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "clusters"}
	others   = clusters.GroupVersion().WithResource("others")
	dev, qa  = types.NamespacedName{Name: "dev"}, types.NamespacedName{Name: "qa"}
)

func newCluster(name, phase string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": phase}}}
	out.SetAPIVersion("example.org/v1")
	out.SetKind("Cluster")
	out.SetName(name)
	return out
}

// begin returns watches that report the names of what changed.
func begin(t *testing.T) (*Watches, *fake.FakeDynamicClient, chan string) {
	t.Helper()
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{clusters: "ClusterList", others: "OtherList"}, newCluster("a", "New"))
	told := make(chan string, 100)
	return New(t.Context(), Options{
		Client: client,
		Trim: func(u *unstructured.Unstructured) *unstructured.Unstructured {
			out := newCluster(u.GetName(), "")
			phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
			_ = unstructured.SetNestedField(out.Object, phase, "status", "phase")
			return out
		},
		Changed: func(_ schema.GroupVersionResource, object types.NamespacedName) { told <- object.Name },
		Lost:    func(kind schema.GroupVersionResource) { told <- "lost " + kind.Resource },
	}), client, told
}

func expect(t *testing.T, told chan string, want string) {
	t.Helper()
	select {
	case got := <-told:
		if got != want {
			t.Fatalf("told of %s, want %s", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatalf("never told of %s", want)
	}
}

// watching waits until the informer watches as well: the fake API server tells
// nothing of what came before.
func watching(t *testing.T, client *fake.FakeDynamicClient) {
	t.Helper()
	for range 600 {
		watches := 0
		for _, action := range client.Actions() {
			if action.GetVerb() == "watch" {
				watches++
			}
		}
		if watches > 1 { // one is the probe
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the informer never watches")
}

// TestNeed watches a kind as long as somebody needs it.
func TestNeed(t *testing.T) {
	w, client, told := begin(t)
	for _, who := range []types.NamespacedName{dev, qa, dev} {
		if err := w.Need(t.Context(), who, clusters); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, told, "a")
	watching(t, client)
	w.Release(dev)
	if len(w.Running()) != 1 {
		t.Fatal("the watch ended while somebody needs it")
	}
	// What is trimmed away does not matter; what is kept does.
	same, changed := newCluster("a", "New"), newCluster("a", "Bound")
	same.SetLabels(map[string]string{"a": "b"})
	for _, object := range []*unstructured.Unstructured{same, changed} {
		if _, err := client.Resource(clusters).Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Resource(clusters).Create(t.Context(), newCluster("b", "New"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect(t, told, "a")
	expect(t, told, "b")
	w.Release(qa)
	w.Release(qa)
	if running := w.Running(); len(running) != 0 {
		t.Errorf("nobody needs %v", running)
	}
}

// TestNeedAnother ends the watch of what somebody needed before.
func TestNeedAnother(t *testing.T) {
	w, _, _ := begin(t)
	for _, kind := range []schema.GroupVersionResource{clusters, others} {
		if err := w.Need(t.Context(), dev, kind); err != nil {
			t.Fatal(err)
		}
	}
	if running := w.Running(); len(running) != 1 || running[0] != others {
		t.Errorf("watching %v, want %v", running, others)
	}
}

// TestRefused names the verb that is refused, and watches once it no longer is.
func TestRefused(t *testing.T) {
	for _, verb := range []string{"list", "watch"} {
		t.Run(verb, func(t *testing.T) {
			w, client, told := begin(t)
			forbidden := apierrors.NewForbidden(clusters.GroupResource(), "", errors.New("no"))
			refuse := true
			if verb == "list" {
				client.PrependReactor("list", "clusters", func(clienttesting.Action) (bool, runtime.Object, error) { return refuse, nil, forbidden })
			} else {
				client.PrependWatchReactor("clusters", func(clienttesting.Action) (bool, watch.Interface, error) { return refuse, nil, forbidden })
			}
			err := w.Need(t.Context(), dev, clusters)
			var refused *Refused
			if !errors.As(err, &refused) || refused.Verb != verb || !apierrors.IsForbidden(err) {
				t.Fatalf("got %v, want %s to be refused", err, verb)
			}
			refuse = false
			if err := w.Need(t.Context(), dev, clusters); err != nil {
				t.Fatal(err)
			}
			expect(t, told, "a")
		})
	}
}
