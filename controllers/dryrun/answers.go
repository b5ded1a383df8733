package dryrun

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/controllers/clusters"
)

// answerLifetime is the lifetime of an answer of a target. No event reports a change of Pod
// Security, of a quota, of a cluster-scoped object, or of a webhook of the target.
const answerLifetime = 10 * time.Second

// targetAnswers keeps the answers of targets about Pods and cluster-scoped objects. Many
// Deployments that are applied together then need one dry run of a Pod.
type targetAnswers struct {
	lifetime time.Duration

	mu    sync.Mutex
	until map[targetAnswer]time.Time
}

// targetAnswer is an answer of a target, to the user of a connection, for a namespace or
// for the whole target.
type targetAnswer struct {
	connection *clusters.DirectClient
	namespace  string
	// answer is a constant below, the digest of a Pod that the target accepts, or a fact about
	// a cluster-scoped object.
	answer string
}

const (
	// mayNotCreatePods says that the user has no right to create Pods.
	mayNotCreatePods = "may not create Pods"
	// hasQuota says that the namespace has a ResourceQuota, or that the user may not list
	// ResourceQuotas. With a quota the next Pod may be refused.
	hasQuota = "has a quota"
	// hasNoQuota says that the namespace has no ResourceQuota.
	hasNoQuota = "has no quota"
)

func (a *targetAnswers) has(answer targetAnswer) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Now().Before(a.until[answer])
}

func (a *targetAnswers) add(answer targetAnswer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(a.until, func(_ targetAnswer, until time.Time) bool { return !now.Before(until) })
	if a.until == nil {
		a.until = map[targetAnswer]time.Time{}
	}
	a.until[answer] = now.Add(a.lifetime)
}

// tryPod creates a Pod as a dry run, unless the answer is known. digest stands for Pods
// with the same answer.
func (a *targetAnswers) tryPod(ctx context.Context, connection *clusters.DirectClient, pod *unstructured.Unstructured, digest string, options ...client.CreateOption) error {
	of := func(answer string) targetAnswer { return targetAnswer{connection, pod.GetNamespace(), answer} }
	if a.has(of(mayNotCreatePods)) || a.has(of(digest)) && a.noQuota(ctx, connection, pod.GetNamespace()) {
		return nil
	}
	err := connection.Create(ctx, pod, options...)
	switch {
	case err == nil:
		a.add(of(digest))
	case isRightMissing(err):
		a.add(of(mayNotCreatePods))
	}
	return err
}

// noQuota tells whether a namespace of a target has no ResourceQuota.
func (a *targetAnswers) noQuota(ctx context.Context, connection *clusters.DirectClient, namespace string) bool {
	of := func(answer string) targetAnswer { return targetAnswer{connection, namespace, answer} }
	if a.has(of(hasNoQuota)) {
		return true
	}
	if a.has(of(hasQuota)) {
		return false
	}
	quotas := &metav1.PartialObjectMetadataList{}
	quotas.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ResourceQuotaList"))
	err := connection.List(ctx, quotas, client.InNamespace(namespace), client.Limit(1))
	switch {
	case err == nil && len(quotas.Items) == 0:
		a.add(of(hasNoQuota))
		return true
	case err == nil || apierrors.IsForbidden(err):
		a.add(of(hasQuota))
	}
	return false
}

// podDigest is a digest of a Pod without its name and without the labels by which its
// owner selects the Pod. The Pods of two Deployments always differ in name and labels.
func podDigest(pod, owner *unstructured.Unstructured) string {
	labels := pod.GetLabels()
	selected, _, _ := unstructured.NestedStringMap(owner.Object, "spec", "selector", "matchLabels")
	for name := range selected {
		delete(labels, name)
	}
	data, err := json.Marshal([]any{pod.Object["spec"], pod.GetAnnotations(), labels, len(selected)})
	if err != nil {
		return pod.GetName()
	}
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}
