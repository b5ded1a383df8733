package engine_test

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	workloadv1alpha1 "github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
)

// Example shows an engine whose policies a controller updates, and which a webhook
// uses.
func Example() {
	policies := engine.New(engine.Options{Timeout: time.Minute})

	// For every Policy of an informer:
	report := policies.Apply(context.Background(), &policyv1alpha1.Policy{
		ObjectMeta: metav1.ObjectMeta{Name: "prod-only"},
		Spec: policyv1alpha1.PolicySpec{Type: policyv1alpha1.Scheduling, Modules: map[string]string{"prod_only.rego": `
package scheduling.prod_only

import rego.v2

exclude contains {"target": target.metadata.name, "code": "NotProd", "msg": "is not for production"} if {
	some target in input.targets
	target.metadata.labels.env != "prod"
}

deny contains {"code": "Unnamed", "msg": "has no application", "field": "metadata.labels"} if {
	not input.object.metadata.labels.app
}
`}},
	})
	fmt.Println("problems:", report.Err())

	// For every request:
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
	object.SetName("web")
	target := &workloadv1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Name: "eu", Labels: map[string]string{"env": "dev"}}}
	decision := policies.Decide(context.Background(), engine.Question{
		Type:     policyv1alpha1.Scheduling,
		Selector: labels.Everything(), // the target selector of the application
		Question: input.Question{
			Request: input.Request{Operation: "CREATE", User: input.User{Username: "ada"}},
			Object:  object,
			Targets: []*workloadv1alpha1.KubernetesTarget{target},
		},
	})
	for _, finding := range decision.Denied {
		fmt.Println(finding)
	}
	for _, finding := range decision.Excluded {
		fmt.Println(finding)
	}
	// Output:
	// problems: <nil>
	// policy prod-only: Unnamed: has no application (metadata.labels)
	// policy prod-only: NotProd: target eu: is not for production
}
