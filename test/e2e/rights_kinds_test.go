package e2e

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// kindAttempts returns the rows of the kinds whose objects are held in a namespace. It
// stores an object of each kind.
func kindAttempts(ctx context.Context, namespace string) []attempt {
	GinkgoHelper()
	const inTemplate = `{"spec": {"template": {"metadata": {"labels": {"workload.crossplane.io/schedule": null}}, "spec": {"nodeName": null}}}}`
	var out []attempt
	for _, k := range workloadKinds {
		out = append(out, heldAttempts(ctx, namespace, k.kind, k.manifest("web", strings.ToLower(k.kind)), inTemplate, "spec", "template", "metadata", "labels")...)
	}
	const inSelector = `{"spec": {"selector": {"matchLabels": {"workload.crossplane.io/schedule": null}}}}`
	return append(out, heldAttempts(ctx, namespace, "PodDisruptionBudget", budget(), inSelector, "spec", "selector", "matchLabels")...)
}

// heldAttempts returns the rows of one kind. release is a patch that takes the hold off, and
// hold is the path of the labels that have it.
func heldAttempts(ctx context.Context, namespace, kind, manifest, release string, hold ...string) []attempt {
	GinkgoHelper()
	apply(namespace, manifest)
	stored := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(manifest), &stored.Object)).To(Succeed())
	stored.SetNamespace(namespace)
	other := stored.DeepCopy()
	other.SetName("new")

	released := stored.DeepCopy()
	return []attempt{
		{what: "send a " + kind + " to a target", try: func(as client.Client) error {
			return as.Create(ctx, other.DeepCopy(), client.DryRunAll)
		}},
		{what: "write a " + kind + "'s status", try: func(as client.Client) error {
			return as.Status().Patch(ctx, stored.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"status": {"observedGeneration": 9}}`)), client.DryRunAll)
		}},
		{what: "release a held " + kind, try: func(as client.Client) error {
			released = stored.DeepCopy()
			return as.Patch(ctx, released, client.RawPatch("application/merge-patch+json", []byte(release)), client.DryRunAll)
		}, kept: func() bool {
			labels, _, _ := unstructured.NestedStringMap(released.Object, hold...)
			return labels["workload.crossplane.io/schedule"] == "remote"
		}},
	}
}
