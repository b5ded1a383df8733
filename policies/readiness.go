package policies

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/interpreter"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/utils/lru"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/references"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// kstatus computes whether an object is ready: it knows the built-in kinds, and the
// usual conditions of other kinds. spec.readiness, an expression in CEL over the
// object, replaces it.

// Readiness tells whether an object is ready.
type Readiness struct {
	// Status is Unknown when the readiness cannot be computed.
	Status metav1.ConditionStatus
	// Reason is a condition's reason.
	Reason string
	// Message is the reason why the object is not ready; empty when it is.
	Message string
}

// IsReady tells whether the status is True.
func (r Readiness) IsReady() bool { return r.Status == metav1.ConditionTrue }

var ready = Readiness{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAvailable}

func progressing(message string) Readiness {
	return Readiness{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonProgressing, Message: message}
}

// ReadinessOf computes the readiness of an object from its form on the cluster.
// Without an expression kstatus decides.
func ReadinessOf(object *unstructured.Unstructured, expression string) Readiness {
	if expression != "" {
		return readinessByExpression(expression, object)
	}
	if object.GroupVersionKind() == (kinds.ReplicationController{}).GroupVersionKind() {
		// kstatus does not know this kind. It has the fields of a ReplicaSet.
		object = &unstructured.Unstructured{Object: maps.Clone(object.Object)}
		object.SetGroupVersionKind(kinds.ReplicaSet{}.GroupVersionKind())
	}
	result, err := status.Compute(object)
	switch {
	case err != nil:
		return Readiness{metav1.ConditionUnknown, v1alpha1.ReasonProgressing, "cannot tell: " + err.Error()}
	case result.Status == status.CurrentStatus:
		return ready
	case result.Status == status.FailedStatus:
		return Readiness{metav1.ConditionFalse, v1alpha1.ReasonFailed, result.Message}
	}
	return progressing(result.Message)
}

// readinessByExpression evaluates an expression. An object that its controller has
// not observed in its latest generation is not ready: its status is of an earlier
// generation.
func readinessByExpression(expression string, object *unstructured.Unstructured) Readiness {
	if object.GetDeletionTimestamp() != nil {
		return progressing("is being deleted")
	}
	if observed, found, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration"); found && observed < object.GetGeneration() {
		return progressing(fmt.Sprintf("generation is %d, but latest observed generation is %d", object.GetGeneration(), observed))
	}
	compiled := compileReadiness(expression)
	if len(compiled.problems) > 0 {
		return unknownReadiness(strings.Join(compiled.problems, "; "))
	}
	value, _, err := compiled.program.Eval(map[string]any{"object": withoutData(object).Object})
	var canceled interpreter.EvalCancelledError
	switch {
	case errors.As(err, &canceled) && canceled.Cause == interpreter.CostLimitExceeded:
		return unknownReadiness(fmt.Sprintf("it takes more than %d steps, the limit", readinessCost))
	case err != nil:
		return unknownReadiness(Shorten(err.Error(), maxQuotedText))
	case value.Value() == true:
		return ready
	}
	return progressing("spec.readiness is not true yet: " + Shorten(expression, maxQuotedText))
}

// maxQuotedText is the length of a quotation in a condition, in bytes.
const maxQuotedText = 512

func unknownReadiness(reason string) Readiness {
	return Readiness{metav1.ConditionUnknown, v1alpha1.ReasonReadinessFailed, "spec.readiness cannot be evaluated: " + reason}
}

// withoutData returns a copy of a Secret with its keys and without their values:
// users who may read the resource, and not the Secret, see its readiness. It returns
// other objects unchanged.
func withoutData(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object.GroupVersionKind().GroupKind() != (corev1.SchemeGroupVersion.WithKind(references.SecretKind).GroupKind()) {
		return object
	}
	out := &unstructured.Unstructured{Object: maps.Clone(object.Object)}
	for _, name := range kinds.SecretDataFields {
		if data, ok := out.Object[name].(map[string]any); ok {
			keys := make(map[string]any, len(data))
			for key := range data {
				keys[key] = ""
			}
			out.Object[name] = keys
		}
	}
	// kubectl quotes the whole Secret in an annotation.
	if annotations := object.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		meta, _ := out.Object["metadata"].(map[string]any)
		out.Object["metadata"] = maps.Clone(meta)
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		out.SetAnnotations(annotations)
	}
	return out
}

// ValidateReadiness returns the errors of the compiler for an expression.
func ValidateReadiness(expression string, path *field.Path) field.ErrorList {
	if expression == "" {
		return nil
	}
	if len(expression) > maxReadiness {
		return field.ErrorList{field.TooLong(path, "", maxReadiness)}
	}
	var errs field.ErrorList
	for _, problem := range compileReadiness(expression).problems {
		errs = append(errs, field.Invalid(path, Shorten(expression, maxQuotedText), problem))
	}
	return errs
}

// maxReadiness is the maximal length in the CRDs, for validation in a controller.
const maxReadiness = 4096

// readinessCost is the cost limit of one evaluation, a tenth of that of a CRD
// validation rule: an expression is evaluated at every change of its object.
const readinessCost = 100_000

// readinessCELVersion is the Kubernetes version whose CEL environment is used, so
// that API servers of this version and later understand the same expressions.
var readinessCELVersion = version.MajorMinor(1, 34)

var readinessEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	set, err := environment.MustBaseEnvSet(readinessCELVersion).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable("object", cel.DynType)},
	})
	if err != nil {
		return nil, err
	}
	return set.Env(environment.NewExpressions)
})

// readiness is a compiled expression, or the errors of its compilation.
type readiness struct {
	program  cel.Program
	problems []string
}

// readinessCache holds the expressions that were compiled last. Applications of one
// chart share expressions.
var readinessCache = lru.New(256)

func compileReadiness(expression string) *readiness {
	if known, ok := readinessCache.Get(expression); ok {
		return known.(*readiness)
	}
	compiled := &readiness{}
	var err error
	if compiled.program, compiled.problems, err = buildReadiness(expression); err != nil {
		compiled.problems = []string{err.Error()}
	}
	readinessCache.Add(expression, compiled)
	return compiled
}

func buildReadiness(expression string) (cel.Program, []string, error) {
	env, err := readinessEnvironment()
	if err != nil {
		return nil, nil, fmt.Errorf("preparing CEL: %w", err)
	}
	tree, issues := env.Compile(expression)
	if issues.Err() != nil {
		var problems []string
		for _, issue := range issues.Errors() {
			problems = append(problems, fmt.Sprintf("line %d, column %d: %s", issue.Location.Line(), issue.Location.Column()+1, issue.Message))
		}
		return nil, problems, nil
	}
	if result := tree.OutputType(); !result.IsExactType(cel.BoolType) {
		return nil, []string{fmt.Sprintf("gives %s, and must give true or false; compare it, as in \"object.status.ready == true\"", result)}, nil
	}
	program, err := env.Program(tree, cel.CostLimit(readinessCost))
	return program, nil, err
}
