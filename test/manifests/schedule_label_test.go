package manifests

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// receivedWarnings keeps the warnings of an API server.
type receivedWarnings struct {
	mu       sync.Mutex
	warnings []string
}

func (h *receivedWarnings) HandleWarningHeader(_ int, _ string, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.warnings = append(h.warnings, text)
}

func (h *receivedWarnings) take() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := strings.Join(h.warnings, "\n")
	h.warnings = nil
	return out
}

// scheduleLabelHasAnEffect labels objects that Portico does not send.
func scheduleLabelHasAnEffect(t *testing.T, cfg *rest.Config) {
	warnings := &receivedWarnings{}
	cfg = rest.CopyConfig(cfg)
	cfg.WarningHandler = warnings
	cluster, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lease := func(schedule string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: meta("default", schedule), Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("web")}}
	}
	namespace := func(schedule string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: scheduled(schedule)}}
	}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: meta("default", v1alpha1.ScheduleRemote), AddressType: discoveryv1.AddressTypeIPv4}
	ofService := slice.DeepCopy()
	ofService.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: "web", UID: "1", Controller: ptr.To(true)}}
	made := lease("Remote")
	made.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "1", Controller: ptr.To(true)}}
	const kind, value = "has no effect on a Lease, which stays on the hub", "workload.crossplane.io/schedule=Remote has no effect: its values are remote and local"

	// A new policy is in force a moment later.
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		err := cluster.Create(ctx, lease(v1alpha1.ScheduleRemote), client.DryRunAll)
		return warnings.take() != "", err
	}); err != nil {
		t.Fatal("there is no warning that a Lease is not sent")
	}
	for name, tc := range map[string]struct {
		object client.Object
		want   string
	}{
		"Kind":          {lease(v1alpha1.ScheduleRemote), kind},
		"Value":         {lease("Remote"), value},
		"Local":         {lease(v1alpha1.ScheduleLocal), ""},
		"Unlabelled":    {lease(""), ""},
		"Namespace":     {namespace(v1alpha1.ScheduleRemote), ""},
		"NamespaceTypo": {namespace("Remote"), value},
		"EndpointSlice": {slice, "has no effect on an EndpointSlice, which stays on the hub"},
		"OfService":     {ofService, ""},
		"ByController":  {made, ""},
	} {
		if err := cluster.Create(t.Context(), tc.object, client.DryRunAll); err != nil {
			t.Errorf("%s: a warning must not refuse: %v", name, err)
		}
		if got := warnings.take(); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}

	stored := lease("")
	if err := cluster.Create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ schedule, holder, want string }{
		{v1alpha1.ScheduleRemote, "web", kind}, {v1alpha1.ScheduleRemote, "other", ""}, {"Remote", "other", value}, {"", "other", ""},
	} {
		stored.Labels, stored.Spec.HolderIdentity = scheduled(step.schedule), &step.holder
		if err := cluster.Update(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
		if got := warnings.take(); (got == "") != (step.want == "") || !strings.Contains(got, step.want) {
			t.Errorf("an update to %q: got %q, want %q", step.schedule, got, step.want)
		}
	}
	if err := cluster.Delete(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
}

// TestScheduleLabelKinds: there is no warning for the kinds that Portico sends.
func TestScheduleLabelKinds(t *testing.T) {
	var sent []string
	for _, object := range render(t, "default") {
		if object.GetKind() != "ValidatingAdmissionPolicy" || !strings.HasPrefix(object.GetName(), "schedule-label") {
			continue
		}
		var policy admissionregistrationv1.ValidatingAdmissionPolicy
		convert(t, object, &policy)
		for _, rule := range policy.Spec.MatchConstraints.ExcludeResourceRules {
			for _, resource := range rule.Resources {
				sent = append(sent, rule.APIGroups[0]+"/"+resource)
			}
		}
	}
	for _, kind := range kinds.All {
		if name := kind.GroupVersionKind().Group + "/" + kind.Resource(); !slices.Contains(sent, name) {
			t.Errorf("%s is sent, and its label warned of", name)
		}
	}
}
