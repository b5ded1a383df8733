package clusters

import (
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
)

const deployment = `{
  "apiVersion": "apps/v1",
  "kind": "Deployment",
  "metadata": {
    "name": "web", "namespace": "shop", "generation": 3,
    "labels": {"app": "web"},
    "annotations": {"kubernetesapplicationresource.workload.crossplane.io/name": "web-deployment"},
    "managedFields": [{"manager": "somebody", "operation": "Apply"}]
  },
  "spec": {
    "replicas": 2, "ratio": 0.5, "paused": false, "nothing": null,
    "selector": {"matchLabels": {"app": "web"}},
    "template": {
      "metadata": {"labels": {"app": "web"}},
      "spec": {"containers": [{
        "name": "web", "image": "nginx:1", "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": "A", "value": "b"}, {"name": "POD", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
        "resources": {"requests": {"cpu": "10m"}, "limits": {"memory": "64Mi"}}
      }]}
    }
  },
  "status": {"observedGeneration": 9007199254740993, "conditions": [{"type": "Available", "status": "True"}]}
}`

func read(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(deployment)); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestPack(t *testing.T) {
	want := read(t)
	want.SetManagedFields(nil)

	for name, times := range map[string]int{"Once": 1, "Twice": 2} { // a resync packs an object again
		t.Run(name, func(t *testing.T) {
			var cached any = read(t)
			for range times {
				var err error
				if cached, err = pack(cached); err != nil {
					t.Fatal(err)
				}
			}
			object, ok := cached.(*unstructured.Unstructured)
			if !ok {
				t.Fatalf("want an unstructured object, got %T", cached)
			}
			if _, there := object.Object["spec"]; there {
				t.Error("the spec is not packed")
			}
			if diff := cmp.Diff(want.Object["metadata"], object.Object["metadata"]); diff != "" {
				t.Errorf("fields for events: -want, +got:\n%s", diff)
			}
			if err := unpack(object); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Object, object.Object); diff != "" {
				t.Errorf("unpack(pack(...)): -want, +got:\n%s", diff)
			}
		})
	}
}

func TestPackTombstone(t *testing.T) {
	tombstone := toolscache.DeletedFinalStateUnknown{Key: "shop/web"}
	got, err := pack(tombstone)
	if err != nil || got != any(tombstone) {
		t.Errorf("want the tombstone as it was, got %v, %v", got, err)
	}
}

// BenchmarkPack measures the memory of a cached object, packed and not packed.
func BenchmarkPack(b *testing.B) {
	for name, transform := range map[string]toolscache.TransformFunc{
		"Packed": pack,
		"Maps": func(o any) (any, error) {
			o.(*unstructured.Unstructured).SetManagedFields(nil)
			return o, nil
		},
	} {
		b.Run(name, func(b *testing.B) {
			kept := make([]any, 0, b.N)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for range b.N {
				object := &unstructured.Unstructured{}
				if err := object.UnmarshalJSON([]byte(deployment)); err != nil {
					b.Fatal(err)
				}
				cached, err := transform(object)
				if err != nil {
					b.Fatal(err)
				}
				kept = append(kept, cached)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(b.N), "kept-B/op")
			runtime.KeepAlive(kept)
		})
	}
}
