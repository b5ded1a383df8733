package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/kinds/fields"
	"github.com/portico-io/portico/api/kinds/references"
)

// Needed is an object that another object needs on its target, and that is sent only for a
// label of its own.
type Needed struct {
	// Kind and Name of the object, in the same namespace.
	Kind Kind
	Name string
	// Field is the path of the field with the name.
	Field string
}

// NeededBy lists the objects that an object needs on its target: the claims of Pods, the
// Services of an Ingress, and the object that an autoscaler scales. Each is listed once.
func NeededBy(object *unstructured.Unstructured) []Needed {
	all := claimsOf(object)
	switch object.GroupVersionKind() {
	case (Ingress{}).GroupVersionKind():
		all = append(all, Ingress{}.backends(object)...)
	case (HorizontalPodAutoscaler{}).GroupVersionKind():
		target, _ := ScaleTargetOf(object)
		if kind, scalable := target.Scalable(); scalable {
			all = append(all, Needed{Kind: kind, Name: target.Name, Field: "spec.scaleTargetRef.name"})
		}
	}
	var out []Needed
	seen := map[string]bool{}
	for _, n := range all {
		if key := n.Kind.Resource() + "/" + n.Name; !seen[key] {
			seen[key] = true
			out = append(out, n)
		}
	}
	return out
}

// claimsOf returns the claims that an object's Pods name. The claims of claim templates
// are made by the target, and replace volumes of the same name.
func claimsOf(object *unstructured.Unstructured) []Needed {
	path := references.PodSpecPath(object).Child("volumes")
	replaced := map[any]bool{}
	for _, claim := range claimTemplates(object) {
		replaced[claim.GetName()] = true
	}
	var out []Needed
	for i, volume := range fields.Items(references.PodSpec(object)["volumes"]) {
		if name, _ := fields.Child(volume, "persistentVolumeClaim")["claimName"].(string); name != "" && !replaced[volume["name"]] {
			out = append(out, Needed{
				Kind: PersistentVolumeClaim{}, Name: name,
				Field: path.Index(i).Child("persistentVolumeClaim", "claimName").String(),
			})
		}
	}
	return out
}
