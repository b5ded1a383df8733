package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/flaky"
)

const (
	targetsNamespace = "bench-targets"
	// fifty is the number of targets. Three times five of them can be in trouble.
	fifty   = 50
	trouble = 5
	// named is the label by which a Deployment selects a target.
	named = "bench.example.org/name"
)

// many is a system with fifty targets. They are one API server, with a user for each.
type many struct {
	*system
	hub     client.Client
	trouble *flaky.Trouble
}

// measureTargets measures the cost of idle targets, and the effect of targets in
// trouble on the others.
func measureTargets(ctx context.Context, s *settings, r *report) (err error) {
	m := &many{system: &system{settings: s, report: r}}
	defer func() { err = errors.Join(err, m.stop()) }()
	if err := m.prepare(ctx); err != nil {
		return err
	}
	defer m.trouble.Close()
	before, err := m.settled(ctx)
	if err != nil {
		return err
	}
	all, healthy := numbers(0, fifty), numbers(3*trouble, fifty)
	if err := m.publish(ctx, all); err != nil {
		return err
	}
	after, err := m.settled(ctx)
	if err != nil {
		return err
	}
	m.report.value(targetsSection, fmt.Sprintf("resident memory per idle target, of %d", fifty), (after.resident-before.resident)/fifty, "KiB", nil,
		fmt.Sprintf("(%s − %s) MiB / %d", number(after.resident/1024), number(before.resident/1024), fifty))
	if err := m.withdraw(ctx, numbers(0, 3*trouble)); err != nil {
		return err
	}
	// The first Deployment on a target starts its watches.
	if _, err := m.deploy(ctx, "first", healthy); err != nil {
		return err
	}
	if err := m.undeploy(ctx, "first", healthy); err != nil {
		return err
	}

	var beside, without []samples
	for round := range m.rounds {
		turns := []func() error{
			func() error {
				got, err := m.measure(ctx, fmt.Sprintf("without-%d", round), healthy)
				without = append(without, got)
				return err
			},
			func() error {
				got, err := m.inTrouble(ctx, round, healthy)
				beside = append(beside, got)
				return err
			},
		}
		for _, turn := range []func() error{turns[round%2], turns[1-round%2]} {
			if err := turn(); err != nil {
				return err
			}
		}
	}
	m.compareTargets(beside, without)
	return nil
}

func numbers(from, to int) (out []int) {
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

func (m *many) prepare(ctx context.Context) error {
	if err := m.start(ctx); err != nil {
		return err
	}
	// The first pair opens connections and fills caches.
	if _, err := m.through(ctx, "warm", 1); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	config := m.system.hub.Config()
	config.QPS, config.Burst = -1, -1
	var err error
	if m.hub, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	address, err := url.Parse(m.target.Config().Host)
	if err != nil {
		return err
	}
	if m.trouble, err = flaky.Troubles(address.Host, trouble); err != nil {
		return err
	}
	if err := makeNamespace(ctx, m.onHub, targetsNamespace); err != nil {
		return err
	}
	return makeNamespace(ctx, m.onTarget, targetsNamespace)
}

func targetName(i int) string { return fmt.Sprintf("target-%02d", i) }

// publish publishes targets, and returns when all of them are reachable.
func (m *many) publish(ctx context.Context, which []int) error {
	return step(fmt.Sprintf("publishing %d targets", len(which)), nil, func() error {
		err := spread(ctx, len(which), m.concurrency, func(n int) error {
			i := which[n]
			user, err := m.target.AddUser("portico-"+targetName(i), "system:masters")
			if err != nil {
				return err
			}
			endpoint := user.Config.Host
			if i < len(m.trouble.Proxies) {
				endpoint = "https://" + m.trouble.Proxies[i].Address()
			}
			is := metav1.ObjectMeta{Namespace: targetsNamespace, Name: targetName(i), Labels: map[string]string{named: targetName(i)}}
			secret := &corev1.Secret{ObjectMeta: is, Data: map[string][]byte{
				v1alpha1.SecretEndpoint: []byte(endpoint), v1alpha1.SecretClusterCA: user.Config.CAData,
				v1alpha1.SecretClientCert: user.Config.CertData, v1alpha1.SecretClientKey: user.Config.KeyData,
			}}
			if err := m.hub.Create(ctx, secret); err != nil {
				return err
			}
			spec := v1alpha1.KubernetesTargetSpec{ConnectionSecretRef: &v1alpha1.SecretReference{Name: secret.Name}}
			return m.hub.Create(ctx, &v1alpha1.KubernetesTarget{ObjectMeta: is, Spec: spec})
		})
		if err != nil {
			return err
		}
		return cluster.Poll(ctx, timeout, "the targets to answer", func(ctx context.Context) error {
			var list v1alpha1.KubernetesTargetList
			if err := m.hub.List(ctx, &list, client.InNamespace(targetsNamespace)); err != nil {
				return err
			}
			for _, target := range list.Items {
				if !meta.IsStatusConditionTrue(target.Status.Conditions, v1alpha1.TargetReachable) {
					return fmt.Errorf("%s does not", target.Name)
				}
			}
			return nil
		})
	})
}

// withdraw deletes unused targets, when Portico has observed that they are unused.
func (m *many) withdraw(ctx context.Context, which []int) error {
	is := func(i int) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: targetsNamespace, Name: targetName(i)}
	}
	for _, i := range which {
		err := cluster.Poll(ctx, timeout, "target "+targetName(i)+" to go", func(ctx context.Context) error {
			target := &v1alpha1.KubernetesTarget{ObjectMeta: is(i)}
			if err := client.IgnoreNotFound(m.hub.Delete(ctx, target)); err != nil {
				return err
			}
			err := m.hub.Get(ctx, client.ObjectKeyFromObject(target), target)
			if err == nil {
				return errors.New("it is still there")
			}
			return client.IgnoreNotFound(err)
		})
		if err != nil {
			return err
		}
		if err := m.hub.Delete(ctx, &corev1.Secret{ObjectMeta: is(i)}); err != nil {
			return err
		}
	}
	return nil
}

// inTrouble measures the healthy targets while the others are in trouble, and a
// Deployment waits for each of those.
func (m *many) inTrouble(ctx context.Context, round int, healthy []int) (got samples, err error) {
	ill := numbers(0, len(m.trouble.Proxies))
	if err := m.publish(ctx, ill); err != nil {
		return got, err
	}
	waiting := fmt.Sprintf("waiting-%d", round)
	if _, err := m.deploy(ctx, waiting, ill); err != nil {
		return got, err
	}
	m.trouble.Begin()
	for _, i := range ill {
		patch := []byte(`{"spec":{"template":{"metadata":{"annotations":{"round":"changed"}}}}}`)
		// Portico allows the request, with a warning that there was no dry run.
		if _, err := m.onHub.AppsV1().Deployments(targetsNamespace).Patch(ctx, waiting+"-"+targetName(i), types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return got, err
		}
	}
	got, err = m.measure(ctx, fmt.Sprintf("beside-%d", round), healthy)
	m.trouble.End()
	if err != nil {
		return got, err
	}
	if err := m.undeploy(ctx, waiting, ill); err != nil {
		return got, err
	}
	return got, m.withdraw(ctx, ill)
}

// onTheirTarget returns a Deployment for one target.
func onTheirTarget(group string, i int) *appsv1.Deployment {
	d := deployment(targetsNamespace, group, group+"-"+targetName(i), true)
	d.Labels[v1alpha1.ApplicationLabel] = d.Name
	d.Annotations = map[string]string{v1alpha1.TargetSelectorAnnotation: named + "=" + targetName(i)}
	return d
}

// samples are times in milliseconds: from the creation of a Deployment on the hub to
// its arrival on the target, and from a change of its status there to the same change
// on the hub.
type samples struct{ applied, reported []float64 }

// changes is the number of changes of each Deployment's status.
const changes = 3

// measure deploys to targets, waits for the statuses, and cleans up.
func (m *many) measure(ctx context.Context, group string, on []int) (got samples, err error) {
	if got.applied, err = m.deploy(ctx, group, on); err != nil {
		return got, err
	}
	if got.reported, err = m.follow(ctx, group, on); err != nil {
		return got, err
	}
	return got, m.undeploy(ctx, group, on)
}

func ofGroup(group string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=" + group}
}

// deploy creates a Deployment for each target. It waits for the arrival of each on its
// target.
func (m *many) deploy(ctx context.Context, group string, on []int) (applied []float64, err error) {
	there, err := m.onTarget.AppsV1().Deployments(targetsNamespace).Watch(ctx, ofGroup(group))
	if err != nil {
		return nil, err
	}
	defer there.Stop()
	err = step(fmt.Sprintf("deploying %s to %d targets", group, len(on)), nil, func() error {
		for _, i := range on {
			d, started := onTheirTarget(group, i), time.Now()
			if _, err := m.onHub.AppsV1().Deployments(targetsNamespace).Create(ctx, d, metav1.CreateOptions{}); err != nil {
				return err
			}
			took, err := arrival(ctx, there, started, func(found *appsv1.Deployment) bool { return found.Name == d.Name })
			if err != nil {
				return fmt.Errorf("%s: %w", d.Name, err)
			}
			applied = append(applied, took)
		}
		return nil
	})
	return applied, err
}

// follow changes statuses on the targets, one at a time, and waits for the same change
// on the hub.
func (m *many) follow(ctx context.Context, group string, on []int) (reported []float64, err error) {
	here, err := m.onHub.AppsV1().Deployments(targetsNamespace).Watch(ctx, ofGroup(group))
	if err != nil {
		return nil, err
	}
	defer here.Stop()
	err = step("following their status", nil, func() error {
		for sample := range changes * len(on) {
			started := time.Now()
			if err := m.change(ctx, targetsNamespace, group+"-"+targetName(on[sample%len(on)]), sample); err != nil {
				return err
			}
			took, err := arrival(ctx, here, started, ticked(sample))
			if err != nil {
				return fmt.Errorf("sample %d: %w", sample, err)
			}
			reported = append(reported, took)
		}
		return nil
	})
	return reported, err
}

// undeploy deletes Deployments, and returns when they are gone from the targets.
func (m *many) undeploy(ctx context.Context, group string, on []int) error {
	for _, i := range on {
		if err := m.onHub.AppsV1().Deployments(targetsNamespace).Delete(ctx, group+"-"+targetName(i), metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return cluster.Poll(ctx, timeout, "the Deployments to be gone", func(ctx context.Context) error {
		left, err := m.onTarget.AppsV1().Deployments(targetsNamespace).List(ctx, ofGroup(group))
		if err != nil {
			return err
		}
		if len(left.Items) > 0 {
			return fmt.Errorf("%d are left", len(left.Items))
		}
		return nil
	})
}

func (m *many) compareTargets(beside, without []samples) {
	for _, row := range []struct {
		what string
		of   func(samples) []float64
	}{
		{"a Deployment is on its target", func(s samples) []float64 { return s.applied }},
		{"a status change is on the hub", func(s samples) []float64 { return s.reported }},
	} {
		for _, q := range []float64{0.5, 0.9} {
			var slow, fast []float64
			for i := range without {
				slow, fast = append(slow, quantile(row.of(beside[i]), q)), append(fast, quantile(row.of(without[i]), q))
			}
			m.report.ratio(targetsSection, fmt.Sprintf("p%g until %s, %d healthy targets beside %d in trouble ÷ without those",
				100*q, row.what, fifty-3*trouble, 3*trouble), slow, fast, atMost(1.25), fmt.Sprintf("%s ms ÷ %s ms", number(median(slow)), number(median(fast))))
		}
	}
}
