package install_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/portico-io/portico/test/cluster/install"
)

// keepsConnectionsPrivate: with the arguments and the rights of config/hardened, the
// connection of a managed cluster is copied to Portico's namespace and to no other,
// whatever a target asks for.
func (a admin) keepsConnectionsPrivate(t *testing.T) {
	manager, err := install.Portico(t.Context(), a.hub, install.Options{Manifests: filepath.Join(a.root, "config", "hardened")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = manager.Kill9() })
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", manager.PID()))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(strings.Split(string(command), "\x00"), "--default-connection=Private") {
		t.Errorf("the manager runs without the arguments of config/hardened: %q", command)
	}

	user, err := a.hub.AddUser("portico-on-target", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	const provider = "test/e2e/testdata/gke.yaml"
	a.must(t, "", "kubectl", "apply", "-f", provider, "-f", "config/samples/managed_clusters_role.yaml")
	a.must(t, "", "kubectl", "wait", "--for=condition=Established", "--timeout=60s", "-f", provider)
	for _, namespace := range []string{"provider", "tenant"} {
		a.must(t, "", "kubectl", "create", "namespace", namespace)
	}
	a.must(t, `{apiVersion: compute.gcp.crossplane.io/v1alpha3, kind: GKECluster, metadata: {name: one},
		spec: {writeConnectionSecretToRef: {namespace: provider, name: one}}}`, "kubectl", "create", "-f", "-")
	uid := a.must(t, "", "kubectl", "get", "gkecluster", "one", "-o", "jsonpath={.metadata.uid}")
	kubeconfig := base64.StdEncoding.EncodeToString(user.Kubeconfig)
	a.must(t, `{apiVersion: v1, kind: Secret, metadata: {name: one, namespace: provider, ownerReferences: [
		{apiVersion: compute.gcp.crossplane.io/v1alpha3, kind: GKECluster, name: one, uid: `+uid+`, controller: true}]},
		data: {kubeconfig: `+kubeconfig+`}}`, "kubectl", "create", "-f", "-")
	a.must(t, "", "kubectl", "patch", "gkecluster", "one", "--subresource=status", "--type=merge", "-p", `{"status": {"bindingPhase": "Bound"}}`)

	const target = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesTarget, metadata: {name: NAME, namespace: tenant},
		spec: {clusterRef: {apiVersion: compute.gcp.crossplane.io/v1alpha3, kind: GKECluster, name: one}CONNECTION}}`
	a.must(t, strings.NewReplacer("NAME", "private", "CONNECTION", "").Replace(target), "kubectl", "create", "-f", "-")
	a.must(t, "", "kubectl", "-n", "tenant", "wait", "--for=condition=TargetReachable", "--timeout=60s", "kubernetestarget/private")
	a.must(t, strings.NewReplacer("NAME", "copied", "CONNECTION", ", connection: Copy").Replace(target), "kubectl", "create", "-f", "-")
	a.must(t, "", "kubectl", "-n", "tenant", "wait", `--for=jsonpath={.status.conditions[?(@.type=="Synced")].reason}=Refused`, "--timeout=60s", "kubernetestarget/copied")

	const list = "jsonpath={range .items[*]}{.metadata.namespace} {.data.kubeconfig}{'\\n'}{end}"
	var holders []string
	for line := range strings.Lines(a.must(t, "", "kubectl", "get", "secrets", "--all-namespaces", "-o", list)) {
		if namespace, data, _ := strings.Cut(strings.TrimSpace(line), " "); data == kubeconfig {
			holders = append(holders, namespace)
		}
	}
	if slices.Sort(holders); !slices.Equal(holders, []string{install.Namespace, "provider"}) {
		t.Errorf("the connection is in namespaces %v, want Portico's and the provider's", holders)
	}
	if secrets := a.must(t, "", "kubectl", "-n", "tenant", "get", "secrets", "-o", "name"); secrets != "" {
		t.Errorf("the tenant has Secrets: %s", secrets)
	}
	if ref := a.must(t, "", "kubectl", "-n", "tenant", "get", "kubernetestarget", "private", "-o", "jsonpath={.spec.connectionSecretRef}"); ref != "" {
		t.Errorf("the target names a Secret: %s", ref)
	}
}
