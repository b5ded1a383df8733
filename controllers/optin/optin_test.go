package optin

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/test/apiserver"
)

// TestReconcile creates objects on a real API server without webhooks. An API server
// that does not have the namespace's label yet does not call webhooks either.
func TestReconcile(t *testing.T) {
	hub, err := client.New(apiserver.Start(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	create := func(object client.Object) client.Object {
		t.Helper()
		if err := hub.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		return object
	}
	settings := func(schedule string) map[string]string { return map[string]string{v1alpha1.ScheduleLabel: schedule} }
	meta := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labels}
	}
	deployment := func(name string, labels map[string]string) client.Object {
		app := map[string]string{"app": name}
		return &appsv1.Deployment{ObjectMeta: meta(name, labels), Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}}},
		}}
	}
	service := func(name string, kind corev1.ServiceType) client.Object {
		return &corev1.Service{ObjectMeta: meta(name, nil), Spec: corev1.ServiceSpec{Type: kind, Ports: []corev1.ServicePort{{Port: 80}}}}
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	create(namespace)
	create(deployment("before", nil))
	time.Sleep(2 * time.Second) // the API server has times in seconds
	namespace.Labels[v1alpha1.ScheduleLabel] = v1alpha1.ScheduleRemote
	if err := hub.Update(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	create(deployment("web", nil))
	create(deployment("stays", settings(v1alpha1.ScheduleLocal)))
	create(deployment("sent", map[string]string{v1alpha1.ManagedByLabel: "hub"}))
	create(service("balancer", corev1.ServiceTypeLoadBalancer))
	create(service("web", corev1.ServiceTypeClusterIP))

	recorder := events.NewFakeRecorder(100)
	c := newController(Options{Portico: "portico-system", Resync: time.Hour}, hub, hub, recorder)
	reconcile := func() (reported []string) {
		t.Helper()
		for range 3 { // each event is emitted once
			if _, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "shop"}}); err != nil {
				t.Fatal(err)
			}
		}
		for len(recorder.Events) > 0 {
			reported = append(reported, strings.Join(strings.Fields(<-recorder.Events)[:2], " "))
		}
		slices.Sort(reported)
		return reported
	}
	labelled := func() (out []string) {
		t.Helper()
		for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &corev1.ServiceList{}} {
			if err := hub.List(t.Context(), list, client.InNamespace("shop"), client.MatchingLabels(settings(v1alpha1.ScheduleRemote))); err != nil {
				t.Fatal(err)
			}
			switch list := list.(type) {
			case *appsv1.DeploymentList:
				for _, item := range list.Items {
					out = append(out, "deployment "+item.Name)
				}
			case *corev1.ServiceList:
				for _, item := range list.Items {
					out = append(out, "service "+item.Name)
				}
			}
		}
		return out
	}

	if diff := cmp.Diff([]string{"Warning CannotMove", "Warning StaysOnHub", "Warning StaysOnHub"}, reconcile()); diff != "" {
		t.Errorf("reported objects without the label (-want +got):\n%s", diff)
	}
	if got := labelled(); len(got) > 0 {
		t.Errorf("%v moved without a request", got)
	}
	metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, v1alpha1.AdoptExistingAnnotation, "true")
	if err := hub.Update(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Normal OptedIn", "Normal OptedIn", "Normal OptedIn"}, reconcile()); diff != "" {
		t.Errorf("reported objects with the label (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"deployment before", "deployment web", "service web"}, labelled()); diff != "" {
		t.Errorf("everything moves that can (-want +got):\n%s", diff)
	}
}

// TestNext: the first checks follow soon after a namespace opted in. Later checks are
// rare.
func TestNext(t *testing.T) {
	var m memory
	for i, want := range recheckDelays {
		if got := m.next("shop", time.Hour); got != want {
			t.Errorf("look %d: again after %v, want %v", i, got, want)
		}
	}
	if got := m.next("shop", time.Hour); got < time.Hour {
		t.Errorf("again after %v", got)
	}
	m.forget("shop")
	if got := m.next("shop", time.Hour); got != recheckDelays[0] {
		t.Errorf("a namespace that opts in anew is looked at after %v", got)
	}
}
