package dryrun

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
)

// TestFindMissingClasses looks twice for the class of a claim on a target.
func TestFindMissingClasses(t *testing.T) {
	fast := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}
	template := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": map[string]any{"name": "fast"}}}
	const get, warning = "get StorageClass", "spec.storageClassName: StorageClass fast does not exist on target eu-1"
	for name, tc := range map[string]struct {
		reason    string
		class     string
		target    []client.Object
		alongside []*unstructured.Unstructured
		fail      error
		want      []string
		sent      []string
	}{
		"Missing":  {reason: "The warning names the class, the field and the target, each time.", class: "fast", want: []string{warning, warning}, sent: []string{get, get}},
		"There":    {reason: "A class that exists is read once.", class: "fast", target: []client.Object{fast}, sent: []string{get}},
		"NoClass":  {reason: "An object without a class needs no request."},
		"NoRight":  {reason: "A target that does not tell is asked once.", class: "fast", fail: apierrors.NewForbidden(storagev1.Resource("storageclasses"), "fast", nil), sent: []string{get}},
		"Broken":   {reason: "An error is no answer.", class: "fast", fail: apierrors.NewServiceUnavailable("no"), sent: []string{get, get}},
		"SentToo":  {reason: "A class of the same application arrives with it.", class: "fast", alongside: []*unstructured.Unstructured{nil, template}},
		"SentNone": {reason: "An object of another kind is no class.", class: "fast", alongside: []*unstructured.Unstructured{deploymentOf("fast", "a", "b")}, want: []string{warning, warning}, sent: []string{get, get}},
	} {
		t.Run(name, func(t *testing.T) {
			var sent, got []string
			target := fake.NewClientBuilder().WithScheme(reconcilertest.Scheme(t, storagev1.AddToScheme)).WithObjects(tc.target...).
				WithInterceptorFuncs(reconcilertest.Before(func(r reconcilertest.Request) error {
					sent = append(sent, r.String())
					return tc.fail
				})).Build()
			claim := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": map[string]any{"storageClassName": tc.class}}}
			r := &Runner{answers: targetAnswers{lifetime: time.Hour}}
			s := &scope{
				target: &v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}}, desired: claim, alongside: tc.alongside,
				connection: &clusters.DirectClient{Client: target},
			}
			for range 2 {
				got = append(got, <-r.findMissingObjects(t.Context(), s)...)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s warnings (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.sent, sent); diff != "" {
				t.Errorf("%s requests (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
