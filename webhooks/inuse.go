package webhooks

import (
	"context"
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplicationresources;kubernetestargets,verbs=get;list;watch

// inUse refuses to delete a target that resources are on, and the Secret that one
// is reached with. It believes the cache when that says that something is in use,
// which is put right in a moment if it is not so any more. Before it says that
// nothing is, it asks the API server: a cache that is behind must not orphan what
// was placed just now.
func inUse(o Options) handler {
	return func(ctx context.Context, req admission.Request) (admission.Response, error) {
		if req.Operation != admissionv1.Delete || subresource(req) {
			return admission.Allowed(""), nil
		}
		old, err := deleted(req)
		if err != nil {
			return admission.Response{}, err
		}
		if withdrawn(req, old, o.Identity) {
			return admission.Allowed(""), nil
		}
		for _, reader := range []client.Reader{o.Reader, o.Live} {
			resp, err := keep(ctx, reader, req, old.Name)
			if err != nil || !resp.Allowed || len(resp.Warnings) > 0 {
				return resp, err
			}
		}
		return admission.Allowed(""), nil
	}
}

// deleted is the metadata of what is being deleted. A request to delete a
// collection, as of a namespace that goes, names nothing but in the objects.
func deleted(req admission.Request) (*metav1.PartialObjectMetadata, error) {
	old := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(req.OldObject.Raw, old); err != nil {
		return nil, fmt.Errorf("reading what is being deleted: %w", err)
	}
	return old, nil
}

// withdrawn tells whether a Secret is the copy of a managed cluster's connection,
// and goes by the hands that it came from: Portico takes it back when its target
// is pointed elsewhere, and the garbage collector when its target is gone, though
// another of that name may have come. Refused, either would try for ever, and a
// connection would stay that nobody asks for any more.
func withdrawn(req admission.Request, old *metav1.PartialObjectMetadata, identity string) bool {
	_, copied := old.Annotations[v1alpha1.CopiedFromAnnotation]
	who := req.UserInfo.Username
	return req.Kind.Kind == "Secret" && copied && (who == identity || who == garbageCollector)
}

const garbageCollector = "system:serviceaccount:kube-system:generic-garbage-collector"

func keep(ctx context.Context, reader client.Reader, req admission.Request, name string) (admission.Response, error) {
	var targets v1alpha1.KubernetesTargetList
	if err := reader.List(ctx, &targets, client.InNamespace(req.Namespace)); err != nil {
		return admission.Response{}, fmt.Errorf("listing targets: %w", err)
	}
	var resources *v1alpha1.KubernetesApplicationResourceList
	resp := admission.Allowed("")
	for _, target := range targets.Items {
		secret := target.Spec.ConnectionSecretRef
		itself := req.Kind.Kind == "KubernetesTarget" && target.Name == name
		reads := req.Kind.Kind == "Secret" && secret != nil && secret.Name == name
		if !itself && !reads {
			continue
		}
		if resources == nil {
			resources = &v1alpha1.KubernetesApplicationResourceList{}
			if err := reader.List(ctx, resources, client.InNamespace(req.Namespace)); err != nil {
				return admission.Response{}, fmt.Errorf("listing resources: %w", err)
			}
		}
		on := policies.OnTarget(target.Name, resources.Items)
		if len(on) > 0 && policies.Released(&target) {
			logf.FromContext(ctx).Info("Released target is being deleted", "target", target.Name, "namespace", target.Namespace, "resources", len(on))
			if itself {
				resp.Warnings = append(resp.Warnings, shorten(fmt.Sprintf("target %s is given up; on its cluster stays behind: %s", target.Name, policies.LeftBehind(on))))
			}
			continue
		}
		why := policies.KeepTarget(target.Name, on)
		if reads {
			why = policies.KeepSecret(name, target.Name, on)
		}
		if why != "" {
			resp := admission.Denied(why)
			resp.AuditAnnotations = map[string]string{"decision": "in use"}
			return resp, nil
		}
	}
	return resp, nil
}
