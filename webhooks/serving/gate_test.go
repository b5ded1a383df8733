package serving

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"testing"
	"time"

	servertls "github.com/cert-manager/cert-manager/pkg/server/tls"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// ca is a CA for tests.
type ca struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newCA(t testing.TB, notBefore time.Time) ca {
	t.Helper()
	key, der := sign(t, &x509.Certificate{
		SerialNumber:          big.NewInt(notBefore.UnixNano()),
		Subject:               pkix.Name{CommonName: "test-ca"},
		NotBefore:             notBefore.Add(-time.Hour),
		NotAfter:              notBefore.Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}, nil)
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return ca{certificate: certificate, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// leaf returns a certificate that is valid for ten hours from a time.
func (c ca) leaf(t testing.TB, from time.Time) *tls.Certificate {
	t.Helper()
	certPEM, keyPEM := c.leafPEM(t, from)
	out, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return &out
}

func (c ca) leafPEM(t testing.TB, from time.Time) (certificate, key []byte) {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	_, ips := splitNames([]string{"127.0.0.1"})
	leafKey, der := sign(t, &x509.Certificate{
		SerialNumber: serial,
		NotBefore:    from,
		NotAfter:     from.Add(10 * time.Hour),
		DNSNames:     []string{"portico-webhook.portico-system.svc"},
		IPAddresses:  ips,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, &c)
	keyDER, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

func sign(t testing.TB, template *x509.Certificate, by *ca) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.certificate, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	return key, der
}

func TestReplaces(t *testing.T) {
	presented := newCA(t, epoch).leaf(t, epoch)
	refused := errors.New("refused")

	cases := map[string]struct {
		reason     string
		presented  *tls.Certificate
		trustError error
		settled    bool
		now        time.Time
		want       bool
	}{
		"First": {
			reason: "Without an earlier certificate, the first one is presented.",
			now:    epoch,
			want:   true,
		},
		"NotTrustedYet": {
			reason:    "A certificate that API servers would refuse waits while the earlier one works.",
			presented: presented,
			now:       epoch.Add(7 * time.Hour),
		},
		"Trusted": {
			reason:    "A certificate that all callers have trusted for long enough is presented.",
			presented: presented,
			settled:   true,
			now:       epoch.Add(7 * time.Hour),
			want:      true,
		},
		"LastMinute": {
			reason:    "A certificate that is not trusted yet is better than one that is about to expire.",
			presented: presented,
			now:       epoch.Add(9*time.Hour + time.Minute),
			want:      true,
		},
		"OldOneRefused": {
			reason:     "If API servers refuse the earlier certificate, the new one is presented.",
			presented:  presented,
			trustError: refused,
			now:        epoch.Add(time.Hour),
			want:       true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, got := replaces(tc.presented, tc.trustError, tc.settled, tc.now); got != tc.want {
				t.Errorf("\n%s\nreplaces(...): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

func TestTrusted(t *testing.T) {
	ours, other := newCA(t, epoch), newCA(t, epoch.Add(time.Second))
	leaf := ours.leaf(t, epoch)
	bundle := func(cas ...ca) []byte {
		var out []byte
		for _, ca := range cas {
			out = append(out, ca.pem...)
		}
		return out
	}

	unknown := x509.UnknownAuthorityError{}
	invalid := x509.CertificateInvalidError{}
	hostname := x509.HostnameError{}
	cases := map[string]struct {
		reason  string
		names   []string
		callers []caller
		now     time.Time
		want    error // nil if it is trusted; otherwise compared by type or identity
	}{
		"NoCallers": {
			reason: "Without configurations there are no callers.",
			now:    epoch,
		},
		"InBundle": {
			reason:  "The CA may be anywhere in a bundle.",
			callers: []caller{{webhook: "a", caBundle: bundle(other, ours)}},
			now:     epoch,
		},
		"NotInjected": {
			reason:  "A new configuration has an empty bundle.",
			callers: []caller{{webhook: "a", caBundle: nil}},
			now:     epoch,
			want:    errNoBundle,
		},
		"OneOfTwo": {
			reason:  "The injector writes one configuration after the other, and all have to trust the CA.",
			callers: []caller{{webhook: "a", caBundle: bundle(ours)}, {webhook: "b", caBundle: bundle(other)}},
			now:     epoch,
			want:    unknown,
		},
		"OurNames": {
			reason:  "API servers call by name or by address, and the certificate covers both.",
			names:   []string{"portico-webhook.portico-system.svc", "127.0.0.1"},
			callers: []caller{{webhook: "a", caBundle: bundle(ours)}},
			now:     epoch,
		},
		"OtherName": {
			reason: "A certificate for another name fails every call.",
			names:  []string{"portico-webhook.elsewhere.svc"},
			now:    epoch,
			want:   hostname,
		},
		"NotYetValid": {
			reason:  "API servers refuse a certificate that is not valid yet.",
			callers: []caller{{webhook: "a", caBundle: bundle(ours)}},
			now:     epoch.Add(-time.Minute),
			want:    invalid,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := trusted(leaf, tc.names, tc.callers, tc.now)
			var ok bool
			switch {
			case tc.want == nil:
				ok = got == nil
			case errors.Is(tc.want, unknown):
				ok = errors.As(got, &x509.UnknownAuthorityError{})
			case errors.Is(tc.want, hostname):
				ok = errors.As(got, &x509.HostnameError{})
			case errors.Is(tc.want, invalid):
				ok = errors.As(got, &x509.CertificateInvalidError{})
			default:
				ok = errors.Is(got, tc.want)
			}
			if !ok {
				t.Errorf("\n%s\ntrusted(...): want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

// issued is a certificate source with a given certificate.
type issued struct{ certificate *tls.Certificate }

func (i *issued) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if i.certificate == nil {
		return nil, servertls.ErrNotAvailable
	}
	return i.certificate, nil
}
func (i *issued) Start(context.Context) error { return nil }
func (i *issued) Healthy() bool               { return i.certificate != nil }

// TestGate follows one rotation of the CA.
func TestGate(t *testing.T) {
	ctx := t.Context()
	clock := testingclock.NewFakePassiveClock(epoch)
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: DefaultConfiguration},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{{Name: "hold.example.org"}},
	}
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(configuration).Build()
	inject := func(bundle ...byte) {
		t.Helper()
		configuration.Webhooks[0].ClientConfig.CABundle = bundle
		if err := cluster.Update(ctx, configuration); err != nil {
			t.Fatal(err)
		}
	}
	source := &issued{}
	g := newGate(source, configurations{reader: client.Reader(cluster), name: DefaultConfiguration, definition: DefaultDefinition},
		gateOptions{requireTrust: true, trustDelay: 5 * time.Second, clock: clock})

	step := func(what string, want *tls.Certificate, ready bool) {
		t.Helper()
		g.update(ctx)
		got, err := g.GetCertificate(nil)
		if want != nil && err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got != want {
			t.Errorf("%s: the wrong certificate is presented", what)
		}
		if err := g.Ready(nil); (err == nil) != ready {
			t.Errorf("%s: want ready %t, got %v", what, ready, err)
		}
	}

	oldCA, newerCA := newCA(t, epoch), newCA(t, epoch.Add(time.Second))
	first, second := oldCA.leaf(t, epoch), newerCA.leaf(t, epoch)

	step("nothing is issued", nil, false)
	source.certificate = first
	step("the first is presented before it is trusted", first, false)
	inject(oldCA.pem...)
	step("the CA is injected", first, true)
	source.certificate = second
	step("the CA rotates, and the new leaf waits", first, true)
	inject(append(oldCA.pem, newerCA.pem...)...)
	step("the new CA is injected, and the leaf settles", first, true)
	clock.SetTime(epoch.Add(5 * time.Second))
	step("the leaf has settled", second, true)
	if got, want := exportedExpiry(t), float64(second.Leaf.NotAfter.Unix()); got != want {
		t.Errorf("the metric says that the certificate expires at %.0f, and it does at %.0f", got, want)
	}
	inject(oldCA.pem...)
	step("the CA is removed", second, false)
	clock.SetTime(epoch.Add(11 * time.Hour))
	inject(newerCA.pem...)
	step("it has expired", second, false)
}

func TestSourceNeedsNoLeader(t *testing.T) {
	if (&gate{}).NeedLeaderElection() {
		t.Error("every replica serves webhooks, so every replica needs a certificate")
	}
}

func exportedExpiry(t *testing.T) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "portico_serving_certificate_expiry_timestamp_seconds" {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("there is no metric for the certificate's expiry")
	return 0
}
