package serving

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/test/apiserver"
)

const namespace = "portico-system"

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	os.Exit(m.Run())
}

// TestRotation renews certificates and CAs while requests pass a webhook, each on its
// own connection. No request may fail.
func TestRotation(t *testing.T) {
	cfg := apiserver.Start(t)
	cluster, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	create(t, cluster, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})

	t.Run("Embedded", func(t *testing.T) {
		options := Options{Namespace: namespace, Names: []string{"127.0.0.1", "portico-webhook.portico-system.svc"},
			LeafDuration: 9 * time.Second, CADuration: time.Hour} // the last third is for a busy machine
		h := serve(t, cfg, cluster, map[string]string{"cert-manager.io/inject-ca-from-secret": namespace + "/" + DefaultCASecret}, options)
		replica := run(t, cfg, options) // it has the same CA, and every replica injects the CA
		h.await(t, "the other replica", func() bool { return replica.Ready(nil) == nil })

		h.during(t, "leaf renewals", func() { h.awaitNewLeaves(t, 2) })
		h.during(t, "CA rotations", func() {
			for range 3 {
				before := h.issuer(t)
				secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: DefaultCASecret}}
				if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
					if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
						return err
					}
					secret.Data = nil // then the source makes a new CA
					return cluster.Update(t.Context(), secret)
				}); err != nil {
					t.Fatal(err)
				}
				h.await(t, "a leaf of the new CA", func() bool { return h.issuer(t) != before })
			}
		})
		h.await(t, "both replicas to use one authority", func() bool {
			certificate, err := replica.GetCertificate(nil)
			return err == nil && string(certificate.Leaf.AuthorityKeyId) == h.issuer(t)
		})
	})

	t.Run("Secret", func(t *testing.T) {
		const name = "portico-serving"
		authority := newCA(t, time.Now())
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: corev1.SecretTypeTLS}
		issue := func(by ca) {
			t.Helper()
			certificate, key := by.leafPEM(t, time.Now().Add(-time.Minute))
			secret.Data = map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key}
			if secret.ResourceVersion == "" {
				create(t, cluster, secret)
			} else if err := cluster.Update(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
		}
		issue(authority)
		h := serve(t, cfg, cluster, nil, Options{Namespace: namespace, CertificateSecret: name})
		h.inject(t, authority.pem)

		h.during(t, "leaf renewals", func() {
			for range 2 {
				before := h.serial(t)
				issue(authority)
				h.await(t, "the new leaf", func() bool { return h.serial(t) != before })
			}
		})
		h.during(t, "CA rotation, injected late", func() {
			newer := newCA(t, time.Now())
			before := h.serial(t)
			issue(newer)
			time.Sleep(2 * time.Second) // a slow injector
			if h.serial(t) != before {
				t.Error("a leaf is presented that callers do not trust yet")
			}
			h.inject(t, append(authority.pem, newer.pem...))
			h.await(t, "a leaf of the new CA", func() bool { return h.serial(t) != before })
		})
		h.during(t, "a Secret that breaks", func() {
			before := h.serial(t)
			secret.Data[corev1.TLSCertKey] = []byte("not a certificate")
			if err := cluster.Update(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if h.serial(t) != before {
				t.Error("the last usable certificate must stay")
			}
		})
	})
}

// harness is a webhook server with a certificate source, and webhook configurations
// that select labelled ConfigMaps.
type harness struct {
	cluster client.Client
	source  Source
	address string
}

func run(t *testing.T, cfg *rest.Config, o Options) Source {
	t.Helper()
	source, err := New(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	source.(*gate).trustDelay = min(source.(*gate).trustDelay, time.Second) // one API server has one clock
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- source.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Errorf("the source stopped with: %v", err)
		}
	})
	return source
}

func serve(t *testing.T, cfg *rest.Config, cluster client.Client, annotations map[string]string, o Options) harness {
	t.Helper()
	source := run(t, cfg, o)

	server := httptest.NewUnstartedServer(http.HandlerFunc(allow))
	server.TLS = &tls.Config{GetCertificate: source.GetCertificate, MinVersion: tls.VersionTLS12}
	server.Config.SetKeepAlivesEnabled(false)
	// httptest has a certificate of its own for clients without a server name.
	listener := tls.NewListener(server.Listener, server.TLS)
	go func() { _ = server.Config.Serve(listener) }()
	t.Cleanup(func() { _ = server.Config.Close() })

	h := harness{cluster: cluster, source: source, address: listener.Addr().String()}
	meta := metav1.ObjectMeta{Name: DefaultConfiguration, Annotations: annotations}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.MutatingWebhook{{
		Name: "hold.example.org", ClientConfig: h.clientConfig("/mutate"), Rules: rules, ObjectSelector: selector,
		SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
	}}}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: "judge.example.org", ClientConfig: h.clientConfig("/validate"), Rules: rules, ObjectSelector: selector,
		SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
	}}}
	for _, configuration := range []client.Object{mutating, validating} {
		create(t, cluster, configuration)
		t.Cleanup(func() {
			if err := cluster.Delete(context.Background(), configuration); err != nil {
				t.Error(err)
			}
		})
	}
	return h
}

var (
	selector = &metav1.LabelSelector{MatchLabels: map[string]string{"judge": "me"}}
	rules    = []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}}
)

func (h harness) clientConfig(path string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://" + h.address + path)}
}

func allow(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	answer, err := json.Marshal(review)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(answer)
}

// request sends one object through both webhooks.
func (h harness) request(ctx context.Context) error {
	return h.cluster.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: metav1.NamespaceDefault, GenerateName: "judged-", Labels: map[string]string{"judge": "me"},
	}}, client.DryRunAll)
}

// during sends requests while change runs, and for a short time afterwards.
func (h harness) during(t *testing.T, what string, change func()) {
	t.Helper()
	h.await(t, "readiness", func() bool { return h.source.Ready(nil) == nil })
	h.await(t, "a first admitted request", func() bool { return h.request(t.Context()) == nil })

	ctx, stop := context.WithCancel(context.Background())
	result := make(chan string, 1)
	var failures int
	var last error
	go func() {
		calls := 0
		for ; ctx.Err() == nil; calls++ {
			if err := h.request(context.Background()); err != nil {
				failures, last = failures+1, err
			}
			time.Sleep(5 * time.Millisecond)
		}
		result <- fmt.Sprintf("%d of %d requests failed", failures, calls)
	}()
	defer func() {
		time.Sleep(500 * time.Millisecond)
		stop()
		summary := <-result
		t.Logf("%s: %s", what, summary)
		if failures > 0 {
			t.Errorf("%s: %s, the last with: %v", what, summary, last)
		}
	}()
	change()
}

func (h harness) await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return condition(), nil
	}); err != nil {
		t.Fatalf("waiting for %s: %v (ready: %v)", what, err, h.source.Ready(nil))
	}
}

func (h harness) awaitNewLeaves(t *testing.T, n int) {
	t.Helper()
	for range n {
		before := h.serial(t)
		h.await(t, "a new leaf", func() bool { return h.serial(t) != before })
	}
}

// presented returns the presented certificate.
func (h harness) presented(t *testing.T) *tls.Certificate {
	t.Helper()
	connection, err := tls.DialWithDialer(&net.Dialer{Timeout: 5 * time.Second}, "tcp", h.address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // looks at the certificate, sends nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	return &tls.Certificate{Leaf: connection.ConnectionState().PeerCertificates[0]}
}

func (h harness) serial(t *testing.T) string { return h.presented(t).Leaf.SerialNumber.String() }

// issuer returns the key ID of the CA, because all CAs have the same name.
func (h harness) issuer(t *testing.T) string { return string(h.presented(t).Leaf.AuthorityKeyId) }

func (h harness) inject(t *testing.T, bundle []byte) {
	t.Helper()
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	if err := h.cluster.Get(t.Context(), client.ObjectKey{Name: DefaultConfiguration}, &mutating); err != nil {
		t.Fatal(err)
	}
	mutating.Webhooks[0].ClientConfig.CABundle = bundle
	if err := h.cluster.Update(t.Context(), &mutating); err != nil {
		t.Fatal(err)
	}
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	if err := h.cluster.Get(t.Context(), client.ObjectKey{Name: DefaultConfiguration}, &validating); err != nil {
		t.Fatal(err)
	}
	validating.Webhooks[0].ClientConfig.CABundle = bundle
	if err := h.cluster.Update(t.Context(), &validating); err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, cluster client.Client, object client.Object) {
	t.Helper()
	if err := cluster.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}
