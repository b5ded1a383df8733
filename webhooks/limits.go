package webhooks

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/lru"
)

// Limit is the maximum rate of an action on this replica. The zero value is no limit.
type Limit struct {
	// QPS is the average number per second.
	QPS float32
	// Burst is the maximum number at once.
	Burst int
}

// Limits bound the requests that admission requests lead to. Anyone who reaches
// the webhook port can post an admission request, with any user name in it.
type Limits struct {
	// DryRunsOfUser holds for the dry runs of one user on one target,
	// DryRunsOnTarget for those of all users. A dry run above a limit is left out,
	// with a warning.
	DryRunsOfUser, DryRunsOnTarget Limit
	// AccessReviewsOfUser holds for the SubjectAccessReviews about one user,
	// AccessReviews for those about all users. A request above a limit is refused
	// with "too many requests".
	AccessReviewsOfUser, AccessReviews Limit
}

// maxLimiterKeys is the number of token buckets of a limiter. The bucket that was not
// used for the longest time is dropped first. Its user or target then has a full burst.
const maxLimiterKeys = 4096

// limiter keeps a token bucket for each key.
type limiter struct {
	limit   Limit
	now     func() time.Time
	mu      sync.Mutex
	buckets *lru.Cache // of *rate.Limiter, by the digest of a key
}

func newLimiter(limit Limit) *limiter {
	return &limiter{limit: limit, now: time.Now, buckets: lru.New(maxLimiterKeys)}
}

// allow takes a token of a key, if one is left.
func (l *limiter) allow(key ...string) bool {
	if l.limit == (Limit{}) {
		return true
	}
	// Digests have the same size, however long a user name is.
	digest := sha256.Sum256(fmt.Appendf(nil, "%q", key))
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket, ok := l.buckets.Get(digest)
	if !ok {
		bucket = rate.NewLimiter(rate.Limit(l.limit.QPS), l.limit.Burst)
		l.buckets.Add(digest, bucket)
	}
	return bucket.(*rate.Limiter).AllowN(l.now(), 1)
}

// dryRunLimits are the limits of dry runs.
type dryRunLimits struct{ ofUser, onTarget *limiter }

func (l dryRunLimits) allow(user, namespace, target string) bool {
	return l.ofUser.allow(user, namespace, target) && l.onTarget.allow(namespace, target)
}

// limitedHub is a hub with a limit on access reviews.
type limitedHub struct {
	Hub
	ofUser, ofAll *limiter
}

// retryAfter is the number of seconds after which kubectl and client-go retry.
const retryAfter = 1

// Allows implements Hub.
func (h limitedHub) Allows(ctx context.Context, user authenticationv1.UserInfo, attributes *authorizationv1.ResourceAttributes) (bool, error) {
	if !h.ofUser.allow(user.Username) || !h.ofAll.allow() {
		return false, apierrors.NewTooManyRequests("too many requests need a check of the rights of their users; try again", retryAfter)
	}
	return h.Hub.Allows(ctx, user, attributes)
}

// tooManyRequests returns the "too many requests" in an error, if there is one.
func tooManyRequests(err error) *apierrors.StatusError {
	var status *apierrors.StatusError
	if apierrors.IsTooManyRequests(err) && errors.As(err, &status) {
		return status
	}
	return nil
}
