package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
)

func placed(name, target string) *v1alpha2.KubernetesApplication {
	return &v1alpha2.KubernetesApplication{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       v1alpha2.KubernetesApplicationSpec{TargetRef: &v1alpha1.TargetReference{Name: target}},
	}
}

// moves has an application leave its target on request, as the scheduler does. An
// application whose name begins with "stays" cannot move.
func moves(ctx context.Context, c client.Client, object client.Object) error {
	app, ok := object.(*v1alpha2.KubernetesApplication)
	if !ok || app.Annotations[v1alpha1.MoveFromAnnotation] == "" {
		return nil
	}
	if strings.HasPrefix(app.Name, "stays") {
		app.Status.Conditions = []metav1.Condition{{Type: v1alpha1.Scheduled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCannotMove, Message: app.Name + " stays"}}
		return c.Status().Update(ctx, app)
	}
	delete(app.Annotations, v1alpha1.MoveFromAnnotation)
	app.Spec.TargetRef = &v1alpha1.TargetReference{Name: "us"}
	return c.Update(ctx, app)
}

// TestDrainLate drains a target. The scheduler places an application there after the
// first list of the drain, before it observes the cordon.
func TestDrainLate(t *testing.T) {
	cases := map[string]struct {
		reason string
		here   []client.Object
		late   string
		listed int // lists after the cordon, before the application is placed
		code   int // 0 if the target is drained
	}{
		"Empty":     {reason: "A list before the cordon may miss an application that is placed later.", late: "web"},
		"Listed":    {reason: "After one list, the scheduler may not have observed the cordon.", late: "web", listed: 1},
		"One":       {reason: "An application that arrives while others move is moved, too.", here: []client.Object{placed("first", "eu")}, late: "web"},
		"Stays":     {reason: "An application that arrives and cannot move remains, and the target is not drained.", here: []client.Object{placed("first", "eu")}, late: "stays-late", code: codeRemaining},
		"StaysThen": {reason: "An application that cannot move does not stop the others.", here: []client.Object{placed("stays", "eu")}, late: "web", code: codeRemaining},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each drain waits for seconds
			scheme := reconcilertest.Scheme(t, v1alpha1.AddToScheme, v1alpha2.AddToScheme)
			eu := &v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "eu"}}
			eu.Status.Conditions = []metav1.Condition{{Type: v1alpha1.Synced, Status: metav1.ConditionTrue}}
			cordoned, lists := false, 0
			comes := func(ctx context.Context, c client.Client) error {
				if lists != tc.listed {
					return nil
				}
				return client.IgnoreAlreadyExists(c.Create(ctx, placed(tc.late, "eu")))
			}
			hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(tc.here, eu)...).WithStatusSubresource(&v1alpha2.KubernetesApplication{}).
				WithInterceptorFuncs(interceptor.Funcs{
					Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
						if err := c.Patch(ctx, object, patch, options...); err != nil {
							return err
						}
						if object.GetName() == "eu" && !cordoned {
							cordoned = true
							return comes(ctx, c)
						}
						return moves(ctx, c, object)
					},
					List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
						if err := c.List(ctx, list, options...); err != nil {
							return err
						}
						if _, ok := list.(*v1alpha2.KubernetesApplicationList); !ok || !cordoned {
							return nil
						}
						lists++
						return comes(ctx, c)
					},
				}).Build()
			var out bytes.Buffer
			s := &session{hub: hub, namespace: "shop", out: &out}
			err := s.drainTarget(t.Context(), "eu", false)
			var ended exitError
			if (tc.code == 0) != (err == nil) || err != nil && (!errors.As(err, &ended) || ended.code != tc.code) {
				t.Errorf("%s: %v\n%s", tc.reason, err, out.String())
			}
			var apps v1alpha2.KubernetesApplicationList
			if err := hub.List(t.Context(), &apps); err != nil {
				t.Fatal(err)
			}
			for _, app := range apps.Items {
				want := "us"
				if strings.HasPrefix(app.Name, "stays") {
					want = "eu"
				}
				if app.Spec.TargetRef.Name != want {
					t.Errorf("%s %s is on %s, want %s\n%s", tc.reason, app.Name, app.Spec.TargetRef.Name, want, out.String())
				}
			}
			if drained := strings.Contains(out.String(), "target eu is drained"); drained != (tc.code == 0) {
				t.Errorf("%s It says: %s", tc.reason, out.String())
			}
		})
	}
}
