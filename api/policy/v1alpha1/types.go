package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PolicyType says what a policy is asked about.
//
// +kubebuilder:validation:Enum=Scheduling;Publish;Library
type PolicyType string

// What a policy is asked about.
const (
	// Scheduling policies say what may run, and where.
	Scheduling PolicyType = "Scheduling"
	// Publish policies say who may publish which cluster, and to whom.
	Publish PolicyType = "Publish"
	// Library policies are asked nothing; others import them.
	Library PolicyType = "Library"
)

// Action says what a policy's findings do.
//
// +kubebuilder:validation:Enum=Deny;Warn;Audit
type Action string

// What a policy's findings do.
const (
	// Deny refuses the request, and excludes the target.
	Deny Action = "Deny"
	// Warn lets everything pass, with a warning to the person who asks.
	Warn Action = "Warn"
	// Audit lets everything pass and only records.
	Audit Action = "Audit"
)

// FailurePolicy says what happens when a policy cannot be evaluated.
//
// +kubebuilder:validation:Enum=Fail;Ignore
type FailurePolicy string

// What happens when a policy cannot be evaluated.
const (
	// Fail does what the policy's action says, as if it had found something.
	Fail FailurePolicy = "Fail"
	// Ignore does as if the policy had found nothing, with a warning.
	Ignore FailurePolicy = "Ignore"
)

// PolicyMatch narrows what a policy is asked about. It is decided before any
// Rego runs, and is the one way to exempt something. Empty matches everything.
type PolicyMatch struct {
	// NamespaceSelector selects namespaces by label. Every namespace has the
	// label kubernetes.io/metadata.name.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// ObjectSelector selects objects by label.
	// +optional
	ObjectSelector *metav1.LabelSelector `json:"objectSelector,omitempty"`

	// Kinds of objects, such as Deployment. Empty matches all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Kinds []string `json:"kinds,omitempty"`
}

// PolicySpec is a policy: its rules, and what they do.
//
// +kubebuilder:validation:XValidation:rule="self.type == oldSelf.type",fieldPath=".type",message="cannot change, because other policies may import this one or decide with it; delete and re-create the Policy"
// +kubebuilder:validation:XValidation:rule="self.type != 'Library' || (!has(self.match) && !has(self.parameters))",fieldPath=".type",message="a Library is asked nothing: it has neither match nor parameters"
// +kubebuilder:validation:XValidation:rule="self.type == 'Scheduling' || !has(self.weight)",fieldPath=".weight",message="only a Scheduling policy scores targets; leave weight out"
type PolicySpec struct {
	// Type says what the policy is asked about: Scheduling, Publish, or
	// nothing, for a Library. Immutable.
	Type PolicyType `json:"type"`

	// Action says what findings do: Deny refuses, Warn warns, Audit records.
	// +optional
	// +kubebuilder:default=Deny
	Action Action `json:"action,omitempty"`

	// FailurePolicy says what happens when the policy fails or takes too long:
	// Fail does what action says, Ignore lets pass with a warning.
	// +optional
	// +kubebuilder:default=Fail
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`

	// Match narrows what the policy is asked about.
	// +optional
	Match *PolicyMatch `json:"match,omitempty"`

	// Parameters are given to the policy as input.parameters.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Parameters *apiextensionsv1.JSON `json:"parameters,omitempty"`

	// Weight multiplies the scores of a Scheduling policy. 1 when absent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Weight *int32 `json:"weight,omitempty"`

	// Modules are Rego source by file name. A name ends in .rego, and that of
	// a file of tests in _test.rego.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.size() <= 128 && name.matches('^[A-Za-z0-9][A-Za-z0-9_.-]*[.]rego$'))",message="name every module like a file, such as quota.rego and quota_test.rego"
	Modules map[string]string `json:"modules"`
}

// PolicyTests is what became of a policy's own tests.
type PolicyTests struct {
	// Summary in a few characters, such as 6/6.
	Summary string `json:"summary"`

	// Passed is the number of tests that passed.
	Passed int32 `json:"passed"`

	// Failed is the number of tests that did not.
	Failed int32 `json:"failed"`

	// Coverage is the percentage of the policy's lines that its tests reach.
	Coverage int32 `json:"coverage"`
}

// PolicyViolation is one existing object that the policy would refuse today.
type PolicyViolation struct {
	// Kind of the object.
	Kind string `json:"kind"`

	// Namespace of the object.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	Name string `json:"name"`

	// Code of the finding.
	Code string `json:"code"`

	// Message of the finding.
	Message string `json:"message"`
}

// PolicyAudit is what the policy says of the objects that exist. Nothing that
// runs is stopped by it.
type PolicyAudit struct {
	// LastRun is when the policy was last asked about everything.
	LastRun metav1.Time `json:"lastRun"`

	// Evaluated is the number of objects it was asked about.
	Evaluated int32 `json:"evaluated"`

	// Violations is the number of objects it would refuse.
	Violations int32 `json:"violations"`

	// Sample is the first 20 of them, by namespace and name.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	Sample []PolicyViolation `json:"sample,omitempty"`
}

// PolicyStatus is what became of a policy.
type PolicyStatus struct {
	// Conditions: Ready, Compiled, TestsPassed, Customized.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the generation of spec that status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Revision names the content that decides: while Ready is False for
	// LastGoodServing, an earlier one than that of spec.
	// +optional
	Revision string `json:"revision,omitempty"`

	// Engine that compiled it, such as opa/1.22.0.
	// +optional
	Engine string `json:"engine,omitempty"`

	// Tests is what became of the policy's own tests.
	// +optional
	Tests *PolicyTests `json:"tests,omitempty"`

	// Audit is what the policy says of the objects that exist.
	// +optional
	Audit *PolicyAudit `json:"audit,omitempty"`
}

// Policy is rules in Rego, with their tests. A policy can only tighten: what
// no policy speaks of is allowed.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=crossplane,shortName=pol
// +kubebuilder:printcolumn:name="TYPE",type="string",JSONPath=".spec.type"
// +kubebuilder:printcolumn:name="ACTION",type="string",JSONPath=".spec.action"
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="TESTS",type="string",JSONPath=".status.tests.summary"
// +kubebuilder:printcolumn:name="VIOLATIONS",type="integer",JSONPath=".status.audit.violations"
// +kubebuilder:printcolumn:name="REVISION",type="string",JSONPath=".status.revision"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type Policy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PolicySpec   `json:"spec"`
	Status PolicyStatus `json:"status,omitempty"`
}

// PolicyList is a list of policies.
//
// +kubebuilder:object:root=true
type PolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Policy `json:"items"`
}
