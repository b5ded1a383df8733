package webhooks

import (
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies/decisions"
)

// unsentWarnings returns a warning for each claim, Service or scale target that a native
// object needs on its target, and that is not sent.
func (o Options) unsentWarnings(cache *cacheLookup, q nativeRequest) []string {
	reads := 0
	var warnings []string
	for _, n := range kinds.NeededBy(q.object) {
		key := client.ObjectKey{Namespace: q.Namespace, Name: n.Name}
		// The cache has the objects with the label.
		if err := o.Reader.Get(cache.ctx, key, kinds.New(n.Kind)); !apierrors.IsNotFound(err) {
			continue
		}
		if reads++; reads > maxWarningReads || o.Live == nil {
			break
		}
		gvk := n.Kind.GroupVersionKind()
		metadata := &metav1.PartialObjectMetadata{}
		metadata.SetGroupVersionKind(gvk)
		switch err := o.Live.Get(cache.ctx, key, metadata); {
		case apierrors.IsNotFound(err):
			warnings = append(warnings, fmt.Sprintf("%s: %s %s does not exist in namespace %s", n.Field, gvk.Kind, n.Name, q.Namespace))
		case err == nil && !kinds.HasRemoteLabel(metadata):
			warnings = append(warnings, fmt.Sprintf("%s: %s %s stays on the hub, and is not on the target of %s %s; label it %s=%s",
				n.Field, gvk.Kind, n.Name, q.object.GetKind(), q.object.GetName(), v1alpha1.ScheduleLabel, v1alpha1.ScheduleRemote))
		}
	}
	return decisions.AdmissionWarnings(warnings)
}

// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingressclasses,verbs=get;list;watch

// hasIngressClass tells whether the hub has an IngressClass of a name.
func (l *cacheLookup) hasIngressClass(name string) bool {
	err := l.reader.Get(l.ctx, client.ObjectKey{Name: name}, IngressClass())
	if client.IgnoreNotFound(err) != nil {
		l.recordError(fmt.Errorf("reading IngressClass %s: %w", name, err))
	}
	return err == nil
}

// IngressClass returns an empty object of the cache. It has metadata only.
func IngressClass() *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{}
	out.SetGroupVersionKind(networkingv1.SchemeGroupVersion.WithKind("IngressClass"))
	return out
}
