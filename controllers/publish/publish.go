// Package publish copies the connection Secrets of managed clusters to the
// targets that name them in clusterRef, and keeps the copies like the originals.
package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/watches"
	"github.com/portico-io/portico/policies/publication"
)

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetestargets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch

// How soon to look again at what no watch tells: a right that is given, a kind
// that comes without a CustomResourceDefinition, a Secret that the garbage
// collector is about to delete.
const (
	rightsAgain   = 10 * time.Second
	kindAgain     = 10 * time.Second
	leftoverAgain = time.Second
)

// Publisher publishes managed clusters.
type Publisher struct {
	hub     client.Client
	live    client.Reader // Secrets are not kept in memory
	dynamic dynamic.Interface
	mapper  meta.RESTMapper
	watches *watches.Watches
	interests
}

// New returns a publisher. life bounds its watches; changed is called with a
// target whose cluster changed.
func New(life context.Context, mgr ctrl.Manager, changed func(target types.NamespacedName)) (*Publisher, error) {
	clients, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("preparing access to managed clusters: %w", err)
	}
	p := &Publisher{
		hub: mgr.GetClient(), live: mgr.GetAPIReader(), dynamic: clients, mapper: mgr.GetRESTMapper(),
		interests: newInterests(),
	}
	tell := func(targets []types.NamespacedName) {
		for _, target := range targets {
			changed(target)
		}
	}
	p.watches = watches.New(life, watches.Options{
		Client:  clients,
		Trim:    publication.Trim,
		Changed: func(_ schema.GroupVersionResource, cluster types.NamespacedName) { tell(p.ofCluster(cluster)) },
		Lost:    func(kind schema.GroupVersionResource) { tell(p.OfGroup(kind.Group)) },
	})
	return p, nil
}

// Outcome of publishing a target's cluster.
type Outcome struct {
	// Refusal is why the cluster is not published, or nil. A copy that was made
	// before stays: that a cluster cannot be asked does not mean that it is gone.
	Refusal *publication.Refusal
	// Again is when to look again at what no watch tells; 0 for never.
	Again time.Duration
}

// Publish brings the connection of a target's managed cluster to the target, and
// names it in the target's spec. It does nothing for a target that was given its
// connectionSecretRef.
func (p *Publisher) Publish(ctx context.Context, target *v1alpha1.KubernetesTarget) (Outcome, error) {
	key := publication.CopyKey(target)
	existing, err := p.copyOf(ctx, target)
	if err != nil {
		return Outcome{}, err
	}
	holder := holderOf(target, existing)
	if !publication.Wanted(target, holder) {
		p.Forget(client.ObjectKeyFromObject(target))
		if holder == publication.Ours && target.DeletionTimestamp == nil {
			return Outcome{}, p.withdraw(ctx, existing)
		}
		return Outcome{}, nil
	}
	p.follow(client.ObjectKeyFromObject(target), interest{group: publication.Kind(*target.Spec.ClusterRef).Group, secrets: []types.NamespacedName{key}})

	data, outcome, err := p.connection(ctx, target)
	if err != nil || outcome.Refusal != nil {
		if holder == publication.Ours && !publication.IsOf(target, existing) {
			err = errors.Join(err, p.withdraw(ctx, existing)) // it leads to the cluster that was named before
		}
		return outcome, err
	}
	switch holder {
	case publication.Predecessor:
		return Outcome{Again: leftoverAgain}, nil
	case publication.Others:
		return Outcome{Refusal: &publication.Refusal{Reason: v1alpha1.ReasonOwnershipConflict, Message: fmt.Sprintf(
			"secret %s exists and is not Portico's, so the connection of %s is not copied there; delete it, or name it in spec.connectionSecretRef",
			key.Name, publication.Title(*target.Spec.ClusterRef))}}, nil
	}
	err = p.write(ctx, target, existing, data)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return outcome, nil // the target goes too
	}
	if err != nil {
		return refused(target, err)
	}
	return outcome, p.refer(ctx, target, key.Name)
}

// Forget ends what is watched for a target.
func (p *Publisher) Forget(target types.NamespacedName) {
	p.watches.Release(target)
	p.forget(target)
}

// copyOf reads the Secret that has the copy's name, or nil. Only for a target
// that may have or get one is the hub asked.
func (p *Publisher) copyOf(ctx context.Context, target *v1alpha1.KubernetesTarget) (*corev1.Secret, error) {
	key := publication.CopyKey(target)
	if target.Spec.ClusterRef == nil {
		known := &metav1.PartialObjectMetadata{}
		known.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		if err := p.hub.Get(ctx, key, known); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
	}
	return p.secret(ctx, key)
}

// secret reads a Secret, or nil when there is none.
func (p *Publisher) secret(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := p.live.Get(ctx, key, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // none is an answer
		}
		return nil, fmt.Errorf("reading secret %s: %w", key, err)
	}
	return secret, nil
}

func holderOf(target *v1alpha1.KubernetesTarget, existing *corev1.Secret) publication.Holder {
	if existing == nil {
		return publication.Nobody // a nil pointer is not a nil interface
	}
	return publication.HolderOf(target, existing)
}

// connection reads the connection of the managed cluster that a target names.
func (p *Publisher) connection(ctx context.Context, target *v1alpha1.KubernetesTarget) (map[string][]byte, Outcome, error) {
	ref := *target.Spec.ClusterRef
	who := client.ObjectKeyFromObject(target)
	kind := publication.Kind(ref)
	mapping, err := p.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		p.watches.Release(who)
		return nil, Outcome{Again: kindAgain, Refusal: unknown(ref)}, nil
	}
	if err != nil {
		return nil, Outcome{}, fmt.Errorf("looking up kind %s: %w", kind, err)
	}
	at, refusal := publication.Key(target, mapping.Scope.Name() == meta.RESTScopeNameNamespace)
	if refusal != nil {
		p.watches.Release(who)
		return nil, Outcome{Refusal: refusal}, nil
	}
	wanted := interest{group: kind.Group, cluster: at, secrets: []types.NamespacedName{publication.CopyKey(target)}}
	p.follow(who, wanted)
	cluster, err := p.cluster(ctx, who, mapping.Resource, at)
	switch {
	case apierrors.IsForbidden(err):
		return nil, Outcome{Again: rightsAgain, Refusal: forbidden(ref, mapping.Resource, err)}, nil
	case apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return nil, Outcome{Again: kindAgain, Refusal: unknown(ref)}, nil
	case apierrors.IsNotFound(err):
		return nil, Outcome{Refusal: &publication.Refusal{Reason: v1alpha1.ReasonClusterMissing, Message: fmt.Sprintf(
			"%s %s, which spec.clusterRef names, does not exist", ref.Kind, ref.Name)}}, nil
	case err != nil:
		return nil, Outcome{}, fmt.Errorf("reading %s: %w", publication.Title(ref), err)
	}
	source, refusal := publication.Secret(cluster)
	if refusal != nil {
		return nil, Outcome{Refusal: refusal}, nil
	}
	wanted.secrets = append(wanted.secrets, source)
	p.follow(who, wanted)
	secret, err := p.secret(ctx, source)
	if err != nil {
		return nil, Outcome{}, err
	}
	data, refusal := publication.Data(cluster, source, secret)
	return data, Outcome{Refusal: refusal}, nil
}

// cluster reads a managed cluster, having made sure that its changes are told.
func (p *Publisher) cluster(ctx context.Context, who types.NamespacedName, kind schema.GroupVersionResource, at types.NamespacedName) (*unstructured.Unstructured, error) {
	if err := p.watches.Need(ctx, who, kind); err != nil {
		return nil, err
	}
	return p.dynamic.Resource(kind).Namespace(at.Namespace).Get(ctx, at.Name, metav1.GetOptions{})
}

// write makes the copy like the original.
func (p *Publisher) write(ctx context.Context, target *v1alpha1.KubernetesTarget, existing *corev1.Secret, data map[string][]byte) error {
	desired, changed := publication.Copy(target, existing, data)
	if !changed {
		return nil
	}
	owner := client.FieldOwner(v1alpha1.PublishManager)
	if existing == nil {
		if err := p.hub.Create(ctx, desired, owner); err != nil {
			return fmt.Errorf("creating secret %s: %w", desired.Name, err)
		}
		return nil
	}
	locked := client.MergeFromWithOptions(existing, client.MergeFromWithOptimisticLock{})
	if err := p.hub.Patch(ctx, desired, locked, owner); err != nil {
		return fmt.Errorf("updating secret %s: %w", desired.Name, err)
	}
	return nil
}

// refer names the copy in the target's spec.
func (p *Publisher) refer(ctx context.Context, target *v1alpha1.KubernetesTarget, name string) error {
	if target.Spec.ConnectionSecretRef != nil {
		return nil
	}
	before := target.DeepCopy()
	target.Spec.ConnectionSecretRef = &corev1.LocalObjectReference{Name: name}
	locked := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := p.hub.Patch(ctx, target, locked, client.FieldOwner(v1alpha1.PublishManager)); err != nil {
		return fmt.Errorf("naming secret %s in target %s: %w", name, client.ObjectKeyFromObject(target), err)
	}
	return nil
}

// withdraw deletes a copy that is no longer asked for.
func (p *Publisher) withdraw(ctx context.Context, existing *corev1.Secret) error {
	err := p.hub.Delete(ctx, existing, client.Preconditions{UID: &existing.UID, ResourceVersion: &existing.ResourceVersion})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting secret %s: %w", client.ObjectKeyFromObject(existing), err)
	}
	return nil
}

func unknown(ref v1alpha1.ClusterReference) *publication.Refusal {
	return &publication.Refusal{Reason: v1alpha1.ReasonUnknownKind, Message: fmt.Sprintf(
		"the hub does not know kind %s of %s; install its CustomResourceDefinition, or correct spec.clusterRef", ref.Kind, ref.APIVersion)}
}

// forbidden says which right is missing, and how to give it.
func forbidden(ref v1alpha1.ClusterReference, kind schema.GroupVersionResource, err error) *publication.Refusal {
	verb := "get"
	var refused *watches.Refused
	if errors.As(err, &refused) {
		verb = refused.Verb
	}
	role := "portico-" + kind.Resource
	return &publication.Refusal{Reason: v1alpha1.ReasonPermissionMissing, Message: fmt.Sprintf(
		"Portico may not %s %s to read %s; give it the right: "+
			"kubectl create clusterrole %s --verb=get,list,watch --resource=%s && kubectl label clusterrole %s %s=true",
		verb, kind.GroupResource(), publication.Title(ref), role, kind.GroupResource(), role, v1alpha1.AggregateToPorticoLabel)}
}

// refused tells of a copy that the hub's admission does not let in: waiting
// would not help, and its reason may.
func refused(target *v1alpha1.KubernetesTarget, err error) (Outcome, error) {
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		return Outcome{}, err
	}
	return Outcome{Again: kindAgain, Refusal: &publication.Refusal{Reason: v1alpha1.ReasonRefused, Message: fmt.Sprintf(
		"the connection of %s cannot be copied: %v", publication.Title(*target.Spec.ClusterRef), err)}}, nil
}
