package e2e

import (
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
)

// persona is a user with only the rights of a role.
type persona string

const (
	infrastructureOwner persona = "infra"
	applicationOwner    persona = "app"
)

// does runs kubectl as the persona, in a namespace.
func (p persona) does(namespace, stdin string, args ...string) {
	GinkgoHelper()
	r := p.tries(namespace, stdin, args...)
	Expect(r.failed).NotTo(HaveOccurred(), "%s: %s%s", p, r.out, r.err)
}

func (p persona) tries(namespace, stdin string, args ...string) result {
	return run(hub, stdin, append([]string{"--as=" + string(p), "-n", namespace}, args...)...)
}

// applies applies a manifest as the persona.
func (p persona) applies(namespace, manifest string) {
	GinkgoHelper()
	p.does(namespace, manifest, "apply", "-f", "-")
}

// mayNot expects that RBAC or Portico denies a request.
func (p persona) mayNot(namespace, stdin string, args ...string) {
	GinkgoHelper()
	r := p.tries(namespace, stdin, args...)
	Expect(r.failed).To(HaveOccurred(), r.out)
	Expect(r.err).To(Or(ContainSubstring("forbidden"), ContainSubstring("Forbidden")))
}

// staticallyProvision creates clusters of the provider. Each is a test cluster.
func staticallyProvision(clusters map[string]*cluster.Cluster) {
	GinkgoHelper()
	for name, real := range clusters {
		infrastructureOwner.applies("", gke(name))
		provision(name, real)
	}
}

// createsNamespace creates a namespace as the infrastructure owner, who gives the
// application owner rights in it.
func createsNamespace(name string) {
	GinkgoHelper()
	infrastructureOwner.does("", "", "create", "namespace", name)
	infrastructureOwner.does(name, "", "create", "rolebinding", "application-owner", "--clusterrole=portico-application-owner", "--user=app")
	grants(string(applicationOwner), name, "portico-application-owner")
	DeferCleanup(func() { kubectl(hub, "delete", "namespace", name, "--wait=false") })
}

// application returns a KubernetesApplication with labels that select a target, and its
// Deployment.
func application(name, env string) string {
	return fmt.Sprintf(`
apiVersion: workload.crossplane.io/v1alpha2
kind: KubernetesApplication
metadata: {name: %[1]s}
spec:
  targetSelector: {matchLabels: {env: %[2]s}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
  labels: {workload.crossplane.io/schedule: remote, workload.crossplane.io/application: %[1]s}
  annotations: {workload.crossplane.io/target-selector: env=%[2]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: web, image: "nginx:1"}]}
`, name, env)
}

// runsOn waits until an application is scheduled to a target, and runs on the cluster
// of the target.
func runsOn(namespace, app, target string, real *cluster.Cluster) {
	GinkgoHelper()
	Eventually(func() string { return get(hub, namespace, "ka/"+app, ".spec.targetRef.name") }).Should(Equal(target))
	Eventually(func() string { return get(real, namespace, "deployment/"+app, ".status.readyReplicas") }).Should(Equal("1"))
}

// step quotes S1's user workflows.
func step(words string) { By(words) }

// The specs below are the user workflows of S1. Of its three clusters, dev and stage
// are one test cluster, because there are only two.
var _ = Describe("User workflows", func() {
	BeforeEach(func() {
		installGKE()
		kubectl(hub, "apply", "-f", "testdata/infrastructure_owner.yaml")
		for _, role := range []string{"gke-admin", "portico-infrastructure-owner"} {
			grants(string(infrastructureOwner), "", role)
		}
	})

	It("Scenario 1: Infrastructure owner provisions and publishes all Kubernetes clusters", func() {
		step("Infrastructure owner statically provisions three `GKECluster` managed resources: `dev`, `stage`, and `prod`")
		staticallyProvision(map[string]*cluster.Cluster{"dev": dev, "stage": prod, "prod": prod})

		step("An application owner asks for an environment to deploy their application.")
		const team = "workflow-1"
		applicationOwner.mayNot("", "", "create", "namespace", team)

		step("Infrastructure owner creates a new namespace and a `KubernetesTarget` that points to the `dev` cluster.")
		createsNamespace(team)
		infrastructureOwner.applies(team, enable("dev", "dev", "dev"))

		step("Application owner provisions a `KubernetesApplication` in that namespace with labels that select the `KubernetesTarget` referencing the `dev` cluster for provisioning.")
		applicationOwner.applies(team, application("web", "dev"))
		runsOn(team, "web", "dev", dev)
		infrastructureOwner.mayNot(team, application("other", "dev"), "apply", "-f", "-")
		applicationOwner.mayNot(team, enable("stage", "stage", "stage"), "apply", "-f", "-")
		applicationOwner.mayNot(team, "", "get", "secret", "dev-connection")

		step("When ready for testing, the application owner requests access to the `stage` cluster, which the infrastructure owner then \"publishes\" by creating another `KubernetesTarget` in the namespace that points to the `stage` cluster.")
		infrastructureOwner.applies(team, enable("stage", "stage", "stage"))

		step("Application owner provisions a `KubernetesApplication` with labels that select the `KubernetesTarget` referencing the `stage` cluster for provisioning.")
		applicationOwner.applies(team, application("staged", "stage"))
		runsOn(team, "staged", "stage", prod)
	})

	It("Scenario 2: Infrastructure owner provisions and publishes some Kubernetes, but also enables self-service", func() {
		step("Infrastructure owner statically provisions two `GKECluster` managed resources: `stage`, and `prod`. They also create a `GKEClusterClass` with configuration for a `dev` cluster.")
		staticallyProvision(map[string]*cluster.Cluster{"stage": prod, "prod": prod})
		infrastructureOwner.applies("", class("dev"))

		step("An application owner asks for an environment to deploy their application.")
		const team = "workflow-2"

		step("Infrastructure owner creates a new namespace.")
		createsNamespace(team)

		step("Application owner creates a `KubernetesCluster` claim in the namespace that references the `dev` `GKEClusterClass` and provisions a new Kubernetes cluster. This causes the creation of a `KubernetesTarget` in the namespace when the connection `KubernetesCluster` claim becomes `Bound`.")
		applicationOwner.applies(team, claim("our-cluster", "dev"))
		fulfil(team, "our-cluster", dev)
		Eventually(func() string { return get(hub, team, "kt/our-cluster", ".metadata.labels.env") }).Should(Equal("dev"))

		step("Application owner provisions a `KubernetesApplication` in that namespace with labels that select the automatically created `KubernetesTarget`.")
		applicationOwner.applies(team, application("web", "dev"))
		runsOn(team, "web", "our-cluster", dev)

		step("When ready for testing, the application owner requests access to the `stage` cluster, which the infrastructure owner then \"publishes\" by creating a `KubernetesTarget` in the namespace that points to the `stage` cluster.")
		applicationOwner.mayNot(team, enable("stage", "stage", "stage"), "apply", "-f", "-")
		infrastructureOwner.applies(team, enable("stage", "stage", "stage"))

		step("Application owner provisions a `KubernetesApplication` with labels that select the `KubernetesTarget` referencing the `stage` cluster for provisioning.")
		applicationOwner.applies(team, application("staged", "stage"))
		runsOn(team, "staged", "stage", prod)
	})

	It("Scenario 3: Infrastructure owner enables self-service, except for one on-prem cluster with sensitive data", func() {
		step("Infrastructure owner creates a variety of Kubernetes cluster classes with configuration for different environments and different cloud providers. Application owners are given permissions to create clusters using these classes as they see fit.")
		for _, name := range []string{"dev", "stage"} {
			infrastructureOwner.applies("", class(name))
		}
		const team = "workflow-3"
		createsNamespace(team)
		applicationOwner.applies(team, claim("ours", "stage"))
		fulfil(team, "ours", dev)
		applicationOwner.applies(team, application("web", "stage"))
		runsOn(team, "web", "ours", dev)

		step("There is one particular set of workloads that is required to be run in an existing on-premises cluster (for some important reason).")
		onPrem := prod

		step("Application owner says that they need to run a sensitive workload on that cluster. Infrastructure owner creates a new namespace called `super-secret-workloads` and creates a `Secret` with the on-prem cluster's `kubeconfig` information. They also create a `KubernetesTarget` in that namespace that references the `Secret`.")
		const secret = "super-secret-workloads"
		createsNamespace(secret)
		infrastructureOwner.does(secret, "", "create", "rolebinding", "publisher", "--clusterrole=portico-publisher", "--user=infra")
		grants(string(infrastructureOwner), secret, "portico-publisher")
		infrastructureOwner.does(secret, "", "create", "secret", "generic", "on-prem", "--from-file=kubeconfig="+userKubeconfig[onPrem.Name()])
		infrastructureOwner.applies(secret, `
apiVersion: workload.crossplane.io/v1alpha1
kind: KubernetesTarget
metadata: {name: on-prem, labels: {env: on-prem}}
spec: {connectionSecretRef: {name: on-prem}}
`)

		step("Application owner provisions a `KubernetesApplication` with labels that select that `KubernetesTarget` for provisioning.")
		applicationOwner.applies(secret, application("sensitive", "on-prem"))
		runsOn(secret, "sensitive", "on-prem", onPrem)
		applicationOwner.mayNot(secret, "", "get", "secret", "on-prem")
		Expect(slices.Contains(names(dev, "", "namespaces"), "namespace/"+secret)).To(BeFalse(), "it runs where it has to, and nowhere else")
	})
})

func class(name string) string {
	return fmt.Sprintf(`
apiVersion: compute.gcp.crossplane.io/v1alpha3
kind: GKEClusterClass
metadata: {name: %s}
specTemplate: {forProvider: {location: us-central1}}
`, name)
}

// fulfil simulates Crossplane: a claim gets a test cluster.
func fulfil(namespace, name string, real *cluster.Cluster) {
	GinkgoHelper()
	writeConnection(namespace, name, "compute.crossplane.io/v1alpha1", "kubernetescluster", "KubernetesCluster", real)
	bind("kubernetescluster/"+name, "Bound", "-n", namespace)
}
