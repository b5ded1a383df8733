package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PolicyType is the question that a policy decides.
//
// +kubebuilder:validation:Enum=Scheduling;Publish;Library
type PolicyType string

// The types of policies.
const (
	// Scheduling policies decide which objects may run, and on which targets.
	Scheduling PolicyType = "Scheduling"
	// Publish policies decide who may publish a cluster to a namespace.
	Publish PolicyType = "Publish"
	// Library policies decide nothing. Other policies import them.
	Library PolicyType = "Library"
)

// Action is the effect of a policy's findings.
//
// +kubebuilder:validation:Enum=Deny;Warn;Audit
type Action string

// The actions.
const (
	// Deny denies the request, and excludes the target.
	Deny Action = "Deny"
	// Warn allows the request, with a warning to the user.
	Warn Action = "Warn"
	// Audit allows the request, and records the findings.
	Audit Action = "Audit"
)

// FailurePolicy is the effect of an evaluation that fails.
//
// +kubebuilder:validation:Enum=Fail;Ignore
type FailurePolicy string

// The failure policies.
const (
	// Fail has the effect of a finding: the policy's action.
	Fail FailurePolicy = "Fail"
	// Ignore allows the request, with a warning.
	Ignore FailurePolicy = "Ignore"
)

// PolicyMatch selects the requests for which a policy is evaluated. An empty match
// selects all requests.
type PolicyMatch struct {
	// namespaceSelector selects namespaces by label. Every namespace has the
	// label kubernetes.io/metadata.name.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// objectSelector selects objects by label.
	// +optional
	ObjectSelector *metav1.LabelSelector `json:"objectSelector,omitempty"`

	// kinds of objects, such as Deployment. An empty list selects all kinds.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Kinds []string `json:"kinds,omitempty"`
}

// PolicySpec is the rules of a policy, and their effect.
//
// +kubebuilder:validation:XValidation:rule="self.type == oldSelf.type",fieldPath=".type",message="cannot change, because other policies may import this one or decide with it; delete and re-create the Policy"
// +kubebuilder:validation:XValidation:rule="self.type != 'Library' || (!has(self.match) && !has(self.parameters))",fieldPath=".type",message="a Library is not evaluated: it has neither match nor parameters"
// +kubebuilder:validation:XValidation:rule="self.type == 'Scheduling' || !has(self.weight)",fieldPath=".weight",message="only a Scheduling policy scores targets; leave weight out"
type PolicySpec struct {
	// type is Scheduling, Publish or Library. It is immutable.
	// +required
	Type PolicyType `json:"type"`

	// action is the effect of findings: Deny denies the request, Warn adds a warning, and
	// Audit only records them in the status.
	// +optional
	// +kubebuilder:default=Deny
	Action Action `json:"action,omitempty"`

	// failurePolicy is the effect of an evaluation that fails or takes too long: Fail has
	// the effect of the action, and Ignore allows the request with a warning.
	// +optional
	// +kubebuilder:default=Fail
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`

	// match selects the requests for which the policy is evaluated.
	// +optional
	Match *PolicyMatch `json:"match,omitempty"`

	// parameters are available to the policy as input.parameters.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Parameters *apiextensionsv1.JSON `json:"parameters,omitempty"`

	// weight is the factor of the scores of a Scheduling policy. Default: 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Weight *int32 `json:"weight,omitempty"`

	// modules are files of Rego by name. A name ends in .rego, and the name of a file with
	// tests ends in _test.rego.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.size() <= 128 && name.matches('^[A-Za-z0-9][A-Za-z0-9_.-]*[.]rego$'))",message="name every module like a file, such as quota.rego and quota_test.rego"
	Modules map[string]string `json:"modules"`
}

// PolicyTests is the result of a policy's own tests.
type PolicyTests struct {
	// summary is the number of passed tests and of all tests, such as 6/6.
	// +required
	Summary string `json:"summary"`

	// passed is the number of tests that passed.
	// +required
	Passed int32 `json:"passed"`

	// failed is the number of tests that failed.
	// +required
	Failed int32 `json:"failed"`

	// coverage is the percentage of the policy's lines that its tests run.
	// +required
	Coverage int32 `json:"coverage"`
}

// PolicyViolation is an existing object that the policy denies.
type PolicyViolation struct {
	// kind of the object.
	// +required
	Kind string `json:"kind"`

	// namespace of the object.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name of the object.
	// +required
	Name string `json:"name"`

	// code of the finding.
	// +required
	Code string `json:"code"`

	// message of the finding.
	// +required
	Message string `json:"message"`
}

// PolicyAudit is the result of the policy for the existing objects. It does not stop
// running objects.
type PolicyAudit struct {
	// lastRun is the time of the last audit.
	// +required
	LastRun metav1.Time `json:"lastRun"`

	// evaluated is the number of evaluated objects.
	// +required
	Evaluated int32 `json:"evaluated"`

	// violations is the number of objects that the policy denies.
	// +required
	Violations int32 `json:"violations"`

	// sample is the first 20 violations, by namespace and name.
	// +listType=atomic
	// +optional
	// +kubebuilder:validation:MaxItems=20
	Sample []PolicyViolation `json:"sample,omitempty"`
}

// PolicyStatus is the state of a policy.
type PolicyStatus struct {
	// conditions are Ready, Compiled, TestsPassed and Customized.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec for which the status is current.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// revision identifies the content that is evaluated. It is an earlier content than the
	// spec's while the condition Ready has reason LastGoodServing.
	// +optional
	Revision string `json:"revision,omitempty"`

	// engine is the engine that compiled the policy, such as opa/1.22.0.
	// +optional
	Engine string `json:"engine,omitempty"`

	// tests is the result of the policy's own tests.
	// +optional
	Tests *PolicyTests `json:"tests,omitempty"`

	// audit is the result of the policy for the existing objects.
	// +optional
	Audit *PolicyAudit `json:"audit,omitempty"`
}

// Policy is a set of rules in Rego, with their tests. Policies can only deny: a request
// that no policy denies is allowed.
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
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec PolicySpec `json:"spec"`
	// status is the observed state.
	// +optional
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
