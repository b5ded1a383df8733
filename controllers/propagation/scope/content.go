package scope

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/reconciler"
)

// WithholdContent ends a reconcile that may not send the content. The object on the
// target remains: in most cases its native object loses the label, or is being deleted.
func (s *Scope) WithholdContent(denied string) error {
	s.SetCondition(v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonApplying, denied+", so its content is not sent")
	return reconciler.ErrDone
}

// SetContentRevision writes the digest of the content, and the number of its changes,
// into an annotation of the desired object. The number is also in the status of the
// resource, for Pods that are replaced after a change. The digest is not: its key is
// the UID of the native object, which readers of resources may know, and so they could
// test guesses.
func (s *Scope) SetContentRevision() error {
	revision, digest := plan.ContentRevisionOf(s.Observed)
	if revision = max(revision, s.Resource.Status.ContentRevision); s.Observed != nil && digest != s.Content.Digest {
		revision++
	}
	s.Revision = max(revision, 1)
	annotations := s.Desired.GetAnnotations()
	annotations[v1alpha1.ContentAnnotation] = strconv.FormatInt(s.Revision, 10) + "." + s.Content.Digest
	s.Desired.SetAnnotations(annotations)
	return plan.SetDigest(s.Desired)
}
