package propagation

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// standing is how an object on a target compares with what it should be.
type standing string

const (
	absent  standing = "Absent"
	inSync  standing = "InSync"
	drifted standing = "Drifted"
	foreign standing = "Foreign"
	// taken is somebody else's, or nobody's, and the resource asks for it.
	taken standing = "Taken"
	// itself is the native object that the resource was made from: the target is
	// this hub, and asks for the object where it already is.
	itself standing = "Itself"
)

// ours tells whether the object is the resource's.
func (s standing) ours() bool { return s == inSync || s == drifted }

// desire returns the object to apply for a resource: its template, with the
// marks that say whose it is, and a digest of all that.
func desire(resource *v1alpha1.KubernetesApplicationResource, hubID string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(resource.Spec.Template.Raw); err != nil {
		return nil, fmt.Errorf("reading the template: %w", err)
	}
	for _, targets := range []string{"creationTimestamp", "resourceVersion", "uid", "managedFields", "generation", "ownerReferences", "finalizers"} {
		unstructured.RemoveNestedField(object.Object, "metadata", targets)
	}
	delete(object.Object, "status")

	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	// The object has arrived. Where the target has a Portico too, which it has
	// when it is this hub, it must not be sent on.
	delete(labels, v1alpha1.ScheduleLabel)
	unstructured.RemoveNestedField(object.Object, "spec", "template", "metadata", "labels", v1alpha1.ScheduleLabel)
	labels[v1alpha1.ManagedByLabel] = hubID
	object.SetLabels(labels)

	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.ResourceUIDAnnotation] = string(resource.UID)
	annotations[v1alpha1.ResourceNamespaceAnnotation] = resource.Namespace
	annotations[v1alpha1.ResourceNameAnnotation] = resource.Name
	object.SetAnnotations(annotations)
	return object, sign(object)
}

// sign puts the digest of an object on it.
func sign(object *unstructured.Unstructured) error {
	annotations := object.GetAnnotations()
	delete(annotations, v1alpha1.AppliedAnnotation)
	object.SetAnnotations(annotations)
	data, err := json.Marshal(object.Object) // map keys are sorted
	if err != nil {
		return fmt.Errorf("encoding the template: %w", err)
	}
	digest := sha256.Sum256(data)
	annotations[v1alpha1.AppliedAnnotation] = hex.EncodeToString(digest[:8])
	object.SetAnnotations(annotations)
	return nil
}

func digestOf(object *unstructured.Unstructured) string {
	return object.GetAnnotations()[v1alpha1.AppliedAnnotation]
}

// stand compares. observed is nil when the target has no such object.
func stand(desired, observed *unstructured.Unstructured, resource *v1alpha1.KubernetesApplicationResource, hubID string) standing {
	switch {
	case observed == nil:
		return absent
	case madeFrom(observed, resource):
		return itself
	case !belongs(observed, resource, hubID) && takes(observed, resource):
		return taken
	case !belongs(observed, resource, hubID):
		return foreign
	case digestOf(desired) != digestOf(observed), len(differences(desired.Object, observed.Object)) > 0:
		return drifted
	default:
		return inSync
	}
}

// madeFrom tells whether an object on a target is the native object that a
// resource belongs to. No UID is there twice, in any cluster.
func madeFrom(observed *unstructured.Unstructured, resource metav1.Object) bool {
	native := metav1.GetControllerOf(resource)
	return native != nil && native.UID != "" && native.UID == observed.GetUID()
}

// difference is a field that differs: what it should be, and what it is.
type difference struct {
	path       string
	want, have any
}

// differences lists the paths at which observed does not have what desired
// asks for. What observed has beyond that belongs to others.
func differences(desired, observed map[string]any) []string {
	var out []string
	for _, d := range differing(desired, observed) {
		out = append(out, d.path)
	}
	return out
}

// differing lists the same with the values, in the order of the paths.
func differing(desired, observed map[string]any) []difference {
	var out []difference
	compare(desired, observed, "", &out)
	slices.SortFunc(out, func(a, b difference) int { return strings.Compare(a.path, b.path) })
	return out
}

func compare(desired, observed any, path string, out *[]difference) {
	differs := func() { *out = append(*out, difference{path, desired, observed}) }
	switch want := desired.(type) {
	case map[string]any:
		have, ok := observed.(map[string]any)
		if !ok && observed != nil {
			differs()
			return
		}
		for _, key := range slices.Sorted(maps.Keys(want)) {
			compare(want[key], have[key], path+"."+key, out)
		}
	case []any:
		have, ok := observed.([]any)
		if !ok {
			if len(want) > 0 {
				differs()
			}
			return
		}
		compareLists(want, have, path, out)
	case nil:
	default:
		if !sameScalar(desired, observed) {
			differs()
		}
	}
}

// mergeKeys identify the items of Kubernetes' own lists, most telling first.
var mergeKeys = []string{"name", "containerPort", "port", "mountPath", "devicePath", "key", "type", "ip", "topologyKey", "uid"}

// compareLists matches items by their merge key where they have one, so that an
// item somebody added on the target is no difference, and by place otherwise.
func compareLists(want, have []any, path string, out *[]difference) {
	key := mergeKey(want)
	if key == "" {
		if len(want) != len(have) {
			*out = append(*out, difference{path, want, have})
			return
		}
		for i := range want {
			compare(want[i], have[i], path+"["+strconv.Itoa(i)+"]", out)
		}
		return
	}
	for _, item := range want {
		fields, _ := item.(map[string]any)
		i := slices.IndexFunc(have, func(other any) bool {
			o, ok := other.(map[string]any)
			return ok && sameScalar(fields[key], o[key]) && sameScalar(fields["protocol"], o["protocol"])
		})
		at := fmt.Sprintf("%s[%s=%v]", path, key, fields[key])
		if i < 0 {
			*out = append(*out, difference{at, item, nil})
			continue
		}
		compare(item, have[i], at, out)
	}
}

func mergeKey(items []any) string {
	if len(items) == 0 {
		return ""
	}
	for _, key := range mergeKeys {
		unique := map[string]bool{}
		if slices.ContainsFunc(items, func(item any) bool {
			fields, ok := item.(map[string]any)
			value, has := fields[key]
			name := fmt.Sprintf("%v/%v", value, fields["protocol"])
			seen := unique[name]
			unique[name] = true
			return !ok || !has || seen
		}) {
			continue
		}
		return key
	}
	return ""
}

func sameScalar(a, b any) bool {
	if a == b {
		return true
	}
	x, xok := number(a)
	y, yok := number(b)
	return xok && yok && x == y
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}
