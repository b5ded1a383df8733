package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/test/cluster"
)

// The namespaces of members. One has an application with all members. The other has the
// same number of resources without an application. The same two clusters are published
// to both.
const (
	togetherNamespace = "bench-together"
	singleNamespace   = "bench-single"
	firstTarget       = "first"
	secondTarget      = "second"
	largeApplication  = "large"
)

// measureMembers places an application with many members, and the same number of single
// resources, and moves both to another cluster.
func measureMembers(ctx context.Context, s *settings, r *report) (err error) {
	p, err := startPlanes(ctx, s, r, 2)
	defer func() { err = errors.Join(err, p.stop()) }()
	if err != nil {
		return err
	}
	for _, namespace := range []string{togetherNamespace, singleNamespace} {
		for i, name := range []string{firstTarget, secondTarget} {
			user, err := p.targets[i].AddUser("portico", "system:masters")
			if err != nil {
				return err
			}
			spec := v1alpha1.KubernetesTargetSpec{Unschedulable: i > 0}
			if err := p.publish(ctx, publication{namespace: namespace, name: name, connection: connectionOf(user, ""), spec: spec}); err != nil {
				return err
			}
			if err := makeNamespace(ctx, p.targets[i].client, namespace); err != nil {
				return err
			}
		}
		// The first resource on each target starts its watches.
		if err := p.warmMembers(ctx, namespace); err != nil {
			return err
		}
	}
	together, err := p.placeAndDrain(ctx, togetherNamespace, "an application of %d members", p.createTogether, p.moveTogether)
	if err != nil {
		return err
	}
	single, err := p.placeAndDrain(ctx, singleNamespace, "%d single resources", p.createSingle, p.moveSingle)
	if err != nil {
		return err
	}
	for _, row := range []struct {
		what             string
		single, together float64
	}{
		{"placed", single.placed, together.placed},
		{"drained", single.drained, together.drained},
	} {
		r.ratio(membersSection, fmt.Sprintf("%d members %s, time of single ones ÷ of one application", s.members, row.what),
			[]float64{row.single}, []float64{row.together}, atLeast(0.5), fmt.Sprintf("%s s ÷ %s s", number(row.single), number(row.together)))
	}
	return nil
}

// warmMembers creates a resource on each target for a moment.
func (p *planes) warmMembers(ctx context.Context, namespace string) error {
	for _, name := range []string{firstTarget, secondTarget} {
		r, err := resourceFor(configuration(namespace, "warm-"+name), name)
		if err != nil {
			return err
		}
		if err := p.hub.Create(ctx, r); err != nil {
			return err
		}
		if err := p.submitted(ctx, namespace, 1); err != nil {
			return err
		}
		if err := p.hub.Delete(ctx, r); err != nil {
			return err
		}
		err = cluster.Poll(ctx, timeout, "the first resource to go", func(ctx context.Context) error {
			err := p.hub.Get(ctx, client.ObjectKeyFromObject(r), r)
			if err == nil {
				return errors.New("it is still there")
			}
			return client.IgnoreNotFound(err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// moved is how long members took, in seconds, until all of them were on the first
// target, and then until all were on the second and none on the first.
type moved struct{ placed, drained float64 }

// placeAndDrain does the same as kubectl portico drain, but moves all units at once, so
// that it measures only Portico.
func (p *planes) placeAndDrain(ctx context.Context, namespace, what string, create, request func(context.Context) error) (m moved, err error) {
	what = fmt.Sprintf(what, p.members)
	first, second := p.targets[0].client, p.targets[1].client
	var there, here atomic.Int64
	err = step("placing "+what, func() string { return fmt.Sprintf("%d are on the target", there.Load()) }, func() error {
		started := time.Now()
		if err := create(ctx); err != nil {
			return err
		}
		if err := reaches(ctx, first, namespace, p.members, counted(&there)); err != nil {
			return err
		}
		m.placed = time.Since(started).Seconds()
		return p.submitted(ctx, namespace, p.members)
	})
	if err != nil {
		return m, err
	}
	if err := p.atRest(ctx); err != nil {
		return m, err
	}
	progress := func() string { return fmt.Sprintf("%d are on the one, %d on the other", there.Load(), here.Load()) }
	err = step("draining "+what, progress, func() error {
		if err := p.patchTarget(ctx, namespace, secondTarget, `{"unschedulable":false}`); err != nil {
			return err
		}
		started := time.Now()
		if err := p.patchTarget(ctx, namespace, firstTarget, `{"unschedulable":true}`); err != nil {
			return err
		}
		if err := request(ctx); err != nil {
			return err
		}
		if err := reaches(ctx, second, namespace, p.members, counted(&here)); err != nil {
			return err
		}
		if err := reaches(ctx, first, namespace, 0, counted(&there)); err != nil {
			return err
		}
		m.drained = time.Since(started).Seconds()
		return nil
	})
	if err != nil {
		return m, err
	}
	return m, p.atRest(ctx)
}

func counted(n *atomic.Int64) func(int) { return func(now int) { n.Store(int64(now)) } }

// small returns a minimal ConfigMap, because all templates of an application must fit
// into one object of etcd.
func small(namespace, name string) client.Object {
	object := configuration(namespace, name)
	object.Labels, object.Data = nil, map[string]string{"level": "info"}
	return object
}

func (p *planes) createTogether(ctx context.Context) error {
	app := &v1alpha2.KubernetesApplication{ObjectMeta: metav1.ObjectMeta{Namespace: togetherNamespace, Name: largeApplication}}
	for _, name := range called("member", p.members) {
		raw, err := json.Marshal(small(togetherNamespace, name))
		if err != nil {
			return err
		}
		app.Spec.ResourceTemplates = append(app.Spec.ResourceTemplates, v1alpha2.ResourceTemplate{
			Metadata: v1alpha2.TemplateMeta{Name: name},
			Spec:     v1alpha2.ResourceTemplateSpec{Template: runtime.RawExtension{Raw: raw}},
		})
	}
	return p.hub.Create(ctx, app)
}

func (p *planes) createSingle(ctx context.Context) error {
	names := called("member", p.members)
	return spread(ctx, p.members, p.concurrency, func(i int) error {
		r, err := resourceFor(small(singleNamespace, names[i]), "")
		if err != nil {
			return err
		}
		return p.hub.Create(ctx, r)
	})
}

func (p *planes) moveTogether(ctx context.Context) error {
	return p.requestMove(ctx, &v1alpha2.KubernetesApplication{ObjectMeta: metav1.ObjectMeta{Namespace: togetherNamespace, Name: largeApplication}})
}

func (p *planes) moveSingle(ctx context.Context) error {
	names := called("member", p.members)
	return spread(ctx, p.members, p.concurrency, func(i int) error {
		return p.requestMove(ctx, &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Namespace: singleNamespace, Name: names[i]}})
	})
}

func (p *planes) requestMove(ctx context.Context, object client.Object) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1alpha1.MoveFromAnnotation: firstTarget}}})
	if err != nil {
		return err
	}
	return p.hub.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
}
