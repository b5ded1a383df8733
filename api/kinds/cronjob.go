package kinds

import (
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/kinds/fields"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// CronJob stays on the hub, whose controller makes the Jobs. They are sent: the template
// of the Jobs gets the label. With the annotation workload.crossplane.io/schedule-on:
// target the CronJob itself is sent, and suspended on the hub.
type CronJob struct{}

var (
	_ Kind      = CronJob{}
	_ Template  = CronJob{}
	_ Validator = CronJob{}
)

// Template is a Kind with objects that are not sent: the hub makes objects of another
// kind from them, and these are sent.
type Template interface {
	Kind

	// Made returns an object as the hub makes it, and nil if the object itself is sent.
	Made(object *unstructured.Unstructured) (Kind, *unstructured.Unstructured)
}

// Sent returns the object that is sent for a native object, and its kind.
func Sent(k Kind, object *unstructured.Unstructured) (Kind, *unstructured.Unstructured) {
	if template, ok := k.(Template); ok && object != nil {
		if kind, made := template.Made(object); made != nil {
			return kind, made
		}
	}
	return k, object
}

// IsSent tells whether a native object itself is sent.
func IsSent(k Kind, object *unstructured.Unstructured) bool {
	_, sent := Sent(k, object)
	return sent == object
}

var (
	suspendPath     = []string{"spec", "suspend"}
	jobTemplatePath = []string{"spec", "jobTemplate"}
)

// jobTemplateFields are the labels and annotations of a CronJob that its Jobs get.
var jobTemplateFields = []jobTemplateField{
	{"labels", []string{v1alpha1.ScheduleLabel, v1alpha1.ApplicationLabel}},
	{"annotations", []string{v1alpha1.TargetSelectorAnnotation, v1alpha1.TolerationsAnnotation, v1alpha1.DriftAnnotation, v1alpha1.ObserveAnnotation}},
}

// jobTemplateField is a field of metadata, and keys in it.
type jobTemplateField struct {
	name string
	keys []string
}

// inTemplate returns the path of a key in the template of the Jobs.
func (f jobTemplateField) inTemplate(key string) []string {
	return []string{"spec", "jobTemplate", "metadata", f.name, key}
}

// GroupVersionKind implements Kind.
func (CronJob) GroupVersionKind() schema.GroupVersionKind {
	return batchv1.SchemeGroupVersion.WithKind("CronJob")
}

// Resource implements Kind.
func (CronJob) Resource() string { return "cronjobs" }

// Properties implements Kind.
func (CronJob) Properties() Properties {
	return Properties{
		OptIn: true, Held: true, HasStatus: true,
		Sent:    "the Jobs that the hub makes; with the annotation `schedule-on: target` the CronJob itself",
		NotSent: "`suspend`, when Portico set it",
	}
}

// schedulesOnTarget tells whether a CronJob itself is sent.
func schedulesOnTarget(object *unstructured.Unstructured) bool {
	return IsRemote(object) && object.GetAnnotations()[v1alpha1.ScheduleOnAnnotation] == v1alpha1.ScheduleOnTarget
}

// Hold implements Kind. The intent has the user's own value of spec.suspend. It is always
// recorded, because spec.suspend is true from then on.
func (CronJob) Hold(object, old *unstructured.Unstructured, _ Author) (fields.Patch, error) {
	intent, recorded, err := IntentOf(object)
	if err != nil {
		return nil, err
	}
	patch := labelJobs(object, old)
	suspended, _, _ := unstructured.NestedBool(object.Object, suspendPath...)
	if !schedulesOnTarget(object) {
		return append(patch, restoreSuspend(object)...), nil
	}
	intent.Suspended = suspended && (intent.Suspended || !recorded)
	patch = append(patch, fields.Set(object, true, suspendPath...)...)
	return append(patch, intent.annotate(object)...), nil
}

// Release implements Kind.
func (CronJob) Release(object *unstructured.Unstructured) fields.Patch {
	patch := restoreSuspend(object)
	for _, field := range jobTemplateFields {
		for _, key := range field.keys {
			template, found, _ := unstructured.NestedString(object.Object, field.inTemplate(key)...)
			own, _, _ := unstructured.NestedString(object.Object, "metadata", field.name, key)
			if found && (template == own || key == v1alpha1.ScheduleLabel && template == v1alpha1.ScheduleRemote) {
				patch = append(patch, fields.Remove(object, field.inTemplate(key)...)...)
			}
		}
		patch = append(patch, fields.RemoveEmpty(object, "spec", "jobTemplate", "metadata", field.name)...)
	}
	return append(patch, fields.RemoveEmpty(object, "spec", "jobTemplate", "metadata")...)
}

// restoreSuspend gives a CronJob the user's value of spec.suspend, if it has another.
func restoreSuspend(object *unstructured.Unstructured) fields.Patch {
	intent, recorded, err := IntentOf(object)
	suspended, _, _ := unstructured.NestedBool(object.Object, suspendPath...)
	var patch fields.Patch
	if err == nil && recorded && suspended {
		patch = fields.Set(object, intent.Suspended, suspendPath...)
	}
	return append(patch, removeIntent(object)...)
}

// labelJobs copies the labels and annotations of a CronJob that say where its Jobs run to
// their template. A value that the template had already is the user's.
func labelJobs(object, old *unstructured.Unstructured) fields.Patch {
	var patch fields.Patch
	for _, field := range jobTemplateFields {
		for _, key := range field.keys {
			path, own := field.inTemplate(key), []string{"metadata", field.name, key}
			value, wanted, _ := unstructured.NestedString(object.Object, own...)
			current, found, _ := unstructured.NestedString(object.Object, path...)
			copied := false
			if old != nil && found {
				before, had, _ := unstructured.NestedString(old.Object, own...)
				copied = had && before == current
			}
			switch {
			case wanted && (!found || copied):
				patch = append(patch, fields.Set(object, value, path...)...)
			case !wanted && copied:
				patch = append(patch, fields.Remove(object, path...)...)
			}
		}
	}
	return patch
}

// Held implements Kind. The status of a CronJob that stays on the hub is the hub's.
func (CronJob) Held(object *unstructured.Unstructured) bool {
	suspended, _, _ := unstructured.NestedBool(object.Object, suspendPath...)
	return schedulesOnTarget(object) && suspended
}

// Made implements Template. The name has the form of the names that the CronJob controller
// gives, with a time that no Job has.
func (c CronJob) Made(object *unstructured.Unstructured) (Kind, *unstructured.Unstructured) {
	if schedulesOnTarget(object) {
		return nil, nil
	}
	template, _, _ := unstructured.NestedMap(object.Object, jobTemplatePath...)
	if template == nil {
		template = map[string]any{}
	}
	job := &unstructured.Unstructured{Object: template}
	job.SetGroupVersionKind(Job{}.GroupVersionKind())
	job.SetNamespace(object.GetNamespace())
	job.SetName(object.GetName() + "-00000000")
	return Job{}, job
}

// Validate implements Validator.
func (CronJob) Validate(object, _ *unstructured.Unstructured) field.ErrorList {
	if !IsRemote(object) {
		return nil
	}
	switch value, set := object.GetAnnotations()[v1alpha1.ScheduleOnAnnotation]; {
	case set && value != v1alpha1.ScheduleOnHub && value != v1alpha1.ScheduleOnTarget:
		return field.ErrorList{field.NotSupported(annotationsPath.Key(v1alpha1.ScheduleOnAnnotation), value,
			[]string{v1alpha1.ScheduleOnHub, v1alpha1.ScheduleOnTarget})}
	case value == v1alpha1.ScheduleOnTarget:
		return nil
	}
	path := append(slices.Clone(jobTemplatePath), managedByPath...)
	if manager := fields.String(object, path...); manager != "" && manager != v1alpha1.RemoteJobManager {
		return field.ErrorList{field.Invalid(field.NewPath(path[0], path[1:]...), manager, managedByOther)}
	}
	return nil
}

// removeHubFields keeps Portico's labels and annotations from the Jobs on the target.
func (CronJob) removeHubFields(template *unstructured.Unstructured, intent Intent) {
	unstructured.RemoveNestedField(template.Object, suspendPath...)
	if intent.Suspended {
		_ = unstructured.SetNestedField(template.Object, true, suspendPath...) // spec is an object
	}
	for _, path := range [][]string{
		{"spec", "jobTemplate", "metadata"},
		{"spec", "jobTemplate", "spec", "template", "metadata"},
	} {
		for _, name := range []string{"labels", "annotations"} {
			fields, _, _ := unstructured.NestedFieldNoCopy(template.Object, append(slices.Clone(path), name)...)
			if keys, ok := fields.(map[string]any); ok {
				maps.DeleteFunc(keys, func(key string, _ any) bool { return isPorticoKey(key) })
			}
			dropEmpty(template, append(slices.Clone(path), name)...)
		}
		unstructured.RemoveNestedField(template.Object, append(slices.Clone(path), "creationTimestamp")...)
		dropEmpty(template, path...)
	}
}

func (CronJob) reportsObservedGeneration() bool { return false }

// Reflect implements Kind. The Jobs that are active are on the target. If the status named
// them, the hub's controller would report each of them as missing.
func (CronJob) Reflect(native *unstructured.Unstructured, seen Observation) map[string]any {
	status := statusWithoutProblems(native)
	for _, key := range []string{"lastScheduleTime", "lastSuccessfulTime"} {
		if value, found := seen.Status[key]; found {
			status[key] = value
		}
	}
	return status
}
