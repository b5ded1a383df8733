package targets

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/policies/credentials"
	"github.com/portico-io/portico/test/apiserver"
)

// counter counts the objects and watches in the responses of a target.
type counter struct {
	mu sync.Mutex
	// objects is the number of ConfigMaps in responses to lists and watches, and watches
	// is the number of watches that succeeded.
	objects, watches int
}

type counting struct {
	http.RoundTripper
	*counter
}

func (c counting) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.RoundTripper.RoundTrip(request)
	c.mu.Lock()
	defer c.mu.Unlock()
	if request.URL.Path == "/api/v1/configmaps" {
		if request.URL.Query().Get("watch") != "" && err == nil && response.StatusCode == http.StatusOK {
			c.watches++
		}
		if err == nil {
			response.Body = &countingBody{ReadCloser: response.Body, counter: c.counter}
		}
	}
	return response, err
}

type countingBody struct {
	io.ReadCloser
	*counter
	rest []byte
}

func (b *countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	key := []byte(`"` + v1alpha1.ResourceUIDAnnotation + `":`)
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := append(b.rest, p[:n]...)
	b.objects += bytes.Count(seen, key)
	b.rest = append([]byte(nil), seen[max(0, len(seen)-len(key)+1):]...)
	return n, err
}

func (c *counter) sent() (objects, watches int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.objects, c.watches
}

// quiet is a listener that does nothing.
type quiet struct{}

func (quiet) TargetChanged(types.NamespacedName)      {}
func (quiet) ProbesChanged(types.NamespacedName)      {}
func (quiet) ObjectChanged(_, _ types.NamespacedName) {}

// TestSharedCluster publishes one cluster to several namespaces. Each namespace gets
// only its own objects, with one credential for all namespaces, or with one for each.
// An earlier version applied the objects without the label.
func TestSharedCluster(t *testing.T) {
	const namespaces, objects, hub = 10, 20, "hub-of-this-test"
	config := apiserver.Start(t)
	api, err := kubernetes.NewForConfig(config)
	must(t, err)
	namespace := func(i int) string { return fmt.Sprintf("team-%d", i) }
	for i := range namespaces {
		for j := range objects {
			_, err := api.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%d", namespace(i), j), Labels: map[string]string{v1alpha1.ManagedByLabel: hub},
				Annotations: map[string]string{
					v1alpha1.ResourceUIDAnnotation:       "a",
					v1alpha1.ResourceNamespaceAnnotation: namespace(i), v1alpha1.ResourceNameAnnotation: fmt.Sprintf("resource-%d", j),
				},
			}}, metav1.CreateOptions{FieldManager: v1alpha1.PropagationManager})
			must(t, err)
		}
	}
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	// watch publishes the cluster to all namespaces, and returns the numbers of objects
	// and watches.
	watch := func(t *testing.T, digest func(i int) string) (sent, watches int) {
		var count counter
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		all := clusters.New(clusters.Options{HubID: hub, QPS: -1})
		all.AddListener(quiet{})
		target := func(i int) types.NamespacedName { return types.NamespacedName{Namespace: namespace(i), Name: "prod"} }
		for i := range namespaces {
			counted := rest.CopyConfig(config)
			counted.Wrap(func(rt http.RoundTripper) http.RoundTripper { return counting{rt, &count} })
			must(t, all.Connect(ctx, target(i), clusters.ConnectionConfig{Connection: &credentials.Connection{Config: counted, AddressRules: credentials.AddressRules{AllowLocal: true}}, Digest: digest(i)}))
		}
		first, err := all.Get(target(0))
		must(t, err)
		for i := 1; i < namespaces; i++ {
			other, err := all.Get(target(i))
			must(t, err)
			if (first.Connection == other.Connection) != (digest(0) == digest(i)) {
				t.Errorf("%s and %s share a connection: %t", namespace(0), namespace(i), first.Connection == other.Connection)
			}
		}
		for i := range namespaces {
			var reader clusters.Reader
			eventually(t, "the objects of "+namespace(i), func() (bool, string) {
				connection, err := all.Get(target(i))
				must(t, err)
				made, synced, err := connection.Informer(kind)
				must(t, err)
				reader = made
				return synced, "not listed yet"
			})
			for j := range namespaces {
				object := &unstructured.Unstructured{}
				object.SetGroupVersionKind(kind)
				err := reader.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("%s-%d", namespace(j), objects-1)}, object)
				if (err == nil) != (i == j) {
					t.Errorf("%s reads an object of %s: %v", namespace(i), namespace(j), err)
				}
			}
		}
		return count.sent()
	}
	alone := func(i int) string { return namespace(i) }
	together := func(int) string { return "one" }

	watch(t, together) // this also labels the objects
	labelled, err := api.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{LabelSelector: v1alpha1.HubNamespaceLabel})
	must(t, err)
	if len(labelled.Items) != namespaces*objects {
		t.Errorf("%d objects are labelled, of %d", len(labelled.Items), namespaces*objects)
	}
	for _, object := range labelled.Items {
		if object.Labels[v1alpha1.HubNamespaceLabel] != object.Annotations[v1alpha1.ResourceNamespaceAnnotation] {
			t.Errorf("%s is labelled %v", object.Name, object.Labels)
		}
	}
	for name, digest := range map[string]func(int) string{"OneCredential": together, "OneEach": alone} {
		t.Run(name, func(t *testing.T) {
			sent, watches := watch(t, digest)
			t.Logf("%d namespaces of %d objects: %d objects were sent, by %d watches", namespaces, objects, sent, watches)
			if sent > namespaces*objects*13/10 {
				t.Errorf("%d objects were sent for %d", sent, namespaces*objects)
			}
			if watches != namespaces {
				t.Errorf("%d watches of %d namespaces", watches, namespaces)
			}
		})
	}
}
