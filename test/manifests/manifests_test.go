package manifests

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/test/apiserver"
	"github.com/portico-io/portico/test/cluster/install"
	"github.com/portico-io/portico/webhooks"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// certManagerCRDs returns the directory of the CRDs in cert-manager's module.
func certManagerCRDs(t testing.TB) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager")
	list.Dir = apiserver.Root(t)
	dir, err := list.Output()
	if err != nil {
		t.Fatalf("finding cert-manager's module: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "deploy", "crds")
}

// TestInstall applies all manifests to a real API server. The API server must have
// every field, and accept every expression.
func TestInstall(t *testing.T) {
	cfg := apiserver.Start(t, func(e *envtest.Environment) { e.CRDDirectoryPaths = []string{certManagerCRDs(t)} })
	cluster, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}

	// In this order, as for a change to cert-manager.
	for _, overlay := range []string{"default", "certmanager", "hardened", parameters} {
		apply(t, cluster, render(t, overlay)...)
	}
	apply(t, cluster, render(t, "default")...) // and the change back

	t.Run("ManagerPods", func(t *testing.T) { managerPods(t, cluster) })
	t.Run("PodsStayOffTheHub", func(t *testing.T) { hubRunsNoPods(t, cluster) })
	t.Run("KindsStayWhereTheyAreJudged", func(t *testing.T) { webhooksListEachKind(t, cluster) })
	t.Run("ScheduleLabelHasAnEffect", func(t *testing.T) { scheduleLabelHasAnEffect(t, cfg) })
	t.Run("RolesRemainOnTheHub", func(t *testing.T) { rolesRemainOnTheHub(t, cfg) })
	t.Run("ExpressionsTypeCheck", func(t *testing.T) { expressionsTypeCheck(t, cfg, cluster) })
}

// managerPods creates a Pod of the Deployment, with the Pod Security and the quota of
// its namespace.
func managerPods(t *testing.T, cluster client.Client) {
	var deployment appsv1.Deployment
	if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: install.Namespace, Name: "portico"}, &deployment); err != nil {
		t.Fatal(err)
	}
	// No controller updates the quota here.
	var quotas corev1.ResourceQuotaList
	if err := cluster.List(t.Context(), &quotas, client.InNamespace(install.Namespace)); err != nil {
		t.Fatal(err)
	}
	for _, quota := range quotas.Items {
		quota.Status.Hard = quota.Spec.Hard
		quota.Status.Used = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
		if err := cluster.Status().Update(t.Context(), &quota); err != nil {
			t.Fatal(err)
		}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "portico-", Namespace: install.Namespace, Labels: deployment.Spec.Template.Labels},
		Spec:       deployment.Spec.Template.Spec,
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		err := cluster.Create(ctx, pod.DeepCopy(), client.DryRunAll)
		if err != nil && strings.Contains(err.Error(), "quota") {
			return false, nil // the API server has not observed the status yet
		}
		return true, err
	}); err != nil {
		t.Errorf("the manager's Pods are refused: %v", err)
	}
	var service corev1.Service
	if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: install.Namespace, Name: "portico-webhook"}, &service); err != nil {
		t.Fatal(err)
	}
	if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)) {
		t.Errorf("the Service selects %v, and the Pods are labelled %v", service.Spec.Selector, pod.Labels)
	}
}

func hubRunsNoPods(t *testing.T, cluster client.Client) {
	pod := func(namespace string, labels map[string]string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-", Namespace: namespace, Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}},
		}
	}
	ofController := func(namespace string, labels map[string]string) *corev1.Pod {
		out := pod(namespace, labels)
		out.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "1", Controller: ptr.To(true)}}
		return out
	}
	remote := map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote}

	// A new policy is in force a moment later.
	var refusal error
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		refusal = cluster.Create(ctx, ofController("default", remote), client.DryRunAll)
		return refusal != nil, nil
	}); err != nil {
		t.Fatal("a Pod that is meant for a target is let in")
	}
	if !apierrors.IsForbidden(refusal) {
		t.Errorf("want Forbidden, got %v", refusal)
	}
	var status apierrors.APIStatus
	if errors.As(refusal, &status) && !strings.Contains(status.Status().Message, "remove the label") {
		t.Errorf("the refusal does not name a way out: %v", refusal)
	}
	if err := cluster.Create(t.Context(), pod("kube-system", remote), client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("want no namespace to be left out, got %v", err)
	}
	if err := cluster.Create(t.Context(), pod("default", remote), client.DryRunAll); err == nil {
		t.Error("a Pod without a controller is let in without Portico, which sets the gate")
	}
	for name, ordinary := range map[string]*corev1.Pod{
		"unlabelled": pod("default", nil),
		"other":      pod("default", map[string]string{"app": "web"}),
		"local":      ofController("default", map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleLocal}),
	} {
		if err := cluster.Create(t.Context(), ordinary, client.DryRunAll); err != nil {
			t.Errorf("%s: an ordinary Pod must pass: %v", name, err)
		}
	}
}

// webhooksListEachKind tests every namespace that the webhooks exclude.
func webhooksListEachKind(t *testing.T, cluster client.Client) {
	for _, namespace := range protected {
		object := target(namespace)
		if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
			err := cluster.Create(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll)
			return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "is excluded from Portico"), nil
		}); err != nil {
			t.Errorf("a target in %s is let in, where no webhook judges it", namespace)
		}
	}
}

// expressionsTypeCheck does the type checking that kube-controller-manager does for the
// status of a policy.
func expressionsTypeCheck(t *testing.T, cfg *rest.Config, cluster client.Client) {
	discovered, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	checker := &validating.TypeChecker{
		SchemaResolver: &resolver.ClientDiscoveryResolver{Discovery: discovered},
		RestMapper:     cluster.RESTMapper(),
	}
	var policies admissionregistrationv1.ValidatingAdmissionPolicyList
	if err := cluster.List(t.Context(), &policies); err != nil {
		t.Fatal(err)
	}
	if len(policies.Items) == 0 {
		t.Error("no policy was installed")
	}
	for _, policy := range policies.Items {
		for _, warning := range checker.Check(&policy) {
			t.Errorf("%s: %s: %s", policy.Name, warning.FieldRef, warning.Warning)
		}
	}
}

// guards are the webhooks that protect objects in use, and so handle deletions.
var guards = sets.New(webhooks.InUsePath, webhooks.InUseSecretPath, webhooks.NamespacePath, webhooks.PolicyPath)

// protected are the namespaces without which the hub and Portico do not start.
var protected = []string{"kube-system", "kube-public", "kube-node-lease", "portico-system"}

// TestWebhooksAreServed compares the paths in the manifests with those of the manager.
// Every webhook must let a cluster work without Portico.
func TestWebhooksAreServed(t *testing.T) {
	for _, overlay := range []string{"default", "certmanager", "hardened"} {
		t.Run(overlay, func(t *testing.T) {
			paths := sets.New[string]()
			check := func(name string, config admissionregistrationv1.WebhookClientConfig, rules []admissionregistrationv1.RuleWithOperations, namespaces *metav1.LabelSelector, timeout *int32) {
				if service := config.Service; service == nil || service.Name != "portico-webhook" || service.Namespace != "portico-system" {
					t.Errorf("%s: does not call our Service", name)
				} else {
					paths.Insert(*service.Path)
				}
				clusterScoped := true
				for _, rule := range rules {
					if !guards.Has(*config.Service.Path) && slices.Contains(rule.Operations, admissionregistrationv1.Delete) || slices.Contains(rule.Operations, admissionregistrationv1.OperationAll) {
						t.Errorf("%s: deletion must never wait for Portico", name)
					}
					clusterScoped = clusterScoped && ptr.Deref(rule.Scope, "*") == admissionregistrationv1.ClusterScope
				}
				limit := int32(5)
				if *config.Service.Path == webhooks.PolicyPath { // the webhook runs the tests of the policy
					limit = 10
				}
				if timeout == nil || *timeout > limit {
					t.Errorf("%s: wants a timeout of at most %d s", name, limit)
				}
				if clusterScoped {
					return // the object is cluster-scoped
				}
				excluded := sets.New[string]()
				if namespaces != nil {
					for _, requirement := range namespaces.MatchExpressions {
						if requirement.Key == corev1.LabelMetadataName && requirement.Operator == metav1.LabelSelectorOpNotIn {
							excluded.Insert(requirement.Values...)
						}
					}
				}
				if missing := sets.New(protected...).Difference(excluded); missing.Len() > 0 {
					t.Errorf("%s: must leave out the namespaces %v", name, sets.List(missing))
				}
			}

			for _, object := range render(t, overlay) {
				switch object.GetKind() {
				case "MutatingWebhookConfiguration":
					var configuration admissionregistrationv1.MutatingWebhookConfiguration
					convert(t, object, &configuration)
					for _, w := range configuration.Webhooks {
						check(w.Name, w.ClientConfig, w.Rules, w.NamespaceSelector, w.TimeoutSeconds)
					}
				case "ValidatingWebhookConfiguration":
					var configuration admissionregistrationv1.ValidatingWebhookConfiguration
					convert(t, object, &configuration)
					for _, w := range configuration.Webhooks {
						check(w.Name, w.ClientConfig, w.Rules, w.NamespaceSelector, w.TimeoutSeconds)
					}
				}
			}
			if diff := cmp.Diff(sets.List(sets.New(webhooks.Paths...)), sets.List(paths)); diff != "" {
				t.Errorf("paths that are served (-), and called (+):\n%s", diff)
			}
		})
	}
}

// TestOrder applies the namespace before the objects in it, and the webhooks last,
// after their Service.
func TestOrder(t *testing.T) {
	for _, overlay := range []string{"default", "certmanager", "hardened"} {
		t.Run(overlay, func(t *testing.T) {
			var kinds []string
			for _, object := range render(t, overlay) {
				kinds = append(kinds, object.GetKind())
			}
			if kinds[0] != "Namespace" {
				t.Errorf("want the Namespace first, got %v", kinds)
			}
			for _, kind := range kinds[slices.Index(kinds, "MutatingWebhookConfiguration"):] {
				if !strings.HasSuffix(kind, "WebhookConfiguration") {
					t.Errorf("want webhook configurations last, got %v", kinds)
				}
			}
		})
	}
}

// TestSamples applies the samples, which must be valid without a change.
func TestSamples(t *testing.T) {
	cfg := apiserver.Start(t, func(e *envtest.Environment) {
		e.CRDDirectoryPaths = []string{filepath.Join(apiserver.Root(t), "config", "crd", "bases")}
	})
	cluster, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	samples, err := filepath.Glob(filepath.Join(apiserver.Root(t), "config", "samples", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	ofKinds, err := filepath.Glob(filepath.Join(apiserver.Root(t), "config", "samples", "kinds", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, sample := range append(samples, ofKinds...) {
		data, err := os.ReadFile(sample)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range strings.Split(string(data), "\n---\n") {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
				t.Fatalf("reading %s: %v", sample, err)
			}
			if object.GetKind() == "Kustomization" {
				continue
			}
			namespaced, err := cluster.IsObjectNamespaced(object)
			if err != nil {
				t.Fatalf("reading %s: %v", sample, err)
			}
			if namespaced { // the reader creates the objects of the samples
				object.SetNamespace(metav1.NamespaceDefault)
			}
			apply(t, cluster, object)
			if err := cluster.Delete(t.Context(), object); err != nil { // another version of it may follow
				t.Fatal(err)
			}
		}
	}
}

func convert(t *testing.T, from *unstructured.Unstructured, to any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(from.Object, to, true); err != nil {
		t.Fatal(err)
	}
}
