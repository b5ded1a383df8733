package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

const namespaceController = "system:serviceaccount:kube-system:namespace-controller"

// namespaceInUse denies the deletion of a resource that created a Namespace on a target,
// or of its application, while the Namespace holds objects of others. The controller
// checks the same before it deletes the Namespace. So a target that does not answer is a
// warning, and requests that follow from an earlier deletion are not checked.
func namespaceInUse(o Options) handler {
	return func(ctx context.Context, req admission.Request) (admission.Response, error) {
		if req.Operation != admissionv1.Delete || subresource(req) || o.ObjectsInNamespace == nil || orphansDependents(req) {
			return admission.Allowed(""), nil
		}
		switch req.UserInfo.Username {
		case o.Identity, garbageCollector, namespaceController:
			return admission.Allowed(""), nil
		}
		old, err := deletedObject(req)
		if err != nil {
			return admission.Response{}, err
		}
		if keepsNamespace(old) {
			return admission.Allowed(""), nil
		}
		resources, err := o.deletedResources(ctx, req, old)
		if err != nil {
			return admission.Response{}, err
		}
		ctx, cancel := context.WithTimeout(ctx, o.dryRunTimeout())
		defer cancel()
		resp := admission.Allowed("")
		var refusals []string
		for i := range resources {
			refused, warnings, err := o.checkNamespaceInUse(ctx, &resources[i])
			if err != nil {
				return admission.Response{}, err
			}
			refusals, resp = append(refusals, refused...), resp.WithWarnings(warnings...)
		}
		if len(refusals) > 0 {
			resp = deniedInUse(strings.Join(refusals, "\n"), "namespace in use")
		}
		return resp, nil
	}
}

// keepsNamespace tells whether the deletion of an object leaves the Namespaces on
// targets, or was forced, or began earlier.
func keepsNamespace(object metav1.Object) bool {
	deletion, _ := policies.DeletionPolicyOf(object)
	return object.GetDeletionTimestamp() != nil || policies.HasForceAnnotation(object) || deletion == v1alpha1.DeletionOrphan
}

// deletedResources returns the resources with a Namespace that a request deletes: the
// resource itself, or the resources that the application controls.
func (o Options) deletedResources(ctx context.Context, req admission.Request, old metav1.Object) ([]v1alpha1.KubernetesApplicationResource, error) {
	var candidates []v1alpha1.KubernetesApplicationResource
	if req.Kind.Kind == "KubernetesApplicationResource" {
		resource := v1alpha1.KubernetesApplicationResource{}
		if err := json.Unmarshal(req.OldObject.Raw, &resource); err != nil {
			return nil, fmt.Errorf("reading the resource that is being deleted: %w", err)
		}
		candidates = append(candidates, resource)
	} else {
		cache := cacheLookup{ctx: ctx, reader: o.Reader, namespace: req.Namespace}
		for _, member := range cache.members(old.GetName()) {
			if metav1.IsControlledBy(&member, old) {
				candidates = append(candidates, member)
			}
		}
		if cache.err != nil {
			return nil, cache.err
		}
	}
	var out []v1alpha1.KubernetesApplicationResource
	for i := range candidates {
		if policies.NamespaceOf(&candidates[i]) != "" && !keepsNamespace(&candidates[i]) {
			out = append(out, candidates[i])
		}
	}
	return out, nil
}

// checkNamespaceInUse returns a refusal for each target on which a Namespace is in use,
// and a warning for each target that does not answer.
func (o Options) checkNamespaceInUse(ctx context.Context, resource *v1alpha1.KubernetesApplicationResource) (refusals, warnings []string, err error) {
	for _, name := range policies.TargetsOf(resource) {
		target := &v1alpha1.KubernetesTarget{}
		if err := o.Reader.Get(ctx, client.ObjectKey{Namespace: resource.Namespace, Name: name}, target); err != nil {
			if client.IgnoreNotFound(err) != nil {
				return nil, nil, fmt.Errorf("reading target %s: %w", name, err)
			}
			continue
		}
		counts, err := o.ObjectsInNamespace(ctx, target, resource)
		if err != nil {
			warnings = append(warnings, shorten(fmt.Sprintf("Namespace %s remains on target %s as long as it holds objects of others; they cannot be counted now: %v",
				policies.NamespaceOf(resource), name, err)))
			continue
		}
		if message := policies.NamespaceInUseMessage(resource, name, counts); message != "" {
			refusals = append(refusals, message)
		}
	}
	return refusals, warnings, nil
}

// orphansDependents tells a deletion with --cascade=orphan, which does not delete the
// resources of an application.
func orphansDependents(req admission.Request) bool {
	var options metav1.DeleteOptions
	if err := json.Unmarshal(req.Options.Raw, &options); err != nil || options.PropagationPolicy == nil {
		return false
	}
	return *options.PropagationPolicy == metav1.DeletePropagationOrphan && req.Kind.Kind == "KubernetesApplication"
}
