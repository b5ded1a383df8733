package application

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
)

const (
	listOwned   = "list " + OwnerIndex
	listMembers = "list metadata.labels.application"
)

// templatedApplication returns a placed application with one template.
func templatedApplication(change ...func(*v1alpha2.KubernetesApplication)) *v1alpha2.KubernetesApplication {
	app := placedApplication()
	app.UID = "1"
	app.Spec.ResourceTemplates = []v1alpha2.ResourceTemplate{templateOf("settings", configMap)}
	for _, c := range change {
		c(app)
	}
	return app
}

func deleting(app *v1alpha2.KubernetesApplication) {
	now := metav1.Now()
	app.DeletionTimestamp, app.Finalizers = &now, append(app.Finalizers, v1alpha1.TemplatesFinalizer)
}

func frontDoor(desired int32) *v1alpha2.KubernetesApplication {
	app := placedApplication()
	app.Labels = map[string]string{v1alpha1.FrontDoorLabel: v1alpha1.FrontDoor}
	app.Status.DesiredResources = desired
	return app
}

// TestReconcile tests the order of requests, and failing requests.
func TestReconcile(t *testing.T) {
	failure := errors.New("failure")
	kind := schema.GroupKind{Group: v1alpha1.Group, Kind: "KubernetesApplicationResource"}
	invalid := apierrors.NewInvalid(kind, "settings", nil)
	owned := resourceFromTemplate(templatedApplication(), templateOf("settings", configMap))
	held := owned.DeepCopy() // Portico's finalizer keeps it
	orphan := resourceFromTemplate(templatedApplication(), templateOf("removed", configMap))

	cases := map[string]struct {
		reason  string
		hub     []client.Object
		fail    map[string]error
		sent    []string
		err     error
		synced  string // reason of the application's condition Synced
		requeue bool
	}{
		"Gone": {reason: "A deleted application needs no work."},
		"New": {reason: "The finalizer is there before the first resource, and the status comes last.",
			hub:    []client.Object{templatedApplication()},
			sent:   []string{listOwned, "patch shop", "create settings", listMembers, "patch status of shop"},
			synced: v1alpha1.ReasonPartiallyApplied},
		"TemplateRemoved": {reason: "A resource without a template is deleted.",
			hub:    []client.Object{templatedApplication(), owned, orphan},
			sent:   []string{listOwned, "patch shop", "delete removed", listMembers, "patch status of shop"},
			synced: v1alpha1.ReasonPartiallyApplied},
		"ListOwnedFails": {reason: "The members are summarized although the templates are not read.",
			hub: []client.Object{templatedApplication()}, fail: map[string]error{listOwned: failure}, err: failure,
			sent: []string{listOwned, listMembers, "patch status of shop"}, synced: v1alpha1.ReasonPartiallyApplied},
		"FinalizerFails": {reason: "Without the finalizer no resource is made.",
			hub: []client.Object{templatedApplication()}, fail: map[string]error{"patch shop": failure}, err: failure,
			sent: []string{listOwned, "patch shop", listMembers, "patch status of shop"}, synced: v1alpha1.ReasonPartiallyApplied},
		"CreateFails": {reason: "An error of one resource ends up in the result, after the status was written.",
			hub: []client.Object{templatedApplication()}, fail: map[string]error{"create settings": failure}, err: failure,
			sent: []string{listOwned, "patch shop", "create settings", listMembers, "patch status of shop"}, synced: v1alpha1.ReasonPartiallyApplied},
		"CreateRejected": {reason: "The status says what the hub rejected.",
			hub: []client.Object{templatedApplication()}, fail: map[string]error{"create settings": invalid}, err: invalid,
			sent: []string{listOwned, "patch shop", "create settings", listMembers, "patch status of shop"}, synced: v1alpha1.ReasonPartiallyApplied},
		"NameTaken": {reason: "No event tells when the name is free.",
			hub:  []client.Object{templatedApplication(), resource("settings")},
			sent: []string{listOwned, "patch shop", listMembers, "patch settings", "patch status of shop"}, synced: v1alpha1.ReasonOwnershipConflict, requeue: true},
		"ListMembersFails": {reason: "A status without the members would be wrong, and none is written.",
			hub: []client.Object{templatedApplication()}, fail: map[string]error{listMembers: failure}, err: failure,
			sent: []string{listOwned, "patch shop", "create settings", listMembers}},
		"StatusFails": {reason: "A status that was not written is an error.",
			hub: []client.Object{templatedApplication()}, fail: map[string]error{"patch status of shop": failure}, err: failure,
			sent: []string{listOwned, "patch shop", "create settings", listMembers, "patch status of shop"}},
		"NewFrontDoor": {reason: "An application that waits for its first resource stays, and has no status yet.",
			hub: []client.Object{frontDoor(0)}, sent: []string{listOwned, listMembers}},
		"EmptyFrontDoor": {reason: "An application of Portico is deleted with its last resource.",
			hub: []client.Object{frontDoor(1)}, sent: []string{listOwned, listMembers, "delete shop"}},
		"EmptyFrontDoorUnread": {reason: "An application of Portico is kept if the list failed.",
			hub: []client.Object{frontDoor(1)}, fail: map[string]error{listMembers: failure}, err: failure, sent: []string{listOwned, listMembers}},
		"Deleting": {reason: "The application waits for its resources, and says so.",
			hub:  []client.Object{templatedApplication(deleting), held},
			sent: []string{listOwned, "delete settings", "patch status of shop"}, synced: v1alpha1.ReasonWithdrawing},
		"DeletingFails": {reason: "The status is written although a deletion failed.",
			hub: []client.Object{templatedApplication(deleting), held}, fail: map[string]error{"delete settings": failure}, err: failure,
			sent: []string{listOwned, "delete settings", "patch status of shop"}, synced: v1alpha1.ReasonWithdrawing},
		"Deleted": {reason: "The finalizer is removed after the last resource.",
			hub: []client.Object{templatedApplication(deleting)}, sent: []string{listOwned, "patch shop"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			requests := &reconcilertest.Requests{Fail: tc.fail}
			store := hub(t, tc.hub...).WithInterceptorFuncs(requests.Funcs()).Build()
			key := client.ObjectKey{Namespace: "team-a", Name: "shop"}
			result, err := newController(store, events.NewFakeRecorder(10)).Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			if !errors.Is(err, tc.err) {
				t.Errorf("error %v, want %v: %s", err, tc.err, tc.reason)
			}
			if (result.RequeueAfter > 0) != tc.requeue {
				t.Errorf("requeue after %s: %s", result.RequeueAfter, tc.reason)
			}
			if diff := cmp.Diff(tc.sent, requests.Sent); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			app := &v1alpha2.KubernetesApplication{}
			if err := store.Get(t.Context(), key, app); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			var synced string
			if c := meta.FindStatusCondition(app.Status.Conditions, v1alpha1.Synced); c != nil {
				synced = c.Reason
			}
			if synced != tc.synced {
				t.Errorf("Synced has the reason %q, want %q: %s", synced, tc.synced, tc.reason)
			}
		})
	}
}
