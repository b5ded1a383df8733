package dryrun

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/portico-io/portico/api/kinds/references"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
)

// deploymentOf is a Deployment whose Pods have an image and a label.
func deploymentOf(name, image, tier string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name, "namespace": "shop"},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": name}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": name, "tier": tier}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": image}}},
			},
		},
	}}
}

// TestTryPod tries the Pods of several Deployments on a target.
func TestTryPod(t *testing.T) {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "few"}}
	insecure := apierrors.NewForbidden(corev1.Resource("pods"), "web", errors.New("violates PodSecurity"))
	const create, list = "create Pod", "list ResourceQuotaList"
	web, db := deploymentOf("web", "nginx:1", "front"), deploymentOf("db", "nginx:1", "front")
	for name, tc := range map[string]struct {
		reason   string
		target   []client.Object
		fail     map[string]error
		lifetime time.Duration
		owners   []*unstructured.Unstructured
		want     []string
	}{
		"Same":    {reason: "For the second Pod of the same form the quotas of the namespace are read. The third Pod needs no request.", owners: []*unstructured.Unstructured{web, db, web}, want: []string{create, list}},
		"Image":   {reason: "A Pod with another image has another form.", owners: []*unstructured.Unstructured{web, deploymentOf("db", "mysql:8", "front")}, want: []string{create, create}},
		"Label":   {reason: "A Pod with another label has another form.", owners: []*unstructured.Unstructured{web, deploymentOf("db", "nginx:1", "back")}, want: []string{create, create}},
		"Quota":   {reason: "With a quota each Pod is tried.", target: []client.Object{quota}, owners: []*unstructured.Unstructured{web, db, web}, want: []string{create, list, create, create}},
		"Unknown": {reason: "Without the right to list quotas each Pod is tried.", fail: map[string]error{list: apierrors.NewForbidden(corev1.Resource("resourcequotas"), "", nil)}, owners: []*unstructured.Unstructured{web, db, web}, want: []string{create, list, create, create}},
		"Refused": {reason: "A refused Pod is tried again.", fail: map[string]error{create: insecure}, owners: []*unstructured.Unstructured{web, db}, want: []string{create, create}},
		"NoRight": {reason: "Without the right to create Pods no other Pod is tried.", fail: map[string]error{create: apierrors.NewForbidden(corev1.Resource("pods"), "", nil)}, owners: []*unstructured.Unstructured{web, deploymentOf("db", "mysql:8", "back")}, want: []string{create}},
		"Late":    {reason: "An old answer does not count.", lifetime: time.Nanosecond, owners: []*unstructured.Unstructured{web, db}, want: []string{create, create}},
	} {
		t.Run(name, func(t *testing.T) {
			var sent []string
			target := fake.NewClientBuilder().WithScheme(reconcilertest.Scheme(t, corev1.AddToScheme)).WithObjects(tc.target...).
				WithInterceptorFuncs(reconcilertest.Before(func(r reconcilertest.Request) error {
					sent = append(sent, r.String())
					return tc.fail[r.String()]
				})).Build()
			connection := &clusters.DirectClient{Client: target}
			answers := targetAnswers{lifetime: time.Hour}
			if tc.lifetime > 0 {
				answers.lifetime = tc.lifetime
			}
			for _, owner := range tc.owners {
				pod, before := references.PodOf(owner), len(sent)
				err := answers.tryPod(t.Context(), connection, pod, podDigest(pod, owner), client.DryRunAll)
				if tried := slices.Contains(sent[before:], create); tried && !errors.Is(err, tc.fail[create]) || !tried && err != nil {
					t.Errorf("tried %t, error %v", tried, err)
				}
			}
			if diff := cmp.Diff(tc.want, sent); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
