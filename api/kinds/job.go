package kinds

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/kinds/fields"
	"github.com/portico-io/portico/api/kinds/jobstatus"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Job is held by spec.managedBy: the hub's Job controller does nothing for a Job that
// names another controller. The field is immutable, so a Job does not move between hub
// and target.
type Job struct{}

var (
	_ Kind      = Job{}
	_ RunsOnce  = Job{}
	_ Validator = Job{}
)

var managedByPath = []string{"spec", "managedBy"}

// GroupVersionKind implements Kind.
func (Job) GroupVersionKind() schema.GroupVersionKind {
	return batchv1.SchemeGroupVersion.WithKind("Job")
}

// Resource implements Kind.
func (Job) Resource() string { return "jobs" }

// Properties implements Kind.
func (Job) Properties() Properties {
	return Properties{
		OptIn: true, Held: true, HeldAtCreation: true, HasStatus: true,
		Sent:    "the spec you wrote",
		NotSent: "the selector and the labels that the hub generated, and `ttlSecondsAfterFinished`: a finished Job is deleted with the one on the hub",
	}
}

// Hold implements Kind. A Job with a manager of the user is not changed; Validate refuses
// it.
func (Job) Hold(object, old *unstructured.Unstructured, _ Author) (fields.Patch, error) {
	if _, found, _ := unstructured.NestedFieldNoCopy(object.Object, managedByPath...); old != nil || found {
		return nil, nil
	}
	return fields.Set(object, v1alpha1.RemoteJobManager, managedByPath...), nil
}

// Release implements Kind.
func (Job) Release(*unstructured.Unstructured) fields.Patch { return nil }

// Held implements Kind.
func (Job) Held(object *unstructured.Unstructured) bool {
	manager, _, _ := unstructured.NestedString(object.Object, managedByPath...)
	return manager == v1alpha1.RemoteJobManager
}

// Validate implements Validator.
func (j Job) Validate(object, old *unstructured.Unstructured) field.ErrorList {
	manager := fields.String(object, managedByPath...)
	switch {
	case IsRemote(object) == j.Held(object), old != nil && IsRemote(object) == IsRemote(old):
		return nil
	case !IsRemote(object):
		return field.ErrorList{field.Forbidden(schedulePath,
			"a Job cannot return to the hub, because spec.managedBy is immutable; delete the Job and create it without the label")}
	case manager != "":
		return field.ErrorList{field.Invalid(specPath.Child("managedBy"), manager, managedByOther)}
	}
	return field.ErrorList{field.Forbidden(schedulePath,
		"a Job cannot move to a target after its creation, because spec.managedBy is immutable; delete the Job and create it with the label")}
}

const managedByOther = "names another controller than Portico; leave the field out, or remove the label to run the Job on the hub"

// generatedJobLabels are the labels by which each API server lets a Job find its Pods.
var generatedJobLabels = []string{batchv1.ControllerUidLabel, batchv1.JobNameLabel, "controller-uid", "job-name"}

// removeHubFields removes the selector that the hub generated, so that the target
// generates one, and the time after which the hub's controller deletes a finished Job:
// with the Job on the hub the Job on the target goes.
func (Job) removeHubFields(template *unstructured.Unstructured, _ Intent) {
	for _, field := range [][]string{
		managedByPath, {"spec", "ttlSecondsAfterFinished"},
		{"spec", "template", "metadata", "creationTimestamp"}, heldPath,
	} {
		unstructured.RemoveNestedField(template.Object, field...)
	}
	if suspended, _, _ := unstructured.NestedBool(template.Object, suspendPath...); !suspended {
		unstructured.RemoveNestedField(template.Object, suspendPath...) // the default, which a queue on the target may change
	}
	if manual, _, _ := unstructured.NestedBool(template.Object, "spec", "manualSelector"); !manual {
		unstructured.RemoveNestedField(template.Object, "spec", "manualSelector")
		for _, label := range generatedJobLabels {
			unstructured.RemoveNestedField(template.Object, "spec", "template", "metadata", "labels", label)
			unstructured.RemoveNestedField(template.Object, "spec", "selector", "matchLabels", label)
		}
		dropEmpty(template, "spec", "selector", "matchLabels")
		dropEmpty(template, "spec", "selector")
	}
	dropEmpty(template, "spec", "template", "metadata", "labels")
	dropEmpty(template, "spec", "template", "metadata")
}

func (Job) reportsObservedGeneration() bool { return false }

// Reflect implements Kind. The status is the target's, in one write, with the changes
// that the API server requires.
func (Job) Reflect(native *unstructured.Unstructured, seen Observation) map[string]any {
	current := statusWithoutProblems(native)
	if jobstatus.IsFinished(current) {
		return current
	}
	status := jobstatus.Next(native, current, seen.Status)
	if !jobstatus.IsFinished(status) {
		if seen.Status != nil {
			atMost(status, "ready", "active")
		}
		appendProblems(status, seen.Problems)
	}
	return status
}

// Finish implements RunsOnce.
func (Job) Finish(status map[string]any) (map[string]any, bool) { return jobstatus.Finish(status) }

// Deleted implements RunsOnce. A Job that has not ended starts again, as every object that
// is deleted on its target.
func (Job) Deleted(map[string]any) (map[string]any, bool) { return nil, false }
