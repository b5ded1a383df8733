package certmanager

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cmapi "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/cluster/install"
)

// TestCertManager renews Portico's certificate and replaces its CA with cert-manager's
// own controllers, while users apply objects.
func TestCertManager(t *testing.T) {
	hub := start(t)
	startCertManager(t, hub)
	p := installed(t, hub, install.Options{
		Manifests: "testdata",
		Args:      []string{"--certificate-secret=portico-serving"},
	})

	p.during(t, "three leaf renewals", func() {
		for range 3 {
			before := p.leaf(t)
			p.renew(t, "portico-serving")
			p.await(t, "the renewed leaf", func() bool { return p.leaf(t).SerialNumber.Cmp(before.SerialNumber) != 0 })
		}
	})
	p.during(t, "two CA rotations", func() {
		for range 2 {
			before, ca := p.leaf(t), p.secret(t, "portico-ca")
			p.renew(t, "portico-ca")
			p.await(t, "the new CA", func() bool { return p.secret(t, "portico-ca").ResourceVersion != ca.ResourceVersion })
			p.renew(t, "portico-serving")
			p.await(t, "a leaf of the new CA", func() bool {
				return string(p.leaf(t).AuthorityKeyId) != string(before.AuthorityKeyId)
			})
		}
	})
	p.checkPermissions(t)
}

// TestEmbedded does the same in the embedded mode, on a cluster without cert-manager.
func TestEmbedded(t *testing.T) {
	hub := start(t)
	// A certificate is renewed after two thirds of its time. The rest is for a busy machine.
	p := installed(t, hub, install.Options{Args: []string{"--leaf-duration=12s"}})

	p.during(t, "two leaf renewals", func() {
		for range 2 {
			before := p.leaf(t)
			p.await(t, "the renewed leaf", func() bool { return p.leaf(t).SerialNumber.Cmp(before.SerialNumber) != 0 })
		}
	})
	p.during(t, "three CA rotations", func() {
		for range 3 {
			before := p.leaf(t)
			if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
				ca := p.secret(t, "portico-ca")
				ca.Data = nil // the source fills an empty Secret
				return p.admin.Update(t.Context(), ca)
			}); err != nil {
				t.Fatal(err)
			}
			p.await(t, "a leaf of the new CA", func() bool {
				return string(p.leaf(t).AuthorityKeyId) != string(before.AuthorityKeyId)
			})
		}
	})
	p.checkPermissions(t)
}

// portico is an installation of Portico.
type portico struct {
	admin   client.Client
	manager *install.Manager
}

func start(t *testing.T) *cluster.Cluster {
	t.Helper()
	hub, err := cluster.Start(t.Context(), cluster.Options{
		Name:       "hub",
		Components: []cluster.Component{cluster.Etcd, cluster.APIServer, cluster.ControllerManager},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hub.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	return hub
}

func installed(t *testing.T, hub *cluster.Cluster, o install.Options) portico {
	t.Helper()
	manager, err := install.Portico(t.Context(), hub, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = manager.Kill9() })

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, cmapi.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	admin, err := client.New(hub.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return portico{admin: admin, manager: manager}
}

// during applies objects through Portico's webhooks while change runs, and for a short
// time afterwards. An API server keeps its connections open. So another client opens a
// new connection each time, with the CA in the webhook configurations at that moment.
// No request may be refused.
func (p portico) during(t *testing.T, what string, change func()) {
	t.Helper()
	p.await(t, "a first admitted apply", func() bool { return p.apply(t.Context()) == nil })

	callers := map[string]*caller{
		"applies":     {call: p.apply, every: 20 * time.Millisecond},
		"connections": {call: p.connect, every: 20 * time.Millisecond},
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, caller := range callers {
		running.Go(func() { caller.run(ctx) })
	}
	defer func() {
		time.Sleep(time.Second)
		stop()
		running.Wait()
		for name, caller := range callers {
			t.Logf("%s: %d of %d %s failed", what, len(caller.failures), caller.calls, name)
			if len(caller.failures) > 0 {
				t.Errorf("%s: %d of %d %s failed, the first with: %v", what, len(caller.failures), caller.calls, name, caller.failures[0])
			}
		}
	}()
	change()
}

type caller struct {
	call     func(context.Context) error
	every    time.Duration
	calls    int
	failures []error
}

func (c *caller) run(ctx context.Context) {
	for ; ctx.Err() == nil; c.calls++ {
		// A call that has begun is not cancelled.
		if err := c.call(context.Background()); err != nil {
			c.failures = append(c.failures, err)
		}
		time.Sleep(c.every)
	}
}

// apply applies a remote Deployment as a dry run, through every webhook.
func (p portico) apply(ctx context.Context) error {
	labels := map[string]string{"app": "web"}
	return p.admin.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "web-", Namespace: metav1.NamespaceDefault,
			Labels: map[string]string{"workload.crossplane.io/schedule": "remote"}},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
			},
		},
	}, client.DryRunAll)
}

// connect verifies the certificate with the CA in each configuration. It tries again if
// the CA changed meanwhile.
func (p portico) connect(ctx context.Context) error {
	bundles, err := p.bundles(ctx)
	for err == nil {
		failed := p.connectWith(ctx, bundles)
		if failed == nil {
			return nil
		}
		before := bundles
		if bundles, err = p.bundles(ctx); err == nil && slices.EqualFunc(before, bundles, bytes.Equal) {
			return failed
		}
	}
	return err
}

// bundles returns the CAs in the configurations.
func (p portico) bundles(ctx context.Context) ([][]byte, error) {
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	for _, configuration := range []client.Object{&mutating, &validating} {
		if err := p.admin.Get(ctx, client.ObjectKey{Name: "portico"}, configuration); err != nil {
			return nil, err
		}
	}
	bundles := [][]byte{mutating.Webhooks[0].ClientConfig.CABundle, validating.Webhooks[0].ClientConfig.CABundle}
	if bytes.Equal(bundles[0], bundles[1]) {
		bundles = bundles[:1]
	}
	return bundles, nil
}

func (p portico) connectWith(ctx context.Context, bundles [][]byte) error {
	for _, bundle := range bundles {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(bundle)
		connection, err := p.dial(ctx, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12})
		if err != nil {
			return err
		}
		_ = connection.Close()
	}
	return nil
}

func (p portico) dial(ctx context.Context, config *tls.Config) (*tls.Conn, error) {
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: config}
	connection, err := dialer.DialContext(ctx, "tcp", strings.TrimPrefix(p.manager.WebhookURL(), "https://"))
	if err != nil {
		return nil, fmt.Errorf("connecting to Portico: %w", err)
	}
	conn, ok := connection.(*tls.Conn)
	if !ok {
		return nil, errors.New("not a TLS connection")
	}
	return conn, nil
}

// leaf returns the presented certificate.
func (p portico) leaf(t *testing.T) *x509.Certificate {
	t.Helper()
	connection, err := p.dial(t.Context(), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // looks at the certificate, sends nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	return connection.ConnectionState().PeerCertificates[0]
}

func (p portico) secret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := p.admin.Get(t.Context(), client.ObjectKey{Namespace: install.Namespace, Name: name}, secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

// renew requests a new certificate, as `cmctl renew` does.
func (p portico) renew(t *testing.T, name string) {
	t.Helper()
	certificate := &cmapi.Certificate{}
	issued := func() bool { // and reads it
		if err := p.admin.Get(t.Context(), client.ObjectKey{Namespace: install.Namespace, Name: name}, certificate); err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(certificate.Status.Conditions, func(c cmapi.CertificateCondition) bool {
			return c.Type == cmapi.CertificateConditionIssuing && c.Status == cmmeta.ConditionTrue
		})
	}
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		p.await(t, name+" to be issued", issued)
		now := metav1.Now()
		certificate.Status.Conditions = append(slices.DeleteFunc(certificate.Status.Conditions, func(c cmapi.CertificateCondition) bool {
			return c.Type == cmapi.CertificateConditionIssuing
		}), cmapi.CertificateCondition{
			Type: cmapi.CertificateConditionIssuing, Status: cmmeta.ConditionTrue,
			Reason: "ManuallyTriggered", Message: "Certificate re-issuance manually triggered", LastTransitionTime: &now,
		})
		return p.admin.Status().Update(t.Context(), certificate)
	}); err != nil {
		t.Fatal(err)
	}
}

// checkPermissions searches the manager's log for denied requests: the installed roles
// must be sufficient.
func (p portico) checkPermissions(t *testing.T) {
	t.Helper()
	log, err := os.ReadFile(filepath.Clean(p.manager.LogFile()))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "forbidden") {
			t.Errorf("the manager lacks a permission: %s", line)
		}
	}
}

func (p portico) await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v (the manager's log is %s)", what, err, p.manager.LogFile())
	}
}
