package dryrun

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
	"github.com/portico-io/portico/policies"
)

// TestRequests tests the requests to a target for one dry run of a ConfigMap.
func TestRequests(t *testing.T) {
	template := func(mode string) []byte {
		return []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"shop"},"data":{"mode":"` + mode + `"}}`)
	}
	applied := func(r *v1alpha1.KubernetesApplicationResource) {
		r.Status.RemoteUID, r.Status.Target = "o1", "eu-1"
		r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.Synced, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonApplied}}
	}
	deleting := func(r *v1alpha1.KubernetesApplicationResource) {
		applied(r)
		r.DeletionTimestamp, r.Finalizers = &metav1.Time{Time: metav1.Now().Time}, []string{v1alpha1.PropagationFinalizer}
	}
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "o2"}}
	ours := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "o1", Labels: map[string]string{v1alpha1.ManagedByLabel: "hub"},
		Annotations: map[string]string{v1alpha1.ResourceNamespaceAnnotation: "team-a", v1alpha1.ResourceNameAnnotation: "web"}}}
	configMaps := corev1.Resource("configmaps")
	conflict := apierrors.NewConflict(configMaps, "web", nil)
	fields := apierrors.NewConflict(configMaps, "web", nil)
	fields.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict, Field: ".data.mode"}}
	replaced := apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "web", nil)
	immutable := apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "web", field.ErrorList{field.Invalid(field.NewPath("data"), nil, "field is immutable")})
	replaced.ErrStatus.Details.Causes = []metav1.StatusCause{{Field: "metadata.uid"}}

	for name, tc := range map[string]struct {
		reason  string
		stored  func(*v1alpha1.KubernetesApplicationResource)
		mode    string
		target  client.Object
		answers []error // of the applies and creates
		sent    []string
		want    policies.DryRunResult // "" for accepted
	}{
		"New":       {reason: "A new object is applied without a read.", mode: "fast", answers: []error{nil}, sent: []string{"apply"}},
		"Foreign":   {reason: "An object that exists is read.", mode: "fast", target: theirs, answers: []error{conflict}, sent: []string{"apply", "get ConfigMap"}, want: policies.DryRunConflicted},
		"Restored":  {reason: "The object of a resource from before a restore is applied.", mode: "fast", target: ours, answers: []error{conflict, nil}, sent: []string{"apply", "get ConfigMap", "apply"}},
		"Refused":   {reason: "A refusal needs no read.", mode: "fast", answers: []error{apierrors.NewForbidden(configMaps, "web", nil)}, sent: []string{"apply"}, want: policies.DryRunRefused},
		"Changed":   {reason: "An applied object is changed without a read.", stored: applied, mode: "fast", target: ours, answers: []error{nil}, sent: []string{"apply"}},
		"Unchanged": {reason: "Without a change there is no request.", stored: applied, mode: "slow", target: ours, want: policies.DryRunSkipped},
		"Replaced":  {reason: "A replaced object is read.", stored: applied, mode: "fast", target: theirs, answers: []error{replaced}, sent: []string{"apply", "get ConfigMap"}, want: policies.DryRunConflicted},
		"Gone":      {reason: "A deleted object is read and created.", stored: applied, mode: "fast", answers: []error{conflict, nil}, sent: []string{"apply", "get ConfigMap", "apply"}},
		"Fields":    {reason: "For a conflict of fields the object is read once.", stored: applied, mode: "fast", target: ours, answers: []error{fields, nil}, sent: []string{"apply", "get ConfigMap", "apply"}},
		"Recreated": {reason: "An object whose predecessor is being deleted is tried under another name.", stored: deleting, mode: "fast", target: ours, answers: []error{immutable, nil}, sent: []string{"apply", "create ConfigMap"}},
		"RecreatedRefused": {reason: "The target refuses the object under any name.", stored: deleting, mode: "fast", target: ours,
			answers: []error{immutable, apierrors.NewForbidden(configMaps, "web", nil)}, sent: []string{"apply", "create ConfigMap"}, want: policies.DryRunRefused},
		"RecreatedInvalid": {reason: "The object is invalid only while its predecessor exists.", stored: deleting, mode: "fast", target: ours,
			answers: []error{immutable, immutable}, sent: []string{"apply", "create ConfigMap"}, want: policies.DryRunSkipped},
		"Immutable": {reason: "A change of an immutable field is refused.", stored: applied, mode: "fast", target: ours, answers: []error{immutable}, sent: []string{"apply"}, want: policies.DryRunRefused},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := reconcilertest.Scheme(t, v1alpha1.AddToScheme, corev1.AddToScheme)
			hub, target := fake.NewClientBuilder().WithScheme(scheme), fake.NewClientBuilder().WithScheme(scheme)
			if tc.stored != nil {
				stored := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web", UID: "r1"}}
				stored.Spec.Template.Raw = template("slow")
				tc.stored(stored)
				hub = hub.WithObjects(stored)
			}
			if tc.target != nil {
				target = target.WithObjects(tc.target)
			}
			var sent []string
			answer := func() error {
				next := tc.answers[0]
				tc.answers = tc.answers[1:]
				return next
			}
			funcs := reconcilertest.Before(func(r reconcilertest.Request) error {
				sent = append(sent, r.String())
				if r.Verb == "create" {
					return answer()
				}
				return nil
			})
			funcs.Apply = func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
				sent = append(sent, "apply")
				return answer()
			}
			resource := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web"}}
			resource.Spec.Template.Raw = template(tc.mode)
			s := &scope{
				target: &v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "eu-1"}}, resource: resource,
				connection: &clusters.DirectClient{Client: interceptor.NewClient(target.Build(), funcs)},
			}
			r := &Runner{hub: hub.Build(), options: Options{HubID: "hub"}}
			var got policies.DryRunResult
			for _, step := range []step{r.buildDesired, r.expectObject, r.apply} {
				if result := step(t.Context(), s); result != nil {
					got = result.Result
					break
				}
			}
			if diff := cmp.Diff(tc.sent, sent); diff != "" || got != tc.want {
				t.Errorf("%s result %q, requests (-want +got):\n%s", tc.reason, got, diff)
			}
		})
	}
}

func TestReplaces(t *testing.T) {
	of := func(uid types.UID) *v1alpha1.KubernetesApplicationResource {
		out := &v1alpha1.KubernetesApplicationResource{}
		if uid != "" {
			out.OwnerReferences = []metav1.OwnerReference{{UID: uid, Controller: ptr.To(true)}}
		}
		return out
	}
	deleted := of("")
	deleted.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time}
	for name, tc := range map[string]struct {
		reason           string
		resource, stored *v1alpha1.KubernetesApplicationResource
		want             bool
	}{
		"Update":   {reason: "The native object changes.", resource: of("n1"), stored: of("n1")},
		"Recreate": {reason: "The native object was deleted and created, before the garbage collector saw it.", resource: of("n2"), stored: of("n1"), want: true},
		"Deleted":  {reason: "The resource is being deleted.", resource: of(""), stored: deleted, want: true},
		"Own":      {reason: "The resource has no controller.", resource: of(""), stored: of("")},
		"Template": {reason: "The request does not tell the controller.", resource: of(""), stored: of("a1")},
	} {
		t.Run(name, func(t *testing.T) {
			if got := replaces(tc.resource, tc.stored); got != tc.want {
				t.Errorf("replaces = %t: %s", got, tc.reason)
			}
		})
	}
}
