package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// LastStatus returns the last status of an object that is absent from its target and has
// ended, or was deleted there and does not run again; nil for every other object. The
// object of a template in an application may be deleted on the target to run it again.
func LastStatus(desired *unstructured.Unstructured, resource *v1alpha1.KubernetesApplicationResource, target string) (map[string]any, error) {
	kind, known := kinds.For(desired.GroupVersionKind())
	if !known || resource.Status.Remote == nil || resource.Labels[v1alpha1.FrontDoorLabel] != v1alpha1.FrontDoor {
		return nil, nil
	}
	var remote map[string]any
	if err := json.Unmarshal(resource.Status.Remote.Raw, &remote); err != nil {
		return nil, fmt.Errorf("reading the last status of %s %s: %w", desired.GetKind(), desired.GetName(), err)
	}
	if last, finished := kinds.FinishedStatus(kind, remote); finished {
		return last, nil
	}
	if existed := resource.Status.RemoteUID != "" && resource.Status.Target == target; existed {
		last, _ := kinds.DeletedStatus(kind, remote)
		return last, nil
	}
	return nil, nil
}
