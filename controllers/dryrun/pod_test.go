package dryrun

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRejectsPod(t *testing.T) {
	pods := corev1.Resource("pods")
	cases := map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"Fine":       {reason: "It would be let in."},
		"Security":   {reason: "Pod Security names the Pod.", err: apierrors.NewForbidden(pods, "web-", errors.New("violates PodSecurity")), want: true},
		"NoRight":    {reason: "Who may not create Pods knows nothing of them.", err: apierrors.NewForbidden(pods, "", errors.New("User cannot create"))},
		"Webhook":    {reason: "A webhook there gives no details.", err: &apierrors.StatusError{ErrStatus: metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden, Message: "denied"}}, want: true},
		"Invalid":    {reason: "A field of the Pod is wrong.", err: apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web-", nil), want: true},
		"Namespace":  {reason: "Its namespace is yet to come.", err: apierrors.NewNotFound(corev1.Resource("namespaces"), "there")},
		"NoDryRun":   {reason: "A webhook there cannot be asked without effect.", err: apierrors.NewBadRequest("does not support dry run")},
		"Busy":       {reason: "The target is busy.", err: apierrors.NewTooManyRequests("later", 1)},
		"Broken":     {reason: "The target is broken.", err: apierrors.NewInternalError(errors.New("no"))},
		"Away":       {reason: "The target is away.", err: errors.New("connection refused")},
		"OutOfReach": {reason: "A webhook there is away.", err: apierrors.NewServiceUnavailable("no")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := rejectsPod(tc.err); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}
