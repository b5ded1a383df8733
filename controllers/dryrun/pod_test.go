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
		"Fine":       {reason: "The target would accept the Pod."},
		"Security":   {reason: "Pod Security denies the Pod.", err: apierrors.NewForbidden(pods, "web-", errors.New("violates PodSecurity")), want: true},
		"NoRight":    {reason: "Portico has no right to create Pods.", err: apierrors.NewForbidden(pods, "", errors.New("User cannot create"))},
		"Webhook":    {reason: "A webhook on the target denies the Pod.", err: &apierrors.StatusError{ErrStatus: metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden, Message: "denied"}}, want: true},
		"Invalid":    {reason: "A field of the Pod is invalid.", err: apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web-", nil), want: true},
		"Namespace":  {reason: "The Pod's namespace does not exist yet.", err: apierrors.NewNotFound(corev1.Resource("namespaces"), "there")},
		"NoDryRun":   {reason: "A webhook on the target does not support dry runs.", err: apierrors.NewBadRequest("does not support dry run")},
		"Busy":       {reason: "The target has too many requests.", err: apierrors.NewTooManyRequests("later", 1)},
		"Broken":     {reason: "The target answers with an error.", err: apierrors.NewInternalError(errors.New("no"))},
		"Away":       {reason: "The target does not answer.", err: errors.New("connection refused")},
		"OutOfReach": {reason: "A webhook on the target does not answer.", err: apierrors.NewServiceUnavailable("no")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := rejectsPod(tc.err); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}
