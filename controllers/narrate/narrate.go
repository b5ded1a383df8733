// Package narrate tells the story of an object in events, on the object the
// user looks at.
package narrate

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// Event is one sentence of the story.
type Event struct {
	Warning bool
	Reason  string
	Note    string
}

// told are the conditions whose changes are told, in the order of the story.
var told = []string{v1alpha1.Scheduled, v1alpha1.TargetReachable, v1alpha1.Synced, v1alpha1.Ready}

// Changes returns what changed between two sets of conditions, as a person
// would tell it: what went wrong, what went right again. Steps on the way
// ("connecting", "progressing") are not news.
func Changes(before, after []metav1.Condition) []Event {
	var out []Event
	for _, kind := range told {
		was, is := meta.FindStatusCondition(before, kind), meta.FindStatusCondition(after, kind)
		if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message {
			continue
		}
		switch is.Status {
		case metav1.ConditionTrue:
			if was != nil && was.Status == metav1.ConditionTrue {
				continue
			}
			if kind == v1alpha1.TargetReachable {
				if was == nil || was.Status != metav1.ConditionFalse {
					continue
				}
				out = append(out, Event{Reason: v1alpha1.EventRecovered, Note: is.Message + " again"})
				continue
			}
			out = append(out, Event{Reason: is.Reason, Note: is.Message})
		case metav1.ConditionFalse:
			if quiet(kind, is.Reason) {
				continue
			}
			// An outage is one piece of news, however it shows from one probe
			// to the next, and whoever probes.
			if kind == v1alpha1.TargetReachable && was != nil && was.Status == is.Status && was.Reason == is.Reason {
				continue
			}
			out = append(out, Event{Warning: true, Reason: is.Reason, Note: is.Message})
		}
	}
	return out
}

func quiet(kind, reason string) bool {
	switch reason {
	case v1alpha1.ReasonApplying, v1alpha1.ReasonConnecting, v1alpha1.ReasonNotScheduled,
		v1alpha1.ReasonProgressing, v1alpha1.ReasonWithdrawing, v1alpha1.ReasonPartiallyApplied:
		return true
	}
	return kind == v1alpha1.Ready && reason != v1alpha1.ReasonFailed
}

// Tell records events on an object.
func Tell(recorder events.EventRecorder, about runtime.Object, action string, story ...Event) {
	for _, e := range story {
		kind := corev1.EventTypeNormal
		if e.Warning {
			kind = corev1.EventTypeWarning
		}
		recorder.Eventf(about, nil, kind, e.Reason, action, "%s", shorten(e.Note))
	}
}

// maxNote is what the API server accepts.
const maxNote = 1024

func shorten(note string) string { return policies.Shorten(note, maxNote) }

// Subject is the object a resource's story is told on: the native object that
// owns it, else the resource itself.
func Subject(resource *v1alpha1.KubernetesApplicationResource) client.Object {
	owner := metav1.GetControllerOf(resource)
	if owner == nil || resource.Labels[v1alpha1.FrontDoorLabel] != v1alpha1.FrontDoor {
		return resource
	}
	native := &metav1.PartialObjectMetadata{}
	native.SetGroupVersionKind(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
	native.SetNamespace(resource.Namespace)
	native.SetName(owner.Name)
	native.SetUID(owner.UID)
	return native
}
