package policies

import (
	"fmt"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// DryRun is the result of a server-side dry run on a target of an object that
// Portico would write there.
type DryRun struct {
	Result DryRunResult
	// Message tells the user about the result, and names the target. It may be
	// empty.
	Message string
	// Warnings are those of the API server of the target.
	Warnings []string
}

// DryRunResult is the result in one word, for metrics and audit annotations.
type DryRunResult string

// The results of dry runs.
const (
	// DryRunAccepted: the target accepts the object.
	DryRunAccepted DryRunResult = "accepted"
	// DryRunRefused: the target refuses the object. Message quotes it.
	DryRunRefused DryRunResult = "refused"
	// DryRunConflicted: the target accepts the object, but the object or a field of it
	// has another owner there, so Portico does not write it.
	DryRunConflicted DryRunResult = "disputed"
	// DryRunUnanswered: the target did not answer in time.
	DryRunUnanswered DryRunResult = "unanswered"
	// DryRunSkipped: no dry run was needed, or none was possible.
	DryRunSkipped DryRunResult = "skipped"
)

// DryRunEnabled tells whether objects for a target are tried there before the hub
// accepts them.
func DryRunEnabled(target *v1alpha1.KubernetesTarget) bool {
	return target != nil && target.DeletionTimestamp == nil && target.Spec.DryRun != v1alpha1.DryRunNever
}

// UnansweredDryRun returns the result for a target that does not answer. why completes
// a sentence about the target.
func UnansweredDryRun(target, why string) DryRun {
	return DryRun{Result: DryRunUnanswered, Message: fmt.Sprintf(
		"accepted without a dry run on target %s, which %s; the target may still refuse it", target, why)}
}
