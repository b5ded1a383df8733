package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/test/cluster/install"
)

// Applications and the objects of a bare client are in two namespaces. Every template
// has a Secret.
const (
	applied = "bench-applications"
	barely  = "bench-barely"
	secret  = "sql"
)

// applications applies applications on the hub, until all their resources are
// submitted. In turns, a bare client applies the same ConfigMaps and Secrets on the
// target. Then it counts the requests at rest.
func (b *system) applications(ctx context.Context) error {
	for _, namespace := range []string{applied, barely} {
		if err := makeNamespace(ctx, b.onTarget, namespace); err != nil {
			return err
		}
	}
	if err := makeNamespace(ctx, b.onHub, applied); err != nil {
		return err
	}
	if err := install.Publish(ctx, b.hub, b.target, applied, nil); err != nil {
		return err
	}
	if _, err := b.onHub.CoreV1().Secrets(applied).Create(ctx, ownSecret(), metav1.CreateOptions{}); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := v1alpha2.AddToScheme(scheme); err != nil {
		return err
	}
	config := b.hub.Config()
	config.QPS = -1
	hub, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	// The first application opens connections and watches. It does not count.
	if _, err := b.submit(ctx, hub, "warm", 1); err != nil {
		return err
	}
	before, err := b.settled(ctx)
	if err != nil {
		return err
	}
	var through, direct []float64
	turns := (b.resources + b.templates - 1) / b.templates
	err = step(fmt.Sprintf("applying %d applications of %d templates, and the same without Portico", turns, b.templates), nil, func() error {
		for i := range turns {
			name := fmt.Sprintf("application-%d", i)
			took, err := b.submit(ctx, hub, name, b.templates)
			if err != nil {
				return err
			}
			through = append(through, took)
			if took, err = b.applyBarely(ctx, name, b.templates); err != nil {
				return err
			}
			direct = append(direct, took)
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.report.ratio(applicationsSection, fmt.Sprintf("applying an application of %d templates with Secrets until it is submitted ÷ the same writes by a bare client", b.templates),
		through, direct, nil, fmt.Sprintf("%s s ÷ %s s", number(median(through)), number(median(direct))))
	after, err := b.settled(ctx)
	if err != nil {
		return err
	}
	resources := float64(turns * b.templates)
	b.report.value(applicationsSection, "resident memory per KubernetesApplicationResource with a Secret", (after.resident-before.resident)/resources, "KiB", nil,
		fmt.Sprintf("(%s − %s) MiB / %s", number(after.resident/1024), number(before.resident/1024), number(resources)))
	return b.idle(ctx, applicationsSection, fmt.Sprintf(", with %s KubernetesApplicationResources with Secrets", number(resources)))
}

func ownSecret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: secret},
		StringData: map[string]string{"endpoint": "database.example.org", "username": "web", "password": "a-long-enough-password"},
	}
}

// configuration returns a ConfigMap of ordinary size.
func configuration(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app.kubernetes.io/name": name}},
		Data:       map[string]string{"database": "database.example.org", "level": "info", "features": "search,export,import"},
	}
}

// submit creates an application, and returns the time in seconds until all its
// resources are submitted.
func (b *system) submit(ctx context.Context, hub client.WithWatch, name string, templates int) (float64, error) {
	app := &v1alpha2.KubernetesApplication{ObjectMeta: metav1.ObjectMeta{Namespace: applied, Name: name}}
	for _, each := range called(name, templates) {
		object := configuration(applied, each)
		raw, err := json.Marshal(object)
		if err != nil {
			return 0, err
		}
		app.Spec.ResourceTemplates = append(app.Spec.ResourceTemplates, v1alpha2.ResourceTemplate{
			Metadata: v1alpha2.TemplateMeta{Name: each},
			Spec:     v1alpha2.ResourceTemplateSpec{Template: runtime.RawExtension{Raw: raw}, Secrets: []corev1.LocalObjectReference{{Name: secret}}},
		})
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	events, err := hub.Watch(ctx, &v1alpha2.KubernetesApplicationList{}, client.InNamespace(applied))
	if err != nil {
		return 0, err
	}
	defer events.Stop()
	started := time.Now()
	if err := hub.Create(ctx, app); err != nil {
		return 0, err
	}
	for {
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("waiting for application %s: %w", name, ctx.Err())
		case event, open := <-events.ResultChan():
			if !open {
				return 0, fmt.Errorf("waiting for application %s: the watch ended", name)
			}
			if is, ok := event.Object.(*v1alpha2.KubernetesApplication); ok && is.Name == name && int(is.Status.SubmittedResources) == templates {
				return time.Since(started).Seconds(), nil
			}
		}
	}
}

// applyBarely applies the objects of an application on the target, and returns the time
// in seconds.
func (b *system) applyBarely(ctx context.Context, name string, templates int) (float64, error) {
	started := time.Now()
	names := called(name, templates)
	options := metav1.PatchOptions{FieldManager: "bench", Force: ptr.To(true)}
	err := spread(ctx, templates, b.concurrency, func(i int) error {
		copied := ownSecret()
		copied.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
		copied.Namespace, copied.Name = barely, names[i]+"-"+secret
		data, err := json.Marshal(copied)
		if err != nil {
			return err
		}
		if _, err := b.onTarget.CoreV1().Secrets(barely).Patch(ctx, copied.Name, types.ApplyPatchType, data, options); err != nil {
			return err
		}
		if data, err = json.Marshal(configuration(barely, names[i])); err != nil {
			return err
		}
		_, err = b.onTarget.CoreV1().ConfigMaps(barely).Patch(ctx, names[i], types.ApplyPatchType, data, options)
		return err
	})
	return time.Since(started).Seconds(), err
}
