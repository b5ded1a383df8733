package propagation

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// What a person reads when an object is accepted, and what they read when it is
// written, are the same words.

// unknownKind says that a target does not have a kind.
func unknownKind(target string, gvk schema.GroupVersionKind) string {
	return fmt.Sprintf("target %s does not know kind %s of %s", target, gvk.Kind, gvk.GroupVersion())
}

// refusal says what a target said.
func refusal(target string, object *unstructured.Unstructured, err error) string {
	return fmt.Sprintf("target %s refused %s %s: %s", target, object.GetKind(), object.GetName(), inItsWords(err))
}

// inItsWords is the message of a target's answer.
func inItsWords(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}

// others says whose an object is that is not ours to write.
func others(target string, desired, observed *unstructured.Unstructured, at standing, resource *v1alpha1.KubernetesApplicationResource, hubID string) string {
	if at == itself {
		return fmt.Sprintf("%s %s is itself what would run on target %s, because that target is this hub; it was not touched: "+
			"choose another target, or use a KubernetesApplicationResource whose template names another namespace",
			desired.GetKind(), desired.GetName(), target)
	}
	return othersAre(target, desired.GetKind(), desired.GetName(), observed, hubID) + ": " + wayIn(observed, resource)
}

// othersAre is the part of that without a way out.
func othersAre(target, kind, name string, observed *unstructured.Unstructured, hubID string) string {
	return fmt.Sprintf("%s %s exists on target %s and belongs to %s; it was not touched", kind, name, target, owner(observed, hubID))
}

// mostListed bounds a message.
const mostListed = 10

// enumerate writes a list, and of a long one how many more there are.
func enumerate[T any](all []T, separator string, write func(T) string) string {
	parts := make([]string, 0, len(all))
	for i, item := range all {
		if i == mostListed {
			parts = append(parts, fmt.Sprintf("and %d more", len(all)-i))
			break
		}
		parts = append(parts, write(item))
	}
	return strings.Join(parts, separator)
}
