package policies

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// ScaleTargetKey returns the key of an object in ScaleTargetIndex.
func ScaleTargetKey(kind schema.GroupKind, name string) string { return kind.String() + "/" + name }

// ScaleTargetKeys returns the key of the object that a resource scales, if the resource is
// of a HorizontalPodAutoscaler. It decodes no other template, because the cache calls it
// for every version of every resource.
func ScaleTargetKeys(object metav1.Object) []string {
	resource, ok := object.(*v1alpha1.KubernetesApplicationResource)
	if !ok || !bytes.Contains(resource.Spec.Template.Raw, []byte(`"scaleTargetRef"`)) {
		return nil
	}
	template := &unstructured.Unstructured{}
	if json.Unmarshal(resource.Spec.Template.Raw, &template.Object) != nil || template.Object == nil {
		return nil
	}
	if target, ok := kinds.ScaleTargetOf(template); ok {
		return []string{ScaleTargetKey(target.GroupKind(), target.Name)}
	}
	return nil
}
