package clusters

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// State is whether a target answers.
type State struct {
	// Reachable is Unknown until the target was asked for the first time.
	Reachable metav1.ConditionStatus
	// Reason is a condition's reason.
	Reason string
	// Message says what is wrong, without addresses that change by the call.
	Message string
	// Since is when Reachable became what it is.
	Since time.Time
	// Contact is when the target began to answer, or last answered before it
	// stopped; zero when it never did.
	Contact time.Time
	// Version of the target's API server; kept while it does not answer.
	Version string
}

// Up tells whether the target answers.
func (s State) Up() bool { return s.Reachable == metav1.ConditionTrue }

// Condition is how a state is shown, with the message of target name.
func (s State) Condition(name string, generation int64) metav1.Condition {
	c := metav1.Condition{
		Type:               v1alpha1.TargetReachable,
		Status:             s.Reachable,
		Reason:             s.Reason,
		Message:            fmt.Sprintf("target %s %s", name, s.Message),
		LastTransitionTime: metav1.NewTime(s.Since),
		ObservedGeneration: generation,
	}
	if s.Reachable == metav1.ConditionFalse {
		c.Message = fmt.Sprintf("target %s %s; not reached since %s", name, s.Message, s.Since.UTC().Format(time.RFC3339))
	}
	return c
}

// judge says what the outcome of a call tells about the target.
func judge(version string, err error) State {
	if err == nil || apierrors.IsForbidden(err) && !mayNotImpersonate(err) { // it knows who asks
		return State{Reachable: metav1.ConditionTrue, Reason: v1alpha1.ReasonReachable, Message: "answers", Version: version}
	}
	down := State{Reachable: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnreachable}
	switch {
	case mayNotImpersonate(err):
		down.Reason, down.Message = v1alpha1.ReasonImpersonationRefused, "does not let the connection secret's user act as another: "+err.Error()
	case apierrors.IsUnauthorized(err):
		down.Reason, down.Message = v1alpha1.ReasonUnauthorized, "does not accept the credentials of the connection secret"
	default:
		down.Message = unreachable(err)
	}
	return down
}

// notAllowedToActAs is the target's refusal of whom we act as, as opposed to
// one of what we ask.
type notAllowedToActAs struct{ error }

func (e notAllowedToActAs) Unwrap() error { return e.error }

func mayNotImpersonate(err error) bool {
	var refusal notAllowedToActAs
	return errors.As(err, &refusal)
}

// because names the reason that the connection itself gives: credentials that
// are not accepted and have ended, ended.
func (s State) because(way Way, now time.Time) State {
	if s.Reason == v1alpha1.ReasonUnauthorized && !way.Expiry.IsZero() && !now.Before(way.Expiry) {
		s.Reason = v1alpha1.ReasonCredentialExpired
		s.Message += ", which ended at " + way.Expiry.UTC().Format(time.RFC3339)
	}
	return s
}

// unreachable puts a transport error in words that do not change from one
// attempt to the next.
func unreachable(err error) string {
	var (
		dns       *net.DNSError
		operation *net.OpError
		unknownCA x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		status    apierrors.APIStatus
	)
	switch {
	case errors.As(err, &unknownCA), errors.As(err, &hostname), errors.As(err, &invalid):
		return "presents a certificate that the connection secret's CA does not vouch for"
	case errors.As(err, &dns):
		return "has a name that does not resolve"
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return "does not answer in time"
	case errors.As(err, &operation):
		return "refuses connections"
	case errors.As(err, &status):
		return fmt.Sprintf("answers with status %d", status.Status().Code)
	default:
		return "does not answer"
	}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// Lost tells whether an error of a call means that the target may be away,
// rather than that it refused the call.
func Lost(err error) bool {
	if err == nil {
		return false
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return apierrors.IsUnauthorized(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
			status.Status().Code == http.StatusBadGateway // a load balancer speaks for it
	}
	var transport *url.Error
	return errors.As(err, &transport) || errors.Is(err, context.DeadlineExceeded) || isTimeout(err)
}
