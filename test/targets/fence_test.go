package targets

import (
	"context"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/fence"
	"github.com/portico-io/portico/policies/credentials"
	"github.com/portico-io/portico/test/apiserver"
)

// TestFence runs two processes with the identity of one hub and the same target, like a
// hub and its clone.
func TestFence(t *testing.T) {
	config := apiserver.Start(t)
	api, err := kubernetes.NewForConfig(config)
	must(t, err)
	target := types.NamespacedName{Namespace: "team-a", Name: "prod"}
	process := func(ctx context.Context, holder, predecessor, namespace string, config *rest.Config) *clusters.TargetConnection {
		all := clusters.New(clusters.Options{HubID: "hub-1", QPS: -1, Fence: &clusters.FenceOptions{
			Namespace: namespace, Holder: holder, Predecessor: func(context.Context) (string, error) { return predecessor, nil },
		}})
		all.AddListener(quiet{})
		must(t, all.Connect(ctx, target, clusters.ConnectionConfig{Connection: &credentials.Connection{Config: config, AddressRules: credentials.AddressRules{AllowLocal: true}}, Digest: "1"}))
		connection, err := all.Get(target)
		must(t, err)
		return connection
	}
	is := func(c *clusters.TargetConnection, want fence.State) {
		t.Helper()
		eventually(t, "the fence to be "+string(want), func() (bool, string) {
			now := c.Fence()
			return now.State == want && c.Client() != nil, string(now.State)
		})
	}
	write := func(c *clusters.TargetConnection) error {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		object.SetNamespace(metav1.NamespaceDefault)
		object.SetGenerateName("written-")
		return c.Client().Create(t.Context(), object)
	}

	unfenced := process(t.Context(), "nobody", "", "portico", config)
	is(unfenced, fence.Unfenced) // the namespace does not exist
	must(t, write(unfenced))
	if shown := unfenced.Fence().Condition("prod", 1); shown == nil || shown.Status != metav1.ConditionUnknown || shown.Type != v1alpha1.Fenced {
		t.Errorf("without a right to the Lease it shows %+v", shown)
	}
	_, err = api.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "leases"}}, metav1.CreateOptions{})
	must(t, err)
	other := rest.AnonymousClientConfig(config) // the user may only request the version
	is(process(t.Context(), "nobody", "", "leases", other), fence.Unfenced)

	original := process(t.Context(), "original", "", "leases", config)
	is(original, fence.Held)
	must(t, write(original))
	ctx, stop := context.WithCancel(t.Context())
	clone := process(ctx, "clone", "original", "leases", config)
	is(clone, fence.Held)
	must(t, write(clone))
	is(original, fence.Conflict)
	if err := write(original); !errors.Is(err, clusters.ErrFenced) {
		t.Errorf("the original writes while the clone does: %v", err)
	}
	if shown := original.Fence().Condition("prod", 1); shown == nil || shown.Reason != v1alpha1.ReasonHubIdentityConflict || shown.Status != metav1.ConditionFalse {
		t.Errorf("the conflict shows as %+v", shown)
	}
	third := process(t.Context(), "third", "", "leases", config)
	is(third, fence.Conflict)
	if err := write(third); !errors.Is(err, clusters.ErrFenced) {
		t.Errorf("a third writes: %v", err)
	}

	stop()
	eventually(t, "one of the others to go on", func() (bool, string) {
		return original.Fence().State == fence.Held || third.Fence().State == fence.Held, ""
	})
	before, err := api.CoordinationV1().Leases("leases").Get(t.Context(), "portico-hub-1", metav1.GetOptions{})
	must(t, err)
	if *before.Spec.HolderIdentity == "clone" || *before.Spec.LeaseTransitions < 2 {
		t.Errorf("the Lease is %+v", before.Spec)
	}
	var renewed *coordinationv1.Lease
	eventually(t, "the Lease to be renewed", func() (bool, string) {
		renewed, err = api.CoordinationV1().Leases("leases").Get(t.Context(), "portico-hub-1", metav1.GetOptions{})
		return err == nil && renewed.ResourceVersion != before.ResourceVersion, ""
	})
	// A connection that is reachable again brings the renewal forward, by half at most.
	if apart := renewed.Spec.RenewTime.Sub(before.Spec.RenewTime.Time); apart < fence.RenewInterval/2 {
		t.Errorf("the Lease was written twice within %s, of %s", apart, fence.RenewInterval.Round(time.Second))
	}
}
