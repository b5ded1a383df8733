package install

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/test/cluster"
)

// fieldOwner is the field manager of applied manifests.
const fieldOwner = client.FieldOwner("portico-install")

// Apply applies manifests in the order of their dependencies: first namespaces, then
// definitions until they are served, and then all other objects.
func Apply(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	waves := make([][]*unstructured.Unstructured, 3)
	for _, object := range objects {
		wave := 2
		switch object.GetKind() {
		case "Namespace":
			wave = 0
		case "CustomResourceDefinition":
			wave = 1
		}
		waves[wave] = append(waves[wave], object)
	}
	for _, wave := range waves {
		for _, object := range wave {
			if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), fieldOwner, client.ForceOwnership); err != nil {
				return fmt.Errorf("applying %s %s: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
			}
		}
		for _, object := range wave {
			if err := waitEstablished(ctx, c, object); err != nil {
				return err
			}
		}
	}
	return nil
}

// waitEstablished waits until a definition is served. It returns at once for other
// objects.
func waitEstablished(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	if object.GetKind() != "CustomResourceDefinition" {
		return nil
	}
	return cluster.Poll(ctx, timeout, "CustomResourceDefinition "+object.GetName(), func(ctx context.Context) error {
		current := object.DeepCopy()
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
			return err
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(current.Object, &definition); err != nil {
			return cluster.Permanent(err)
		}
		if !apihelpers.IsCRDConditionTrue(&definition, apiextensionsv1.Established) {
			return fmt.Errorf("it is not served yet: %+v", definition.Status.Conditions)
		}
		return nil
	})
}

// waitTrusted waits until every webhook has the CA of the manager. Before that, the hub
// would not call it.
func waitTrusted(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if len(clientConfigs(object)) == 0 {
			continue
		}
		what := object.GetKind() + " " + object.GetName() + " to trust the manager"
		err := cluster.Poll(ctx, timeout, what, func(ctx context.Context) error {
			current := object.DeepCopy()
			if err := c.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
				return err
			}
			for name, config := range clientConfigs(current) {
				if config["caBundle"] == nil {
					return fmt.Errorf("webhook %s has no caBundle", name)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// clientConfigs returns the clientConfig of each webhook of a configuration, or of a
// definition with a conversion webhook, by name.
func clientConfigs(object *unstructured.Unstructured) map[string]map[string]any {
	out := map[string]map[string]any{}
	webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
	for _, item := range webhooks {
		webhook, _ := item.(map[string]any)
		if config, ok := webhook["clientConfig"].(map[string]any); ok {
			out[fmt.Sprint(webhook["name"])] = config
		}
	}
	if config, ok, _ := unstructured.NestedMap(object.Object, "spec", "conversion", "webhook", "clientConfig"); ok {
		out["of conversion"] = config
	}
	return out
}
