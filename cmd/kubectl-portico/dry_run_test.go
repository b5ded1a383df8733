package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
)

// publishes returns a reachable target of a namespace for a cluster.
func publishes(namespace, name, cluster string) *v1alpha1.KubernetesTarget {
	target := &v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	target.Status.ClusterID = cluster
	target.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TargetReachable, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReachable}}
	return target
}

func placedIn(namespace, name, target string) *v1alpha2.KubernetesApplication {
	app := placed(name, target)
	app.Namespace = namespace
	return app
}

// A dry run of a drain selects the targets that the scheduler would select: it
// compares clusters over all namespaces, and counts the applications that would
// have moved before.
func TestDrainDryRun(t *testing.T) {
	cases := map[string]struct {
		reason    string
		objects   []client.Object
		forbidden bool // the user may not list other namespaces
		want      []string
		code      int // 0 if there is no error
	}{
		"OtherNamespaces": {
			reason:  "Applications of other namespaces count on the same cluster.",
			objects: []client.Object{publishes("blog", "loaded", "a-id"), placedIn("blog", "x", "loaded"), placed("web", "eu")},
			want:    []string{"application web would move to target us (dry run)"},
		},
		"Spread": {
			reason:  "An application counts on the target that it would have moved to.",
			objects: []client.Object{placed("one", "eu"), placed("three", "eu"), placed("two", "eu")},
			want: []string{
				"application one would move to target asia (dry run)",
				"application three would move to target us (dry run)",
				"application two would move to target asia (dry run)",
			},
		},
		"Forbidden": {
			reason:    "Without the right to list all namespaces, only the own namespace is counted.",
			objects:   []client.Object{publishes("blog", "loaded", "a-id"), placedIn("blog", "x", "loaded"), placed("web", "eu")},
			forbidden: true,
			want: []string{
				"counting the resources of namespace shop only: kubernetestargets is forbidden: all namespaces",
				"application web would move to target asia (dry run)",
			},
		},
		"Stays": {
			reason:  "An application that fits on no other target remains.",
			objects: []client.Object{selecting(placed("web", "eu"), "region")},
			want:    []string{"application web would stay: 0 of 3 targets match: asia wants region=eu, has no label region; eu wants region=eu, has no label region; us wants region=eu, has no label region (dry run)"},
			code:    codeRemaining,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme := reconcilertest.Scheme(t, v1alpha1.AddToScheme, v1alpha2.AddToScheme)
			objects := append([]client.Object{publishes("shop", "eu", "eu-id"), publishes("shop", "asia", "a-id"), publishes("shop", "us", "us-id")}, tc.objects...)
			hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					in := (&client.ListOptions{}).ApplyOptions(options).Namespace
					if in == "" && tc.forbidden {
						err := apierrors.NewForbidden(schema.GroupResource{Resource: "kubernetestargets"}, "", nil)
						err.ErrStatus.Message = "kubernetestargets is forbidden: all namespaces"
						return err
					}
					return c.List(ctx, list, options...)
				},
			}).Build()
			var out bytes.Buffer
			s := &session{hub: hub, namespace: "shop", out: &out, portico: "portico-system"}
			err := s.drainTarget(t.Context(), "eu", true)
			if code := codeOf(err); code != tc.code {
				t.Errorf("%s: exit code %d: %v", tc.reason, code, err)
			}
			if diff := cmp.Diff(tc.want, strings.Split(strings.TrimSpace(out.String()), "\n")); diff != "" {
				t.Errorf("%s -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func selecting(app *v1alpha2.KubernetesApplication, label string) *v1alpha2.KubernetesApplication {
	app.Spec.TargetSelector = &metav1.LabelSelector{MatchLabels: map[string]string{label: "eu"}}
	return app
}

func codeOf(err error) int {
	switch e := err.(type) { //nolint:errorlint // drainTarget returns it as it is.
	case nil:
		return 0
	case exitError:
		return e.code
	}
	return 1
}
