package optin

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
)

// TestSteps runs the steps in order, and returns the error of each call.
func TestSteps(t *testing.T) {
	failure := errors.New("the hub is away")
	all := []string{"read namespace", "read managed fields", "check objects"}
	labelled := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote},
		Annotations: map[string]string{v1alpha1.AdoptExistingAnnotation: "true"}}}
	plain := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1"}}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "2"}}
	for name, tc := range map[string]struct {
		reason   string
		objects  []client.Object
		fail     string // the call, as "<cached or live> <verb> <kind>"
		err      error
		steps    int
		event    string
		opted    bool
		requeues bool
	}{
		"Gone":     {reason: "A deleted namespace needs no work.", steps: 1},
		"Plain":    {reason: "A namespace without the label needs no work.", objects: []client.Object{plain, web}, steps: 1},
		"Empty":    {reason: "A namespace without objects is checked again.", objects: []client.Object{labelled}, steps: 3, requeues: true},
		"Opted":    {reason: "An object without the label gets it.", objects: []client.Object{labelled, web}, steps: 3, opted: true, requeues: true, event: "Normal OptedIn"},
		"Denied":   {reason: "The error of the hub's admission is reported.", objects: []client.Object{labelled, web}, fail: "cached patch Deployment", err: apierrors.NewForbidden(schema.GroupResource{}, "web", failure), steps: 3, requeues: true, event: "Warning CannotMove"},
		"Cached":   {reason: "An error to read the namespace is returned.", objects: []client.Object{labelled}, fail: "cached get Namespace", err: failure, steps: 1},
		"Live":     {reason: "An error to read the managed fields is returned.", objects: []client.Object{labelled}, fail: "live get Namespace", err: failure, steps: 2},
		"Vanished": {reason: "A namespace may be deleted meanwhile.", objects: []client.Object{labelled}, fail: "live get Namespace", err: apierrors.NewNotFound(schema.GroupResource{}, "shop"), steps: 2},
		"List":     {reason: "An error to list objects is returned.", objects: []client.Object{labelled}, fail: "live list DeploymentList", err: failure, steps: 3},
		"Service":  {reason: "An error to read a Service is returned.", objects: []client.Object{labelled, service}, fail: "live get Service", err: failure, steps: 3},
		"Patch":    {reason: "An error to write the label is returned.", objects: []client.Object{labelled, web}, fail: "cached patch Deployment", err: failure, steps: 3},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := reconcilertest.Scheme(t, corev1.AddToScheme, appsv1.AddToScheme)
			hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.objects...).Build()
			failing := func(which string) client.WithWatch {
				return interceptor.NewClient(hub, reconcilertest.Before(func(r reconcilertest.Request) error {
					if fmt.Sprintf("%s %s %s", which, r.Verb, r.Kind()) == tc.fail {
						return tc.err
					}
					return nil
				}))
			}
			recorder := events.NewFakeRecorder(10)
			c := newController(Options{Portico: "portico-system", Resync: time.Hour}, failing("cached"), failing("live"), recorder)
			var steps []string
			log := reconcilertest.Steps(&steps)
			result, err := c.Reconcile(ctrl.LoggerInto(t.Context(), log), ctrl.Request{NamespacedName: client.ObjectKey{Name: "shop"}})
			if errors.Is(err, failure) != errors.Is(tc.err, failure) || tc.err == nil && err != nil {
				t.Errorf("%s: error %v", tc.reason, err)
			}
			event := reconcilertest.NextEvent(recorder)
			if !strings.HasPrefix(event, tc.event) || tc.event == "" && event != "" {
				t.Errorf("%s: event %q, want %q", tc.reason, event, tc.event)
			}
			var list appsv1.DeploymentList
			if err := hub.List(t.Context(), &list, client.MatchingLabels{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote}); err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff([]any{all[:tc.steps], tc.opted, tc.requeues}, []any{steps, len(list.Items) > 0, result.RequeueAfter > 0}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
