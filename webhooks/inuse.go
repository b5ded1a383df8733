package webhooks

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplicationresources;kubernetestargets,verbs=get;list;watch

const garbageCollector = "system:serviceaccount:kube-system:generic-garbage-collector"

// inUse denies the deletion of a target with resources, and of its connection Secret. It
// reads the cache first, and denies if the cache has such resources. Before it allows
// the deletion, it also reads from the API server: a resource that the cache does not
// have yet must not be orphaned.
func inUse(o Options) handler {
	return func(ctx context.Context, req admission.Request) (admission.Response, error) {
		if req.Operation != admissionv1.Delete || subresource(req) {
			return admission.Allowed(""), nil
		}
		old, err := deletedObject(req)
		if err != nil {
			return admission.Response{}, err
		}
		if deletesManagedCopy(req, old, o.Identity) {
			return admission.Allowed(""), nil
		}
		for _, users := range []targetUsers{cachedUsers{o.Reader}, liveUsers{live: o.Live, cache: o.Reader}} {
			resp, err := denyInUse(ctx, users, req, old.Name)
			if err != nil || !resp.Allowed || len(resp.Warnings) > 0 {
				return resp, err
			}
		}
		return admission.Allowed(""), nil
	}
}

// deletesManagedCopy tells whether Portico or the garbage collector deletes a copy of a
// managed cluster's connection. Portico deletes it when its target has another
// connection, and the garbage collector when its target is gone. If their requests were
// denied, they would retry for ever, also when another target now has the name.
func deletesManagedCopy(req admission.Request, old *metav1.PartialObjectMetadata, identity string) bool {
	_, copied := old.Annotations[v1alpha1.CopiedFromAnnotation]
	user := req.UserInfo.Username
	return req.Kind.Kind == "Secret" && copied && (user == identity || user == garbageCollector)
}

// denyInUse denies the deletion of the named target or Secret if resources are on its
// targets.
func denyInUse(ctx context.Context, users targetUsers, req admission.Request, name string) (admission.Response, error) {
	key := types.NamespacedName{Namespace: req.Namespace, Name: name}
	deletesTarget := req.Kind.Kind == "KubernetesTarget"
	list := users.targetsWithSecret
	if deletesTarget {
		list = users.target
	}
	targets, err := list(ctx, key)
	if err != nil {
		return admission.Response{}, fmt.Errorf("listing targets: %w", err)
	}
	resp := admission.Allowed("")
	for i := range targets {
		target := &targets[i]
		resources, err := users.resourcesOn(ctx, target)
		if err != nil {
			return admission.Response{}, fmt.Errorf("listing resources: %w", err)
		}
		if len(resources) > 0 && policies.HasReleaseAnnotation(target) {
			logf.FromContext(ctx).Info("Allowed the deletion of a released target", "target", client.ObjectKeyFromObject(target), "resources", len(resources))
			if deletesTarget {
				resp = resp.WithWarnings(shorten(fmt.Sprintf("target %s is released; these objects remain on its cluster: %s", target.Name, policies.FormatRemoteObjects(resources))))
			}
			continue
		}
		message := policies.TargetInUseMessage(target.Name, resources)
		if !deletesTarget {
			message = policies.SecretInUseMessage(key, target, resources)
		}
		if message != "" {
			return deniedInUse(message, "in use"), nil
		}
	}
	return resp, nil
}

// targetUsers reads targets and the resources on them.
type targetUsers interface {
	// target returns the target with a name, or none.
	target(ctx context.Context, key types.NamespacedName) ([]v1alpha1.KubernetesTarget, error)
	// targetsWithSecret returns the targets, of all namespaces, with a connection Secret.
	targetsWithSecret(ctx context.Context, secret types.NamespacedName) ([]v1alpha1.KubernetesTarget, error)
	// resourcesOn returns the resources on a target.
	resourcesOn(ctx context.Context, target *v1alpha1.KubernetesTarget) ([]v1alpha1.KubernetesApplicationResource, error)
}

// cachedUsers reads from the cache, by its indexes.
type cachedUsers struct{ reader client.Reader }

func (c cachedUsers) target(ctx context.Context, key types.NamespacedName) ([]v1alpha1.KubernetesTarget, error) {
	return getTarget(ctx, c.reader, key)
}

func (c cachedUsers) targetsWithSecret(ctx context.Context, secret types.NamespacedName) ([]v1alpha1.KubernetesTarget, error) {
	var list v1alpha1.KubernetesTargetList
	err := c.reader.List(ctx, &list, client.MatchingFields{policies.ConnectionSecretIndex: secret.String()}, client.UnsafeDisableDeepCopy)
	return list.Items, err
}

func (c cachedUsers) resourcesOn(ctx context.Context, target *v1alpha1.KubernetesTarget) ([]v1alpha1.KubernetesApplicationResource, error) {
	var list v1alpha1.KubernetesApplicationResourceList
	err := c.reader.List(ctx, &list, client.InNamespace(target.Namespace), client.MatchingFields{policies.TargetIndex: target.Name}, client.UnsafeDisableDeepCopy)
	return policies.ResourcesOnTarget(target.Name, list.Items), err
}

// liveUsers reads from the API server, by the selectable fields of the
// CustomResourceDefinitions, so that the API server returns only matching objects.
type liveUsers struct{ live, cache client.Reader }

// maxLiveUsers is the number of resources that are read from the API server. It is more
// than the cache is usually behind, and one resource is enough to deny a deletion.
const maxLiveUsers = 100

func (l liveUsers) target(ctx context.Context, key types.NamespacedName) ([]v1alpha1.KubernetesTarget, error) {
	return getTarget(ctx, l.live, key)
}

// targetsWithSecret reads the targets in other namespaces than the Secret from the cache,
// because no field selector finds them.
func (l liveUsers) targetsWithSecret(ctx context.Context, secret types.NamespacedName) ([]v1alpha1.KubernetesTarget, error) {
	var list v1alpha1.KubernetesTargetList
	if err := l.list(ctx, &list, secret.Namespace, v1alpha1.ConnectionSecretField, secret.Name); err != nil {
		return nil, err
	}
	var out []v1alpha1.KubernetesTarget
	for i := range list.Items {
		if policies.ConnectionSecret(&list.Items[i]) == secret {
			out = append(out, list.Items[i])
		}
	}
	cached, err := cachedUsers{l.cache}.targetsWithSecret(ctx, secret)
	for i := range cached {
		if cached[i].Namespace != secret.Namespace {
			out = append(out, cached[i])
		}
	}
	return out, err
}

func (l liveUsers) resourcesOn(ctx context.Context, target *v1alpha1.KubernetesTarget) ([]v1alpha1.KubernetesApplicationResource, error) {
	var out []v1alpha1.KubernetesApplicationResource
	for _, field := range []string{v1alpha1.TargetField, v1alpha1.LeavingTargetField} {
		var list v1alpha1.KubernetesApplicationResourceList
		if err := l.list(ctx, &list, target.Namespace, field, target.Name); err != nil {
			return nil, err
		}
		out = append(out, policies.ResourcesOnTarget(target.Name, list.Items)...)
		if len(out) > 0 {
			break
		}
	}
	return out, nil
}

// list lists the objects of a namespace with a value in a field. An API server of
// Kubernetes 1.30 does not support selectable fields: it returns all objects of the
// namespace.
func (l liveUsers) list(ctx context.Context, list client.ObjectList, namespace, field, value string) error {
	err := l.live.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{field: value}, client.Limit(maxLiveUsers))
	if apierrors.IsBadRequest(err) {
		return l.live.List(ctx, list, client.InNamespace(namespace))
	}
	return err
}

func getTarget(ctx context.Context, reader client.Reader, key types.NamespacedName) ([]v1alpha1.KubernetesTarget, error) {
	target := v1alpha1.KubernetesTarget{}
	if err := reader.Get(ctx, key, &target); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return []v1alpha1.KubernetesTarget{target}, nil
}
