package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	changes  = 50   // the number of changes of policies
	applies  = 2000 // the least number of requests in the meantime
	watchdog = 5 * time.Minute
)

// paceLibrary and pacePolicy contain the same number in two modules each. The policy
// denies every object with all four numbers.
func paceLibrary(number int) string {
	return fmt.Sprintf(`
apiVersion: policy.workload.crossplane.io/v1alpha1
kind: Policy
metadata: {name: lib-pace}
spec:
  type: Library
  modules:
    one.rego: "package lib.pace\n\none := %[1]d\n"
    two.rego: "package lib.pace\n\ntwo := %[1]d\n"
`, number)
}

func pacePolicy(number int) string {
	return fmt.Sprintf(`
apiVersion: policy.workload.crossplane.io/v1alpha1
kind: Policy
metadata: {name: pace}
spec:
  type: Scheduling
  match: {namespaceSelector: {matchLabels: {rule: pace}}}
  modules:
    three.rego: |
      package scheduling.pace

      import data.lib.pace

      three := %[1]d

      deny contains {"code": "Pace", "msg": sprintf("%%d %%d %%d %%d.", [pace.one, pace.two, three, four])}
    four.rego: |
      package scheduling.pace

      four := %[1]d
`, number)
}

// observe sends one request, and returns the numbers in its denial.
func observe(ctx context.Context, hub client.Client, object *unstructured.Unstructured) (seen [4]int, err error) {
	err = hub.Create(ctx, object.DeepCopy(), client.DryRunAll)
	if !apierrors.IsForbidden(err) {
		return seen, fmt.Errorf("want a denial by policy pace, got: %w", err)
	}
	_, numbers, _ := strings.Cut(err.Error(), "policy pace: Pace: ")
	if n, err := fmt.Sscanf(numbers, "%d %d %d %d.", &seen[0], &seen[1], &seen[2], &seen[3]); n != len(seen) {
		return seen, fmt.Errorf("reading %q: %w", numbers, err)
	}
	if seen[0] != seen[1] || seen[2] != seen[3] {
		return seen, fmt.Errorf("decided by a half-loaded set: %v", seen)
	}
	return seen, nil
}

var _ = Describe("Policies that change during requests", func() {
	It("decide each request with one complete set", func(ctx context.Context) {
		namespace := newNamespace(dev)
		kubectl(hub, "label", "namespace", namespace, "rule=pace")
		author := newAuthor("pat", "pace", "lib-pace")
		author.writes(paceLibrary(0))
		Eventually(func() bool { return author.apply("", pacePolicy(0)).failed == nil }).Should(BeTrue())

		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(web()), &object.Object)).To(Succeed())
		object.SetNamespace(namespace)
		config := rest.CopyConfig(hub.Config())
		config.QPS = -1
		user, err := client.New(config, client.Options{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() error { _, err := observe(ctx, user, object); return err }).Should(Succeed())

		var sent atomic.Int64
		var wg sync.WaitGroup
		done := make(chan struct{})
		for range 4 {
			wg.Go(func() {
				defer GinkgoRecover()
				var last [4]int
				for {
					select {
					case <-done:
						return
					default:
					}
					seen, err := observe(ctx, user, object)
					Expect(err).NotTo(HaveOccurred())
					Expect(seen[0] >= last[0] && seen[2] >= last[2]).To(BeTrue(), "went back from %v to %v", last, seen)
					last = seen
					sent.Add(1)
				}
			})
		}
		stop := sync.OnceFunc(func() { close(done); wg.Wait() })
		defer stop()
		for i := 1; i <= changes; i++ {
			switch i % 5 {
			case 1, 3:
				author.writes(paceLibrary(i))
			case 2, 4:
				author.writes(pacePolicy(i))
			default: // a broken policy is denied, and changes nothing
				for _, broken := range []string{
					strings.Replace(paceLibrary(i), "two :=", "too :=", 1),
					strings.Replace(pacePolicy(i), "three :=", "three =:", 1),
				} {
					Expect(author.apply("", broken).failed).To(HaveOccurred())
				}
			}
		}
		Eventually(sent.Load).WithTimeout(watchdog).Should(BeNumerically(">=", applies))
		stop()
		Expect(observe(ctx, user, object)).To(Equal([4]int{48, 48, 49, 49}))
	}, NodeTimeout(watchdog))
})
