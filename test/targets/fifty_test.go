package targets

import (
	"fmt"
	"net/url"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/test/flaky"
)

// TestFiftyTargets publishes fifty targets, each with a user of its own. Five hang,
// five refuse, and five come and go. The others work all the time, and these work when
// the trouble ends.
func TestFiftyTargets(t *testing.T) {
	w := start(t)
	namespace := w.namespace(t, "fifty")
	address, err := url.Parse(w.config.Host)
	must(t, err)
	const fifty = 50
	name := func(i int) string { return fmt.Sprintf("target-%02d", i) }
	trouble, err := flaky.Troubles(address.Host, 5)
	must(t, err)
	t.Cleanup(trouble.Close)
	bad := len(trouble.Proxies)
	trouble.Begin()
	for i := range fifty {
		data := w.connection(w.account(t, namespace, name(i), everything...))
		if i < bad {
			data[v1alpha1.SecretEndpoint] = []byte("https://" + trouble.Proxies[i].Address())
		}
		w.publish(t, namespace, name(i), data)
	}
	for i := range fifty {
		w.place(t, namespace, name(i), name(i), configMap("on-"+name(i), "web", "wanted"))
	}
	for i := bad; i < fifty; i++ {
		w.synced(t, namespace, name(i), v1alpha1.ReasonApplied, nil)
	}
	for i := range 10 {
		w.reachable(t, namespace, name(i), metav1.ConditionFalse)
	}
	trouble.End()
	for i := range bad {
		w.reachable(t, namespace, name(i), metav1.ConditionTrue)
		w.synced(t, namespace, name(i), v1alpha1.ReasonApplied, nil)
	}
}
