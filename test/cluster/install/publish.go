package install

import (
	"bytes"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/test/cluster"
)

// targetUser is the user name of Portico on a target.
const targetUser = "portico"

// Publish publishes a target cluster to a namespace of the hub: it creates a Secret
// with a kubeconfig, and a KubernetesTarget with the name of the cluster and the
// labels. It returns when the target is ready.
func Publish(ctx context.Context, hub, target *cluster.Cluster, namespace string, labels map[string]string) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	onHub, err := client.New(hub.Config(), client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	onTarget, err := client.New(target.Config(), client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	if err := grant(ctx, onTarget); err != nil {
		return fmt.Errorf("granting Portico its rights on %s: %w", target.Name(), err)
	}
	secret := client.ObjectKey{Namespace: namespace, Name: target.Name() + "-connection"}
	if err := connect(ctx, onHub, secret, target); err != nil {
		return fmt.Errorf("storing the connection to %s: %w", target.Name(), err)
	}

	published := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"connectionSecretRef": map[string]any{"name": secret.Name}},
	}}
	published.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("KubernetesTarget"))
	published.SetNamespace(namespace)
	published.SetName(target.Name())
	published.SetLabels(labels)
	if err := onHub.Apply(ctx, client.ApplyConfigurationFromUnstructured(published), fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("publishing %s: %w", target.Name(), err)
	}
	return cluster.Poll(ctx, timeout, "target "+target.Name(), func(ctx context.Context) error {
		var current v1alpha1.KubernetesTarget
		if err := onHub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: target.Name()}, &current); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(current.Status.Conditions, v1alpha1.Ready)
		if ready == nil {
			return fmt.Errorf("Portico has not reported the object yet")
		}
		if ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != current.Generation {
			return fmt.Errorf("it is not ready: %s: %s", ready.Reason, ready.Message)
		}
		return nil
	})
}

// grant makes Portico an administrator of a target.
func grant(ctx context.Context, target client.Client) error {
	err := target.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: targetUser},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: targetUser}},
	})
	return client.IgnoreAlreadyExists(err)
}

// connect stores a kubeconfig for the target on the hub, unless there is one for the
// same target: a new credential would replace the connection.
func connect(ctx context.Context, hub client.Client, key client.ObjectKey, target *cluster.Cluster) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	err := hub.Get(ctx, key, secret)
	if err == nil && leadsTo(secret.Data[v1alpha1.SecretKubeconfig], target.Config()) {
		return nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	user, err := target.AddUser(targetUser)
	if err != nil {
		return err
	}
	_, err = controllerutil.CreateOrUpdate(ctx, hub, secret, func() error {
		secret.Data = map[string][]byte{v1alpha1.SecretKubeconfig: user.Kubeconfig}
		return nil
	})
	return err
}

func leadsTo(kubeconfig []byte, want *rest.Config) bool {
	got, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	return err == nil && got.Host == want.Host && bytes.Equal(got.CAData, want.CAData)
}
