package webhooks

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// keeper records the templates of the dry runs.
type keeper struct {
	*fakeTargets
	templates []string
}

func (k *keeper) DryRun(ctx context.Context, target *v1alpha1.KubernetesTarget, resource *v1alpha1.KubernetesApplicationResource, with []*unstructured.Unstructured) policies.DryRun {
	k.templates = append(k.templates, string(resource.Spec.Template.Raw))
	return k.fakeTargets.DryRun(ctx, target, resource, with)
}

// TestContentIsInDryRun: the dry run of a Secret contains its data. The request
// contains the data only for this purpose.
func TestContentIsInDryRun(t *testing.T) {
	secret := func(label, data string) string {
		return `{apiVersion: v1, kind: Secret, metadata: {name: sql, labels: {` + label + `}, annotations: {kubectl.kubernetes.io/last-applied-configuration: "` + data + `"}}, type: Opaque, data: {a: ` + data + `}}`
	}
	const remote = "workload.crossplane.io/schedule: remote"
	const sentObject = `{"apiVersion":"v1","data":{"a":"Yg=="},"kind":"Secret","metadata":{"name":"sql"},"type":"Opaque"}`
	cases := map[string]struct {
		reason, object, old string
		want                []string
	}{
		"New":       {reason: "A new Secret is tried with its data.", object: secret(remote, "Yg=="), want: []string{sentObject}},
		"Labelled":  {reason: "A Secret that gets the label is tried with its data.", object: secret(remote, "Yg=="), old: secret("", "Yg=="), want: []string{sentObject}},
		"Changed":   {reason: "A changed Secret is tried with its data.", object: secret(remote, "Yg=="), old: secret(remote, "eA=="), want: []string{sentObject}},
		"Unchanged": {reason: "An unchanged Secret is not tried.", object: secret(remote, "Yg=="), old: secret(remote, "Yg==")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k := &keeper{fakeTargets: &fakeTargets{answer: func(context.Context, string) policies.DryRun {
				return policies.DryRun{Result: policies.DryRunAccepted}
			}}}
			answer := evaluateRequest(t, serveWithDryRuns(k, time.Minute, target("eu-1", nil)), testRequest{path: NativePath, object: tc.object, old: tc.old})
			if answer.Code != http.StatusOK {
				t.Errorf("refused: %v", answer)
			}
			if diff := cmp.Diff(tc.want, k.templates); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestConnectionSecretsAreNotSent: the connection Secret of a target of the namespace
// cannot be labelled.
func TestConnectionSecretsAreNotSent(t *testing.T) {
	connection := `{apiVersion: v1, kind: Secret, metadata: {name: KEY, labels: {workload.crossplane.io/schedule: remote}}, type: Opaque}`
	published := target("eu-1", nil)
	published.(*v1alpha1.KubernetesTarget).Spec.ConnectionSecretRef = &v1alpha1.SecretReference{Name: "key"}
	k := &fakeTargets{answer: func(context.Context, string) policies.DryRun { return policies.DryRun{} }}
	answer := evaluateRequest(t, serveWithDryRuns(k, time.Minute, published), testRequest{path: NativePath, object: strings.ReplaceAll(connection, "KEY", "key")})
	if answer.Code == http.StatusOK || len(k.requested) > 0 {
		t.Errorf("the key to a target would be sent: %v", answer)
	}
	other := evaluateRequest(t, serveWithDryRuns(k, time.Minute, published), testRequest{path: NativePath, object: strings.ReplaceAll(connection, "KEY", "other")})
	if other.Code != http.StatusOK {
		t.Errorf("another Secret is not sent: %v", other)
	}
}
