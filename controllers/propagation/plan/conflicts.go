package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Another manager may have set a field of an object that a resource owns. The winner
// depends on the kind of that write:
//
//   - An autoscaler writes through the scale subresource. It keeps the field. The controller
//     of HorizontalPodAutoscalers keeps it while an autoscaler names the object.
//   - A manager that uses server-side apply, as Portico does, claims the field. Neither
//     wins until a user decides: by leaving the field out, or by ForceAnnotation.
//   - Any other write is a change by hand. It is reverted.

// FieldOwner is a field and another manager that owns it.
type FieldOwner struct {
	Path    fieldpath.Path
	Manager string
	kind    ownerKind
}

type ownerKind int

const (
	byUpdate ownerKind = iota
	byScale
	byApply
)

// ApplyOptions are the consequences of conflicts for an apply.
type ApplyOptions struct {
	// Force takes fields from other managers.
	Force bool
	// Yielded are the fields that are left to other managers.
	Yielded []FieldOwner
}

// createOnlyVersion is a resource version that no object has, because etcd has a write
// before the first object. An apply with this version creates the object, or fails.
const createOnlyVersion = "1"

// ApplyRequest returns the object to apply, and whether to take fields from other
// managers. Fields are taken only on an object that the resource owns or adopts. An
// adopted object must be unchanged since it was read, because its owner may change it.
// If the object did not exist, the request creates it or fails, because another writer
// may create it.
func ApplyRequest(desired, observed *unstructured.Unstructured, state State, with ApplyOptions) (object *unstructured.Unstructured, force bool) {
	object = desired.DeepCopy()
	switch state {
	case Absent:
		object.SetResourceVersion(createOnlyVersion)
	case Adoptable:
		object.SetResourceVersion(observed.GetResourceVersion())
		fallthrough
	case Drifted:
		object.SetUID(observed.GetUID()) // only this object, and no other object of its name
		for _, c := range with.Yielded {
			if fields, simple := fieldNames(c.Path); simple {
				unstructured.RemoveNestedField(object.Object, fields...)
			}
		}
		return object, with.Force
	}
	return object, false
}

// fieldNames returns the names on a path, or false if the path has an item of a list.
func fieldNames(path fieldpath.Path) ([]string, bool) {
	out := make([]string, 0, len(path))
	for _, element := range path {
		if element.FieldName == nil {
			return nil, false
		}
		out = append(out, *element.FieldName)
	}
	return out, true
}

// ConflictingFields returns the paths of the fields of other managers for which an apply
// was refused. It returns none if the apply was refused for another reason.
func ConflictingFields(err error) []string {
	var status apierrors.APIStatus
	if !apierrors.IsConflict(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var out []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict && !slices.Contains(out, cause.Field) {
			out = append(out, cause.Field)
		}
	}
	slices.Sort(out) // the order of the API server is random
	return out
}

// IsUnexpected tells whether a target rejected an apply because of the state of the
// object: the object exists, was deleted, changed or replaced, or its fields have other
// managers. The API server rejects another UID as invalid.
func IsUnexpected(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return apierrors.IsConflict(err)
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool { return cause.Field == "metadata.uid" })
}

// FieldOwnersOf returns the owners of fields of an object, which has to be live: caches
// hold no managed fields.
func FieldOwnersOf(live *unstructured.Unstructured, fields []string) []FieldOwner {
	var out []FieldOwner
	for _, entry := range live.GetManagedFields() {
		if entry.FieldsV1 == nil || entry.Manager == v1alpha1.PropagationManager && entry.Operation == metav1.ManagedFieldsOperationApply {
			continue
		}
		owned := &fieldpath.Set{}
		if err := owned.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			continue // a format that this library does not support
		}
		owned.Iterate(func(path fieldpath.Path) {
			if slices.Contains(fields, path.String()) {
				out = append(out, FieldOwner{Path: path.Copy(), Manager: entry.Manager, kind: ownerKindOf(entry)})
			}
		})
	}
	slices.SortFunc(out, func(a, b FieldOwner) int {
		return strings.Compare(a.Path.String()+" "+a.Manager, b.Path.String()+" "+b.Manager)
	})
	return out
}

func ownerKindOf(entry metav1.ManagedFieldsEntry) ownerKind {
	kubectl := strings.HasPrefix(entry.Manager, "kubectl") // kubectl scale
	switch {
	case entry.Subresource == "scale" && !kubectl:
		return byScale
	case entry.Operation == metav1.ManagedFieldsOperationApply:
		return byApply
	}
	return byUpdate
}

// ResolveConflicts decides the conflicts of fields. One undecided conflict stops the whole
// apply, because a part of the desired changes may be worse than none.
func ResolveConflicts(all []FieldOwner) (with ApplyOptions, conflicts []FieldOwner) {
	with.Force = true
	for _, c := range all {
		switch _, plain := fieldNames(c.Path); {
		case c.kind == byScale && plain:
			with.Yielded = append(with.Yielded, c)
		case c.kind == byApply:
			conflicts = append(conflicts, c)
		}
	}
	return with, conflicts
}

// replicasPath is the field that an autoscaler sets.
const replicasPath = ".spec.replicas"

// ForReplicas leaves no replicas to an autoscaler if none are desired: an autoscaler
// does not scale an object without replicas.
func (o ApplyOptions) ForReplicas(desired *unstructured.Unstructured) ApplyOptions {
	if replicas, found, _ := unstructured.NestedInt64(desired.Object, "spec", "replicas"); found && replicas == 0 {
		o.Yielded = slices.DeleteFunc(o.Yielded, func(f FieldOwner) bool { return f.Path.String() == replicasPath })
	}
	return o
}

// autoscalerManagers are the managers of the fields that the controller of
// HorizontalPodAutoscalers sets: the names of the binaries that contain the controller.
// Other autoscalers, such as one of a platform, need no HorizontalPodAutoscaler.
var autoscalerManagers = []string{"kube-controller-manager", "k3s", "kubelite"}

func setByAutoscaler(f FieldOwner) bool {
	return f.Path.String() == replicasPath && slices.Contains(autoscalerManagers, f.Manager)
}

// DependsOnAutoscalers tells whether ForAutoscalers needs the autoscalers of the target.
func (o ApplyOptions) DependsOnAutoscalers() bool {
	return slices.ContainsFunc(o.Yielded, setByAutoscaler)
}

// ForAutoscalers takes the replicas from the controller of HorizontalPodAutoscalers if none
// of the autoscalers scales the object. The controller remains a manager of the replicas
// when an autoscaler is deleted.
func (o ApplyOptions) ForAutoscalers(desired *unstructured.Unstructured, autoscalers []unstructured.Unstructured) ApplyOptions {
	scaled := slices.ContainsFunc(autoscalers, func(autoscaler unstructured.Unstructured) bool {
		target, ok := kinds.ScaleTargetOf(&autoscaler)
		return ok && target.Is(desired)
	})
	if !scaled {
		o.Yielded = slices.DeleteFunc(o.Yielded, setByAutoscaler)
	}
	return o
}

// FieldConflictMessage names the fields of other managers, and the possible solutions.
func FieldConflictMessage(target string, object *unstructured.Unstructured, conflicts []FieldOwner) string {
	return fmt.Sprintf("target %s: %s %s was not applied, because other managers apply some of its fields: %s; "+
		"remove these fields here or there, or take them with the annotation %s=true",
		target, object.GetKind(), object.GetName(), listFieldOwners(conflicts), v1alpha1.ForceAnnotation)
}

// YieldedNote returns the end of the message that an object is applied.
func YieldedNote(yields []FieldOwner) string {
	if len(yields) == 0 {
		return ""
	}
	return ", except for the fields of an autoscaler there: " + listFieldOwners(yields)
}

func listFieldOwners(all []FieldOwner) string {
	return joinLimited(all, "; ", func(c FieldOwner) string { return fmt.Sprintf("%s, managed by %q", c.Path, c.Manager) })
}
