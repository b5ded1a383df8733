package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/policycheck"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/targetselection"
)

// hub returns a fake hub with the indexes of the manager's cache.
func hub(t testing.TB, funcs interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := reconcilertest.Scheme(t, corev1.AddToScheme, v1alpha1.AddToScheme, v1alpha2.AddToScheme)
	resource, app := &v1alpha1.KubernetesApplicationResource{}, &v1alpha2.KubernetesApplication{}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(app, resource).
		WithIndex(resource, policies.ApplicationIndex, func(o client.Object) []string { return policies.ApplicationKeys(o) }).
		WithIndex(resource, policies.UnscheduledIndex, IndexUnscheduled).
		WithIndex(app, policies.UnscheduledIndex, IndexUnscheduled).
		WithInterceptorFuncs(funcs).Build()
}

func target(name string) *v1alpha1.KubernetesTarget {
	out := &v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
	out.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TargetReachable, Status: metav1.ConditionTrue}}
	return out
}

func newApplication(name string, templates ...v1alpha2.ResourceTemplate) *v1alpha2.KubernetesApplication {
	return &v1alpha2.KubernetesApplication{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Spec: v1alpha2.KubernetesApplicationSpec{ResourceTemplates: templates},
	}
}

// controller returns a controller with policies. Its load only gets the events that the
// test sends.
func controller(t testing.TB, hub client.Client, policies ...*policyv1alpha1.Policy) (*applications, *targetselection.Load) {
	t.Helper()
	e := engine.New(engine.Options{Timeout: time.Minute})
	e.Replace(t.Context(), policies)
	load := targetselection.NewLoad()
	shared := newScheduler(hub, events.NewFakeRecorder(10000), policycheck.NewReviews(decisions.New(e, "portico-system"), "scheduler"), load)
	shared.clusterScoped = func(schema.GroupVersionKind) bool { return false }
	return &applications{shared}, load
}

// TestBurst places 500 applications before the first event arrives, several at a time.
// Some writes fail.
func TestBurst(t *testing.T) {
	const applications, targets = 500, 5
	var objects []client.Object
	for i := range targets {
		objects = append(objects, target("t"+strconv.Itoa(i)))
	}
	for i := range applications {
		objects = append(objects, newApplication("app-"+strconv.Itoa(i), template("web", "Service")))
	}
	var mu sync.Mutex
	failed := map[string]bool{}
	hub := hub(t, reconcilertest.Before(func(r reconcilertest.Request) error {
		if r.Verb != "patch" || r.Subresource != "" {
			return nil
		}
		mu.Lock()
		first := !failed[r.Key.Name]
		failed[r.Key.Name] = true
		mu.Unlock()
		if number, _ := strconv.Atoi(r.Key.Name[len("app-"):]); first && number%3 == 0 {
			return apierrors.NewConflict(schema.GroupResource{}, r.Key.Name, nil)
		}
		return nil
	}), objects...)
	c, load := controller(t, hub)
	for i := range targets {
		load.SetTarget(target("t" + strconv.Itoa(i)))
	}
	work := make(chan int, applications)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for i := range work {
				req := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "a", Name: "app-" + strconv.Itoa(i)}}
				for {
					if _, err := c.Reconcile(t.Context(), req); err == nil {
						break
					} else if !apierrors.IsConflict(err) {
						t.Error(err)
						break
					}
				}
			}
		})
	}
	for i := range applications {
		work <- i
	}
	close(work)
	workers.Wait()
	var list v1alpha2.KubernetesApplicationList
	if err := hub.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	on := map[string]int{}
	for _, app := range list.Items {
		if app.Spec.TargetRef == nil {
			t.Fatalf("%s has no target", app.Name)
		}
		on[app.Spec.TargetRef.Name]++
	}
	for name, count := range on {
		if count*targets*10 > applications*12 {
			t.Errorf("%s has %d of %d applications, more than 1.2 times the mean: %v", name, count, applications, on)
		}
	}
}

// TestNoSecondChoice: the scheduler does not choose again by a copy from before its own
// write.
func TestNoSecondChoice(t *testing.T) {
	stale := newApplication("shop", template("web", "Service"))
	hub := hub(t, interceptor.Funcs{}, target("eu"), target("us"), stale)
	c, load := controller(t, hub)
	req := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(stale)}
	if err := hub.Get(t.Context(), req.NamespacedName, stale); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Reconcile(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if !load.Pending(targetselection.ApplicationUnit("a", "shop"), stale.ResourceVersion) {
		t.Fatal("the placement is not assumed")
	}
	c.hub = staleClient{hub, stale}
	if _, err := c.Reconcile(t.Context(), req); err != nil {
		t.Errorf("went by a copy from before its own write: %v", err)
	}
}

// staleClient returns an earlier version of an application.
type staleClient struct {
	client.Client
	app *v1alpha2.KubernetesApplication
}

func (s staleClient) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	s.app.DeepCopyInto(object.(*v1alpha2.KubernetesApplication))
	return nil
}

// counting counts the objects in lists.
type counting struct {
	client.Client
	visited int
}

func (c *counting) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := c.Client.List(ctx, list, options...)
	switch l := list.(type) {
	case *v1alpha1.KubernetesTargetList:
		c.visited += len(l.Items)
	case *v1alpha1.KubernetesApplicationResourceList:
		c.visited += len(l.Items)
	case *v1alpha2.KubernetesApplicationList:
		c.visited += len(l.Items)
	}
	return err
}

// TestCost places one more application, and enqueues the applications without a target,
// in a small and in a large namespace. Policies that read the counts of all targets are
// evaluated once.
func TestCost(t *testing.T) {
	cost := func(others int) (placing, waking int) {
		objects := []client.Object{namespace(), target("eu"), target("us"), newApplication("one-more", template("web", "Service"))}
		for i := range others {
			app := newApplication(fmt.Sprintf("other-%d", i))
			app.Spec.TargetRef = &v1alpha1.TargetReference{Name: "eu"}
			member := newResource(fmt.Sprintf("other-%d", i), "Service")
			member.Namespace, member.Labels, member.Spec.TargetRef = "a", map[string]string{v1alpha1.ApplicationLabel: app.Name}, app.Spec.TargetRef
			objects = append(objects, app, &member)
		}
		reader := &counting{Client: hub(t, interceptor.Funcs{}, objects...)}
		c, load := controller(t, reader)
		e := engine.New(engine.Options{Timeout: time.Minute})
		e.Replace(t.Context(), []*policyv1alpha1.Policy{rego("p", `score[t.metadata.name] := 100 if {
	some t in input.targets
	not input.placed[t.metadata.name]
	input.object.kind == "Service"
}`)})
		evaluator := decisions.New(e, "portico-system")
		c.reviews = policycheck.NewReviews(evaluator, "scheduler")
		for _, object := range objects {
			switch o := object.(type) {
			case *v1alpha1.KubernetesTarget:
				load.SetTarget(o)
			case *v1alpha2.KubernetesApplication:
				load.SetApplication(o)
			case *v1alpha1.KubernetesApplicationResource:
				load.SetResource(o)
			}
		}
		byTarget := unscheduled{reader, func() client.ObjectList { return &v1alpha2.KubernetesApplicationList{} }}
		woken := byTarget.inNamespace(t.Context(), target("us"))
		if !slices.Equal(woken, []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: "a", Name: "one-more"}}}) {
			t.Errorf("woke %v", woken)
		}
		waking, reader.visited = reader.visited, 0
		if _, err := c.Reconcile(t.Context(), woken[0]); err != nil {
			t.Fatal(err)
		}
		if got := evaluations(t, evaluator); got != 1 {
			t.Errorf("%d evaluations among %d others, want 1", got, others)
		}
		placed := &v1alpha2.KubernetesApplication{}
		if err := reader.Get(t.Context(), woken[0].NamespacedName, placed); err != nil {
			t.Fatal(err)
		}
		if placed.Spec.TargetRef == nil || placed.Spec.TargetRef.Name != "us" {
			t.Errorf("placed on %v, want us, which has nothing", placed.Spec.TargetRef)
		}
		return reader.visited, waking
	}
	placingFew, wakingFew := cost(10)
	placingMany, wakingMany := cost(1000)
	if placingFew != placingMany || wakingFew != wakingMany {
		t.Errorf("placing one more visits %d objects among few, and %d among many; waking it %d and %d", placingFew, placingMany, wakingFew, wakingMany)
	}
}
