package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
	"github.com/portico-io/portico/policies/manifests"
	"github.com/portico-io/portico/test/apiserver"
)

// writeKubeconfig makes an API server the cluster of the current context.
func writeKubeconfig(t *testing.T, access *rest.Config) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["hub"] = &clientcmdapi.Cluster{Server: access.Host, CertificateAuthorityData: access.CAData}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{ClientCertificateData: access.CertData, ClientKeyData: access.KeyData}
	config.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "admin", Namespace: "shop"}
	config.CurrentContext = "hub"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		status := object.DeepCopyObject().(client.Object)
		if err := client.WithFieldValidation(c, metav1.FieldValidationStrict).Create(t.Context(), object); err != nil {
			t.Fatalf("creating %s: %v", object.GetName(), err)
		}
		switch status.(type) {
		case *v1alpha1.KubernetesTarget, *policyv1alpha1.Policy:
			status.SetResourceVersion(object.GetResourceVersion())
			if err := c.Status().Update(t.Context(), status); err != nil {
				t.Fatalf("writing the status of %s: %v", object.GetName(), err)
			}
		}
	}
}

func target(name, region string) *v1alpha1.KubernetesTarget {
	return &v1alpha1.KubernetesTarget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"region": region}},
		Spec:       v1alpha1.KubernetesTargetSpec{ConnectionSecretRef: &v1alpha1.SecretReference{Name: name}},
		Status: v1alpha1.KubernetesTargetStatus{Conditions: []metav1.Condition{{
			Type: v1alpha1.TargetReachable, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReachable, LastTransitionTime: metav1.Now(),
		}}},
	}
}

func workload(name, region string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": name, "namespace": "shop", "labels": map[string]any{
			v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote, "data-residency": region,
		}},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": name}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": name}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "a", "image": "quay.io/a"}}},
			},
		},
	}}
}

// TestCluster applies the output of render to a real API server, and runs the commands
// with --cluster.
func TestCluster(t *testing.T) {
	access := apiserver.Start(t, func(e *envtest.Environment) {
		e.CRDDirectoryPaths = []string{filepath.Join(apiserver.Root(t), "config", "crd", "bases")}
	})
	writeKubeconfig(t, access)
	scheme := reconcilertest.Scheme(t, policyv1alpha1.AddToScheme, v1alpha1.AddToScheme, corev1.AddToScheme)
	hub, err := client.New(access, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}

	rendered, errs, code := run(t, "", "render", "../../../policies")
	if code != 0 {
		t.Fatal(errs)
	}
	sources, err := manifests.Policies(strings.NewReader(rendered), "-")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sources {
		create(t, hub, s.Policy)
	}
	create(t, hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		target("eu", "eu"), target("us", "us"), workload("web", "eu"), workload("astray", "mars"))
	if out, errs, code := run(t, "", "check", "--cluster"); code != 0 || !strings.Contains(out, "data-residency          Scheduling  Deny    yes    not known   1 of 2") ||
		!strings.Contains(out, "  Deployment shop/astray: policy data-residency: DataResidency: target eu: data stays in mars") {
		t.Errorf("%d: %s%s", code, out, errs)
	}

	t.Run("Eval", func(t *testing.T) {
		manifest := filepath.Join(t.TempDir(), "web.yaml")
		if err := os.WriteFile(manifest, []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  labels: {workload.crossplane.io/schedule: remote, data-residency: us}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, code := run(t, "", "eval", "-f", manifest, "--cluster", "--only", "data-residency")
		if code != 0 || !strings.Contains(out, "Application shop/default would run on target us.\n  target eu is excluded by policy data-residency") {
			t.Errorf("%d: %s%s", code, out, errs)
		}
		for _, user := range []struct{ flags, want, operation string }{
			{"", `"system:masters"`, "UPDATE"}, {"--as ada --as-group shop", `"ada"`, "UPDATE"},
		} {
			out, errs, code := run(t, "", append([]string{"input", "-f", manifest, "--cluster"}, strings.Fields(user.flags)...)...)
			if code != 0 || !strings.Contains(out, user.want) || !strings.Contains(out, user.operation) || !strings.Contains(out, `"oldObject"`) {
				t.Errorf("%q: %d: %s%s", user.flags, code, out, errs)
			}
		}
	})

	t.Run("Broken", func(t *testing.T) {
		create(t, hub, &policyv1alpha1.Policy{
			ObjectMeta: metav1.ObjectMeta{Name: "aged"},
			Spec: policyv1alpha1.PolicySpec{Type: policyv1alpha1.Scheduling, Modules: map[string]string{
				"aged.rego": "package scheduling.aged\n\ndeny contains {\"code\": \"A\", \"msg\": \"no\"} if input.was.there\n",
			}},
			Status: policyv1alpha1.PolicyStatus{Revision: "0123456789ab", Conditions: []metav1.Condition{{
				Type: policyv1alpha1.Ready, Status: metav1.ConditionFalse, Reason: policyv1alpha1.ReasonLastGoodServing, LastTransitionTime: metav1.Now(),
			}}},
		})
		out, errs, code := run(t, "", "check", "--cluster", "-o", "json")
		found := decode[clusterResults](t, out)
		if code != 1 || !strings.Contains(errs, "1 of 13 policies have problems: aged") || len(found.Cluster) != 13 {
			t.Fatalf("%d: %s%s", code, errs, out)
		}
		if got := found.Cluster[0]; got.Name != "aged" || got.Works || got.Serving != "an earlier form, 0123456789ab" {
			t.Errorf("%+v", got)
		}
		if out, _, _ := run(t, "", "check", "--cluster"); !strings.Contains(out, "the cluster's Policy aged: aged.rego:3:") {
			t.Errorf("the position is not printed:\n%s", out)
		}
		// The corrected policy is checked before it is applied.
		mended := "apiVersion: policy.workload.crossplane.io/v1alpha1\nkind: Policy\nmetadata: {name: aged}\nspec:\n  type: Scheduling\n  modules:\n" +
			"    aged.rego: |\n      package scheduling.aged\n      deny contains {\"code\": \"A\", \"msg\": \"no\"} if input.object.kind == \"Pod\"\n"
		if out, errs, code := run(t, mended, "check", "--cluster", "-"); code != 0 {
			t.Errorf("%d: %s%s", code, errs, out)
		}
	})

	t.Run("Away", func(t *testing.T) {
		for _, args := range []string{"check --cluster", "eval -f testdata/shop --cluster"} {
			out, errs, code := run(t, "", append(strings.Fields(args), "--server", "https://127.0.0.1:1")...)
			if code != 2 || !strings.Contains(errs, "error: --cluster: ") || !strings.Contains(errs, "127.0.0.1:1") {
				t.Errorf("%s: %d: %s%s", args, code, out, errs)
			}
		}
	})
}
