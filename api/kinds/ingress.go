package kinds

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/kinds/fields"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Ingress is held by the name of a class that no controller has, if the user named no
// class. The API server sets the default class of the hub before it calls webhooks; that
// class is replaced.
type Ingress struct{}

var _ Kind = Ingress{}

var ingressClassPath = []string{"spec", "ingressClassName"}

// legacyIngressClass is the annotation with the class before there was a field.
const legacyIngressClass = "kubernetes.io/ingress.class"

// GroupVersionKind implements Kind.
func (Ingress) GroupVersionKind() schema.GroupVersionKind {
	return networkingv1.SchemeGroupVersion.WithKind("Ingress")
}

// Resource implements Kind.
func (Ingress) Resource() string { return "ingresses" }

// Properties implements Kind.
func (Ingress) Properties() Properties {
	return Properties{OptIn: true, Held: true, HasStatus: true, Sent: "the spec you wrote", NotSent: "the default class of the hub"}
}

// Hold implements Kind. An Ingress that runs on the hub has the class of the hub, which the
// change that labels it does not replace unless the user left it out.
func (Ingress) Hold(object, old *unstructured.Unstructured, _ Author) (fields.Patch, error) {
	if _, legacy := object.GetAnnotations()[legacyIngressClass]; legacy {
		return nil, nil
	}
	class := fields.String(object, ingressClassPath...)
	if class == "" || old == nil && !fields.HasManager(object, ingressClassPath...) {
		return fields.Set(object, v1alpha1.RemoteIngressClass, ingressClassPath...), nil
	}
	return nil, nil
}

// Release implements Kind.
func (Ingress) Release(object *unstructured.Unstructured) fields.Patch {
	if fields.String(object, ingressClassPath...) == v1alpha1.RemoteIngressClass {
		return fields.Remove(object, ingressClassPath...)
	}
	return nil
}

// Held implements Kind. Validation refuses a class of the hub.
func (Ingress) Held(object *unstructured.Unstructured) bool { return IngressClass(object) != "" }

// IngressClass returns the class of an Ingress, or "".
func IngressClass(object *unstructured.Unstructured) string {
	if class := fields.String(object, ingressClassPath...); class != "" {
		return class
	}
	return object.GetAnnotations()[legacyIngressClass]
}

func (Ingress) removeHubFields(template *unstructured.Unstructured, _ Intent) {
	if fields.String(template, ingressClassPath...) == v1alpha1.RemoteIngressClass {
		unstructured.RemoveNestedField(template.Object, ingressClassPath...)
	}
}

func (Ingress) reportsObservedGeneration() bool { return false }

// Reflect implements Kind.
func (Ingress) Reflect(_ *unstructured.Unstructured, seen Observation) map[string]any {
	addresses := reflectIngress(seen.Status)
	for _, address := range fields.Items(addresses) {
		delete(address, "ipMode") // of Services only
	}
	if len(addresses) == 0 {
		return map[string]any{"loadBalancer": map[string]any{}}
	}
	return map[string]any{"loadBalancer": map[string]any{"ingress": addresses}}
}

// backends returns the names of the Services to which an Ingress routes, with their paths.
func (Ingress) backends(object *unstructured.Unstructured) []Needed {
	var out []Needed
	add := func(backend map[string]any, path *field.Path) {
		if name, _ := fields.Child(backend, "service")["name"].(string); name != "" {
			out = append(out, Needed{Kind: Service{}, Name: name, Field: path.Child("service", "name").String()})
		}
	}
	spec, path := fields.Child(object.Object, "spec"), field.NewPath("spec")
	add(fields.Child(spec, "defaultBackend"), path.Child("defaultBackend"))
	for i, rule := range fields.Items(spec["rules"]) {
		for j, route := range fields.Items(fields.Child(rule, "http")["paths"]) {
			add(fields.Child(route, "backend"), path.Child("rules").Index(i).Child("http", "paths").Index(j).Child("backend"))
		}
	}
	return out
}
