package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/cluster/install"
)

// front is a control plane, with or without a webhook in front of it.
type front struct {
	name  string
	setup func(context.Context, *front) error
	// settle waits until the background work of a turn has ended, so that it does not
	// count for the next turn.
	settle func(ctx context.Context, namespace string, objects int) error

	cluster *cluster.Cluster
	client  kubernetes.Interface
	stop    []func()
}

const (
	nothing  = "nothing"
	noopHook = "a no-op webhook"
	webhooks = "Portico's webhooks"
	policed  = "Portico's webhooks with the policies that ship"
	complete = "all of Portico"
)

// batch is the maximal number of pairs in a turn. Turns are short and many, so that
// other load on the machine affects all of them equally.
const batch = 100

// measureAdmission counts creates per second with and without a webhook in front of the
// API server. The clusters are control planes, whose only controllers are those of
// Portico.
//
// Portico is measured twice: first only its webhooks, as on a replica that does not
// lead, which is the delay of a request; and then with its controllers on the same
// machine, which is the rate that a user sees who creates many objects.
func measureAdmission(ctx context.Context, s *settings, r *report) error {
	manifests, err := install.Render(s.manifests())
	if err != nil {
		return err
	}
	fronts := []*front{
		{name: nothing, setup: func(context.Context, *front) error { return nil }},
		{name: noopHook, setup: func(ctx context.Context, f *front) error {
			stop, err := noop(ctx, f.cluster, manifests)
			f.stop = append(f.stop, stop)
			return err
		}},
		{name: webhooks, setup: func(ctx context.Context, f *front) error {
			if err := f.follow(ctx); err != nil {
				return err
			}
			return f.install(ctx, install.Options{LeaderElect: true})
		}},
		{name: policed, setup: func(ctx context.Context, f *front) error {
			if err := f.follow(ctx); err != nil {
				return err
			}
			if err := f.install(ctx, install.Options{LeaderElect: true}); err != nil {
				return err
			}
			return f.police(ctx)
		}},
		{name: complete, setup: func(ctx context.Context, f *front) error {
			f.settle = f.takenIn
			return f.install(ctx, install.Options{})
		}},
	}
	for _, f := range fronts {
		defer f.close()
		if err := step("starting a control plane for "+f.name, nil, func() error { return f.start(ctx) }); err != nil {
			return err
		}
	}

	size := min(s.pairs, batch)
	turns := s.rounds * ((s.pairs + batch - 1) / batch)
	labelled, plain := map[string][]float64{}, map[string][]float64{}
	var done atomic.Int64
	progress := func() string { return fmt.Sprintf("%d done", done.Load()) }
	err = step(fmt.Sprintf("creating %d pairs on each, %d times", size, turns), progress, func() error {
		for turn := 0; turn <= turns; turn++ { // turn 0 has cold caches, and does not count
			done.Store(int64(turn))
			for i := range fronts {
				f := fronts[(turn+i)%len(fronts)]
				for _, remote := range []bool{true, false} {
					if !remote && f.name != nothing && f.name != complete {
						continue
					}
					rate, err := f.creates(ctx, fmt.Sprintf("turn-%d-%t", turn, remote), size, remote, s.concurrency)
					if err != nil {
						return fmt.Errorf("creating with %s: %w", f.name, err)
					}
					if turn > 0 && remote {
						labelled[f.name] = append(labelled[f.name], rate)
					} else if turn > 0 {
						plain[f.name] = append(plain[f.name], rate)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}

	compare := func(kind string, rates map[string][]float64, a, b string, aim *aim) {
		r.ratio(admissionSection, fmt.Sprintf("%s creates/s, %s ÷ %s", kind, a, b), rates[a], rates[b], aim,
			fmt.Sprintf("%s/s ÷ %s/s", number(median(rates[a])), number(median(rates[b]))))
	}
	compare("labelled", labelled, webhooks, noopHook, atLeast(0.9))
	compare("labelled", labelled, complete, noopHook, atLeast(0.9))
	compare("labelled", labelled, policed, webhooks, atLeast(0.9))
	compare("labelled", labelled, webhooks, nothing, nil)
	compare("labelled", labelled, complete, nothing, nil)
	compare("labelled", labelled, noopHook, nothing, nil)
	compare("unlabelled", plain, complete, nothing, nil)
	return nil
}

func (f *front) start(ctx context.Context) (err error) {
	f.cluster, err = cluster.Start(ctx, cluster.Options{Name: "hub", Components: cluster.ControlPlane, LoadBalancerRange: cluster.HubLoadBalancers})
	if err != nil {
		return err
	}
	if f.client, err = connect(f.cluster); err != nil {
		return err
	}
	return f.setup(ctx, f)
}

func (f *front) close() {
	for _, stop := range f.stop {
		stop()
	}
	if f.cluster != nil {
		_ = f.cluster.Shutdown() // the program exits; no other step waits for it
	}
}

func (f *front) install(ctx context.Context, o install.Options) error {
	manager, err := install.Portico(ctx, f.cluster, o)
	if err == nil {
		f.stop = append(f.stop, func() { _ = manager.Kill9() })
	}
	return err
}

// police creates the shipped policies on the hub, as a leader would. They are in force
// after turn 0.
func (f *front) police(ctx context.Context) error {
	shipped, err := engine.Shipped()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := policyv1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	hub, err := client.New(f.cluster.Config(), client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	for _, libraries := range []bool{true, false} { // before the policies that import them
		for _, policy := range shipped {
			if libraries != (policy.Spec.Type == policyv1alpha1.Library) {
				continue
			}
			// A library is in force a moment later.
			err := cluster.Poll(ctx, time.Minute, "policy "+policy.Name+" to be accepted", func(ctx context.Context) error {
				return client.IgnoreAlreadyExists(hub.Create(ctx, policy.DeepCopy()))
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// follow keeps the manager from leading: the Lease has another holder.
func (f *front) follow(ctx context.Context) error {
	if err := makeNamespace(ctx, f.client, install.Namespace); err != nil {
		return err
	}
	now := metav1.NowMicro()
	_, err := f.client.CoordinationV1().Leases(install.Namespace).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "portico"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       ptr.To("another replica"),
			LeaseDurationSeconds: ptr.To(int32((24 * time.Hour).Seconds())),
			AcquireTime:          &now,
			RenewTime:            &now,
		},
	}, metav1.CreateOptions{})
	return err
}

// creates counts creates per second, in a namespace of their own.
func (f *front) creates(ctx context.Context, namespace string, pairs int, remote bool, concurrency int) (float64, error) {
	if err := makeNamespace(ctx, f.client, namespace); err != nil {
		return 0, err
	}
	started := time.Now()
	if err := createPairs(ctx, f.client, namespace, "web", pairs, remote, concurrency); err != nil {
		return 0, err
	}
	rate := 2 * float64(pairs) / time.Since(started).Seconds()
	if remote && f.settle != nil {
		return rate, f.settle(ctx, namespace, 2*pairs)
	}
	return rate, nil
}

// takenIn waits until Portico has reported for every object of a namespace that there
// is no target.
func (f *front) takenIn(ctx context.Context, namespace string, objects int) error {
	hub, err := client.New(f.cluster.Config(), client.Options{})
	if err != nil {
		return err
	}
	return cluster.Poll(ctx, 5*time.Minute, "Portico to take in the new objects", func(ctx context.Context) error {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("KubernetesApplicationResourceList"))
		if err := hub.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		reported := 0
		for _, item := range list.Items {
			if _, ok := item.Object["status"]; ok {
				reported++
			}
		}
		if reported < objects {
			return fmt.Errorf("%d of %d are taken in", reported, objects)
		}
		return nil
	})
}

func makeNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}
