package reconciler

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/references"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// IsTaken tells whether a Secret or ConfigMap of a namespace cannot be sent to a target under
// its own name: the name belongs to another owner there, or the resource that would send it
// cannot be made because a resource of another object has its name.
func IsTaken(ctx context.Context, hub client.Reader, namespace, target string, r references.Reference) (bool, error) {
	sender := &v1alpha1.KubernetesApplicationResource{}
	key := client.ObjectKey{Namespace: namespace, Name: kinds.DependencyName(r.Kind, r.Name, target)}
	found, err := Find(ctx, hub, key, sender)
	if err != nil || !found {
		return false, err
	}
	return policies.IsTaken(sender) || !policies.SendsDependency(sender, r.Kind, r.Name), nil
}

// TakenChanged passes the resources of shared dependencies whose name became taken on the
// target, or free.
func TakenChanged() predicate.Predicate {
	return UpdatedOnly(func(before, after *v1alpha1.KubernetesApplicationResource) bool {
		return policies.IsTaken(before) != policies.IsTaken(after)
	})
}
