package propagation

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Who wins a field of an object that is ours, when somebody else has set it on
// the target, follows from how they did:
//
//   - An autoscaler, which scales by the subresource made for that, keeps it.
//   - Who applies it, as Portico does, declares that it is theirs. Neither wins
//     until somebody decides, by leaving it out or by ForceAnnotation.
//   - Anybody else changed it by hand, and it is changed back.

// claim is a field that somebody else owns.
type claim struct {
	path    fieldpath.Path
	manager string
	kind    claimKind
}

type claimKind int

const (
	edited claimKind = iota
	scaled
	declared
)

// insistence is how much of what is desired is insisted on.
type insistence struct {
	// force takes fields from other managers.
	force bool
	// yields are the fields that are left to others.
	yields []claim
}

// forced tells whether a resource takes fields from whoever applies them.
func forced(resource metav1.Object) bool {
	return resource.GetAnnotations()[v1alpha1.ForceAnnotation] == "true"
}

// noVersion is a resource version that no object has: a store has been written to
// before it holds one. Who asks for it changes nothing that exists, and makes what
// does not.
const noVersion = "1"

// request is what is asked of a target to make an object what it should be. Fields
// are taken from other managers only on an object that is ours already, or that is
// taken over: as it was looked at, because its owner may do something too. What did
// not exist is made, or else nothing is done: somebody may make it meanwhile.
func request(desired, observed *unstructured.Unstructured, at standing, with insistence) (*unstructured.Unstructured, []client.ApplyOption) {
	object := desired.DeepCopy()
	options := []client.ApplyOption{client.FieldOwner(v1alpha1.PropagationManager)}
	switch at {
	case absent:
		object.SetResourceVersion(noVersion)
	case taken:
		object.SetResourceVersion(observed.GetResourceVersion())
		fallthrough
	case drifted:
		object.SetUID(observed.GetUID()) // this one, and no other that has its name by now
		if with.force {
			options = append(options, client.ForceOwnership)
		}
		for _, c := range with.yields {
			if fields, plain := fieldsOf(c.path); plain {
				unstructured.RemoveNestedField(object.Object, fields...)
			}
		}
	}
	return object, options
}

// fieldsOf returns the names on a path that leads through no list.
func fieldsOf(path fieldpath.Path) ([]string, bool) {
	out := make([]string, 0, len(path))
	for _, element := range path {
		if element.FieldName == nil {
			return nil, false
		}
		out = append(out, *element.FieldName)
	}
	return out, true
}

// contested are the fields, as paths, that an apply was refused for because they
// are other managers'; none when it was refused for another reason.
func contested(err error) []string {
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
	slices.Sort(out) // the server names them in any order
	return out
}

// claims says who owns fields of an object, which has to be live: caches hold no
// managed fields.
func claims(live *unstructured.Unstructured, fields []string) []claim {
	var out []claim
	for _, entry := range live.GetManagedFields() {
		if entry.FieldsV1 == nil || entry.Manager == v1alpha1.PropagationManager && entry.Operation == metav1.ManagedFieldsOperationApply {
			continue
		}
		owned := &fieldpath.Set{}
		if err := owned.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			continue // in a form that this library is too old for
		}
		owned.Iterate(func(path fieldpath.Path) {
			if slices.Contains(fields, path.String()) {
				out = append(out, claim{path: path.Copy(), manager: entry.Manager, kind: kindOf(entry)})
			}
		})
	}
	slices.SortFunc(out, func(a, b claim) int {
		return strings.Compare(a.path.String()+" "+a.manager, b.path.String()+" "+b.manager)
	})
	return out
}

func kindOf(entry metav1.ManagedFieldsEntry) claimKind {
	byHand := strings.HasPrefix(entry.Manager, "kubectl") // kubectl scale
	switch {
	case entry.Subresource == "scale" && !byHand:
		return scaled
	case entry.Operation == metav1.ManagedFieldsOperationApply:
		return declared
	}
	return edited
}

// settle decides who wins. What is disputed stops all of the object from being
// written: half of it may be worse than none.
func settle(all []claim) (with insistence, disputed []claim) {
	with.force = true
	for _, c := range all {
		switch _, plain := fieldsOf(c.path); {
		case c.kind == scaled && plain:
			with.yields = append(with.yields, c)
		case c.kind == declared:
			disputed = append(disputed, c)
		}
	}
	return with, disputed
}

// fieldConflict names fields that others apply, and the ways out.
func fieldConflict(target string, object *unstructured.Unstructured, disputed []claim) string {
	return fmt.Sprintf("target %s: %s %s was not written, because others apply fields of it there: %s; "+
		"leave them out here, or have them left out there, or take them with the annotation %s=true",
		target, object.GetKind(), object.GetName(), list(disputed), v1alpha1.ForceAnnotation)
}

// yielded ends the sentence that an object is applied.
func yielded(yields []claim) string {
	if len(yields) == 0 {
		return ""
	}
	return ", but for what an autoscaler there decides: " + list(yields)
}

func list(all []claim) string {
	return enumerate(all, "; ", func(c claim) string { return fmt.Sprintf("%s, managed by %q", c.path, c.manager) })
}
