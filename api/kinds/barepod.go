package kinds

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/kinds/fields"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Pod is a Pod without a controller. It is held by a scheduling gate. A Pod gets gates at
// its creation only, so one that exists does not move to a target. Pods of controllers
// are denied by a ValidatingAdmissionPolicy.
type Pod struct{}

var (
	_ Kind      = Pod{}
	_ RunsOnce  = Pod{}
	_ Validator = Pod{}
	_ Retainer  = Pod{}
)

var (
	specPath  = field.NewPath("spec")
	gatesPath = []string{"spec", "schedulingGates"}
)

// GroupVersionKind implements Kind.
func (Pod) GroupVersionKind() schema.GroupVersionKind {
	return corev1.SchemeGroupVersion.WithKind("Pod")
}

// Resource implements Kind.
func (Pod) Resource() string { return "pods" }

// Properties implements Kind.
func (Pod) Properties() Properties {
	return Properties{
		OptIn: true, Held: true, HeldAtCreation: true, HasStatus: true,
		Sent:    "the spec you wrote, if the Pod has no controller",
		NotSent: "the priority, tolerations, and volume with a token that the admission of the hub set",
	}
}

// Hold implements Kind. The API server refuses a gate next to a node name. Validate does
// so, too, and says more.
func (p Pod) Hold(object, old *unstructured.Unstructured, _ Author) (fields.Patch, error) {
	if old != nil || p.Held(object) || fields.String(object, "spec", "nodeName") != "" || metav1.GetControllerOfNoCopy(object) != nil {
		return nil, nil
	}
	gates, _, _ := unstructured.NestedSlice(object.Object, gatesPath...)
	return fields.Set(object, append(gates, map[string]any{"name": v1alpha1.RemoteSchedulingGate}), gatesPath...), nil
}

// Release implements Kind. Intake removes the gate.
func (Pod) Release(*unstructured.Unstructured) fields.Patch { return nil }

// Held implements Kind.
func (Pod) Held(object *unstructured.Unstructured) bool {
	gates, _, _ := unstructured.NestedFieldNoCopy(object.Object, gatesPath...)
	return slices.ContainsFunc(fields.Items(gates), isRemoteGate)
}

func isRemoteGate(gate map[string]any) bool { return gate["name"] == v1alpha1.RemoteSchedulingGate }

// Validate implements Validator.
func (p Pod) Validate(object, old *unstructured.Unstructured) field.ErrorList {
	gates := specPath.Child("schedulingGates")
	switch {
	case p.Held(object) && old != nil, old != nil && IsRemote(old) && !p.Held(old):
		return nil
	case p.Held(object):
		return validateVolumesAndClaims(object)
	case old == nil && fields.String(object, "spec", "nodeName") != "":
		return field.ErrorList{field.Forbidden(specPath.Child("nodeName"),
			"names a node of the hub, and the Pod runs on a target; leave the field out, or remove the label")}
	case old == nil:
		return field.ErrorList{field.Required(gates, "a Pod for a target needs the gate "+v1alpha1.RemoteSchedulingGate+", which Portico sets at its creation; create the Pod again")}
	case p.Held(old):
		return field.ErrorList{field.Forbidden(gates, "only Portico removes the gate "+v1alpha1.RemoteSchedulingGate+
			"; remove the label "+v1alpha1.ScheduleLabel+" alone to run the Pod on the hub")}
	}
	return field.ErrorList{field.Forbidden(schedulePath,
		"a Pod cannot move to a target after its creation, because scheduling gates cannot be added; delete the Pod and create it with the label")}
}

// validateVolumesAndClaims refuses the parts of a Pod for which the hub's controllers
// create objects before the Pod is scheduled.
func validateVolumesAndClaims(object *unstructured.Unstructured) field.ErrorList {
	var errs field.ErrorList
	spec, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec")
	pod, _ := spec.(map[string]any)
	for i, volume := range fields.Items(pod["volumes"]) {
		if volume["ephemeral"] != nil {
			errs = append(errs, field.Forbidden(specPath.Child("volumes").Index(i).Child("ephemeral"),
				"the hub would create the claim of this volume; put the Pod into a Job or a Deployment"))
		}
	}
	for i, claim := range fields.Items(pod["resourceClaims"]) {
		if claim["resourceClaimTemplateName"] != nil {
			errs = append(errs, field.Forbidden(specPath.Child("resourceClaims").Index(i).Child("resourceClaimTemplateName"),
				"the hub would create this claim; put the Pod into a Job or a Deployment"))
		}
	}
	return errs
}

// SetReturned returns a copy of a held Pod that the hub's scheduler takes. Its status is
// that of a new Pod.
func (Pod) SetReturned(object *unstructured.Unstructured) *unstructured.Unstructured {
	out := object.DeepCopy()
	fields.RemoveItems(out.Object["spec"], "schedulingGates", isRemoteGate)
	status := map[string]any{"phase": string(corev1.PodPending)}
	if class := fields.String(object, "status", "qosClass"); class != "" {
		status["qosClass"] = class
	}
	out.Object["status"] = status
	return out
}

// removeHubFields removes the fields that the hub's admission sets on every Pod. The
// target's admission sets its own, and refuses some of the hub's.
func (Pod) removeHubFields(template *unstructured.Unstructured, _ Intent) {
	spec, _, _ := unstructured.NestedFieldNoCopy(template.Object, "spec")
	pod, ok := spec.(map[string]any)
	if !ok {
		return
	}
	for _, key := range []string{"nodeName", "ephemeralContainers", "priority", "preemptionPolicy", "overhead"} {
		delete(pod, key)
	}
	if pod["serviceAccount"] == pod["serviceAccountName"] {
		delete(pod, "serviceAccount") // the deprecated name of the field
	}
	fields.RemoveItems(pod, "schedulingGates", isRemoteGate)
	fields.RemoveItems(pod, "tolerations", isDefaultToleration)
	removeTokenVolumes(pod)
}

// isDefaultToleration tells a toleration that the admission plugin
// DefaultTolerationSeconds sets.
func isDefaultToleration(toleration map[string]any) bool {
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if equality.Semantic.DeepEqual(toleration, map[string]any{
			"key": key, "operator": string(corev1.TolerationOpExists), "effect": string(corev1.TaintEffectNoExecute), "tolerationSeconds": int64(300),
		}) {
			return true
		}
	}
	return false
}

// The volume with a token that the admission plugin ServiceAccount mounts.
const (
	tokenVolumePrefix = "kube-api-access-"
	tokenMountPath    = "/var/run/secrets/kubernetes.io/serviceaccount"
)

// removeTokenVolumes removes the volumes with a token of the hub. A user who turned them
// off wrote such a volume.
func removeTokenVolumes(pod map[string]any) {
	if pod["automountServiceAccountToken"] == false {
		return
	}
	removed := map[string]bool{}
	fields.RemoveItems(pod, "volumes", func(volume map[string]any) bool {
		name, _ := volume["name"].(string)
		token := slices.ContainsFunc(fields.Items(fields.Child(volume, "projected")["sources"]), func(source map[string]any) bool {
			return source["serviceAccountToken"] != nil
		})
		removed[name] = removed[name] || token && strings.HasPrefix(name, tokenVolumePrefix)
		return removed[name]
	})
	for _, list := range []string{"initContainers", "containers"} {
		for _, container := range fields.Items(pod[list]) {
			fields.RemoveItems(container, "volumeMounts", func(mount map[string]any) bool {
				name, _ := mount["name"].(string)
				return removed[name] && mount["mountPath"] == tokenMountPath
			})
		}
	}
}

// Retain implements Retainer. The target's admission adds tolerations to a Pod, and none
// may be removed. An apply sends the whole list.
func (Pod) Retain(desired, observed *unstructured.Unstructured) {
	want, found, _ := unstructured.NestedSlice(desired.Object, "spec", "tolerations")
	have, _, _ := unstructured.NestedSlice(observed.Object, "spec", "tolerations")
	if !found {
		return
	}
	for _, toleration := range have {
		if !slices.ContainsFunc(want, func(other any) bool { return equality.Semantic.DeepEqual(toleration, other) }) {
			want = append(want, toleration)
		}
	}
	_ = unstructured.SetNestedSlice(desired.Object, want, "spec", "tolerations") // spec is an object
}

func (Pod) reportsObservedGeneration() bool { return false }

// podStatusFields are the fields of a Pod's status that come from the target. The
// addresses do not: the hub's EndpointSlices would have them. The others are about the
// hub, or about objects on the target.
var podStatusFields = []string{"phase", "reason", "message", "startTime", "initContainerStatuses", "containerStatuses", "conditions"}

// Reflect implements Kind.
func (Pod) Reflect(native *unstructured.Unstructured, seen Observation) map[string]any {
	current := statusWithoutProblems(native)
	status := current
	if seen.Status != nil {
		status = map[string]any{}
		if class, found := current["qosClass"]; found {
			status["qosClass"] = class
		}
		remote := runtime.DeepCopyJSON(seen.Status)
		for _, key := range podStatusFields {
			if value, found := remote[key]; found {
				status[key] = value
			}
		}
		for _, condition := range fields.Items(status["conditions"]) {
			delete(condition, "observedGeneration") // the target's
		}
		for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
			for _, container := range fields.Items(status[list]) {
				for _, key := range []string{"resources", "allocatedResources", "allocatedResourcesStatus"} {
					delete(container, key) // quotas of the hub would count them
				}
			}
			removeRestarted(native, current, status, list)
		}
	}
	if _, finished := (Pod{}).Finish(status); !finished {
		appendProblems(status, seen.Problems)
	}
	return status
}

// removeRestarted removes the statuses of containers that ended, as the hub has it, and
// run again, although their restart policy does not say so: the Pod was created again on
// the target. The API server accepts the new status once the old one is gone.
func removeRestarted(native *unstructured.Unstructured, current, status map[string]any, list string) {
	ended := map[any]bool{}
	for _, container := range fields.Items(current[list]) {
		terminated := fields.Child(fields.Child(container, "state"), "terminated")
		ended[container["name"]] = terminated != nil && !restarts(native, container["name"], terminated["exitCode"] != int64(0))
	}
	fields.RemoveItems(status, list, func(container map[string]any) bool {
		return ended[container["name"]] && fields.Child(fields.Child(container, "state"), "terminated") == nil
	})
}

// restarts tells whether a container starts again after it ended.
func restarts(pod *unstructured.Unstructured, name any, failed bool) bool {
	spec, _, _ := unstructured.NestedFieldNoCopy(pod.Object, "spec")
	values, _ := spec.(map[string]any)
	policy, _ := values["restartPolicy"].(string)
	for _, list := range []string{"initContainers", "containers"} {
		for _, container := range fields.Items(values[list]) {
			if own, _ := container["restartPolicy"].(string); container["name"] == name && own != "" {
				policy = own
			}
		}
	}
	return policy == string(corev1.RestartPolicyAlways) || policy == string(corev1.RestartPolicyOnFailure) && failed
}

// Finish implements RunsOnce.
func (Pod) Finish(status map[string]any) (map[string]any, bool) {
	return status, status["phase"] == string(corev1.PodSucceeded) || status["phase"] == string(corev1.PodFailed)
}

// Deleted implements RunsOnce. Nobody makes a Pod without a controller again, so its end is
// a failure. Its containers have the status that a kubelet gives to containers that it
// cannot find.
func (Pod) Deleted(status map[string]any) (map[string]any, bool) {
	last := runtime.DeepCopyJSON(status)
	last["phase"], last["reason"] = string(corev1.PodFailed), ReasonDeletedOnTarget
	last["message"] = "the Pod was deleted on its target, and is not created again; delete and re-create it to run it"
	for _, condition := range fields.Items(last["conditions"]) {
		if condition["type"] == string(corev1.PodReady) || condition["type"] == string(corev1.ContainersReady) {
			condition["status"], condition["reason"] = string(corev1.ConditionFalse), "PodFailed"
		}
	}
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, container := range fields.Items(last[list]) {
			container["ready"] = false
			if fields.Child(fields.Child(container, "state"), "running") != nil {
				container["started"] = false
				container["state"] = map[string]any{"terminated": map[string]any{"exitCode": int64(137), "reason": "ContainerStatusUnknown"}}
			}
		}
	}
	return last, true
}
