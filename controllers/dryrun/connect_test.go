package dryrun

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/clusters/limits"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
	"github.com/portico-io/portico/policies/credentials"
)

// TestReadConnection reads the Secret of a connection from the API server once for each
// of its versions, and for each specification of its target.
func TestReadConnection(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "eu-1", UID: "s1"}, Data: map[string][]byte{
		v1alpha1.SecretEndpoint: []byte("https://127.0.0.1:1"), v1alpha1.SecretToken: []byte("first"),
	}}
	target := &v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "eu-1", UID: "t1"}}
	target.Spec.ConnectionSecretRef = &v1alpha1.SecretReference{Name: secret.Name}
	hub := fake.NewClientBuilder().WithScheme(reconcilertest.Scheme(t, v1alpha1.AddToScheme, corev1.AddToScheme)).WithObjects(secret, target).Build()
	var reads int
	var failure error
	live := interceptor.NewClient(hub, reconcilertest.Before(func(reconcilertest.Request) error {
		reads++
		return failure
	}))
	r := New(hub, live, clusters.NewDirectClients(time.Second, limits.Limits{}), Options{Rules: credentials.Rules{AllowLocal: true}})
	update := func(object client.Object, change func()) func() {
		return func() {
			change()
			if err := hub.Update(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, step := range []struct {
		reason string
		change func()
		fails  error
		reads  int
		token  string
	}{
		{reason: "The first dry run reads the Secret.", change: func() {}, reads: 1, token: "first"},
		{reason: "The second dry run does not read the Secret.", change: func() {}, token: "first"},
		{reason: "A changed Secret is read again.", change: update(secret, func() { secret.Data[v1alpha1.SecretToken] = []byte("second") }), reads: 1, token: "second"},
		{reason: "The Secret of a changed target is read again.", change: update(target, func() { target.Generation = 2 }), reads: 1, token: "second"},
		{reason: "A changed status of the target is no reason to read the Secret.", change: update(target, func() { target.Status.ServerVersion = "v1.36.3" }), token: "second"},
		{reason: "A failed read is tried again.", change: update(secret, func() { secret.Data[v1alpha1.SecretToken] = []byte("third") }), fails: errors.New("the hub is away"), reads: 1},
		{reason: "The result of the next read is kept.", change: func() {}, reads: 1, token: "third"},
		{reason: "The result is dropped with the target.", change: func() { r.Forget(client.ObjectKeyFromObject(target)) }, reads: 1, token: "third"},
	} {
		step.change()
		reads, failure = 0, step.fails
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(target), target); err != nil {
			t.Fatal(err)
		}
		config, refusal, err := r.readConnection(t.Context(), target)
		if !errors.Is(err, step.fails) || refusal != nil || reads != step.reads {
			t.Fatalf("%s %d reads, error %v, refusal %v", step.reason, reads, err, refusal)
		}
		if err == nil && config.Config.BearerToken != step.token {
			t.Errorf("%s The token is %q, want %q", step.reason, config.Config.BearerToken, step.token)
		}
	}
}
