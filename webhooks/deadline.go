package webhooks

import (
	"context"
	"net/http"
	"time"
)

// defaultTimeout applies to admission requests without ?timeout=.
const defaultTimeout = 10 * time.Second

// withDeadline limits a request to nine tenths of the API server's timeout, so that
// the response arrives before the API server gives up.
func withDeadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		timeout, err := time.ParseDuration(r.URL.Query().Get("timeout"))
		if err != nil || timeout <= 0 {
			timeout = defaultTimeout
		}
		ctx, cancel := context.WithTimeout(r.Context(), timeout/10*9)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
