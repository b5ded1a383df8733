package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/portico-io/portico/webhooks/serving"
)

// gracefulContext returns a context that ends after a delay when stop ends. The
// returned flag is true during the delay. API servers still call the webhooks until the
// endpoint is removed from their lists.
func gracefulContext(stop context.Context, delay time.Duration) (context.Context, *atomic.Bool) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(stop))
	draining := &atomic.Bool{}
	go func() {
		<-stop.Done()
		draining.Store(true)
		ctrl.Log.Info("Stopping", "delay", delay)
		time.Sleep(delay)
		cancel()
	}()
	return ctx, draining
}

// addChecks adds /healthz and /readyz. A replica is ready when its certificate is
// trusted, its caches are synced, its policies and kinds are loaded, and it is not shutting down.
func addChecks(mgr ctrl.Manager, certificates serving.Source, s *shared, draining *atomic.Bool) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding a health check: %w", err)
	}
	for name, check := range map[string]healthz.Checker{
		"certificate": certificates.Ready,
		"policies":    s.loader.Ready,
		"kinds":       s.kinds.Ready,
		"webhooks":    mgr.GetWebhookServer().StartedChecker(),
		"caches": func(req *http.Request) error {
			ctx, cancel := context.WithTimeout(req.Context(), time.Second)
			defer cancel()
			if !mgr.GetCache().WaitForCacheSync(ctx) {
				return errors.New("caches are not synced")
			}
			return nil
		},
		"shutdown": func(*http.Request) error {
			if draining.Load() {
				return errors.New("shutting down")
			}
			return nil
		},
	} {
		if err := mgr.AddReadyzCheck(name, check); err != nil {
			return fmt.Errorf("adding readiness check %s: %w", name, err)
		}
	}
	return nil
}
