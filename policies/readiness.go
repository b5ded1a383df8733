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
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Whether an object works is told by kstatus, which knows the built-in kinds, and
// of others the conditions that are usual; or, where those do not do, by an
// expression in CEL over the object.

// Readiness is whether an object works.
type Readiness struct {
	// Status is Unknown when it cannot be told.
	Status metav1.ConditionStatus
	// Reason is a condition's reason.
	Reason string
	// Message says what is amiss; empty when nothing is.
	Message string
}

// Works tells whether the object does.
func (r Readiness) Works() bool { return r.Status == metav1.ConditionTrue }

var works = Readiness{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAvailable}

func progressing(message string) Readiness {
	return Readiness{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonProgressing, Message: message}
}

// ReadinessOf tells whether an object, as it is on its cluster, works. Without an
// expression its kind decides.
func ReadinessOf(object *unstructured.Unstructured, expression string) Readiness {
	if expression != "" {
		return readinessBy(expression, object)
	}
	result, err := status.Compute(object)
	switch {
	case err != nil:
		return Readiness{metav1.ConditionUnknown, v1alpha1.ReasonProgressing, "cannot tell: " + err.Error()}
	case result.Status == status.CurrentStatus:
		return works
	case result.Status == status.FailedStatus:
		return Readiness{metav1.ConditionFalse, v1alpha1.ReasonFailed, result.Message}
	}
	return progressing(result.Message)
}

// readinessBy decides by an expression. It is not asked about what its cluster
// has not come to yet, because it could only speak of what was before.
func readinessBy(expression string, object *unstructured.Unstructured) Readiness {
	if object.GetDeletionTimestamp() != nil {
		return progressing("is being deleted")
	}
	if seen, told, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration"); told && seen < object.GetGeneration() {
		return progressing(fmt.Sprintf("generation is %d, but latest observed generation is %d", object.GetGeneration(), seen))
	}
	compiled := compileReadiness(expression)
	if len(compiled.problems) > 0 {
		return unclear(strings.Join(compiled.problems, "; "))
	}
	value, _, err := compiled.program.Eval(map[string]any{"object": withoutData(object).Object})
	var canceled interpreter.EvalCancelledError
	switch {
	case errors.As(err, &canceled) && canceled.Cause == interpreter.CostLimitExceeded:
		return unclear(fmt.Sprintf("it takes more than the %d steps that it may", readinessCost))
	case err != nil:
		return unclear(Shorten(err.Error(), maxProblem))
	case value.Value() == true:
		return works
	}
	return progressing("spec.readiness is not true yet: " + Shorten(expression, maxProblem))
}

// maxProblem bounds what is quoted in a condition.
const maxProblem = 512

func unclear(why string) Readiness {
	return Readiness{metav1.ConditionUnknown, v1alpha1.ReasonReadinessFailed, "spec.readiness cannot tell: " + why}
}

// withoutData returns a Secret with its keys and without their values, since
// whether the object is ready is told to whoever may see the resource; anything
// else as it is.
func withoutData(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object.GroupVersionKind().GroupKind() != (corev1.SchemeGroupVersion.WithKind(kinds.SecretKind).GroupKind()) {
		return object
	}
	out := &unstructured.Unstructured{Object: maps.Clone(object.Object)}
	for _, name := range []string{"data", "stringData"} {
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

// problemsOfReadiness returns what is wrong with an expression, in the compiler's
// words.
func problemsOfReadiness(expression string, path *field.Path) field.ErrorList {
	if expression == "" {
		return nil
	}
	if len(expression) > maxReadiness {
		return field.ErrorList{field.TooLong(path, "", maxReadiness)}
	}
	var errs field.ErrorList
	for _, problem := range compileReadiness(expression).problems {
		errs = append(errs, field.Invalid(path, Shorten(expression, maxProblem), problem))
	}
	return errs
}

// maxReadiness is the CRDs' bound, for when they are asked by a controller.
const maxReadiness = 4096

// readinessCost is a tenth of what the API server lets one rule of a CRD take:
// an expression is evaluated for every change of its object.
const readinessCost = 100_000

// readinessLanguage is what API servers of at least this version understand in
// the rules of CRDs, so that an expression can be carried to and fro.
var readinessLanguage = version.MajorMinor(1, 34)

var readinessEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	set, err := environment.MustBaseEnvSet(readinessLanguage).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable("object", cel.DynType)},
	})
	if err != nil {
		return nil, err
	}
	return set.Env(environment.NewExpressions)
})

// readiness is a compiled expression, or what is wrong with it.
type readiness struct {
	program  cel.Program
	problems []string
}

// expressions keeps what was compiled last. Applications that come from one chart
// share theirs.
var expressions = lru.New(256)

func compileReadiness(expression string) *readiness {
	if known, ok := expressions.Get(expression); ok {
		return known.(*readiness)
	}
	compiled := &readiness{}
	var err error
	if compiled.program, compiled.problems, err = buildReadiness(expression); err != nil {
		compiled.problems = []string{err.Error()}
	}
	expressions.Add(expression, compiled)
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
