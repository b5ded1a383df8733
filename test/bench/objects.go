package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/test/cluster"
)

// deployment returns a Deployment of ordinary size, so that its bytes count.
func deployment(namespace, group, name string, remote bool) *appsv1.Deployment {
	labels := map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": group}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: scheduled(labels, remote)},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"prometheus.io/scrape": "true"}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name:  "web",
					Image: "registry.example.org/web:1.2.3",
					Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
					Env: []corev1.EnvVar{
						{Name: "DATABASE_HOST", Value: "database.example.org"},
						{Name: "DATABASE_NAME", Value: "web"},
						{Name: "LOG_LEVEL", Value: "info"},
						{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
					},
					Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
						Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
					},
					ReadinessProbe: &corev1.Probe{
						ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromString("http")}},
						PeriodSeconds: 5,
					},
				}}},
			},
		},
	}
}

func service(namespace, group, name string, remote bool) *corev1.Service {
	labels := map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": group}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: scheduled(labels, remote)},
		Spec: corev1.ServiceSpec{
			Selector: labels,
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http")}},
		},
	}
}

// scheduled returns a copy of labels with the label for the hub or for a target.
func scheduled(labels map[string]string, remote bool) map[string]string {
	out := maps.Clone(labels)
	if remote {
		out[v1alpha1.ScheduleLabel] = v1alpha1.ScheduleRemote
	}
	return out
}

// connect returns a client without a rate limit, which takes as little of the machine
// as possible.
func connect(c *cluster.Cluster) (kubernetes.Interface, error) {
	config := c.Config()
	config.QPS, config.Burst = -1, -1
	config.ContentType = runtime.ContentTypeProtobuf
	return kubernetes.NewForConfig(config)
}

// createPairs creates Deployments and Services of a group.
func createPairs(ctx context.Context, client kubernetes.Interface, namespace, group string, pairs int, remote bool, concurrency int) error {
	names := called(group, pairs)
	return spread(ctx, pairs, concurrency, func(i int) error {
		if _, err := client.AppsV1().Deployments(namespace).Create(ctx, deployment(namespace, group, names[i], remote), metav1.CreateOptions{}); err != nil {
			return err
		}
		_, err := client.CoreV1().Services(namespace).Create(ctx, service(namespace, group, names[i], remote), metav1.CreateOptions{})
		return err
	})
}

// spread calls do for 0 to n-1, with limited concurrency, until one call fails.
func spread(ctx context.Context, n, concurrency int, do func(int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, concurrency)
	var next atomic.Int64
	var wait sync.WaitGroup
	for worker := range concurrency {
		wait.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(i); err != nil {
					errs[worker] = err
					cancel()
				}
			}
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return ctx.Err()
}

// called returns the names of the pairs of a group.
func called(group string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%d", group, i)
	}
	return out
}
