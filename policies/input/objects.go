package input

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/kinds"
	workloadv1alpha1 "github.com/portico-io/portico/api/workload/v1alpha1"
)

// Question holds the objects of an input.
type Question struct {
	// Request is the admission request. Defaults for Name, Namespace and Kind are those
	// of Object, or of Target.
	Request Request
	// Object of a Scheduling policy.
	Object *unstructured.Unstructured
	// OldObject is the object before an update; otherwise nil.
	OldObject *unstructured.Unstructured
	// Namespace of the object; nil if it is not known.
	Namespace *corev1.Namespace
	// Application of the object.
	Application Application
	// Targets are the candidates of a Scheduling policy.
	Targets []*workloadv1alpha1.KubernetesTarget
	// Placed is the number of resources on each target.
	Placed map[string]int
	// Target of a Publish policy.
	Target *workloadv1alpha1.KubernetesTarget
	// OldTarget is the target before an update; otherwise nil.
	OldTarget *workloadv1alpha1.KubernetesTarget
	// Existing are the other targets of the namespace or of the cluster.
	Existing []*workloadv1alpha1.KubernetesTarget
	// ClusterID identifies the cluster of Target, if it is known.
	ClusterID string
}

// NewScheduling returns the input of a Scheduling policy with the parameters.
func NewScheduling(q Question, parameters map[string]any) *Scheduling {
	in := &Scheduling{
		Version:     Version,
		Request:     q.Request,
		Object:      Object{Metadata: noMetadata()},
		Namespace:   newNamespace(q.Namespace, q.Request.Namespace),
		Application: q.Application,
		Placed:      orEmptyMap(q.Placed),
		Parameters:  orEmptyMap(parameters),
	}
	if q.Object != nil {
		in.Object = NewObject(q.Object)
		in.Request.setDefaults(in.Object.Metadata)
		in.Namespace = newNamespace(q.Namespace, in.Request.Namespace)
		if in.Request.Kind.Kind == "" {
			gvk := q.Object.GroupVersionKind()
			in.Request.Kind = Kind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
		}
	}
	if q.OldObject != nil {
		old := NewObject(q.OldObject)
		in.OldObject = &old
	}
	in.Targets = newTargets(q.Targets)
	in.Request.User.Groups = orEmptySlice(in.Request.User.Groups)
	return in
}

// NewPublish returns the input of a Publish policy with the parameters.
func NewPublish(q Question, parameters map[string]any) *Publish {
	in := &Publish{
		Version:    Version,
		Request:    q.Request,
		Target:     Target{Metadata: noMetadata(), Status: TargetStatus{Conditions: []Condition{}}},
		Cluster:    Cluster{ID: q.ClusterID},
		Existing:   newTargets(q.Existing),
		Parameters: orEmptyMap(parameters),
	}
	if q.Target != nil {
		in.Target = NewTarget(q.Target)
		in.Target.Cluster.ID = q.ClusterID
		in.Cluster = in.Target.Cluster
		in.Request.setDefaults(in.Target.Metadata)
		if in.Request.Kind.Kind == "" {
			in.Request.Kind = Kind{Group: workloadv1alpha1.Group, Version: workloadv1alpha1.GroupVersion.Version, Kind: "KubernetesTarget"}
		}
	}
	if q.OldTarget != nil {
		old := NewTarget(q.OldTarget)
		in.OldTarget = &old
	}
	in.Namespace = newNamespace(q.Namespace, in.Request.Namespace)
	in.Request.User.Groups = orEmptySlice(in.Request.User.Groups)
	return in
}

func (r *Request) setDefaults(meta Metadata) {
	r.Name = cmp.Or(r.Name, meta.Name)
	r.Namespace = cmp.Or(r.Namespace, meta.Namespace)
}

// NewTarget returns a target as policies see it.
func NewTarget(target *workloadv1alpha1.KubernetesTarget) Target {
	out := Target{
		Metadata: newMetadata(target),
		Status:   TargetStatus{Conditions: make([]Condition, 0, len(target.Status.Conditions))},
		Cluster:  Cluster{Version: target.Status.ServerVersion},
	}
	if ref := target.Spec.ConnectionSecretRef; ref != nil {
		out.Spec.ConnectionSecretRef = &SecretReference{Name: ref.Name}
		if ref.Namespace != target.Namespace {
			out.Spec.ConnectionSecretRef.Namespace = ref.Namespace
		}
	}
	out.Spec.Connection = string(target.Spec.Connection)
	if ref := target.Spec.ClusterRef; ref != nil {
		out.Spec.ClusterRef = &ClusterReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name}
	}
	for _, c := range target.Status.Conditions {
		out.Status.Conditions = append(out.Status.Conditions, Condition{Type: c.Type, Status: string(c.Status), Reason: c.Reason})
	}
	return out
}

func newTargets(targets []*workloadv1alpha1.KubernetesTarget) []Target {
	out := make([]Target, 0, len(targets))
	for _, target := range Sorted(targets) {
		out = append(out, NewTarget(target))
	}
	return out
}

// Sorted returns the targets by namespace and name. It copies the slice unless it is
// already sorted.
func Sorted(targets []*workloadv1alpha1.KubernetesTarget) []*workloadv1alpha1.KubernetesTarget {
	order := func(a, b *workloadv1alpha1.KubernetesTarget) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	if slices.IsSortedFunc(targets, order) {
		return targets
	}
	return slices.SortedFunc(slices.Values(targets), order)
}

// NewObject returns an object as policies see it. It shares no memory with the object.
func NewObject(object *unstructured.Unstructured) Object {
	content, _ := redact(object.Object).(map[string]any)
	out := Object{
		APIVersion: object.GetAPIVersion(),
		Kind:       object.GetKind(),
		Metadata:   newMetadata(object),
	}
	out.Spec, _ = content["spec"].(map[string]any)
	out.Status, _ = content["status"].(map[string]any)
	out.Data, _ = content["data"].(map[string]any)
	out.Type, _ = content["type"].(string)
	out.Rules, _ = content["rules"].([]any)
	out.RoleRef, _ = content["roleRef"].(map[string]any)
	out.Subjects, _ = content["subjects"].([]any)
	return out
}

// lastApplied contains the whole object, and so the content of a Secret.
const lastApplied = corev1.LastAppliedConfigAnnotation

// redact copies a JSON value without the parts that policies must not see:
// managedFields, the last-applied annotation, and the data of Secrets at any depth,
// such as in the template of an application.
func redact(value any) any {
	switch v := value.(type) {
	case map[string]any:
		secret := v["kind"] == "Secret"
		out := make(map[string]any, len(v))
		for key, field := range v {
			switch {
			case key == "managedFields", key == lastApplied:
			case secret && slices.Contains(kinds.SecretDataFields, key):
			default:
				out[key] = redact(field)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = redact(v[i])
		}
		return out
	default:
		return value
	}
}

func newMetadata(object metav1.Object) Metadata {
	out := Metadata{
		Name:         object.GetName(),
		GenerateName: object.GetGenerateName(),
		Namespace:    object.GetNamespace(),
		Labels:       orEmptyMap(object.GetLabels()),
		Annotations:  withoutLastApplied(object.GetAnnotations()),
		UID:          string(object.GetUID()),
	}
	if created := object.GetCreationTimestamp(); !created.IsZero() {
		out.CreationTimestamp = created.UTC().Format(time.RFC3339)
	}
	if going := object.GetDeletionTimestamp(); going != nil {
		out.DeletionTimestamp = going.UTC().Format(time.RFC3339)
	}
	return out
}

// noMetadata returns empty metadata.
func noMetadata() Metadata {
	return Metadata{Labels: map[string]string{}, Annotations: map[string]string{}}
}

func newNamespace(namespace *corev1.Namespace, name string) Namespace {
	if namespace == nil {
		namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	return Namespace{Metadata: NamespaceMetadata{
		Name:        namespace.Name,
		Labels:      orEmptyMap(namespace.Labels),
		Annotations: withoutLastApplied(namespace.Annotations),
	}}
}

func withoutLastApplied(annotations map[string]string) map[string]string {
	if _, has := annotations[lastApplied]; has {
		annotations = maps.Clone(annotations)
		delete(annotations, lastApplied)
	}
	return orEmptyMap(annotations)
}

func orEmptyMap[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}

func orEmptySlice(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
