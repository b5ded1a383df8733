package dynamicwatch

import (
	"context"
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
	"k8s.io/client-go/dynamic"
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

// begin returns watches that record the names of changed objects.
func begin(t *testing.T) (*Watches, *fake.FakeDynamicClient, chan string) {
	t.Helper()
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{clusters: "ClusterList", others: "OtherList"}, newCluster("a", "New"))
	changes := make(chan string, 100)
	return New(t.Context(), Options{
		Client: client,
		Trim: func(u *unstructured.Unstructured) *unstructured.Unstructured {
			out := newCluster(u.GetName(), "")
			phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
			_ = unstructured.SetNestedField(out.Object, phase, "status", "phase")
			return out
		},
		Changed: func(_ schema.GroupVersionResource, object types.NamespacedName) { changes <- object.Name },
		Stopped: func(kind schema.GroupVersionResource) { changes <- "lost " + kind.Resource },
	}), client, changes
}

func expect(t *testing.T, changes chan string, want string) {
	t.Helper()
	select {
	case got := <-changes:
		if got != want {
			t.Fatalf("changes of %s, want %s", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatalf("never changes of %s", want)
	}
}

// watching waits for the watch of the informer, because the fake API server does not
// send earlier events.
func watching(t *testing.T, client *fake.FakeDynamicClient) {
	t.Helper()
	for range 600 {
		watches := 0
		for _, action := range client.Actions() {
			if action.GetVerb() == "watch" {
				watches++
			}
		}
		if watches > 1 { // the first one is the probe
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the informer never watches")
}

// TestNeed watches a kind while there is a watcher.
func TestNeed(t *testing.T) {
	w, client, changes := begin(t)
	for _, watcher := range []types.NamespacedName{dev, qa, dev} {
		if err := w.Watch(t.Context(), watcher, clusters); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, changes, "a")
	watching(t, client)
	w.Release(dev)
	if len(w.Running()) != 1 {
		t.Fatal("the watch ended while it was needed")
	}
	// A change of a trimmed field is not reported. A change of another field is.
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
	expect(t, changes, "a")
	expect(t, changes, "b")
	w.Release(qa)
	w.Release(qa)
	if running := w.Running(); len(running) != 0 {
		t.Errorf("watches without a need: %v", running)
	}
}

// TestNeedAnother ends the watch of the previous kind.
func TestNeedAnother(t *testing.T) {
	w, _, _ := begin(t)
	for _, kind := range []schema.GroupVersionResource{clusters, others} {
		if err := w.Watch(t.Context(), dev, kind); err != nil {
			t.Fatal(err)
		}
	}
	if running := w.Running(); len(running) != 1 || running[0] != others {
		t.Errorf("watching %v, want %v", running, others)
	}
}

// TestRefused: the error names the denied verb. When the right is granted, the watch
// begins.
func TestRefused(t *testing.T) {
	for _, verb := range []string{"list", "watch"} {
		t.Run(verb, func(t *testing.T) {
			w, client, changes := begin(t)
			forbidden := apierrors.NewForbidden(clusters.GroupResource(), "", errors.New("no"))
			refuse := true
			if verb == "list" {
				client.PrependReactor("list", "clusters", func(clienttesting.Action) (bool, runtime.Object, error) { return refuse, nil, forbidden })
			} else {
				client.PrependWatchReactor("clusters", func(clienttesting.Action) (bool, watch.Interface, error) { return refuse, nil, forbidden })
			}
			err := w.Watch(t.Context(), dev, clusters)
			var refused *WatchError
			if !errors.As(err, &refused) || refused.Verb != verb || !apierrors.IsForbidden(err) {
				t.Fatalf("got %v, want %s to be refused", err, verb)
			}
			refuse = false
			if err := w.Watch(t.Context(), dev, clusters); err != nil {
				t.Fatal(err)
			}
			expect(t, changes, "a")
		})
	}
}

// slowHub delays lists of one kind.
type slowHub struct {
	dynamic.Interface
	kind              schema.GroupVersionResource
	requested, answer chan struct{}
}

func (s slowHub) Resource(kind schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	out := s.Interface.Resource(kind)
	if kind == s.kind {
		return slowKind{out, s}
	}
	return out
}

// IsWatchListSemanticsUnSupported is the method of the fake client.
func (slowHub) IsWatchListSemanticsUnSupported() bool { return true }

type slowKind struct {
	dynamic.NamespaceableResourceInterface
	hub slowHub
}

func (s slowKind) List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	select {
	case s.hub.requested <- struct{}{}:
	default:
	}
	<-s.hub.answer
	return s.NamespaceableResourceInterface.List(ctx, o)
}

// TestSlowHub: a slow list only delays its own caller.
func TestSlowHub(t *testing.T) {
	w, _, changes := begin(t)
	hub := slowHub{w.options.Client, others, make(chan struct{}, 1), make(chan struct{})}
	w.options.Client = hub
	slow := make(chan error, 1)
	go func() { slow <- w.Watch(t.Context(), dev, others) }()
	<-hub.requested

	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := w.Watch(t.Context(), qa, clusters); err != nil {
			t.Error(err)
		}
		w.Release(dev) // the slow kind has no watcher
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Error("a kind that the hub is slow to answer for holds up another")
	}
	close(hub.answer)
	if err := <-slow; err != nil {
		t.Fatal(err)
	}
	<-done
	expect(t, changes, "a")
	if running := w.Running(); len(running) != 1 || running[0] != clusters {
		t.Errorf("watching %v, want %v alone", running, clusters)
	}
}
