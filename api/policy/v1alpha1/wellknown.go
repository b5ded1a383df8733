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
	// ReasonActive says that the policy decides as its spec says.
	ReasonActive = "Active"
	// ReasonLastGoodServing says that the spec is broken, and the last version that
	// worked decides.
	ReasonLastGoodServing = "LastGoodServing"
	// ReasonBroken says that no version of the policy works.
	ReasonBroken = "Broken"

	// ReasonCompiled says that the modules compile.
	ReasonCompiled = "Compiled"
	// ReasonNotCompiled says that the modules do not compile.
	ReasonNotCompiled = "NotCompiled"

	// ReasonPassed says that the policy's tests pass.
	ReasonPassed = "Passed"
	// ReasonFailed says that one of the policy's tests fails.
	ReasonFailed = "Failed"
	// ReasonNoTests says that the policy has no tests.
	ReasonNoTests = "NoTests"

	// ReasonEdited says that somebody edited a policy that Portico ships; upgrades leave
	// it alone.
	ReasonEdited = "Edited"
	// ReasonAsShipped says that the policy is as Portico ships it.
	ReasonAsShipped = "AsShipped"
)
