package webhooks

import (
	"context"
	"net/http"
	"time"
)

// unasked is how long an API server waits that does not say how long it waits.
const unasked = 10 * time.Second

// budget gives a request nine tenths of the time that the API server waits for
// its answer, so that what a person reads is an answer.
func budget(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		waits, err := time.ParseDuration(r.URL.Query().Get("timeout"))
		if err != nil || waits <= 0 {
			waits = unasked
		}
		ctx, cancel := context.WithTimeout(r.Context(), waits/10*9)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
