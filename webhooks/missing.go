package webhooks

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/references"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
)

// missingWarnings returns a warning for each object that the Pods of a native object need,
// and that does not exist on the hub.
func (o Options) missingWarnings(cache *cacheLookup, q nativeRequest) []string {
	var warnings []string
	reads := 0
	for _, r := range policies.RequiredReferences(q.object) {
		if cache.exists(o.Reader, r) || cache.isSent(r) {
			continue
		}
		if reads++; reads > maxWarningReads {
			break
		}
		if cache.exists(o.Live, r) {
			continue
		}
		warnings = append(warnings, fmt.Sprintf("%s: %s %s does not exist in namespace %s; %s %s waits for it",
			r.Field, r.Kind, r.Name, cache.namespace, q.object.GetKind(), q.object.GetName()))
	}
	return decisions.AdmissionWarnings(warnings)
}

// exists tells whether the object of a reference exists. For an error other than NotFound
// it is true: a warning would be wrong.
func (l *cacheLookup) exists(reader client.Reader, r references.Reference) bool {
	if reader == nil {
		return true
	}
	var object client.Object = &corev1.ServiceAccount{}
	if r.Kind != kinds.ServiceAccountKind {
		metadata := &metav1.PartialObjectMetadata{}
		metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(r.Kind))
		object = metadata
	}
	err := reader.Get(l.ctx, client.ObjectKey{Namespace: l.namespace, Name: r.Name}, object)
	return !apierrors.IsNotFound(err)
}

// isSent tells whether a resource sends the ServiceAccount of a reference.
func (l *cacheLookup) isSent(r references.Reference) bool {
	if r.Kind != kinds.ServiceAccountKind {
		return false
	}
	var list v1alpha1.KubernetesApplicationResourceList
	err := l.reader.List(l.ctx, &list, client.InNamespace(l.namespace), client.Limit(1), client.UnsafeDisableDeepCopy,
		client.MatchingFields{policies.PrerequisiteIndex: policies.ServiceAccountKey(r.Name)})
	return err == nil && len(list.Items) > 0
}
