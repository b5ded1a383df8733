package targets

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/test/cluster"
)

// expiry connects another cluster with a certificate that expires soon, lets it expire,
// and replaces it.
func (w *fixture) expiry(t *testing.T) {
	namespace := w.namespace(t, "expiry")
	other, err := cluster.Start(t.Context(), cluster.Options{Name: "expiry", Components: cluster.ControlPlane})
	must(t, err)
	t.Cleanup(func() { must(t, other.Shutdown()) })
	ends := time.Now().Add(20 * time.Second).Truncate(time.Second)
	user, err := other.AddUserUntil(ends, "portico", "system:masters")
	must(t, err)
	w.publish(t, namespace, "eu-1", map[string][]byte{v1alpha1.SecretKubeconfig: user.Kubeconfig})

	w.warned(t, namespace, "eu-1", v1alpha1.ReasonCredentialExpiring)
	w.credential(t, namespace, "eu-1", v1alpha1.ReasonCredentialExpired)
	w.warned(t, namespace, "eu-1", v1alpha1.ReasonCredentialExpired)
	eventually(t, "the target to be away because of it", func() (bool, string) {
		condition := meta.FindStatusCondition(w.target(t, namespace, "eu-1").Status.Conditions, v1alpha1.TargetReachable)
		return condition.Status == metav1.ConditionFalse && condition.Reason == v1alpha1.ReasonCredentialExpired, condition.Reason + ": " + condition.Message
	})
	message := w.target(t, namespace, "eu-1")
	if at := message.Status.CredentialExpiryTime; at == nil || !at.Time.Equal(ends) {
		t.Errorf("it is said to have ended at %v, and not at %s", at, ends)
	}
	if left := w.secondsLeft(t, "eu-1"); left > 0 {
		t.Errorf("the metric tells of %f seconds that are left", left)
	}

	user, err = other.AddUser("portico", "system:masters")
	must(t, err)
	w.rotate(t, namespace, "eu-1", map[string][]byte{v1alpha1.SecretKubeconfig: user.Kubeconfig})
	w.reachable(t, namespace, "eu-1", metav1.ConditionTrue)
	w.credential(t, namespace, "eu-1", v1alpha1.ReasonCredentialCurrent)
	if left := w.secondsLeft(t, "eu-1"); left <= 0 {
		t.Errorf("the metric tells that the new certificate ended: %f", left)
	}
}

// credential waits for a reason in the condition of a target's credential.
func (w *fixture) credential(t *testing.T, namespace, name, reason string) {
	t.Helper()
	eventually(t, "the credential of "+name+" to be "+reason, func() (bool, string) {
		condition := meta.FindStatusCondition(w.target(t, namespace, name).Status.Conditions, v1alpha1.CredentialValid)
		if condition == nil {
			return false, "nothing is said of it"
		}
		return condition.Reason == reason, condition.Message
	})
}

// warned waits for a warning event of a target.
func (w *fixture) warned(t *testing.T, namespace, name, reason string) {
	t.Helper()
	eventually(t, "a warning that "+name+" is "+reason, func() (bool, string) {
		var list eventsv1.EventList
		must(t, w.List(t.Context(), &list, client.InNamespace(namespace)))
		for _, event := range list.Items {
			if event.Reason == reason && event.Regarding.Name == name && event.Type == "Warning" {
				return true, ""
			}
		}
		return false, fmt.Sprintf("there are %d others", len(list.Items))
	})
}

// secondsLeft returns the value of the metric for a target's credential.
func (w *fixture) secondsLeft(t *testing.T, name string) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.clusters)
	families, err := registry.Gather()
	must(t, err)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetValue() == name {
					return metric.GetGauge().GetValue()
				}
			}
		}
	}
	t.Fatalf("no metric tells of target %s", name)
	return 0
}
