package clusters

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

var deployments = schema.GroupResource{Group: "apps", Resource: "deployments"}

// call returns the error of client-go for a call that did not reach a server.
func call(err error) error {
	return fmt.Errorf("applying: %w", &url.Error{Op: "Patch", URL: "https://10.0.0.1:41234/apis", Err: err})
}

func dial(err error) error {
	return call(&net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 41234}, Err: err})
}

// timeout is the error of a connection that hangs.
type timeout struct{}

func (timeout) Error() string   { return "i/o timeout" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

func reachableState(code int) error {
	return apierrors.NewGenericServerResponse(code, "get", deployments, "web", "busy at 12:34:56", 0, true)
}

func TestJudge(t *testing.T) {
	const untrusted = "presents a certificate that cannot be verified with the connection secret's CA"
	up := State{Reachable: metav1.ConditionTrue, Reason: v1alpha1.ReasonReachable, Message: "answers", Version: "v1.36.3"}
	down := func(message string) State {
		return State{Reachable: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnreachable, Message: message}
	}
	certificate := func(err error) error { return call(&tls.CertificateVerificationError{Err: err}) }

	cases := map[string]struct {
		reason string
		err    error
		want   State
		lost   bool // the error requests a probe
	}{
		"Answers":      {reason: "The target answers.", want: up},
		"Forbidden":    {reason: "A target that denies the request is reachable.", err: apierrors.NewForbidden(deployments, "web", nil), want: up},
		"Unauthorized": {reason: "The target does not accept the credential.", err: apierrors.NewUnauthorized("token expired at 12:34:56"), want: State{Reachable: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnauthorized, Message: "does not accept the credentials of the connection secret"}, lost: true},

		"UnknownCA":    {reason: "Another CA signed the target's certificate.", err: certificate(x509.UnknownAuthorityError{}), want: down(untrusted), lost: true},
		"OtherHost":    {reason: "The target's certificate is for another name.", err: certificate(x509.HostnameError{Certificate: &x509.Certificate{}, Host: "eu-1"}), want: down(untrusted), lost: true},
		"Expired":      {reason: "The target's certificate has expired. The message has no time, because it would change with each probe.", err: certificate(x509.CertificateInvalidError{Reason: x509.Expired}), want: down(untrusted), lost: true},
		"NoName":       {reason: "The target's name does not exist.", err: dial(&net.DNSError{Err: "no such host", Name: "eu-1", IsNotFound: true}), want: down("has a name that does not resolve"), lost: true},
		"SlowName":     {reason: "The name server does not answer.", err: dial(&net.DNSError{Err: "i/o timeout", Name: "eu-1", IsTimeout: true}), want: down("has a name that does not resolve"), lost: true},
		"Refuses":      {reason: "The target refuses the connection.", err: dial(errors.New("connect: connection refused")), want: down("refuses connections"), lost: true},
		"Hangs":        {reason: "The target does not answer after it accepted the connection.", err: dial(timeout{}), want: down("does not answer in time"), lost: true},
		"TooLate":      {reason: "The timeout of the call ended.", err: call(context.DeadlineExceeded), want: down("does not answer in time"), lost: true},
		"BareDeadline": {reason: "The timeout ended before the call.", err: context.DeadlineExceeded, want: down("does not answer in time"), lost: true},
		"Cut":          {reason: "The connection was closed early.", err: call(io.ErrUnexpectedEOF), want: down("does not answer"), lost: true},
		"NotOne":       {reason: "Another server than an API server answers.", err: errors.New("the answer is not a Kubernetes API server's"), want: down("does not answer")},

		"NotReady":   {reason: "The API server is starting or stopping.", err: reachableState(http.StatusServiceUnavailable), want: down("answers with status 503"), lost: true},
		"BadGateway": {reason: "A load balancer answers that the API server is down.", err: reachableState(http.StatusBadGateway), want: down("answers with status 502"), lost: true},
		"Gateway":    {reason: "A load balancer answers that the API server is slow.", err: reachableState(http.StatusGatewayTimeout), want: down("answers with status 504"), lost: true},
		"Internal":   {reason: "The API server answers with an error.", err: reachableState(http.StatusInternalServerError), want: down("answers with status 500")},
		"Busy":       {reason: "The API server has too many requests.", err: apierrors.NewTooManyRequests("busy", 1), want: down("answers with status 429")},
		"TryAgain":   {reason: "The API server answers that it was too slow.", err: apierrors.NewServerTimeout(deployments, "patch", 1), want: down("answers with status 500"), lost: true},
		"Took":       {reason: "The API server answers that the request timed out.", err: apierrors.NewTimeoutError("slow", 1), want: down("answers with status 504"), lost: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			version := ""
			if tc.want.IsReachable() && tc.err == nil {
				version = "v1.36.3"
			}
			want := tc.want
			want.Version = version
			if diff := cmp.Diff(want, stateOf(version, tc.err)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got := IsUnreachable(tc.err); got != tc.lost {
				t.Errorf("Lost = %t, want %t: %s", got, tc.lost, tc.reason)
			}
		})
	}
}

// TestLostRefusals: a response of the target does not mean that it is unreachable.
func TestLostRefusals(t *testing.T) {
	for name, err := range map[string]error{
		"Invalid":  apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "web", nil),
		"Conflict": apierrors.NewConflict(deployments, "web", errors.New("changed")),
		"NotFound": apierrors.NewNotFound(deployments, "web"),
		"Denied":   fmt.Errorf("applying: %w", apierrors.NewForbidden(deployments, "web", nil)),
		"Ours":     errors.New("encoding the template"),
	} {
		if IsUnreachable(err) {
			t.Errorf("%s: %v is taken for an outage", name, err)
		}
	}
}

func TestCondition(t *testing.T) {
	since := time.Date(2030, 1, 1, 12, 0, 0, 0, time.FixedZone("CET", 3600))
	cases := map[string]struct {
		reason string
		state  State
		want   metav1.Condition
	}{
		"Up": {
			reason: "The message of a reachable target is short.",
			state:  State{Reachable: metav1.ConditionTrue, Reason: v1alpha1.ReasonReachable, Message: "answers", Since: since, Version: "v1.36.3"},
			want:   metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReachable, Message: "target eu-1 answers"},
		},
		"Down": {
			reason: "The message has the start of the outage, in UTC. It does not change during the outage.",
			state:  State{Reachable: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnreachable, Message: "refuses connections", Since: since},
			want:   metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnreachable, Message: "target eu-1 refuses connections; not reached since 2030-01-01T11:00:00Z"},
		},
		"Unknown": {
			reason: "A new target has no start of an outage.",
			state:  State{Reachable: metav1.ConditionUnknown, Reason: v1alpha1.ReasonConnecting, Message: "is being connected", Since: since},
			want:   metav1.Condition{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonConnecting, Message: "target eu-1 is being connected"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.Type, tc.want.ObservedGeneration, tc.want.LastTransitionTime = v1alpha1.TargetReachable, 4, metav1.NewTime(since)
			if diff := cmp.Diff(tc.want, tc.state.Condition("eu-1", 4)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.state.Condition("eu-1", 4), tc.state.Condition("eu-1", 4)); diff != "" {
				t.Errorf("one state has two conditions:\n%s", diff)
			}
		})
	}
}

// TestBackoff: the first delays are short, because most outages are restarts. No delay
// is longer than the interval of probes of a reachable target.
func TestBackoff(t *testing.T) {
	const interval = 10 * time.Second
	backoff := Options{ProbeInterval: interval}.probeBackoff()
	const jitter = 1.2
	at := float64(time.Second)
	for step := range 200 {
		wait := float64(backoff.Step())
		if wait < at || wait > at*jitter {
			t.Fatalf("probe %d waits %s, want between %s and a fifth more", step, time.Duration(wait), time.Duration(at))
		}
		at = min(at*1.5, float64(interval))
	}
}

func TestParseVersion(t *testing.T) {
	cases := map[string]struct {
		reason string
		body   string
		want   string // empty if the version is refused
	}{
		"Kubernetes":  {reason: "An API server answers with its version.", body: `{"major": "1", "minor": "36", "gitVersion": "v1.36.3", "new": {}}`, want: "v1.36.3"},
		"Distributor": {reason: "Distributions append to the version.", body: `{"gitVersion": "v1.36.3-eks-1234"}`, want: "v1.36.3-eks-1234"},
		"Page":        {reason: "A web page is not the answer of an API server.", body: `<html>secret</html>`},
		"OtherJSON":   {reason: "Other JSON is not the answer of an API server.", body: `{"error": "secret"}`},
		"Empty":       {reason: "An empty answer is not the answer of an API server."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseVersion([]byte(tc.body))
			if (err != nil) != (tc.want == "") || got.GitVersion != tc.want {
				t.Errorf("version %q and error %v, want %q: %s", got.GitVersion, err, tc.want, tc.reason)
			}
			if err != nil && err.Error() != "the answer is not a Kubernetes API server's" {
				t.Errorf("the error quotes the answer: %v", err)
			}
		})
	}
}
