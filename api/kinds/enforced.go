package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/kinds/fields"
)

// enforced is the common part of the kinds that both clusters enforce: nothing of them is
// held. A hold would change a value that the user wrote, or would stop the protection of
// Pods that run on the hub. The status is that of the hub: the API server of the hub
// enforces a ResourceQuota by its status, so a target must not write it.
type enforced struct{}

// Hold implements Kind.
func (enforced) Hold(_, _ *unstructured.Unstructured, _ Author) (fields.Patch, error) {
	return nil, nil
}

// Release implements Kind.
func (enforced) Release(*unstructured.Unstructured) fields.Patch { return nil }

// Held implements Kind.
func (enforced) Held(object *unstructured.Unstructured) bool { return IsRemote(object) }

// Reflect implements Kind.
func (enforced) Reflect(*unstructured.Unstructured, Observation) map[string]any { return nil }

func (enforced) removeHubFields(*unstructured.Unstructured, Intent) {}

func (enforced) reportsObservedGeneration() bool { return false }

// enforcedProperties returns the properties of a kind that both clusters enforce.
func enforcedProperties(onHub string) Properties {
	return Properties{
		EnforcedOnHub: onHub,
		Sent:          "the spec you wrote",
		NotSent:       "an object without a label of its own",
	}
}
