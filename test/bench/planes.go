package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/cluster/install"
)

// planes is a hub with Portico and its targets. All of them are control planes, whose
// only controllers are those of Portico, so that thousands of objects cost as little as
// possible.
type planes struct {
	*system
	hub     client.WithWatch
	targets []*targetPlane
}

// targetPlane is a target, with a client.
type targetPlane struct {
	*cluster.Cluster
	client kubernetes.Interface
}

// unlimited removes the rate limits of the manager, so that only the API servers limit
// it.
var unlimited = []string{"--hub-qps=5000", "--hub-burst=5000", "--target-qps=5000", "--target-burst=5000", "--target-workers=16"}

// memoryLimit is the limit of the shipped Deployment. The limits of targets depend on
// it.
const memoryLimit = "GOMEMLIMIT=512MiB"

// startPlanes starts a hub and targets, and installs Portico with additional arguments.
// The caller stops them, also after an error.
func startPlanes(ctx context.Context, s *settings, r *report, targets int, args ...string) (*planes, error) {
	p := &planes{system: &system{settings: s, report: r}}
	var err error
	err = step("starting a hub", nil, func() error {
		p.system.hub, p.onHub, err = plane(ctx, "hub", cluster.HubLoadBalancers)
		return err
	})
	if err != nil {
		return p, err
	}
	for i := range targets {
		name := fmt.Sprintf("target-%d", i)
		err := step("starting "+name, nil, func() error {
			c, client, err := plane(ctx, name, cluster.TargetLoadBalancers)
			if c != nil {
				p.targets = append(p.targets, &targetPlane{c, client})
			}
			return err
		})
		if err != nil {
			return p, err
		}
	}
	port, err := cluster.FreePort()
	if err != nil {
		return p, err
	}
	p.profiles = fmt.Sprintf("127.0.0.1:%d", port)
	args = append(slices.Concat(unlimited, []string{"--profiling-bind-address=" + p.profiles}), args...)
	err = step("installing Portico on the hub", nil, func() error {
		p.portico, err = install.Portico(ctx, p.system.hub, install.Options{Args: args, Env: []string{memoryLimit}})
		return err
	})
	if err != nil {
		return p, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, v1alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			return p, err
		}
	}
	config := p.system.hub.Config()
	config.QPS, config.Burst = -1, -1
	if targets > 0 {
		p.onTarget = p.targets[0].client
	}
	p.hub, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	return p, err
}

func plane(ctx context.Context, name, balancers string) (*cluster.Cluster, kubernetes.Interface, error) {
	c, err := cluster.Start(ctx, cluster.Options{Name: name, LoadBalancerRange: balancers, Components: cluster.ControlPlane})
	if err != nil {
		return nil, nil, err
	}
	client, err := connect(c)
	return c, client, err
}

func (p *planes) stop() error {
	errs := []error{p.system.stop()}
	for _, t := range p.targets {
		errs = append(errs, t.Shutdown())
	}
	return errors.Join(errs...)
}

// address returns the host and the port of a cluster's API server.
func address(c *cluster.Cluster) (string, error) {
	host, err := url.Parse(c.Config().Host)
	if err != nil {
		return "", err
	}
	return host.Host, nil
}

// publication is a target to publish.
type publication struct {
	namespace, name string
	connection      map[string][]byte // the data of the connection Secret
	spec            v1alpha1.KubernetesTargetSpec
}

// connectionOf returns the data of a connection Secret for a user, with the endpoint or
// the address in the user's configuration.
func connectionOf(user *cluster.User, endpoint string) map[string][]byte {
	return map[string][]byte{
		v1alpha1.SecretEndpoint: []byte(cmp.Or(endpoint, user.Config.Host)), v1alpha1.SecretClusterCA: user.Config.CAData,
		v1alpha1.SecretClientCert: user.Config.CertData, v1alpha1.SecretClientKey: user.Config.KeyData,
	}
}

func (p publication) secret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: p.name}, Data: p.connection}
}

func (p publication) target() *v1alpha1.KubernetesTarget {
	target := &v1alpha1.KubernetesTarget{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: p.name, Labels: map[string]string{named: p.name}}, Spec: p.spec,
	}
	target.Spec.ConnectionSecretRef = &v1alpha1.SecretReference{Name: p.name}
	return target
}

// publish publishes targets, and creates missing namespaces. It returns when all
// targets are reachable.
func (p *planes) publish(ctx context.Context, publications ...publication) error {
	return step(fmt.Sprintf("publishing %d targets", len(publications)), nil, func() error {
		for _, each := range publications {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: each.namespace}}
			if err := client.IgnoreAlreadyExists(p.hub.Create(ctx, namespace)); err != nil {
				return err
			}
			if err := p.hub.Create(ctx, each.secret()); err != nil {
				return err
			}
			if err := p.hub.Create(ctx, each.target()); err != nil {
				return err
			}
		}
		for _, each := range publications {
			if err := p.answers(ctx, each.namespace, each.name); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *planes) answers(ctx context.Context, namespace, name string) error {
	return cluster.Poll(ctx, timeout, "target "+name+" in "+namespace+" to answer", func(ctx context.Context) error {
		var target v1alpha1.KubernetesTarget
		if err := p.hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &target); err != nil {
			return err
		}
		if reachable := meta.FindStatusCondition(target.Status.Conditions, v1alpha1.TargetReachable); reachable == nil {
			return errors.New("it was not probed yet")
		} else if reachable.Status != metav1.ConditionTrue {
			return fmt.Errorf("%s: %s", reachable.Reason, reachable.Message)
		}
		return nil
	})
}

// patchTarget changes the spec of a published target.
func (p *planes) patchTarget(ctx context.Context, namespace, name, spec string) error {
	target := &v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	return p.hub.Patch(ctx, target, client.RawPatch("application/merge-patch+json", []byte(`{"spec":`+spec+`}`)))
}

// resourceFor returns a KubernetesApplicationResource for an object, in the namespace
// of the same name as the object's. on is its target; if it is empty, the scheduler
// selects one.
func resourceFor(object client.Object, on string) (*v1alpha1.KubernetesApplicationResource, error) {
	template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	delete(template, "status") // the target writes the status
	raw, err := json.Marshal(template)
	if err != nil {
		return nil, err
	}
	r := &v1alpha1.KubernetesApplicationResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()},
		Spec:       v1alpha1.KubernetesApplicationResourceSpec{Template: runtime.RawExtension{Raw: raw}},
	}
	if on != "" {
		r.Spec.TargetRef = &v1alpha1.TargetReference{Name: on}
	}
	return r, nil
}

// fill creates n resources of a group in each namespace, each with a ConfigMap, and
// returns when all of them are submitted.
func (p *planes) fill(ctx context.Context, group string, n int, on string, namespaces ...string) error {
	names, all := called(group, n), n*len(namespaces)
	var created, there atomic.Int64
	progress := func() string { return fmt.Sprintf("%d created, %d on the target", created.Load(), there.Load()) }
	return step(fmt.Sprintf("creating %d resources in %d namespaces", all, len(namespaces)), progress, func() error {
		err := spread(ctx, all, p.concurrency, func(i int) error {
			r, err := resourceFor(configuration(namespaces[i%len(namespaces)], names[i/len(namespaces)]), on)
			if err != nil {
				return err
			}
			created.Add(1)
			return p.hub.Create(ctx, r)
		})
		if err != nil {
			return err
		}
		arrived := int64(0)
		for _, namespace := range namespaces {
			if err := reaches(ctx, p.onTarget, namespace, n, func(now int) { there.Store(arrived + int64(now)) }); err != nil {
				return err
			}
			if err := p.submitted(ctx, namespace, n); err != nil {
				return err
			}
			arrived = there.Load()
		}
		return nil
	})
}

// reaches waits until a cluster has exactly n ConfigMaps in a namespace. It counts them
// by a list with limit 1.
func reaches(ctx context.Context, on kubernetes.Interface, namespace string, n int, reported func(int)) error {
	return cluster.Poll(ctx, timeout, fmt.Sprintf("%d ConfigMaps in %s", n, namespace), func(ctx context.Context) error {
		list, err := on.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return err
		}
		now := len(list.Items) + int(ptr.Deref(list.RemainingItemCount, 0))
		reported(now)
		if now != n {
			return fmt.Errorf("there are %d", now)
		}
		return nil
	})
}

// submitted waits until at least n resources of a namespace are submitted.
func (p *planes) submitted(ctx context.Context, namespace string, n int) error {
	return cluster.Poll(ctx, timeout, "the resources to be submitted", func(ctx context.Context) error {
		submitted := 0
		err := p.eachResource(ctx, namespace, func(r *v1alpha1.KubernetesApplicationResource) {
			if r.Status.State == v1alpha1.StateSubmitted {
				submitted++
			}
		})
		if err != nil {
			return err
		}
		if submitted >= n {
			return nil
		}
		// Listing is work for the hub, so it is done rarely.
		return errors.Join(fmt.Errorf("%d of %d are", submitted, n), pause(ctx, 2*time.Second))
	})
}

func (p *planes) eachResource(ctx context.Context, namespace string, do func(*v1alpha1.KubernetesApplicationResource)) error {
	list := v1alpha1.KubernetesApplicationResourceList{}
	for {
		if err := p.hub.List(ctx, &list, client.InNamespace(namespace), client.Limit(500), client.Continue(list.Continue)); err != nil {
			return err
		}
		for i := range list.Items {
			do(&list.Items[i])
		}
		if list.Continue == "" {
			return nil
		}
		list.Items = nil
	}
}

// footprint returns the memory of the manager when it is idle, after a garbage
// collection.
func (p *planes) footprint(ctx context.Context) (last usage, err error) {
	const seconds = 15 // the time in which the memory must be stable
	err = step("waiting for the manager's memory to settle", nil, func() error {
		if err := p.atRest(ctx); err != nil {
			return err
		}
		for range 2 { // the second collection frees objects with finalizers
			if err := p.collect(ctx); err != nil {
				return err
			}
		}
		started := time.Now()
		var seen []float64
		for {
			if last, err = p.usage(ctx); err != nil {
				return err
			}
			seen = append(seen, last.resident)
			window := seen[max(0, len(seen)-seconds):]
			moved := slices.Max(window) - slices.Min(window)
			if len(window) == seconds && moved < slices.Max(window)/100 || time.Since(started) > time.Minute {
				return nil
			}
			if err := pause(ctx, time.Second); err != nil {
				return err
			}
		}
	})
	return last, err
}

// collect makes the manager collect its garbage.
func (p *planes) collect(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.profiles+"/debug/pprof/heap?gc=1", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// atRest waits until the manager uses nearly no processor time, for a minute at most.
// If the processor time is unknown, it waits a moment.
func (p *planes) atRest(ctx context.Context) error {
	const window = 5 * time.Second
	for idle, started := 0, time.Now(); idle < 2 && time.Since(started) < time.Minute; {
		before := p.cpu()["portico"]
		if err := pause(ctx, window); err != nil {
			return err
		}
		idle++
		if p.cpu()["portico"]-before > 0.05*window.Seconds() {
			idle = 0
		}
	}
	return nil
}
