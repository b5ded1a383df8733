// Package targets runs Portico's controllers of targets with a real API server. It is
// the hub and, for other users, every target.
package targets

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/propagation"
	"github.com/portico-io/portico/controllers/target"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/connectionsecret"
	"github.com/portico-io/portico/policies/credentials"
	"github.com/portico-io/portico/test/apiserver"
)

// timeout is the limit on every wait, because the machine is shared.
const timeout = 2 * time.Minute

// fixture is the API server with Portico's controllers of targets.
type fixture struct {
	client.Client
	config   *rest.Config
	api      kubernetes.Interface
	log      *log
	clusters *clusters.Clusters
}

// log is the log of the controllers.
type log struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (l *log) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.Write(data)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.String()
}

// start starts a fixture that runs until the test ends.
func start(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{log: &log{}}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(w.log), textlogger.Verbosity(4)))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	t.Cleanup(klog.ClearLogger)

	w.config = apiserver.Start(t, func(e *envtest.Environment) {
		e.CRDDirectoryPaths = []string{filepath.Join(apiserver.Root(t), "config", "crd", "bases")}
	})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, v1alpha2.AddToScheme} {
		must(t, add(scheme))
	}
	var err error
	w.Client, err = client.New(w.config, client.Options{Scheme: scheme})
	must(t, err)
	w.api, err = kubernetes.NewForConfig(w.config)
	must(t, err)

	mgr, err := ctrl.NewManager(w.config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	must(t, mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.KubernetesTarget{}, policies.ConnectionSecretIndex, target.IndexSecret))
	must(t, mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.KubernetesApplicationResource{}, propagation.TargetIndex, propagation.IndexTarget))
	must(t, mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.KubernetesApplicationResource{}, policies.PrerequisiteIndex, propagation.IndexPrerequisite))
	must(t, mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.KubernetesApplicationResource{}, policies.ApplicationIndex, func(o client.Object) []string { return policies.ApplicationKeys(o) }))
	const hubID = "hub-of-this-test"
	w.clusters = clusters.New(clusters.Options{HubID: hubID, Timeout: 2 * time.Second, ProbeInterval: time.Second, QPS: 200, Burst: 400})
	must(t, mgr.Add(propagation.New(mgr, w.clusters, propagation.Options{HubID: hubID, AllowDefaults: policies.AllowDefaults{PorticoNamespace: "portico-system"}})))
	must(t, target.SetupWithManager(ctx, mgr, w.clusters, target.Options{Connections: connectionsecret.Options{Namespace: "portico-system"}, Rules: credentials.Rules{AllowLocal: true, Hub: w.config.Host}}))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("running the controllers: %v", err)
		}
	})
	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until holds returns true. Otherwise it fails with its last text.
func eventually(t testing.TB, what string, holds func() (bool, string)) {
	t.Helper()
	message := ""
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, timeout, true, func(context.Context) (ok bool, _ error) {
		ok, message = holds()
		return ok, nil
	})
	if err != nil {
		t.Fatalf("waiting for %s: %s", what, message)
	}
}

func (w *fixture) namespace(t testing.TB, name string) string {
	t.Helper()
	must(t, w.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	return name
}

// account creates a service account with rules, and returns a token.
func (w *fixture) account(t testing.TB, namespace, name string, rules ...rbacv1.PolicyRule) (token string) {
	t.Helper()
	ctx := t.Context()
	must(t, w.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}))
	w.grant(t, namespace+"-"+name, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}, rules...)
	request := &authenticationv1.TokenRequest{}
	made, err := w.api.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	must(t, err)
	return made.Status.Token
}

// grant gives a user rights in all namespaces.
func (w *fixture) grant(t testing.TB, name string, user rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	t.Helper()
	if len(rules) == 0 {
		return
	}
	must(t, w.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}))
	must(t, w.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{user},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
	}))
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// everything are the rights for a target with ConfigMaps.
var everything = []rbacv1.PolicyRule{
	rule("", "configmaps", "get", "list", "watch", "create", "patch", "delete"),
	rule("", "namespaces", "create"),
}

// connection returns the data of a connection Secret for the API server.
func (w *fixture) connection(token string) map[string][]byte {
	return map[string][]byte{
		v1alpha1.SecretEndpoint: []byte(w.config.Host), v1alpha1.SecretClusterCA: w.config.CAData, v1alpha1.SecretToken: []byte(token),
	}
}

// publish creates a target and its Secret with the same name.
func (w *fixture) publish(t testing.TB, namespace, name string, data map[string][]byte, edits ...func(*v1alpha1.KubernetesTarget)) {
	t.Helper()
	must(t, w.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}))
	published := &v1alpha1.KubernetesTarget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.KubernetesTargetSpec{ConnectionSecretRef: &v1alpha1.SecretReference{Name: name}},
	}
	for _, edit := range edits {
		edit(published)
	}
	must(t, w.Create(t.Context(), published))
}

// rotate replaces the data of a Secret.
func (w *fixture) rotate(t testing.TB, namespace, name string, data map[string][]byte) {
	t.Helper()
	secret := &corev1.Secret{}
	must(t, w.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, secret))
	secret.Data = data
	must(t, w.Update(t.Context(), secret))
}

// place creates a resource for an object, in JSON, on a target.
func (w *fixture) place(t testing.TB, namespace, name, target, template string, edits ...func(*v1alpha1.KubernetesApplicationResource)) {
	t.Helper()
	resource := &v1alpha1.KubernetesApplicationResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.KubernetesApplicationResourceSpec{
			Template: runtime.RawExtension{Raw: []byte(template)}, TargetRef: &v1alpha1.TargetReference{Name: target},
		},
	}
	for _, edit := range edits {
		edit(resource)
	}
	must(t, w.Create(t.Context(), resource))
}

// configMap returns a template.
func configMap(namespace, name, value string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":%q,"name":%q},"data":{"value":%q}}`, namespace, name, value)
}

func (w *fixture) target(t testing.TB, namespace, name string) *v1alpha1.KubernetesTarget {
	t.Helper()
	out := &v1alpha1.KubernetesTarget{}
	must(t, w.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, out))
	return out
}

// reachable waits for a status of a target's condition.
func (w *fixture) reachable(t testing.TB, namespace, name string, status metav1.ConditionStatus) *v1alpha1.KubernetesTarget {
	t.Helper()
	var out *v1alpha1.KubernetesTarget
	eventually(t, fmt.Sprintf("target %s to be reachable: %s", name, status), func() (bool, string) {
		out = w.target(t, namespace, name)
		condition := meta.FindStatusCondition(out.Status.Conditions, v1alpha1.TargetReachable)
		if condition == nil {
			return false, "nothing is said of it"
		}
		return condition.Status == status, condition.Message
	})
	return out
}

// synced waits for a reason and a message of a resource's condition Synced.
func (w *fixture) synced(t testing.TB, namespace, name, reason string, text func(message string) bool) {
	t.Helper()
	eventually(t, fmt.Sprintf("resource %s to be %s", name, reason), func() (bool, string) {
		resource := &v1alpha1.KubernetesApplicationResource{}
		must(t, w.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, resource))
		condition := meta.FindStatusCondition(resource.Status.Conditions, v1alpha1.Synced)
		if condition == nil {
			return false, "nothing is said of it"
		}
		return condition.Reason == reason && (text == nil || text(condition.Message)), condition.Reason + ": " + condition.Message
	})
}
