package plan

import (
	"encoding/json"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/kinds/fields"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// MaxObservedBytes bounds the copy of an object in the status. The status is next to the
// template in one object of the hub, and etcd takes no more than 1.5 MiB.
const MaxObservedBytes = 256 << 10

// RedactedObject returns an object without its secret values, and the owners of its fields.
func RedactedObject(live *unstructured.Unstructured) (*apiextensionsv1.JSON, []v1alpha1.FieldOwner, error) {
	owners, err := policies.FieldOwnersOf(live.GetManagedFields())
	if err != nil {
		return nil, nil, err
	}
	shown := policies.Redact(live)
	unstructured.RemoveNestedField(shown.Object, "metadata", "managedFields")
	data, err := json.Marshal(shown.Object)
	return &apiextensionsv1.JSON{Raw: data}, owners, err
}

// ShowsVersion tells whether the copy in the status is of this version of the object.
func ShowsVersion(shown *apiextensionsv1.JSON, object *unstructured.Unstructured) bool {
	if shown == nil {
		return false
	}
	var head struct {
		Metadata struct {
			UID             types.UID `json:"uid"`
			ResourceVersion string    `json:"resourceVersion"`
		} `json:"metadata"`
	}
	return json.Unmarshal(shown.Raw, &head) == nil &&
		head.Metadata.UID == object.GetUID() && head.Metadata.ResourceVersion == object.GetResourceVersion()
}

// EqualFieldOwners compares lists of owners.
func EqualFieldOwners(a, b []v1alpha1.FieldOwner) bool {
	return slices.EqualFunc(a, b, func(a, b v1alpha1.FieldOwner) bool {
		return a.Manager == b.Manager && fields.EqualJSON(a.Fields.Raw, b.Fields.Raw)
	})
}
