package webhooks

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

const (
	usedTarget = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesTarget, metadata: {name: eu-1, namespace: team-a}, spec: {connectionSecretRef: {name: token}}}`
	usedSecret = `{apiVersion: v1, kind: Secret, metadata: {name: token, namespace: team-a}, data: {kubeconfig: e30=}}`
)

func placedOn(target, leaving string) client.Object {
	r := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web-deployment"}}
	r.Spec.Template.Raw = []byte(`{"kind":"Deployment","metadata":{"name":"web","namespace":"shop"}}`)
	r.Spec.TargetRef = &v1alpha1.TargetReference{Name: target}
	if leaving != "" {
		r.Spec.LeavingTargetRef = &v1alpha1.TargetReference{Name: leaving}
	}
	return r
}

func published(annotations map[string]string) client.Object {
	target := &v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "eu-1", Annotations: annotations}}
	target.Spec.ConnectionSecretRef = &v1alpha1.SecretReference{Name: "token"}
	return target
}

func TestInUse(t *testing.T) {
	released := map[string]string{v1alpha1.ReleaseAnnotation: "true"}
	cases := map[string]struct {
		reason       string
		cached, live []client.Object
		refusal      string // empty if both may be deleted
		warning      string // on the deletion of the target
	}{
		"Unused": {
			reason: "An unused target and its Secret may be deleted.",
			cached: []client.Object{published(nil), placedOn("eu-2", "")},
			live:   []client.Object{published(nil), placedOn("eu-2", "")},
		},
		"Used": {
			reason:  "Portico could no longer delete the objects of the resource.",
			cached:  []client.Object{published(nil), placedOn("eu-1", "")},
			refusal: "1 KubernetesApplicationResource is on target eu-1",
		},
		"Leaving": {
			reason:  "The object of a resource that moves away is still to be deleted.",
			cached:  []client.Object{published(nil), placedOn("eu-2", "eu-1")},
			refusal: "kubectl portico drain eu-1",
		},
		"Stale": {
			reason:  "The API server has a resource that the cache does not have yet.",
			cached:  []client.Object{published(nil)},
			live:    []client.Object{published(nil), placedOn("eu-1", "")},
			refusal: "1 KubernetesApplicationResource is on target eu-1",
		},
		"Released": {
			reason:  "The warning of a release lists the remaining objects.",
			cached:  []client.Object{published(released), placedOn("eu-1", "")},
			live:    []client.Object{published(released), placedOn("eu-1", "")},
			warning: "remain on its cluster: Deployment shop/web",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := webhook.NewServer(webhook.Options{})
			cache := fake.NewClientBuilder().WithScheme(scheme()).WithObjects(tc.cached...).WithIndex(&v1alpha1.KubernetesTarget{}, policies.ConnectionSecretIndex, bySecret).WithIndex(&v1alpha1.KubernetesTarget{}, policies.RelatedTargetIndex, byRelation).WithIndex(&v1alpha1.KubernetesApplicationResource{}, policies.TargetIndex, byTarget).Build()
			Register(server, Options{Reader: cache, Live: withSelectableFields(fake.NewClientBuilder().WithScheme(scheme()).WithObjects(tc.live...)).Build(), Identity: porticoUser, Scheme: scheme()})
			for path, old := range map[string]string{InUsePath: usedTarget, InUseSecretPath: usedSecret} {
				for _, collection := range []bool{false, true} {
					req := testRequest{path: path, operation: admissionv1.Delete, old: old}.request(t)
					if collection { // the request has no name
						req.Name = ""
					}
					resp := post(t, server.WebhookMux(), path, req)
					if resp.Allowed != (tc.refusal == "") || tc.refusal != "" && !strings.Contains(resp.Result.Message, tc.refusal) {
						t.Errorf("%s %s answers %t, %v, want %q", tc.reason, path, resp.Allowed, resp.Result, tc.refusal)
					}
					if warnings := strings.Join(resp.Warnings, ""); path == InUsePath && !strings.Contains(warnings, tc.warning) {
						t.Errorf("%s It warns %q, want %q", tc.reason, warnings, tc.warning)
					}
				}
			}
		})
	}
}

// TestInUseCost: a deletion does not read more objects from the API server because the
// namespace is larger. An API server without selectable fields returns the whole
// namespace.
func TestInUseCost(t *testing.T) {
	cases := map[string]struct {
		reason    string
		supported bool
		user      client.Object
		target    int // the number of objects read for the deletion of the target
		secret    int // the number of objects read for the deletion of its Secret
		refused   bool
	}{
		"Unused":      {reason: "The other targets and resources of the namespace are not read.", supported: true, target: 1, secret: 1},
		"Used":        {reason: "The target and its resource are read.", supported: true, user: placedOn("eu-1", ""), target: 2, secret: 2, refused: true},
		"Leaving":     {reason: "The resource is found by the field of the target that it leaves.", supported: true, user: placedOn("eu-2", "eu-1"), target: 2, secret: 2, refused: true},
		"Unsupported": {reason: "The whole namespace is read.", target: 1 + 2*50, secret: 51 + 2*50},
		"UsedThere":   {reason: "The whole namespace is read.", user: placedOn("eu-1", ""), target: 1 + 51, secret: 51 + 51, refused: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{published(nil)}
			for i := range 50 {
				resource, target := placedOn("eu-2", ""), published(nil).(*v1alpha1.KubernetesTarget)
				resource.SetName(fmt.Sprintf("other-%d", i))
				target.Name, target.Spec.ConnectionSecretRef.Name = resource.GetName(), resource.GetName()
				objects = append(objects, resource, target)
			}
			if tc.user != nil {
				objects = append(objects, tc.user)
			}
			read := 0
			live := withSelectableFields(fake.NewClientBuilder().WithScheme(scheme()).WithObjects(objects...)).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					read++
					return c.Get(ctx, key, object, options...)
				},
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if o := (&client.ListOptions{}).ApplyOptions(options); o.FieldSelector != nil && !tc.supported {
						return apierrors.NewBadRequest("field label not supported: " + o.FieldSelector.String())
					}
					err := c.List(ctx, list, options...)
					read += meta.LenList(list)
					return err
				},
			}).Build()
			cache := fake.NewClientBuilder().WithScheme(scheme()).WithIndex(&v1alpha1.KubernetesTarget{}, policies.ConnectionSecretIndex, bySecret).WithIndex(&v1alpha1.KubernetesTarget{}, policies.RelatedTargetIndex, byRelation).WithIndex(&v1alpha1.KubernetesApplicationResource{}, policies.TargetIndex, byTarget).Build()
			server := webhook.NewServer(webhook.Options{})
			Register(server, Options{Reader: cache, Live: live, Identity: porticoUser, Scheme: scheme()})
			for _, deletion := range []struct {
				path, old string
				want      int
			}{{InUsePath, usedTarget, tc.target}, {InUseSecretPath, usedSecret, tc.secret}} {
				read = 0
				resp := post(t, server.WebhookMux(), deletion.path, testRequest{path: deletion.path, operation: admissionv1.Delete, old: deletion.old}.request(t))
				if resp.Allowed == tc.refused {
					t.Errorf("%s %s: allowed = %t", tc.reason, deletion.path, resp.Allowed)
				}
				if read != deletion.want {
					t.Errorf("%s %s: read %d objects, want %d", tc.reason, deletion.path, read, deletion.want)
				}
			}
		})
	}
}

// withSelectableFields adds the field selectors of the CustomResourceDefinitions.
func withSelectableFields(builder *fake.ClientBuilder) *fake.ClientBuilder {
	return builder.WithIndex(&v1alpha1.KubernetesApplicationResource{}, v1alpha1.TargetField, func(o client.Object) []string {
		return []string{targetName(o.(*v1alpha1.KubernetesApplicationResource).Spec.TargetRef)}
	}).WithIndex(&v1alpha1.KubernetesApplicationResource{}, v1alpha1.LeavingTargetField, byLeavingTarget).
		WithIndex(&v1alpha1.KubernetesTarget{}, v1alpha1.ConnectionSecretField, bySecretName)
}

func byLeavingTarget(o client.Object) []string {
	return []string{targetName(o.(*v1alpha1.KubernetesApplicationResource).Spec.LeavingTargetRef)}
}

func bySecretName(o client.Object) []string {
	return []string{policies.ConnectionSecret(o.(*v1alpha1.KubernetesTarget)).Name}
}

// TestInUseWithdrawn: Portico and the garbage collector may delete the copy of a
// connection Secret, and no other object in use. Other users may not delete the copy.
func TestInUseWithdrawn(t *testing.T) {
	const (
		copied    = `{apiVersion: v1, kind: Secret, metadata: {name: token, namespace: team-a, annotations: {workload.crossplane.io/copied-from: GKECluster.compute.gcp.crossplane.io/eu}}, data: {kubeconfig: e30=}}`
		collector = "system:serviceaccount:kube-system:generic-garbage-collector"
	)
	cases := map[string]struct {
		reason          string
		user, path, old string
		allowed         bool
	}{
		"ByPortico":      {reason: "Portico deletes its own copy.", user: porticoUser, path: InUseSecretPath, old: copied, allowed: true},
		"ByCollector":    {reason: "The garbage collector deletes the copy of a deleted target with the same name.", user: collector, path: InUseSecretPath, old: copied, allowed: true},
		"BySomebody":     {reason: "The copy is the connection of a target in use.", user: "jane", path: InUseSecretPath, old: copied},
		"ByNamespace":    {reason: "The namespace controller tries again when the resources are gone.", user: "system:serviceaccount:kube-system:namespace-controller", path: InUseSecretPath, old: copied},
		"Given":          {reason: "A Secret of a user is not Portico's.", user: porticoUser, path: InUseSecretPath, old: usedSecret},
		"GivenCollected": {reason: "The owner of the Secret is deleted, and the target is not.", user: collector, path: InUseSecretPath, old: usedSecret},
		"Target":         {reason: "A target in use is not deleted for any user.", user: porticoUser, path: InUsePath, old: usedTarget},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := front(t, published(nil), placedOn("eu-1", ""))
			resp := post(t, h, tc.path, testRequest{path: tc.path, operation: admissionv1.Delete, old: tc.old, user: tc.user}.request(t))
			if resp.Allowed != tc.allowed {
				t.Errorf("%s It is allowed: %t, %v", tc.reason, resp.Allowed, resp.Result)
			}
		})
	}
}
