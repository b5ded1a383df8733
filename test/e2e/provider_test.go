package e2e

import (
	"encoding/base64"
	"fmt"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
)

// infra is the namespace of the provider's connection Secrets. These specs simulate the
// provider.
const infra = "infra"

// installGKE installs the kinds of a provider, and the right to read them.
func installGKE() {
	GinkgoHelper()
	kubectl(hub, "apply", "-f", "testdata/gke.yaml")
	kubectl(hub, "wait", "--for=condition=Established", "-f", "testdata/gke.yaml", "--timeout=60s")
	kubectl(hub, "apply", "-f", "../../config/samples/managed_clusters_role.yaml")
	if run(hub, "", "get", "namespace", infra).failed != nil {
		kubectl(hub, "create", "namespace", infra)
	}
}

// gke returns a GKECluster. Its connection Secret has the same name.
func gke(name string) string {
	return fmt.Sprintf(`
apiVersion: compute.gcp.crossplane.io/v1alpha3
kind: GKECluster
metadata: {name: %[1]s}
spec:
  forProvider: {location: us-central1}
  writeConnectionSecretToRef: {namespace: infra, name: %[1]s}
`, name)
}

// provision simulates the provider: it creates the cluster, and a Secret with a
// connection to a test cluster.
func provision(name string, real *cluster.Cluster) {
	GinkgoHelper()
	writeConnection(infra, name, "compute.gcp.crossplane.io/v1alpha3", "gkecluster", "GKECluster", real)
	bind("gkecluster/"+name, "Bound")
	DeferCleanup(func() {
		kubectl(hub, "delete", "gkecluster", name, "--ignore-not-found")
		kubectl(hub, "-n", infra, "delete", "secret", name, "--ignore-not-found")
	})
}

// bind sets the binding phase of a resource. flags select its namespace.
func bind(object, phase string, flags ...string) {
	GinkgoHelper()
	kubectl(hub, append([]string{"patch", object, "--subresource=status", "--type=merge",
		"-p", fmt.Sprintf(`{"status": {"bindingPhase": %q}}`, phase)}, flags...)...)
}

// writeConnection creates a Secret with a connection to a cluster. A resource of the
// same name controls the Secret.
func writeConnection(namespace, name, version, resource, kind string, real *cluster.Cluster) {
	GinkgoHelper()
	uid := get(hub, namespace, resource+"/"+name, ".metadata.uid")
	Expect(uid).NotTo(BeEmpty())
	apply(namespace, fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata:
  name: %[1]s
  ownerReferences: [{apiVersion: %[2]s, kind: %[3]s, name: %[1]s, uid: %[4]s, controller: true}]
data:
  kubeconfig: %[5]s
  gcp-service-account: c2VjcmV0
`, name, version, kind, uid, kubeconfigOf(real)))
}

func kubeconfigOf(real *cluster.Cluster) string {
	GinkgoHelper()
	data, err := os.ReadFile(userKubeconfig[real.Name()])
	Expect(err).NotTo(HaveOccurred())
	return base64.StdEncoding.EncodeToString(data)
}

// enable returns a KubernetesTarget that publishes a GKECluster.
func enable(name, cluster, env string) string {
	return fmt.Sprintf(`
apiVersion: workload.crossplane.io/v1alpha1
kind: KubernetesTarget
metadata:
  name: %s
  labels: {env: %s}
spec:
  clusterRef:
    kind: GKECluster
    apiVersion: compute.gcp.crossplane.io/v1alpha3
    name: %s
`, name, env, cluster)
}

// reachable waits until a target is reachable.
func reachable(namespace, target string) {
	GinkgoHelper()
	Eventually(func() string { return condition(namespace, "kt/"+target, "TargetReachable", "status") }).Should(Equal("True"),
		func() string { return kubectl(hub, "-n", namespace, "get", "kt", target, "-o", "yaml") })
}
