package dryrun

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds/references"
	"github.com/portico-io/portico/controllers/clusters"
)

// maxClusterObjects is the limit on the cluster-scoped objects that are read for one object.
const maxClusterObjects = 10

// findMissingObjects returns a warning for each cluster-scoped object that the object names,
// and that the target does not have. The target accepts the object, which then waits without
// an error.
func (r *Runner) findMissingObjects(ctx context.Context, s *scope) <-chan []string {
	out := make(chan []string, 1)
	objects := references.ClusterObjectsOf(s.desired)
	if len(objects) == 0 {
		out <- nil
		return out
	}
	connection, target, alongside := s.connection, s.target.Name, s.alongside
	go func() {
		var warnings []string
		for _, named := range objects[:min(len(objects), maxClusterObjects)] {
			sent := slices.ContainsFunc(alongside, func(o *unstructured.Unstructured) bool {
				return o != nil && o.GroupVersionKind() == named.Kind && o.GetName() == named.Name
			})
			if !sent && r.answers.lacks(ctx, connection, named) {
				warnings = append(warnings, fmt.Sprintf("%s: %s %s does not exist on target %s", named.Field, named.Kind.Kind, named.Name, target))
			}
		}
		out <- warnings
	}()
	return out
}

// lacks tells whether a target does not have a cluster-scoped object. It is false if the
// target does not tell: without the right to read the kind there is no warning.
func (a *targetAnswers) lacks(ctx context.Context, connection *clusters.DirectClient, named references.ClusterObject) bool {
	mayNotRead := targetAnswer{connection: connection, answer: "may not read " + named.Kind.Kind}
	exists := targetAnswer{connection: connection, answer: named.Kind.Kind + " " + named.Name + " exists"}
	if a.has(mayNotRead) || a.has(exists) {
		return false
	}
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(named.Kind)
	err := connection.Get(ctx, client.ObjectKey{Name: named.Name}, metadata)
	switch {
	case err == nil:
		a.add(exists)
	case apierrors.IsForbidden(err):
		a.add(mayNotRead)
	}
	return apierrors.IsNotFound(err)
}
