package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	servertls "github.com/cert-manager/cert-manager/pkg/server/tls"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// defaultTrustDelay is the time from the injection of a CA until its certificate is
// presented. In this time all API servers observe the new caBundle. The delay is safe,
// because the certificate is renewed while a third of its life is left.
const defaultTrustDelay = 5 * time.Second

var expiry = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: "portico_serving_certificate_expiry_timestamp_seconds",
	Help: "Expiry of the webhook server's certificate, in seconds since the epoch.",
})

func init() { metrics.Registry.MustRegister(expiry) }

type gateOptions struct {
	// names are the names that API servers verify.
	names []string

	// requireTrust makes the replica unready while the configurations do not trust its
	// certificate. It is off if another component injects the CA: a delay of that
	// component must not make running replicas unready.
	requireTrust bool

	// trustDelay overrides defaultTrustDelay.
	trustDelay time.Duration

	clock clock.PassiveClock
}

// gate presents the certificate of its source. It presents a new certificate only when
// all webhook configurations trust its CA. Otherwise calls would fail between the
// signing of the certificate and the injection of its CA.
type gate struct {
	gateOptions
	source         servertls.CertificateSource
	configurations configurations

	mu           sync.Mutex
	presented    *tls.Certificate
	trustError   error // the reason why API servers refuse presented; nil if they trust it
	next         *tls.Certificate
	trustedSince time.Time // the first time at which next was trusted; zero if it is not
}

var _ Source = &gate{}

func newGate(source servertls.CertificateSource, configurations configurations, o gateOptions) *gate {
	if o.clock == nil {
		o.clock = clock.RealClock{}
	}
	return &gate{gateOptions: o, source: source, configurations: configurations, trustError: errors.New("not checked yet")}
}

// Start runs the source, and updates the presented certificate until ctx ends.
func (g *gate) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return g.source.Start(ctx) })
	group.Go(func() error {
		interval := min(time.Second, max(g.trustDelay/5, 10*time.Millisecond))
		wait.UntilWithContext(ctx, g.update, interval)
		return nil
	})
	return group.Wait()
}

// NeedLeaderElection is false: every replica serves.
func (g *gate) NeedLeaderElection() bool { return false }

// update compares the certificate of the source with the configurations, and presents
// it when they trust it.
func (g *gate) update(ctx context.Context) {
	next, err := g.source.GetCertificate(nil)
	if err != nil {
		return // there is no certificate yet, which Ready reports
	}
	log := klog.FromContext(ctx)
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	callers, unknown := g.configurations.callers(ctx)
	trust := func(certificate *tls.Certificate) error {
		if unknown != nil {
			return unknown
		}
		return trusted(certificate, g.names, callers, g.clock.Now())
	}

	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	nextTrust := trust(next)
	if next != g.next || nextTrust != nil {
		g.next, g.trustedSince = next, time.Time{}
	}
	if nextTrust == nil && g.trustedSince.IsZero() {
		g.trustedSince = now
	}
	if g.presented != nil && g.presented != next {
		g.trustError = trust(g.presented)
	}
	reason, ok := replaces(g.presented, g.trustError, nextTrust == nil && now.Sub(g.trustedSince) >= g.trustDelay, now)
	if g.presented == next {
		g.trustError = nextTrust
		return
	}
	if !ok {
		return
	}
	g.presented, g.trustError = next, nextTrust
	expiry.Set(float64(next.Leaf.NotAfter.Unix()))
	log.Info("Serving a new certificate", "reason", reason, "notAfter", next.Leaf.NotAfter, "serial", next.Leaf.SerialNumber.String())
}

// replaces decides whether a new certificate replaces the presented one, and returns
// the reason. settled means that the API servers have trusted the new certificate for
// the whole trustDelay.
func replaces(presented *tls.Certificate, distrust error, settled bool, now time.Time) (reason string, ok bool) {
	switch {
	case presented == nil:
		return "it is the first", true
	case settled:
		return "every caller trusts it", true
	case now.After(renewalDeadline(presented)):
		return "the previous one expires", true
	case distrust != nil:
		return "callers refuse the previous one", true
	}
	return "", false
}

// renewalDeadline is the beginning of the last tenth of a certificate's life. From then
// on, a new certificate is presented even if it is not trusted yet.
func renewalDeadline(certificate *tls.Certificate) time.Time {
	life := certificate.Leaf.NotAfter.Sub(certificate.Leaf.NotBefore)
	return certificate.Leaf.NotAfter.Add(-life / 10)
}

// GetCertificate returns the certificate to present.
func (g *gate) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	g.mu.Lock()
	presented := g.presented
	g.mu.Unlock()
	if presented == nil {
		return g.source.GetCertificate(hello)
	}
	return presented, nil
}

// Healthy reports whether there is a certificate to present.
func (g *gate) Healthy() bool { return g.source.Healthy() }

// Ready reports why the API server's calls would fail now.
func (g *gate) Ready(*http.Request) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.presented == nil {
		return servertls.ErrNotAvailable
	}
	if now := g.clock.Now(); now.After(g.presented.Leaf.NotAfter) {
		return fmt.Errorf("the serving certificate expired at %s", g.presented.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	if err := covers(g.presented, g.names); err != nil {
		return err
	}
	if g.requireTrust {
		return g.trustError
	}
	return nil
}
