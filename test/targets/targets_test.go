package targets

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/test/badsecrets"
)

// TestTargets has one API server and one set of controllers. A problem of one target
// does not affect the others.
func TestTargets(t *testing.T) {
	w := start(t)
	t.Run("BadSecrets", w.badSecrets)
	t.Run("Rotation", w.rotation)
	t.Run("Impersonation", w.impersonation)
	t.Run("HubItself", w.hubItself)
	t.Run("ServiceAccountToken", w.serviceAccountToken)
	t.Run("Expiry", w.expiry)
}

// badSecrets publishes every bad Secret. The condition of each target describes the
// problem, and no text contains any of its data.
func (w *fixture) badSecrets(t *testing.T) {
	const canary = "nightingale-nightingale"
	namespace := w.namespace(t, "bad")
	corpus, err := badsecrets.Corpus(badsecrets.Server{URL: w.config.Host, CA: w.config.CAData})
	must(t, err)
	for _, tc := range corpus {
		w.publish(t, namespace, tc.Name, tc.Data(canary))
	}
	for _, tc := range corpus {
		eventually(t, "target "+tc.Name+" to say "+tc.Message, func() (bool, string) {
			target := w.target(t, namespace, tc.Name)
			condition := meta.FindStatusCondition(target.Status.Conditions, v1alpha1.TargetReachable)
			if condition == nil {
				return false, "nothing is said of it"
			}
			return condition.Status == metav1.ConditionFalse && strings.Contains(condition.Message, tc.Message), condition.Message
		})
	}
	expired := w.target(t, namespace, "expired-token")
	if valid := meta.FindStatusCondition(expired.Status.Conditions, v1alpha1.CredentialValid); valid == nil ||
		valid.Reason != v1alpha1.ReasonCredentialExpired || expired.Status.CredentialExpiryTime == nil {
		t.Errorf("the expired credential is not reported: %+v", expired.Status)
	}
	w.warned(t, namespace, "expired-certificate", v1alpha1.ReasonCredentialExpired)

	var targets v1alpha1.KubernetesTargetList
	var events eventsv1.EventList
	must(t, w.List(t.Context(), &targets, client.InNamespace(namespace)))
	must(t, w.List(t.Context(), &events, client.InNamespace(namespace)))
	for what, written := range map[string]any{"targets": targets, "events": events, "log": w.log.String()} {
		text, err := json.Marshal(written)
		must(t, err)
		for _, tc := range corpus {
			if tc.Leaks(string(text), canary) {
				t.Errorf("the %s have data of Secret %s", what, tc.Name)
			}
		}
	}
	if strings.Contains(w.log.String(), "panic") {
		t.Error("something panicked; see the log")
	}
	must(t, w.DeleteAllOf(t.Context(), &v1alpha1.KubernetesTarget{}, client.InNamespace(namespace)))
}

// rotation replaces the credential of a target while an object changes there.
func (w *fixture) rotation(t *testing.T) {
	namespace := w.namespace(t, "rotation")
	first := w.account(t, namespace, "first", everything...)
	second := w.account(t, namespace, "second", everything...)
	w.publish(t, namespace, "eu-1", w.connection(first))
	published := w.reachable(t, namespace, "eu-1", metav1.ConditionTrue)
	if !strings.Contains(w.config.Host, published.Status.Cluster) || published.Status.ServerVersion == "" ||
		published.Status.LastContactTime == nil || published.Status.CredentialExpiryTime == nil {
		t.Errorf("the status is incomplete: %+v", published.Status)
	}
	w.place(t, namespace, "web", "eu-1", configMap("rotation-there", "web", "wanted"))
	w.synced(t, namespace, "web", v1alpha1.ReasonApplied, nil)

	there := types.NamespacedName{Namespace: "rotation-there", Name: "web"}
	change := func(value string) {
		t.Helper()
		object := &corev1.ConfigMap{}
		must(t, w.Get(t.Context(), there, object))
		before := object.DeepCopy()
		object.Data["value"] = value
		must(t, w.Patch(t.Context(), object, client.MergeFrom(before)))
	}
	reverted := func(when string) {
		t.Helper()
		eventually(t, "the change "+when+" to be taken back", func() (bool, string) {
			object := &corev1.ConfigMap{}
			must(t, w.Get(t.Context(), there, object))
			return object.Data["value"] == "wanted", object.Data["value"]
		})
	}
	change("before")
	reverted("before")

	// The first account is deleted at once: a request with it would fail.
	w.rotate(t, namespace, "eu-1", w.connection(second))
	change("during")
	must(t, w.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "first"}}))
	reverted("during")
	change("after")
	reverted("after")
	if after := w.reachable(t, namespace, "eu-1", metav1.ConditionTrue); !after.Status.LastContactTime.Equal(published.Status.LastContactTime) {
		t.Error("the target was not away, and is said to have come back")
	}
	// A deletion has an event, too.
	must(t, w.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: there.Namespace, Name: there.Name}}))
	eventually(t, "the object to be made again", func() (bool, string) {
		err := w.Get(t.Context(), there, &corev1.ConfigMap{})
		return err == nil, fmt.Sprint(err)
	})
}

// impersonation impersonates a user with fewer rights than the connection. The message
// of the target is in the condition.
func (w *fixture) impersonation(t *testing.T) {
	namespace := w.namespace(t, "tenants")
	token := w.account(t, namespace, "portico", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"users"}, Verbs: []string{"impersonate"}, ResourceNames: []string{"portico:tenants"},
	})
	w.publish(t, namespace, "eu-1", w.connection(token), func(target *v1alpha1.KubernetesTarget) {
		target.Spec.Impersonate = &v1alpha1.Impersonation{User: "portico:elsewhere"}
	})
	refused := w.reachable(t, namespace, "eu-1", metav1.ConditionFalse)
	condition := meta.FindStatusCondition(refused.Status.Conditions, v1alpha1.TargetReachable)
	if condition.Reason != v1alpha1.ReasonImpersonationRefused || !strings.Contains(condition.Message, `cannot impersonate`) {
		t.Errorf("the target's words do not come through: %s: %s", condition.Reason, condition.Message)
	}

	target := refused.DeepCopy()
	target.Spec.Impersonate.User = "portico:{namespace}"
	must(t, w.Patch(t.Context(), target, client.MergeFrom(refused)))
	w.reachable(t, namespace, "eu-1", metav1.ConditionTrue)
	w.namespace(t, "tenants-there")
	w.place(t, namespace, "web", "eu-1", configMap("tenants-there", "web", "wanted"))

	words := func(verb string) func(string) bool {
		return func(message string) bool {
			return strings.Contains(message, fmt.Sprintf(`User "portico:tenants" cannot %s resource "configmaps"`, verb))
		}
	}
	user := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "portico:tenants"}
	w.synced(t, namespace, "web", v1alpha1.ReasonRefused, func(message string) bool { return words("list")(message) || words("watch")(message) })
	w.grant(t, "tenants-watch", user, rule("", "configmaps", "get", "list", "watch"))
	w.synced(t, namespace, "web", v1alpha1.ReasonRefused, words("patch"))
	w.grant(t, "tenants-write", user, rule("", "configmaps", "create", "patch", "delete"))
	w.synced(t, namespace, "web", v1alpha1.ReasonApplied, nil)

	// A revoked right is noticed, too.
	must(t, w.Delete(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "tenants-write"}}))
	resource := &v1alpha1.KubernetesApplicationResource{}
	must(t, w.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "web"}, resource))
	before := resource.DeepCopy()
	resource.Spec.Template.Raw = []byte(configMap("tenants-there", "web", "other"))
	must(t, w.Patch(t.Context(), resource, client.MergeFrom(before)))
	w.synced(t, namespace, "web", v1alpha1.ReasonRefused, words("patch"))
}

// hubItself publishes the hub. Objects run in another namespace of the hub, and an
// object cannot run in its own place.
func (w *fixture) hubItself(t *testing.T) {
	namespace := w.namespace(t, "infra")
	deployments := rule("apps", "deployments", "get", "list", "watch", "create", "patch", "delete")
	w.publish(t, namespace, "hub", w.connection(w.account(t, namespace, "portico", append(everything, deployments)...)))
	w.reachable(t, namespace, "hub", metav1.ConditionTrue)

	w.place(t, namespace, "elsewhere", "hub", `{"apiVersion":"apps/v1","kind":"Deployment",
		"metadata":{"namespace":"infra-there","name":"web","labels":{"app":"web","workload.crossplane.io/schedule":"remote"}},
		"spec":{"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web","workload.crossplane.io/schedule":"remote"}},
		"spec":{"containers":[{"name":"web","image":"nginx:1"}]}}}}`)
	w.synced(t, namespace, "elsewhere", v1alpha1.ReasonApplied, nil)
	arrived := &appsv1.Deployment{}
	must(t, w.Get(t.Context(), types.NamespacedName{Namespace: "infra-there", Name: "web"}, arrived))
	if _, sent := arrived.Labels[v1alpha1.ScheduleLabel]; sent || arrived.Spec.Template.Labels[v1alpha1.ScheduleLabel] != "" {
		t.Errorf("a sent object would be sent on: %v, %v", arrived.Labels, arrived.Spec.Template.Labels)
	}

	// The native object even has forged marks of Portico.
	native := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "web", Labels: map[string]string{v1alpha1.ManagedByLabel: "hub-of-this-test", v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote},
		Annotations: map[string]string{v1alpha1.ResourceNamespaceAnnotation: namespace, v1alpha1.ResourceNameAnnotation: "web-configmap"},
	}, Data: map[string]string{"value": "the user's"}}
	must(t, w.Create(t.Context(), native))
	w.place(t, namespace, "web-configmap", "hub", fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":%q,"name":"web"}}`, namespace), func(resource *v1alpha1.KubernetesApplicationResource) {
		resource.Labels = map[string]string{v1alpha1.FrontDoorLabel: v1alpha1.FrontDoor}
		resource.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ConfigMap", Name: native.Name, UID: native.UID, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}}
		resource.Finalizers = []string{v1alpha1.PropagationFinalizer}
	})
	w.synced(t, namespace, "web-configmap", v1alpha1.ReasonOwnershipConflict, func(message string) bool {
		return strings.Contains(message, "because that target is this hub") && strings.Contains(message, "another namespace")
	})
	resource := &v1alpha1.KubernetesApplicationResource{}
	must(t, w.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "web-configmap"}, resource))
	version := resource.ResourceVersion
	must(t, w.Delete(t.Context(), resource))
	eventually(t, "the resource to go", func() (bool, string) {
		err := w.Get(t.Context(), client.ObjectKeyFromObject(resource), resource)
		return apierrors.IsNotFound(err), fmt.Sprintf("it was at version %s when it was deleted: %v", version, err)
	})
	after := &corev1.ConfigMap{}
	must(t, w.Get(t.Context(), client.ObjectKeyFromObject(native), after))
	if after.ResourceVersion != native.ResourceVersion {
		t.Errorf("the user's own object was touched: %+v", after)
	}
}

// serviceAccountToken publishes the hub with the token Secret of a service account,
// which has no endpoint (S3).
func (w *fixture) serviceAccountToken(t *testing.T) {
	namespace := w.namespace(t, "native-providers")
	data := map[string][]byte{
		corev1.ServiceAccountTokenKey: []byte(w.account(t, namespace, "portico", everything...)), corev1.ServiceAccountRootCAKey: w.config.CAData,
		corev1.ServiceAccountNamespaceKey: []byte(namespace),
	}
	w.publish(t, namespace, "hub", data)
	w.reachable(t, namespace, "hub", metav1.ConditionTrue)
	w.place(t, namespace, "web", "hub", configMap("native-there", "web", "wanted"))
	w.synced(t, namespace, "web", v1alpha1.ReasonApplied, nil)
}
