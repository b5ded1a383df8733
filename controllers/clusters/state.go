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
	"github.com/portico-io/portico/controllers/clusters/limits"
)

// State tells whether a target is reachable.
type State struct {
	// Reachable is Unknown until the first probe.
	Reachable metav1.ConditionStatus
	// Reason is the reason of a condition.
	Reason string
	// Message describes the problem, without addresses that change with each call.
	Message string
	// Since is the time of the last change of Reachable.
	Since time.Time
	// LastContact is the time at which the target became reachable, or last responded
	// before it became unreachable; zero if it never responded.
	LastContact time.Time
	// Version of the target's API server; kept while the target is unreachable.
	Version string
	// ProbeError is the error of the last probe of a target that is still reachable.
	// It is empty otherwise.
	ProbeError string
}

// IsReachable tells whether the target is reachable.
func (s State) IsReachable() bool { return s.Reachable == metav1.ConditionTrue }

// Condition returns the condition of a state, for the target of a name.
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

// stateOf returns the state of a target by the outcome of a call.
func stateOf(version string, err error) State {
	if err == nil || apierrors.IsForbidden(err) && !isImpersonationDenied(err) { // the target has authenticated the user
		return State{Reachable: metav1.ConditionTrue, Reason: v1alpha1.ReasonReachable, Message: "answers", Version: version}
	}
	down := State{Reachable: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnreachable}
	var refused *AddressRefused
	var exceeded *limits.Exceeded
	switch {
	case errors.As(err, &exceeded):
		down.Reason, down.Message = v1alpha1.ReasonTargetMisbehaves, exceeded.Error()+", and gets no requests for a while"
	case errors.As(err, &refused):
		down.Reason, down.Message = v1alpha1.ReasonAddressRefused, refused.Error()
	case isImpersonationDenied(err):
		down.Reason, down.Message = v1alpha1.ReasonImpersonationRefused, "does not let the connection secret's user impersonate another user: "+boundText(err.Error(), maxMessage)
	case apierrors.IsUnauthorized(err):
		down.Reason, down.Message = v1alpha1.ReasonUnauthorized, "does not accept the credentials of the connection secret"
	default:
		down.Message = transportMessage(err)
	}
	return down
}

// impersonationDenied is the error of a target that denies the impersonation, and not
// the request itself.
type impersonationDenied struct{ error }

func (e impersonationDenied) Unwrap() error { return e.error }

func isImpersonationDenied(err error) bool {
	var refusal impersonationDenied
	return errors.As(err, &refusal)
}

// withExpiry changes the reason of a state if the target denies a credential that has
// expired.
func (s State) withExpiry(connectionConfig ConnectionConfig, now time.Time) State {
	if s.Reason == v1alpha1.ReasonUnauthorized && !connectionConfig.Expiry.IsZero() && !now.Before(connectionConfig.Expiry) {
		s.Reason = v1alpha1.ReasonCredentialExpired
		s.Message += ", which ended at " + connectionConfig.Expiry.UTC().Format(time.RFC3339)
	}
	return s
}

// transportMessage describes a transport error with a text that is the same for each
// attempt.
func transportMessage(err error) string {
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
		return "presents a certificate that cannot be verified with the connection secret's CA"
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

// IsUnreachable tells whether the error of a call means that the target may be
// unreachable. A denied call does not.
func IsUnreachable(err error) bool {
	if err == nil {
		return false
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return apierrors.IsUnauthorized(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
			status.Status().Code == http.StatusBadGateway // a load balancer responds in its place
	}
	var transport *url.Error
	return errors.As(err, &transport) || errors.Is(err, context.DeadlineExceeded) || isTimeout(err)
}
