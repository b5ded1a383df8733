package clusters

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	authentication "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// probeFailures counts the probes of a target that failed in a row.
type probeFailures struct {
	count int
	since time.Time // the time of the first of them
}

// nextState returns the state after a probe with the outcome next. A reachable target
// becomes unreachable when the threshold of failed probes is reached, and not before
// the time of the same number of probes of a reachable target. So one lost packet, or a
// restart, is no outage. A target that denies the credential changes its state at once.
func (f *probeFailures) nextState(before, next State, threshold int, interval time.Duration, now time.Time) State {
	if next.Reason != v1alpha1.ReasonUnreachable || !before.IsReachable() {
		*f = probeFailures{}
		return next
	}
	if f.count == 0 {
		f.since = now
	}
	f.count++
	if f.count >= threshold && now.Sub(f.since) >= time.Duration(threshold-1)*interval {
		return next
	}
	before.ProbeError = next.Message
	return before
}

// probe calls the target, records whether the target responded, and returns the result.
func (c *Connection) probe() (answers bool) {
	probed, err := c.checkTarget()
	answers = probed.IsReachable()
	switch {
	case isTimeout(err) || errors.Is(err, context.DeadlineExceeded):
		c.closeAll() // connections that hang would not recover with the target
	case !answers:
		c.http.CloseIdleConnections() // the next call opens a new connection
	}
	if c.ctx.Err() != nil {
		return false
	}
	c.reportStateChange(c.recordProbe(probed))
	return answers
}

// checkTarget reads the version of the target, and checks that the target accepts the
// credential and serves discovery. It returns the state by the outcome, and the error
// of the calls before discovery.
func (c *Connection) checkTarget() (State, error) {
	info, err := getVersion(c.ctx, c.options.Timeout, c.config, c.http)
	if err == nil {
		err = c.checkIdentity()
	}
	err = c.checkImpersonation(err)
	probed := stateOf(info.GitVersion, err).withExpiry(c.connectionConfig, time.Now())
	if probed.IsReachable() {
		if err := c.initMapper(); err != nil {
			probed = stateOf("", err)
		}
	}
	return probed, err
}

// recordProbe sets the state of the connection after a probe with the outcome probed.
// It returns the states before and after.
func (c *Connection) recordProbe(probed State) (before, after State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before = c.state
	since := time.Now()
	after = c.probeFailures.nextState(before, probed, c.options.FailureThreshold, c.options.ProbeInterval, since)
	if !c.probeFailures.since.IsZero() {
		since = c.probeFailures.since
	}
	after = after.withTimes(before, since, c.unreachableSince, c.lastContact)
	if probed.IsReachable() {
		c.lastContact = time.Now()
	}
	if after.Version == "" {
		after.Version = before.Version
	}
	if !after.IsReachable() {
		c.stopCaches()
	}
	c.state = after
	return before, after
}

// withTimes returns the state with the times of the state before, or with new times if
// Reachable changed. since is the time of the change. unreachableSince is the start of
// an outage that the previous connection noticed. lastContact is the time of the last
// response before the probe.
func (s State) withTimes(before State, since, unreachableSince, lastContact time.Time) State {
	s.Since, s.LastContact = before.Since, before.LastContact
	if s.Reachable == before.Reachable {
		return s
	}
	s.Since = since
	if before.Reachable == metav1.ConditionUnknown && !s.IsReachable() && !unreachableSince.IsZero() {
		s.Since = unreachableSince
	}
	s.LastContact = lastContact
	if s.IsReachable() {
		s.LastContact = s.Since
	}
	return s
}

// reportStateChange reports a change of the state to the Lease, the log and the
// targets.
func (c *Connection) reportStateChange(before, after State) {
	if after.IsReachable() && !before.IsReachable() && c.clusterLease != nil {
		c.clusterLease.wakeUp()
	}
	if after.Reachable != before.Reachable {
		ctrl.Log.WithName("clusters").Info("Connection changed state", "cluster", c.host, "reachable", after.Reachable, "reason", after.Reason)
	}
	unchanged := before
	unchanged.ProbeError = after.ProbeError
	switch {
	case after != unchanged:
		c.notifyTargets()
	case after != before:
		c.notifyProbesChanged()
	}
}

// getVersion reads the version of a target.
func getVersion(ctx context.Context, timeout time.Duration, config *rest.Config, httpClient *http.Client) (version.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	config = rest.CopyConfig(config)
	config.GroupVersion = &schema.GroupVersion{}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	raw, err := rest.UnversionedRESTClientForConfigAndClient(config, httpClient)
	if err != nil {
		return version.Info{}, fmt.Errorf("preparing a probe: %w", err)
	}
	result := raw.Get().AbsPath("/version").Do(ctx)
	if err := result.Error(); err != nil { // its message is that of the target, unlike that of Raw
		return version.Info{}, err
	}
	body, err := result.Raw()
	if err != nil {
		return version.Info{}, err
	}
	return parseVersion(body)
}

// checkIdentity checks the user name of a target that is reachable for the first
// time. A server that does not support passwords treats the request as anonymous, and
// would seem to work: its version is public.
func (c *Connection) checkIdentity() error {
	if c.config.Username == "" || c.hasAnswered() {
		return nil
	}
	ctx, cancel := c.WithTimeout(c.ctx)
	defer cancel()
	api, err := authenticationv1.NewForConfigAndClient(c.config, c.http)
	if err != nil {
		return fmt.Errorf("preparing a probe: %w", err)
	}
	_, err = api.SelfSubjectReviews().Create(ctx, &authentication.SelfSubjectReview{}, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) { // every authenticated user may send this request
		return apierrors.NewUnauthorized("the password was ignored")
	}
	if IsUnreachable(err) {
		return err
	}
	return nil // the server does not support the request
}

// checkImpersonation finds the reason why a target denies the request for its version,
// which every user may read. If the target allows the request without impersonation, it
// denies the impersonation. The response of an API server does not contain the reason.
func (c *Connection) checkImpersonation(err error) error {
	if !apierrors.IsForbidden(err) || c.config.Impersonate.UserName == "" {
		return err
	}
	ourselves := rest.CopyConfig(c.config)
	ourselves.Impersonate = rest.ImpersonationConfig{}
	httpClient, failed := rest.HTTPClientFor(ourselves)
	if failed != nil {
		return err
	}
	defer httpClient.CloseIdleConnections()
	httpClient.CheckRedirect = refuseRedirects
	if _, failed := getVersion(c.ctx, c.options.Timeout, ourselves, httpClient); failed == nil {
		return impersonationDenied{err}
	}
	return err
}
