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

// defaultTrustDelay is how long a configuration has trusted a certificate before it is
// served. We see a new caBundle no earlier than the API servers do, but each of
// them follows its own watch, and their clocks differ from ours. Waiting is
// safe: the certificate in use is replaced while a third of its life is left.
const defaultTrustDelay = 5 * time.Second

var expiry = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: "portico_serving_certificate_expiry_timestamp_seconds",
	Help: "When the certificate that the webhook server presents expires, in seconds since the epoch.",
})

func init() { metrics.Registry.MustRegister(expiry) }

type gateOptions struct {
	// names that callers verify.
	names []string

	// requireTrust makes readiness depend on the configurations. It is off when
	// somebody else injects the CA: what they have yet to do must not take
	// running replicas out of service.
	requireTrust bool

	// trustDelay overrides how long a new certificate is held back once trusted.
	trustDelay time.Duration

	clock clock.PassiveClock
}

// gate presents what its source issues, but holds a new certificate back until
// everyone who may call us trusts it. Without it, a rotated CA fails the calls
// that arrive between the signing of a leaf and the injection of its CA.
type gate struct {
	gateOptions
	source         servertls.CertificateSource
	configurations configurations

	mu           sync.Mutex
	presented    *tls.Certificate
	trustError   error // why callers would refuse presented, nil when none does
	next         *tls.Certificate
	trustedSince time.Time // when next was first seen trusted, zero when it is not
}

var _ Source = &gate{}

func newGate(source servertls.CertificateSource, configurations configurations, o gateOptions) *gate {
	if o.clock == nil {
		o.clock = clock.RealClock{}
	}
	return &gate{gateOptions: o, source: source, configurations: configurations, trustError: errors.New("not checked yet")}
}

// Start runs the source and keeps deciding what to present until ctx ends.
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

// update looks at what the source issued last and at who would trust it, and
// presents it when the time has come.
func (g *gate) update(ctx context.Context) {
	next, err := g.source.GetCertificate(nil)
	if err != nil {
		return // not issued yet; Ready says so
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

// replaces decides whether a new certificate takes the place of the presented
// one, and says why. settled means that callers have trusted the new one for
// long enough.
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

// renewalDeadline is when a certificate is so near its end that anything newer is
// better: the last tenth of its life.
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
