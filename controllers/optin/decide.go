package optin

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// OptsIn tells whether a namespace opts in all objects that are created in it. portico
// is Portico's own namespace.
func OptsIn(namespace *metav1.PartialObjectMetadata, portico string) bool {
	switch namespace.Name {
	case metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease, portico:
		return false // config/webhook excludes them too
	}
	return namespace.DeletionTimestamp == nil && kinds.HasRemoteLabel(namespace)
}

// optedInAt returns the time at which a namespace got its label, by its managed fields:
// the last write of the manager that owns the label. Without such an entry it returns
// the time at which the namespace was created.
func optedInAt(namespace *metav1.PartialObjectMetadata) time.Time {
	var at time.Time
	for _, entry := range namespace.ManagedFields {
		if entry.Time != nil && entry.Time.After(at) && ownsLabel(entry) {
			at = entry.Time.Time
		}
	}
	if at.IsZero() {
		return namespace.CreationTimestamp.Time
	}
	return at
}

func ownsLabel(entry metav1.ManagedFieldsEntry) bool {
	var owned struct {
		Metadata struct {
			Labels map[string]json.RawMessage `json:"f:labels"`
		} `json:"f:metadata"`
	}
	if entry.FieldsV1 == nil || json.NewDecoder(entry.FieldsV1.GetRawReader()).Decode(&owned) != nil {
		return false
	}
	_, owns := owned.Metadata.Labels["f:"+v1alpha1.ScheduleLabel]
	return owns
}

// decision is the decision about an object without a schedule label that runs on the
// hub, in a namespace that opts in.
type decision struct {
	// OptIn gives the object the label.
	OptIn bool
	// Reason and Note of the event; empty for no event. Warning is set if a user has to
	// act.
	Reason, Note string
	Warning      bool
}

// decide decides about one object. immovable is the reason for which the object cannot
// move, or "". optedIn is the time at which its namespace opted in. adopt is set if the
// namespace also opts in the objects that existed before.
func decide(object *metav1.PartialObjectMetadata, immovable string, optedIn time.Time, adopt bool) decision {
	missed := !object.CreationTimestamp.Time.Before(optedIn)
	switch {
	case object.DeletionTimestamp != nil, isAPIServer(object), metav1.GetControllerOf(object) != nil, !missed && !adopt:
		return decision{}
	case immovable != "":
		return decision{Reason: v1alpha1.ReasonCannotMove, Warning: true, Note: fmt.Sprintf(
			"runs on the hub, although namespace %s opts in: %s; delete and re-create the %s, or label it %s=%s",
			object.Namespace, immovable, object.Kind, v1alpha1.ScheduleLabel, v1alpha1.ScheduleLocal)}
	case adopt:
		return decision{OptIn: true, Reason: v1alpha1.EventOptedIn, Note: fmt.Sprintf(
			"labelled %s=%s, because namespace %s opts in and has the annotation %s",
			v1alpha1.ScheduleLabel, v1alpha1.ScheduleRemote, object.Namespace, v1alpha1.AdoptExistingAnnotation)}
	}
	return decision{Reason: v1alpha1.EventRemainsOnHub, Warning: true, Note: fmt.Sprintf(
		"runs on the hub, although namespace %s opts in: it was created before the API server observed that; label it %[2]s=%[3]s to move it, or %[2]s=%[4]s to keep it here; "+
			"annotate the namespace with %[5]s=true to move all its objects",
		object.Namespace, v1alpha1.ScheduleLabel, v1alpha1.ScheduleRemote, v1alpha1.ScheduleLocal, v1alpha1.AdoptExistingAnnotation)}
}

// isAPIServer tells whether an object is the Service of the hub's API server.
func isAPIServer(object *metav1.PartialObjectMetadata) bool {
	return object.Kind == "Service" && object.Namespace == metav1.NamespaceDefault && object.Name == "kubernetes"
}
