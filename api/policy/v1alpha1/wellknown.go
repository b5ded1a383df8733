package v1alpha1

// Group is the API group of policies and the prefix of their annotations.
const Group = "policy.workload.crossplane.io"

// EmbeddedRevisionAnnotation is on the policies that Portico ships. Its value is the
// shipped revision. An upgrade replaces the policy if the value is the revision of the
// object, which means that no user edited the policy.
const EmbeddedRevisionAnnotation = Group + "/embedded-revision"

// PolicyManager is Portico's field manager on policies. It owns the status of every
// policy, and all fields of the shipped policies.
const PolicyManager = "portico-policy"

// Condition types.
const (
	// Ready says whether the policy is evaluated as in its spec.
	Ready = "Ready"
	// Compiled says whether the modules compile.
	Compiled = "Compiled"
	// TestsPassed says whether the policy's own tests pass.
	TestsPassed = "TestsPassed"
	// Customized says whether a user edited a policy that Portico ships. An upgrade does
	// not replace such a policy.
	Customized = "Customized"
)

// Condition reasons, which are also the reasons of events.
const (
	// ReasonActive says that the policy is evaluated as in its spec.
	ReasonActive = "Active"
	// ReasonLastGoodServing says that the spec does not work, and the last version that
	// worked is evaluated.
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

	// ReasonEdited says that a user edited a policy that Portico ships. Upgrades do not
	// replace the policy.
	ReasonEdited = "Edited"
	// ReasonAsShipped says that the policy is the shipped policy.
	ReasonAsShipped = "AsShipped"
)
