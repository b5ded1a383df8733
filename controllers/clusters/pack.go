package clusters

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds/references"
)

// Reader reads the objects on a target that belong to this hub.
type Reader interface {
	// Get reads the object of the given kind and key.
	Get(ctx context.Context, key client.ObjectKey, object *unstructured.Unstructured) error
	// ListForResource lists the objects of the given kind, Secret or ConfigMap, that belong to
	// a resource.
	ListForResource(ctx context.Context, gvk schema.GroupVersionKind, resource types.NamespacedName) ([]*unstructured.Unstructured, error)
}

// packed is the key of a string in which a cached object keeps all fields except its
// kind and its metadata, as JSON. As maps, the fields take several times as much
// memory, and they are rarely read. No kind has a field of this name.
const packed = "\x00packed"

// pack is a cache's transform. It also drops managedFields.
func pack(cached any) (any, error) {
	object, ok := cached.(*unstructured.Unstructured)
	if !ok {
		return cached, nil // a tombstone, whose object is packed already
	}
	if _, retried := object.Object[packed]; retried {
		return object, nil
	}
	object.SetManagedFields(nil)
	head, rest := map[string]any{}, map[string]any{}
	for key, value := range object.Object {
		switch key {
		case "apiVersion", "kind", "metadata":
			head[key] = value
		default:
			rest[key] = value
		}
	}
	data, err := json.Marshal(rest)
	if err != nil {
		return nil, fmt.Errorf("packing %s %s: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
	}
	head[packed] = string(data)
	return &unstructured.Unstructured{Object: head}, nil
}

// unpack is the inverse of pack, except for managedFields.
func unpack(object *unstructured.Unstructured) error {
	data, ok := object.Object[packed].(string)
	if !ok {
		return nil
	}
	var rest map[string]any
	if err := json.Unmarshal([]byte(data), &rest); err != nil {
		return fmt.Errorf("unpacking %s %s: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
	}
	delete(object.Object, packed)
	for key, value := range rest {
		object.Object[key] = value
	}
	return nil
}

// unpackingReader is a Reader of a cache of packed objects.
type unpackingReader struct{ cache client.Reader }

// Get implements Reader.
func (u unpackingReader) Get(ctx context.Context, key client.ObjectKey, object *unstructured.Unstructured) error {
	if err := u.cache.Get(ctx, key, object); err != nil {
		return err
	}
	return unpack(object)
}

// resourceIndex finds objects by the resource that they belong to.
const resourceIndex = "resource"

// isCopyKind tells whether one resource may have several objects of a kind.
func isCopyKind(gvk schema.GroupVersionKind) bool {
	return gvk.Group == "" && (gvk.Kind == references.SecretKind || gvk.Kind == references.ConfigMapKind)
}

func indexResource(object client.Object) []string {
	return []string{ResourceOf(object).String()}
}

// ListForResource implements Reader.
func (u unpackingReader) ListForResource(ctx context.Context, gvk schema.GroupVersionKind, resource types.NamespacedName) ([]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := u.cache.List(ctx, list, client.MatchingFields{resourceIndex: resource.String()}); err != nil {
		return nil, err
	}
	out := make([]*unstructured.Unstructured, 0, len(list.Items))
	for i := range list.Items {
		if err := unpack(&list.Items[i]); err != nil {
			return nil, err
		}
		out = append(out, &list.Items[i])
	}
	return out, nil
}
