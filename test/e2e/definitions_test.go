package e2e

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// pond returns a custom resource of a kind without a definition.
func pond(space string) string {
	return strings.NewReplacer("SPACE", space).Replace(`
apiVersion: workload.crossplane.io/v1alpha1
kind: KubernetesApplicationResource
metadata: {name: pond}
spec:
  targetSelector: {matchLabels: {env: dev}}
  template:
    apiVersion: SPACE.example.org/v1
    kind: Pond
    metadata: {name: one}
    spec: {depth: 3}
`)
}

// ponds returns the definition of the kind.
func ponds(space string) string {
	return strings.NewReplacer("SPACE", space).Replace(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ponds.SPACE.example.org}
spec:
  group: SPACE.example.org
  names: {kind: Pond, plural: ponds, singular: pond, listKind: PondList}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`)
}

var _ = Describe("A custom resource before its definition", func() {
	var namespace, space string

	BeforeEach(func() {
		namespace = newNamespace(dev)
		space = namespace + "-pond"
		DeferCleanup(func() { run(dev, ponds(space), "delete", "--ignore-not-found", "-f", "-") })
		DeferCleanup(func() { kubectl(dev, "delete", "clusterrole,clusterrolebinding", space, "--ignore-not-found") })
		configure(namespace, "dev", `{"dryRun": "Never"}`)
	})

	synced := func() string {
		return get(hub, namespace, "kar/pond", ".status.conditions[?(@.type=='Synced')].reason")
	}
	define := func() {
		r := run(dev, ponds(space), "apply", "-f", "-")
		Expect(r.failed).NotTo(HaveOccurred(), r.err)
	}

	It("waits without requests, and is applied when a user creates the definition", func() {
		began := time.Now()
		// ended returns Portico's watches of all definitions that began after that time
		// and have ended.
		ended := func() (lines []string) {
			log, err := dev.AuditEvents(began)
			Expect(err).NotTo(HaveOccurred())
			for _, event := range log {
				since := event.RequestReceivedTimestamp.After(began) && !strings.Contains(event.RequestURI, "labelSelector")
				if since && event.User.Username == "portico" && event.Verb == "watch" && event.Stage == auditv1.StageResponseComplete &&
					event.ObjectRef != nil && event.ObjectRef.Resource == "customresourcedefinitions" {
					lines = append(lines, fmt.Sprint(event.RequestURI, " ", event.ResponseStatus))
				}
			}
			return lines
		}
		apply(namespace, pond(space))
		Eventually(synced).Should(Equal("UnknownKind"))
		Expect(get(hub, namespace, "kar/pond", ".status.conditions[?(@.type=='Synced')].message")).To(Equal(
			"target dev does not know kind Pond of " + space + ".example.org/v1; it is sent when the target has a definition of the kind"))
		// A moment later Portico sends one more request, and knows whether it may watch
		// definitions.
		Eventually(func() []string {
			since := time.Now()
			time.Sleep(5 * time.Second)
			_, discovery := requests(dev, namespace, since)
			return discovery
		}).Should(BeEmpty())
		Expect(ended()).To(BeEmpty())

		define()
		Eventually(synced).Should(Equal("Applied"))
		Expect(get(dev, "default", "pond."+space+".example.org/one", ".spec.depth")).To(Equal("3"))
		Eventually(ended).ShouldNot(BeEmpty(), "definitions are watched without a need")
	})

	It("is applied later without the right to watch definitions", func() {
		// kubectl creates no role for a kind that does not exist.
		r := run(dev, `{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "`+space+`"}, "rules": [
			{"apiGroups": ["`+space+`.example.org"], "resources": ["ponds"], "verbs": ["get", "list", "watch", "create", "patch", "delete"]}]}`, "apply", "-f", "-")
		Expect(r.failed).NotTo(HaveOccurred(), r.err)
		kubectl(dev, "create", "clusterrolebinding", space, "--clusterrole="+space, "--user="+space)
		configure(namespace, "dev", `{"impersonate": {"user": "`+space+`", "groups": ["system:authenticated"]}}`)
		apply(namespace, pond(space))
		Eventually(synced).Should(Equal("UnknownKind"))
		define()
		Eventually(synced).Should(Equal("Applied"))
		kubectl(hub, "-n", namespace, "delete", "kar", "pond", "--timeout=60s") // while its user has rights there
	})
})
