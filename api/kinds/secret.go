package kinds

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/kinds/references"
)

// Secret is sent under its own name when it has the label. Secrets without the label
// that Pods refer to are sent as copies (package references).
type Secret struct{ content }

var _ Kind = Secret{}

// GroupVersionKind implements Kind.
func (Secret) GroupVersionKind() schema.GroupVersionKind {
	return corev1.SchemeGroupVersion.WithKind(references.SecretKind)
}

// Resource implements Kind.
func (Secret) Resource() string { return "secrets" }
