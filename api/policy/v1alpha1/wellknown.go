package v1alpha1

// Group is the API group of policies and the prefix of their annotations.
const Group = "policy.workload.crossplane.io"

// EmbeddedRevisionAnnotation is on the policies Portico ships: the revision it
// wrote. While it equals the object's own revision nobody has edited the
// policy, and an upgrade may replace it.
const EmbeddedRevisionAnnotation = Group + "/embedded-revision"

// PolicyManager is the field manager of what Portico writes into policies: their
// status, and the whole of those it ships.
const PolicyManager = "portico-policy"

// Condition types.
const (
	// Ready says whether what spec asks for is what decides.
	Ready = "Ready"
	// Compiled says whether the modules compile.
	Compiled = "Compiled"
	// TestsPassed says whether the policy's own tests pass.
	TestsPassed = "TestsPassed"
	// Customized says whether a policy Portico ships was edited, and is
	// therefore left alone by an upgrade.
	Customized = "Customized"
)

// Condition reasons, which are also the reasons of events.
const (
	ReasonActive          = "Active"
	ReasonLastGoodServing = "LastGoodServing"
	ReasonBroken          = "Broken"

	ReasonCompiled    = "Compiled"
	ReasonNotCompiled = "NotCompiled"

	ReasonPassed  = "Passed"
	ReasonFailed  = "Failed"
	ReasonNoTests = "NoTests"

	ReasonEdited    = "Edited"
	ReasonAsShipped = "AsShipped"
)
