package propagationkind

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/groups"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
	"github.com/portico-io/portico/policies/propagationkinds"
)

var errHub = errors.New("the hub does not answer")

// hubWith is a hub with at most one kind.
type hubWith struct {
	served  *propagationkinds.Served
	denied  string // a subresource
	failing bool
}

func (h hubWith) Served(context.Context, schema.GroupKind) (*propagationkinds.Served, error) {
	if h.failing {
		return nil, errHub
	}
	return h.served, nil
}

func (h hubWith) Allows(_ context.Context, attributes *authorizationv1.ResourceAttributes) (bool, error) {
	return h.denied == "" || attributes.Subresource != h.denied, nil
}

// recordedSender records the kinds that run.
type recordedSender map[string]bool

func (s recordedSender) Run(_ context.Context, name string, _ *kinds.Custom) error {
	s[name] = true
	return nil
}

func (s recordedSender) Stop(_ context.Context, name string) { delete(s, name) }

func TestReconcile(t *testing.T) {
	served := &propagationkinds.Served{Version: "v1", Resource: "lakes", Namespaced: true, HasStatus: true}
	const found, rights, status, send = "find kind", "check rights", "write status", "send objects"
	for name, tc := range map[string]struct {
		reason  string
		absent  bool
		hub     hubWith
		request func(reconcilertest.Request) error
		steps   []string
		want    string // the reason of the condition
		running bool
		failed  bool
	}{
		"Served":      {reason: "The objects of a ready kind are sent.", hub: hubWith{served: served}, steps: []string{found, rights, status, send}, want: v1alpha1.ReasonServed, running: true},
		"KindMissing": {reason: "A kind that is gone is not sent.", steps: []string{found, rights, status, send}, want: v1alpha1.ReasonKindMissing},
		"RoleMissing": {reason: "One right is missing.", hub: hubWith{served: served, denied: "status"}, steps: []string{found, rights, status, send}, want: v1alpha1.ReasonRoleMissing},
		"HubFails":    {reason: "A hub that does not answer changes nothing.", hub: hubWith{failing: true}, steps: []string{found}, running: true, failed: true},
		"WriteFails": {reason: "The controllers start after the status, from which the webhooks know the kind.", hub: hubWith{served: served},
			request: reconcilertest.FailOn("patch status PropagationKind", errHub), steps: []string{found, rights, status}, running: true, failed: true},
		"Deleted": {reason: "The kind of a deleted PropagationKind is not sent.", absent: true},
	} {
		t.Run(name, func(t *testing.T) {
			kind := &v1alpha1.PropagationKind{
				ObjectMeta: metav1.ObjectMeta{Name: "lake.example.org", Generation: 1},
				Spec:       v1alpha1.PropagationKindSpec{Group: "example.org", Kind: "Lake"},
			}
			build := fake.NewClientBuilder().WithScheme(reconcilertest.Scheme(t, v1alpha1.AddToScheme)).
				WithStatusSubresource(kind).WithInterceptorFuncs(reconcilertest.Before(tc.request))
			if !tc.absent {
				build = build.WithObjects(kind)
			}
			hub := build.Build()
			sender := recordedSender{kind.Name: true}
			c := &Controller{hub: hub, writer: reconciler.Writer{Client: hub, Owner: v1alpha1.KindManager}, recorder: events.NewFakeRecorder(8), kinds: tc.hub, sender: sender}
			var steps []string
			ctx := ctrl.LoggerInto(t.Context(), reconcilertest.Steps(&steps))
			_, err := c.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(kind)})
			if (err != nil) != tc.failed || err != nil && !errors.Is(err, errHub) {
				t.Errorf("%s Got %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.steps, steps); diff != "" {
				t.Errorf("%s\nsteps: -want +got:\n%s", tc.reason, diff)
			}
			if got := sender[kind.Name]; got != tc.running {
				t.Errorf("%s The controllers run: %v", tc.reason, got)
			}
			if tc.absent || tc.want == "" {
				return
			}
			if err := hub.Get(t.Context(), client.ObjectKeyFromObject(kind), kind); err != nil {
				t.Fatal(err)
			}
			if got := kind.Status.Conditions[0].Reason; got != tc.want {
				t.Errorf("%s Got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestBuiltInGroups compares the groups with those that client-go knows.
func TestBuiltInGroups(t *testing.T) {
	for _, version := range clientgoscheme.Scheme.PrioritizedVersionsAllGroups() {
		if !groups.IsBuiltIn(version.Group) {
			t.Errorf("%s is a group of Kubernetes", version.Group)
		}
	}
	for _, group := range []string{"gateway.networking.k8s.io", "autoscaling.k8s.io", "cert-manager.io", "monitoring.coreos.com"} {
		if groups.IsBuiltIn(group) {
			t.Errorf("%s is no group of Kubernetes itself", group)
		}
	}
}
