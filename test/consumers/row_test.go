package consumers

import (
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/json" // keeps integers
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// row has the input of Portico for one native object, and the expected result of each
// consumer for the status that Portico writes.
type row struct {
	reason string

	// hub is the stored object with its earlier status.
	hub runtime.Object
	// target is the last observation of the object on the target; nil if it was never
	// observed.
	target *observedObject
	// remembered is the hub's generation that the target had observed at an earlier
	// observation.
	remembered int64
	// template is the generation in the annotation of the last sent object, if later
	// generations on the hub did not change the object.
	template int64
	// conditions of the KubernetesApplicationResource.
	conditions []metav1.Condition
	// unmade means that the hub's Deployment controller has not created the ReplicaSet
	// of the current template yet.
	unmade bool
	// odd means that no controller of Kubernetes reports such a status.
	odd bool

	kubectl, kstatus, helm3 outcome
	argoCD                  string // the health
}

// observedObject is one observation of the object on its target.
type observedObject struct {
	generation int64 // of the target's object
	stamp      int64 // the last applied generation of the hub
	unstamped  bool  // the annotation with that generation was removed
	status     any
	raw        string // replaces status, if the reported status is no object
}

// outcome is the result of a consumer.
type outcome struct {
	State   string
	Message string
}

func done(message string) outcome    { return outcome{State: "done", Message: message} }
func waiting(message string) outcome { return outcome{State: "waiting", Message: message} }
func failed(message string) outcome  { return outcome{State: "failed", Message: message} }

// noViewer is the error of kubectl rollout status for other kinds.
var noViewer = failed("no status viewer has been implemented for Service")

// onTarget returns the observed object: the object that Portico sends, with the
// target's generation and status.
func (r row) onTarget(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	if r.target == nil {
		return nil
	}
	native := toUnstructured(t, r.hub)
	target, err := kinds.Project(kindOf(t, native), native)
	if err != nil {
		t.Fatal(err)
	}
	target.SetGeneration(r.target.generation)
	if annotations := target.GetAnnotations(); annotations[v1alpha1.HubGenerationAnnotation] != "" {
		annotations[v1alpha1.HubGenerationAnnotation] = strconv.FormatInt(r.target.stamp, 10)
		if r.target.unstamped {
			delete(annotations, v1alpha1.HubGenerationAnnotation)
		}
		target.SetAnnotations(annotations)
	}
	data, err := json.Marshal(r.target.status)
	if err != nil {
		t.Fatal(err)
	}
	status := map[string]any{}
	if err := json.Unmarshal(data, &status); err != nil {
		t.Fatal(err)
	}
	target.Object["status"] = status
	return target
}

// observation returns Portico's observation of the object.
func (r row) observation(t *testing.T) kinds.Observation {
	t.Helper()
	seen := kinds.Observation{HubGeneration: r.remembered, Problems: kinds.Problems(r.conditions)}
	if target := r.onTarget(t); target != nil {
		if generation := r.observed(t, target); generation > 0 {
			seen.HubGeneration = generation
		}
		seen.Status, _, _ = unstructured.NestedMap(target.Object, "status")
	}
	return seen
}

// observed returns the generation of the hub that the target has observed.
func (r row) observed(t *testing.T, target *unstructured.Unstructured) int64 {
	t.Helper()
	native := toUnstructured(t, r.hub)
	template, err := kinds.Project(kindOf(t, native), native)
	if err != nil {
		t.Fatal(err)
	}
	resource := &v1alpha1.KubernetesApplicationResource{}
	if projected := kinds.HubGeneration(template); projected != 0 {
		metav1.SetMetaDataAnnotation(&resource.ObjectMeta, v1alpha1.HubGenerationAnnotation, strconv.FormatInt(projected, 10))
	}
	if r.template != 0 {
		template.SetAnnotations(map[string]string{v1alpha1.HubGenerationAnnotation: strconv.FormatInt(r.template, 10)})
	}
	return kinds.ObservedHubGeneration(resource, template, target)
}

// onHub returns the object with the status that Portico writes.
func (r row) onHub(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	native := toUnstructured(t, r.hub)
	native.Object["status"] = kindOf(t, native).Reflect(native, r.observation(t))
	return native
}

// shadows returns the ReplicaSets of a Deployment on the hub, with the statuses that
// Portico writes: one of an older template, and one of the current template unless the
// row has unmade.
func (r row) shadows(t *testing.T) []appsv1.ReplicaSet {
	t.Helper()
	deployment, ok := r.hub.(*appsv1.Deployment)
	if !ok {
		return nil
	}
	older := shadow(deployment, 1)
	older.Spec.Template.Spec.Containers[0].Image = "wordpress:5"
	out := []appsv1.ReplicaSet{older}
	if !r.unmade {
		out = append(out, shadow(deployment, 2))
	}
	objects := make([]metav1.Object, 0, len(out))
	for i := range out {
		objects = append(objects, &out[i])
	}
	observation := r.observation(t)
	status := observation.Status
	if status == nil || observation.HubGeneration < deployment.Generation {
		return out // Portico writes these statuses when the target has observed the generation
	}
	var remote appsv1.DeploymentStatus
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(status, &remote); err != nil {
		t.Fatal(err)
	}
	newest := kinds.NewestReplicaSet(objects)
	for i := range out {
		out[i].Status = kinds.HeldReplicaSetStatus(remote, out[i].Generation, metav1.Object(&out[i]) == newest)
	}
	return out
}

func shadow(deployment *appsv1.Deployment, revision int) appsv1.ReplicaSet {
	name := deployment.Name + "-" + strconv.Itoa(revision)
	hash := map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: strconv.Itoa(revision)}
	rs := appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       deployment.Namespace,
			Name:            name,
			Generation:      1,
			Annotations:     map[string]string{"deployment.kubernetes.io/revision": strconv.Itoa(revision)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To(int32(0)),
			Selector: &metav1.LabelSelector{MatchLabels: hash},
			Template: *deployment.Spec.Template.DeepCopy(),
		},
	}
	for key, value := range deployment.Spec.Selector.MatchLabels {
		rs.Spec.Selector.MatchLabels[key] = value
	}
	rs.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = strconv.Itoa(revision)
	rs.Labels = rs.Spec.Template.Labels
	return rs
}

const (
	namespace = "default"
	uid       = "1f6d9e3c-0c9a-4f5e-8a53-2f7c1f6f0001"
)

// deployment returns a held Deployment as the API server stores it.
func deployment(generation int64, replicas int32, before appsv1.DeploymentStatus, changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "web", UID: uid, Generation: generation,
			Labels: map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{
				Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{
					MaxSurge:       ptr.To(intstr.FromString("25%")),
					MaxUnavailable: ptr.To(intstr.FromString("25%")),
				},
			},
			ProgressDeadlineSeconds: ptr.To(int32(600)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web", v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "wordpress:6"}}},
			},
		},
		Status: before,
	}
	for _, change := range changes {
		change(d)
	}
	return d
}

func paused(d *appsv1.Deployment) { d.Spec.Paused = true }

func noProgressDeadline(d *appsv1.Deployment) {
	d.Spec.ProgressDeadlineSeconds = ptr.To(int32(1<<31 - 1))
}

// service returns a Service as the API server stores it.
func service(kind corev1.ServiceType, clusterIP string, before corev1.ServiceStatus) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "web", UID: uid,
			Labels: map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote},
		},
		Spec: corev1.ServiceSpec{
			Type:      kind,
			ClusterIP: clusterIP,
			Ports:     []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}},
		},
		Status: before,
	}
	switch kind {
	case corev1.ServiceTypeLoadBalancer:
		s.Spec.LoadBalancerClass = ptr.To(v1alpha1.RemoteLoadBalancerClass)
	case corev1.ServiceTypeExternalName:
		s.Spec.ExternalName = "blog.example.com"
	}
	return s
}

// epoch is the time of all changes in these tests.
var epoch = metav1.NewTime(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))

// The conditions of a Deployment controller.
var (
	available     = condition(appsv1.DeploymentAvailable, corev1.ConditionTrue, "MinimumReplicasAvailable", "Deployment has minimum availability.")
	unavailable   = condition(appsv1.DeploymentAvailable, corev1.ConditionFalse, "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
	complete      = condition(appsv1.DeploymentProgressing, corev1.ConditionTrue, "NewReplicaSetAvailable", `ReplicaSet "web-6d4b75cb6d" has successfully progressed.`)
	progressing   = condition(appsv1.DeploymentProgressing, corev1.ConditionTrue, "ReplicaSetUpdated", `ReplicaSet "web-6d4b75cb6d" is progressing.`)
	stuck         = condition(appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded", `ReplicaSet "web-6d4b75cb6d" has timed out progressing.`)
	pausedOnward  = condition(appsv1.DeploymentProgressing, corev1.ConditionUnknown, "DeploymentPaused", "Deployment is paused")
	quotaExceeded = condition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "FailedCreate", `pods "web-6d4b75cb6d-" is forbidden: exceeded quota: small`)
)

func condition(kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) appsv1.DeploymentCondition {
	return appsv1.DeploymentCondition{Type: kind, Status: status, Reason: reason, Message: message, LastUpdateTime: epoch, LastTransitionTime: epoch}
}

// counts returns the status of a Deployment. unavailable is the number in
// unavailableReplicas.
func counts(observed int64, replicas, updated, ready, availableReplicas, unavailableReplicas int32, conditions ...appsv1.DeploymentCondition) appsv1.DeploymentStatus {
	return appsv1.DeploymentStatus{
		ObservedGeneration: observed, Replicas: replicas, UpdatedReplicas: updated, ReadyReplicas: ready,
		AvailableReplicas: availableReplicas, UnavailableReplicas: unavailableReplicas, Conditions: conditions,
	}
}

// problem returns a condition of a KubernetesApplicationResource.
func problem(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: epoch}
}

var (
	unreachable = problem(v1alpha1.TargetReachable, v1alpha1.ReasonUnreachable, "target eu-1 does not answer")
	refused     = problem(v1alpha1.Synced, v1alpha1.ReasonRefused, "target eu-1 refused Deployment web: exceeded quota")
	homeless    = problem(v1alpha1.Scheduled, v1alpha1.ReasonNoMatchingTarget, "no target matches")
)

func toUnstructured(t *testing.T, object runtime.Object) *unstructured.Unstructured {
	t.Helper()
	gvks, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		t.Fatal(err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvks[0])
	return u
}

func kindOf(t *testing.T, object *unstructured.Unstructured) kinds.Kind {
	t.Helper()
	kind, known := kinds.For(object.GroupVersionKind())
	if !known {
		t.Fatalf("Portico does not know %s", object.GroupVersionKind())
	}
	return kind
}
