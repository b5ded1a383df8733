// Package consumers tests that programs that read the status of objects understand the
// status that Portico writes: kubectl's rollout viewer, kstatus as Helm 4 and Flux use it,
// the readiness rule of Helm 3, and the health rules of Argo CD.
package consumers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	helm "helm.sh/helm/v3/pkg/kube"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubectl/pkg/polymorphichelpers"
)

func TestConsumers(t *testing.T) {
	for name, row := range rows() {
		t.Run(name, func(t *testing.T) {
			native := row.onHub(t)
			type messages struct {
				Kubectl, Kstatus, Helm3 outcome
				ArgoCD                  string
			}
			got := messages{kubectl(native), kstatus(t, native), helm3(t, native, row.shadows(t)), argoCD(t, native).State}
			want := messages{row.kubectl, row.kstatus, row.helm3, row.argoCD}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s\nstatus: %v", row.reason, diff, native.Object["status"])
			}
		})
	}
}

// TestHubReportsTargetStatus: when the target's status is of the hub's generation, each
// consumer has the same result on the hub as on the target.
func TestHubReportsTargetStatus(t *testing.T) {
	compared := 0
	for name, row := range deploymentRows() {
		native, target := row.onHub(t), row.onTarget(t)
		if row.odd || target == nil || row.observed(t, target) != native.GetGeneration() {
			continue
		}
		compared++
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(kubectl(target), kubectl(native)); diff != "" {
				t.Errorf("%s\nkubectl rollout status, -target +hub:\n%s", row.reason, diff)
			}
			if diff := cmp.Diff(kstatus(t, target), kstatus(t, native)); diff != "" {
				t.Errorf("%s\nkstatus, -target +hub:\n%s", row.reason, diff)
			}
			if diff := cmp.Diff(argoCD(t, target), argoCD(t, native)); diff != "" {
				t.Errorf("%s\nArgo CD, -target +hub:\n%s", row.reason, diff)
			}
		})
	}
	if compared == 0 {
		t.Error("no row has a target that observed the hub's generation")
	}
}

// kubectl returns the output of kubectl rollout status, and whether the rollout is
// complete.
func kubectl(object *unstructured.Unstructured) outcome {
	viewer, err := polymorphichelpers.StatusViewerFor(object.GroupVersionKind().GroupKind())
	if err != nil {
		return failed(err.Error())
	}
	message, isDone, err := viewer.Status(object, 0)
	message = strings.TrimSpace(message)
	switch {
	case err != nil:
		return failed(err.Error())
	case isDone:
		return done(message)
	default:
		return waiting(message)
	}
}

// kstatus returns the result for Helm 4 and Flux.
func kstatus(t *testing.T, object *unstructured.Unstructured) outcome {
	t.Helper()
	result, err := status.Compute(object)
	if err != nil {
		t.Fatal(err)
	}
	switch result.Status {
	case status.CurrentStatus:
		return done(result.Message)
	case status.InProgressStatus:
		return waiting(result.Message)
	default:
		return failed(result.Message)
	}
}

// helm3 returns the result for helm install --wait of Helm 3, with its options. The
// message is the last line of its debug log.
func helm3(t *testing.T, native *unstructured.Unstructured, replicaSets []appsv1.ReplicaSet) outcome {
	t.Helper()
	typed, err := scheme.Scheme.New(native.GroupVersionKind())
	if err != nil {
		t.Fatal(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(native.Object, typed); err != nil {
		t.Fatal(err)
	}
	objects := []runtime.Object{typed}
	for i := range replicaSets {
		objects = append(objects, &replicaSets[i])
	}
	var last string
	checker := helm.NewReadyChecker(fake.NewClientset(objects...), func(format string, args ...any) {
		last = fmt.Sprintf(format, args...)
	}, helm.PausedAsReady(true), helm.CheckJobs(true))
	ready, err := checker.IsReady(t.Context(), &resource.Info{Namespace: native.GetNamespace(), Name: native.GetName(), Object: typed})
	switch {
	case err != nil:
		return failed(err.Error())
	case ready:
		return done(last)
	default:
		return waiting(last)
	}
}
