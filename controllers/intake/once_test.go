package intake

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/references"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
	"github.com/portico-io/portico/policies"
)

// TestReconcileOnce is about Jobs, CronJobs and Pods: which requests write, and the
// events.
func TestReconcileOnce(t *testing.T) {
	const (
		job         = `{apiVersion: batch/v1, kind: Job, metadata: {name: load, namespace: team-a, uid: u, labels: {workload.crossplane.io/schedule: remote, workload.crossplane.io/application: shop}}, spec: {managedBy: workload.crossplane.io/remote}}`
		jobOfHub    = `{apiVersion: batch/v1, kind: Job, metadata: {name: load, namespace: team-a, uid: u, labels: {workload.crossplane.io/schedule: remote, workload.crossplane.io/application: shop}}, spec: {}}`
		jobReturns  = `{apiVersion: batch/v1, kind: Job, metadata: {name: load, namespace: team-a, uid: u}, spec: {managedBy: workload.crossplane.io/remote}}`
		jobComplete = `{apiVersion: batch/v1, kind: Job, metadata: {name: load, namespace: team-a, uid: u}, spec: {managedBy: workload.crossplane.io/remote}, status: {conditions: [{type: Complete, status: "True"}]}}`
		pod         = `{apiVersion: v1, kind: Pod, metadata: {name: load, namespace: team-a, uid: u, labels: {workload.crossplane.io/schedule: remote, workload.crossplane.io/application: shop}}, spec: {schedulingGates: [{name: workload.crossplane.io/remote}]}}`
		podReturns  = `{apiVersion: v1, kind: Pod, metadata: {name: load, namespace: team-a, uid: u}, spec: {schedulingGates: [{name: workload.crossplane.io/remote}]}, status: {phase: Running}}`
		podStarts   = `{apiVersion: v1, kind: Pod, metadata: {name: load, namespace: team-a, uid: u}, status: {phase: Pending}}`
		podReady    = `{apiVersion: v1, kind: Pod, metadata: {name: load, namespace: team-a, uid: u}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`
		podEnded    = `{apiVersion: v1, kind: Pod, metadata: {name: load, namespace: team-a, uid: u}, spec: {schedulingGates: [{name: workload.crossplane.io/remote}]}, status: {phase: Succeeded}}`
		cron        = `{apiVersion: batch/v1, kind: CronJob, metadata: {name: load, namespace: team-a, uid: u, labels: {workload.crossplane.io/schedule: remote, workload.crossplane.io/application: shop}}, spec: {schedule: "@daily"}}`
		cronSent    = `{apiVersion: batch/v1, kind: CronJob, metadata: {name: load, namespace: team-a, uid: u, labels: {workload.crossplane.io/schedule: remote, workload.crossplane.io/application: shop}, annotations: {workload.crossplane.io/schedule-on: target}}, spec: {schedule: "@daily", suspend: true}}`
	)
	for name, tc := range map[string]struct {
		reason, native string
		stored         bool
		writes         []string
		event          string
		requeue        bool
		terminal       bool
	}{
		"Job":           {reason: "A held Job is sent.", native: job, stored: true, writes: []string{"patch KubernetesApplicationResource"}},
		"JobOfHub":      {reason: "A Job that the hub runs is not run twice.", native: jobOfHub, event: v1alpha1.ReasonRefused, terminal: true},
		"JobReturns":    {reason: "The hub would never run it.", native: jobReturns, stored: true, event: v1alpha1.ReasonRefused, terminal: true},
		"JobComplete":   {reason: "A Job that has ended stays, as it is.", native: jobComplete, stored: true, writes: []string{"delete KubernetesApplicationResource"}, event: v1alpha1.EventMovedToHub},
		"Pod":           {reason: "A held Pod is sent.", native: pod, stored: true, writes: []string{"patch KubernetesApplicationResource"}},
		"PodReturns":    {reason: "The scheduler gets the Pod as a new one.", native: podReturns, stored: true, writes: []string{"patch status Pod", "patch Pod"}, requeue: true},
		"PodStarts":     {reason: "The Pod on the target stays until the other is ready.", native: podStarts, stored: true, requeue: true},
		"PodReady":      {reason: "Then it is deleted.", native: podReady, stored: true, writes: []string{"delete KubernetesApplicationResource"}, event: v1alpha1.EventMovedToHub},
		"PodEnded":      {reason: "A Pod that has ended is not started again.", native: podEnded, stored: true, writes: []string{"delete KubernetesApplicationResource"}, event: v1alpha1.EventMovedToHub},
		"CronJob":       {reason: "The hub makes the Jobs.", native: cron},
		"CronJobSent":   {reason: "The target makes the Jobs.", native: cronSent, stored: true, writes: []string{"patch KubernetesApplicationResource"}},
		"CronJobUnsent": {reason: "The hub makes the Jobs again.", native: cron, stored: true, writes: []string{"delete KubernetesApplicationResource"}, event: v1alpha1.EventMovedToHub},
	} {
		t.Run(name, func(t *testing.T) {
			native := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(tc.native), &native.Object); err != nil {
				t.Fatal(err)
			}
			kind, _ := kinds.For(native.GroupVersionKind())
			objects := []client.Object{native, shopOf("eu-1"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}}
			if tc.stored {
				objects = append(objects, &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{
					Namespace: "team-a", Name: resourceKey(native).Name,
					OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(native, native.GroupVersionKind())},
				}})
			}
			var writes []string
			hub := fake.NewClientBuilder().WithScheme(reconcilertest.Scheme(t, clientgoscheme.AddToScheme, v1alpha1.AddToScheme, v1alpha2.AddToScheme)).
				WithObjects(objects...).WithStatusSubresource(&corev1.Pod{}, &batchv1.Job{}).
				WithIndex(&v1alpha1.KubernetesApplicationResource{}, policies.ApplicationIndex, func(o client.Object) []string { return policies.ApplicationKeys(o) }).
				WithInterceptorFuncs(reconcilertest.Before(func(r reconcilertest.Request) error {
					if r.Verb != "get" && r.Verb != "list" {
						writes = append(writes, r.String())
					}
					return nil
				})).Build()
			recorder := events.NewFakeRecorder(10)
			result, err := newController(hub, hub, kind, recorder).Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(native)})
			if terminal := errors.Is(err, reconcile.TerminalError(nil)); terminal != tc.terminal || err != nil && !terminal {
				t.Errorf("%s got error %v", tc.reason, err)
			}
			if (result.RequeueAfter > 0) != tc.requeue {
				t.Errorf("%s requeue after %s", tc.reason, result.RequeueAfter)
			}
			if diff := cmp.Diff(tc.writes, writes); diff != "" {
				t.Errorf("%s writes (-want +got):\n%s", tc.reason, diff)
			}
			if event := reconcilertest.NextEvent(recorder); (event != "") != (tc.event != "") || !strings.Contains(event, tc.event) {
				t.Errorf("%s event %q, want %q", tc.reason, event, tc.event)
			}
		})
	}
}

// TestStoredReferences is about a Secret that is labelled after a Job was sent: the Pods
// of the Job refer to its copy.
func TestStoredReferences(t *testing.T) {
	native := &unstructured.Unstructured{}
	manifest := `{apiVersion: batch/v1, kind: Job, metadata: {name: load}, spec: {template: {spec: {containers: [{name: load, envFrom: [{secretRef: {name: sql}}, {configMapRef: {name: settings}}]}]}}}}`
	if err := yaml.Unmarshal([]byte(manifest), &native.Object); err != nil {
		t.Fatal(err)
	}
	stored := &v1alpha1.KubernetesApplicationResource{Spec: v1alpha1.KubernetesApplicationResourceSpec{Dependencies: []v1alpha1.Dependency{
		{Kind: "Secret", Name: "sql"}, {Kind: "ConfigMap", Name: "settings", Native: true}, {Kind: "Secret", Name: "registry", Optional: true},
		{Kind: "ServiceAccount", Name: "loader", Shared: true},
	}}}
	found := storedReferences(native, stored)
	if diff := cmp.Diff([]string{"registry"}, found.pullSecrets); diff != "" {
		t.Errorf("the image pull secrets are the others (-want +got):\n%s", diff)
	}
	if !found.native.has(references.Reference{Kind: "ConfigMap", Name: "settings"}) || found.native.has(references.Reference{Kind: "Secret", Name: "sql"}) {
		t.Errorf("names remain: %v", found.native)
	}
}
