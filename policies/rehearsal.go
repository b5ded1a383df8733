package policies

import (
	"fmt"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Rehearsal is what came of trying on a target what Portico would write there,
// as a dry run, which changes nothing.
type Rehearsal struct {
	Result RehearsalResult
	// Message is for a person, and names the target. It is empty when there is
	// nothing to tell.
	Message string
	// Warnings are the target's own.
	Warnings []string
}

// RehearsalResult is what a rehearsal comes to, in one word, as it is in metrics
// and in audit annotations.
type RehearsalResult string

// The results.
const (
	// Accepted by the target.
	RehearsalAccepted RehearsalResult = "accepted"
	// Refused by the target, in its own words.
	RehearsalRefused RehearsalResult = "refused"
	// Disputed: the target would take it, but Portico will not write it while
	// the object, or a field of it, is somebody else's there.
	RehearsalDisputed RehearsalResult = "disputed"
	// Unanswered: the target did not say in time.
	RehearsalUnanswered RehearsalResult = "unanswered"
	// Skipped: there was nothing to try, or no way to.
	RehearsalSkipped RehearsalResult = "skipped"
)

// Rehearses tells whether a target wants to be asked before something is
// accepted for it.
func Rehearses(target *v1alpha1.KubernetesTarget) bool {
	return target != nil && target.DeletionTimestamp == nil && target.Spec.DryRun != v1alpha1.DryRunNever
}

// Unanswered is a rehearsal that came to nothing, with why: the end of a sentence
// about the target.
func Unanswered(target, why string) Rehearsal {
	return Rehearsal{Result: RehearsalUnanswered, Message: fmt.Sprintf(
		"accepted without asking target %s, which %s: it may still refuse this", target, why)}
}
