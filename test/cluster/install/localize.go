package install

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Localize prepares rendered manifests for a hub whose manager is a process at url. It
// leaves out the objects that need a kubelet, and replaces the Service in webhooks by
// the URL. It does not change its argument.
func Localize(objects []*unstructured.Unstructured, url string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, object := range objects {
		switch object.GetKind() {
		case "Deployment", "PodDisruptionBudget", "Service":
			continue
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			object = object.DeepCopy()
			if err := callURL(object, url); err != nil {
				return nil, fmt.Errorf("localizing %s %s: %w", object.GetKind(), object.GetName(), err)
			}
		case "CustomResourceDefinition":
			object = object.DeepCopy()
			if err := convertAtURL(object, url); err != nil {
				return nil, fmt.Errorf("localizing %s %s: %w", object.GetKind(), object.GetName(), err)
			}
		}
		out = append(out, object)
	}
	return out, nil
}

func callURL(configuration *unstructured.Unstructured, url string) error {
	webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil {
		return err
	}
	for _, item := range webhooks {
		webhook, ok := item.(map[string]any)
		if !ok {
			return fmt.Errorf("a webhook is a %T", item)
		}
		path, found, err := unstructured.NestedString(webhook, "clientConfig", "service", "path")
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("webhook %v names no path of a Service", webhook["name"])
		}
		unstructured.RemoveNestedField(webhook, "clientConfig", "service")
		if err := unstructured.SetNestedField(webhook, url+path, "clientConfig", "url"); err != nil {
			return err
		}
	}
	return unstructured.SetNestedSlice(configuration.Object, webhooks, "webhooks")
}

func convertAtURL(definition *unstructured.Unstructured, url string) error {
	client := []string{"spec", "conversion", "webhook", "clientConfig"}
	path, found, err := unstructured.NestedString(definition.Object, append(client, "service", "path")...)
	if err != nil || !found {
		return err
	}
	return unstructured.SetNestedMap(definition.Object, map[string]any{"url": url + path}, client...)
}
