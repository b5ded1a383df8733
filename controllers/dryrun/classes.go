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

// maxClasses is the limit on the classes that are read for one object.
const maxClasses = 10

// findMissingClasses returns a warning for each class that the object names, and that the
// target does not have. The target accepts the object, which then waits without an error.
func (r *Runner) findMissingClasses(ctx context.Context, s *scope) <-chan []string {
	out := make(chan []string, 1)
	classes := references.ClassesOf(s.desired)
	if len(classes) == 0 {
		out <- nil
		return out
	}
	connection, target, alongside := s.connection, s.target.Name, s.alongside
	go func() {
		var warnings []string
		for _, class := range classes[:min(len(classes), maxClasses)] {
			sent := slices.ContainsFunc(alongside, func(o *unstructured.Unstructured) bool {
				return o != nil && o.GroupVersionKind() == class.Kind && o.GetName() == class.Name
			})
			if !sent && r.answers.lacksClass(ctx, connection, class) {
				warnings = append(warnings, fmt.Sprintf("%s: %s %s does not exist on target %s", class.Field, class.Kind.Kind, class.Name, target))
			}
		}
		out <- warnings
	}()
	return out
}

// lacksClass tells whether a target does not have a class. It is false if the target does
// not tell: without the right to read classes there is no warning.
func (a *targetAnswers) lacksClass(ctx context.Context, connection *clusters.DirectClient, class references.Class) bool {
	mayNotRead := targetAnswer{connection: connection, answer: "may not read " + class.Kind.Kind}
	exists := targetAnswer{connection: connection, answer: class.Kind.Kind + " " + class.Name + " exists"}
	if a.has(mayNotRead) || a.has(exists) {
		return false
	}
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(class.Kind)
	err := connection.Get(ctx, client.ObjectKey{Name: class.Name}, metadata)
	switch {
	case err == nil:
		a.add(exists)
	case apierrors.IsForbidden(err):
		a.add(mayNotRead)
	}
	return apierrors.IsNotFound(err)
}
