package manifests

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// rolesRemainOnTheHub binds Roles in namespaces that opt in, and in others.
func rolesRemainOnTheHub(t *testing.T, cfg *rest.Config) {
	warnings := &receivedWarnings{}
	cfg = rest.CopyConfig(cfg)
	cfg.WarningHandler = warnings
	cluster, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	remote := map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote}
	for _, namespace := range []metav1.ObjectMeta{
		{Name: "opts-in", Labels: remote}, {Name: "stays"},
		{Name: "asks", Labels: remote, Annotations: map[string]string{v1alpha1.WithRBACAnnotation: "true"}},
		{Name: "declines", Labels: remote, Annotations: map[string]string{v1alpha1.WithRBACAnnotation: "false"}},
	} {
		if err := cluster.Create(t.Context(), &corev1.Namespace{ObjectMeta: namespace}); err != nil {
			t.Fatal(err)
		}
	}
	binding := func(namespace, role string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "readers"}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role, Name: "reader"},
		}
	}
	account := func(namespace, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
	}
	labelled := func(key, value string) *rbacv1.RoleBinding {
		out := binding("opts-in", "Role", account("opts-in", "web"))
		out.Labels = map[string]string{key: value}
		return out
	}
	ours := account("opts-in", "web")
	const remains = "RoleBinding readers and Role reader stay on the hub: for the Pods of the ServiceAccount on a target, set the annotation workload.crossplane.io/with-rbac=true on the namespace"
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		err := cluster.Create(ctx, binding("opts-in", "Role", ours), client.DryRunAll)
		return warnings.take() != "", err
	}); err != nil {
		t.Fatal("there is no warning that a Role stays on the hub")
	}
	for name, tc := range map[string]struct {
		object *rbacv1.RoleBinding
		want   string
	}{
		"Role":        {binding("opts-in", "Role", ours), remains},
		"ClusterRole": {binding("opts-in", "ClusterRole", ours), "binds a ClusterRole, and stays on the hub"},
		"OneOfMany":   {binding("opts-in", "Role", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "eve"}, ours), remains},
		"User":        {binding("opts-in", "Role", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "eve"}), ""},
		"Default":     {binding("opts-in", "Role", account("opts-in", "default")), ""},
		"Elsewhere":   {binding("opts-in", "Role", account("stays", "web")), ""},
		"Asked":       {binding("asks", "Role", account("asks", "web")), ""},
		"Declined":    {binding("declines", "Role", account("declines", "web")), ""},
		"NoOptIn":     {binding("stays", "Role", account("stays", "web")), ""},
		"Local":       {labelled(v1alpha1.ScheduleLabel, v1alpha1.ScheduleLocal), ""},
		"Arrived":     {labelled(v1alpha1.ManagedByLabel, "hub"), ""},
	} {
		if err := cluster.Create(t.Context(), tc.object, client.DryRunAll); err != nil {
			t.Errorf("%s: a warning must not refuse: %v", name, err)
		}
		if got := warnings.take(); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}

	stored := binding("opts-in", "Role", ours)
	if err := cluster.Create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	warnings.take()
	stored.Annotations = map[string]string{"team": "blue"}
	if err := cluster.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	if got := warnings.take(); got != "" {
		t.Errorf("an update of an annotation: got %q", got)
	}
}
