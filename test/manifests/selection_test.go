package manifests

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/test/apiserver"
	"github.com/portico-io/portico/test/cluster/install"
	"github.com/portico-io/portico/webhooks"
)

// TestSelection tests which webhooks a real API server with Portico's configurations
// calls for which write. A write without a webhook costs nothing, and works while
// Portico is unavailable.
func TestSelection(t *testing.T) {
	cfg := apiserver.Start(t)
	cluster, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	calls := &recorder{}
	server := httptest.NewTLSServer(calls)
	t.Cleanup(server.Close)
	objects, err := install.Localize(render(t, "claims"), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	trust(t, objects, server.Certificate())
	apply(t, cluster, objects...)
	for _, namespace := range []*corev1.Namespace{
		{ObjectMeta: metav1.ObjectMeta{Name: "plain"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "opted-in", Labels: map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote}}},
	} {
		if err := cluster.Create(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
	}
	waitUntilCalled(t, cluster, calls)

	create := func(object client.Object) func(*testing.T) client.Object {
		return func(t *testing.T) client.Object {
			t.Helper()
			object := object.DeepCopyObject().(client.Object)
			if err := cluster.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			return object
		}
	}
	change := func(object client.Object, mutate func(client.Object)) func(*testing.T) client.Object {
		return func(t *testing.T) client.Object {
			t.Helper()
			object := create(object)(t)
			calls.reset()
			mutate(object)
			if err := cluster.Update(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			return object
		}
	}
	changeStatus := func(object client.Object, mutate func(client.Object)) func(*testing.T) client.Object {
		return func(t *testing.T) client.Object {
			t.Helper()
			object := create(object)(t)
			calls.reset()
			mutate(object)
			if err := cluster.Status().Update(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			return object
		}
	}
	deleted := func(object client.Object) func(*testing.T) client.Object {
		return func(t *testing.T) client.Object {
			t.Helper()
			object := create(object)(t)
			calls.reset()
			if err := cluster.Delete(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			return nil
		}
	}
	// going updates an object that is being deleted, and that a finalizer keeps.
	going := func(object client.Object, mutate func(client.Object)) func(*testing.T) client.Object {
		return func(t *testing.T) client.Object {
			t.Helper()
			object := object.DeepCopyObject().(client.Object)
			object.SetFinalizers([]string{"example.org/finalizer", "example.org/other"})
			if err := cluster.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := cluster.Patch(context.Background(), object, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))); client.IgnoreNotFound(err) != nil {
					t.Error(err)
				}
			})
			if err := cluster.Delete(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			calls.reset()
			mutate(object)
			if err := cluster.Update(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			return nil
		}
	}
	nothing := func(client.Object) {}
	annotate := func(key string) func(client.Object) {
		return func(o client.Object) { o.SetAnnotations(map[string]string{key: "x"}) }
	}
	relabel := func(value string) func(client.Object) {
		return func(o client.Object) { o.SetLabels(scheduled(value)) }
	}
	image := func(o client.Object) { o.(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Image = "other" }
	replicas := func(n int32) func(client.Object) {
		return func(o client.Object) { o.(*appsv1.ReplicaSet).Spec.Replicas = &n }
	}

	held := []string{webhooks.HoldPath, webhooks.NativePath}
	cases := map[string]selection{
		"Unlabelled": {
			reason: "An object without the label calls no webhook.",
			do:     create(deployment("plain", "")),
		},
		"UnlabelledService": {
			reason: "An object without the label calls no webhook.",
			do:     create(service("plain", "")),
		},
		"UnlabelledReplicaSet": {
			reason: "An object without the label calls no webhook.",
			do:     create(replicaSet("plain", "", 3)),
		},
		"Remote": {
			reason: "An object with the label is held and validated.",
			do:     create(deployment("plain", v1alpha1.ScheduleRemote)),
			want:   held,
		},
		"RemoteService": {
			reason: "An object with the label is held and validated.",
			do:     create(service("plain", v1alpha1.ScheduleRemote)),
			want:   held,
		},
		"Misspelt": {
			reason: "An unknown value of the label is validated, and refused.",
			do:     create(deployment("plain", "remtoe")),
			want:   []string{webhooks.NativePath},
		},
		"ChangedSpec": {
			reason: "A changed spec is held and validated.",
			do:     change(deployment("plain", v1alpha1.ScheduleRemote), image),
			want:   held,
		},
		"ChangedNothing": {
			reason: "An update without a change calls no webhook.",
			do:     change(deployment("plain", v1alpha1.ScheduleRemote), nothing),
		},
		"ChangedForeignAnnotation": {
			reason: "An annotation of another writer calls no webhook.",
			do:     change(deployment("plain", v1alpha1.ScheduleRemote), annotate("deployment.kubernetes.io/revision")),
		},
		"ForgedIntent": {
			reason: "A change of the intent annotation is held and validated.",
			do:     change(deployment("plain", v1alpha1.ScheduleRemote), annotate(v1alpha1.IntentAnnotation)),
			want:   held,
		},
		"ChangedSelector": {
			reason: "A change of the target selector is held and validated.",
			do:     change(deployment("plain", v1alpha1.ScheduleRemote), annotate(v1alpha1.TargetSelectorAnnotation)),
			want:   held,
		},
		"ChangedTolerations": {
			reason: "A change of the tolerations is held and validated.",
			do:     change(deployment("plain", v1alpha1.ScheduleRemote), annotate(v1alpha1.TolerationsAnnotation)),
			want:   held,
		},
		"ChangedAdoption": {
			reason: "A change of the adoption policy is validated. It does not change the held fields.",
			do:     change(deployment("plain", v1alpha1.ScheduleRemote), annotate(v1alpha1.AdoptAnnotation)),
			want:   []string{webhooks.NativePath},
		},
		"ChangedDeletion": {
			reason: "A change of the deletion policy is validated.",
			do:     change(deployment("plain", v1alpha1.ScheduleRemote), annotate(v1alpha1.DeletionAnnotation)),
			want:   []string{webhooks.NativePath},
		},
		"ChangedDrift": {
			reason: "A change of the drift policy is validated.",
			do:     change(deployment("plain", v1alpha1.ScheduleRemote), annotate(v1alpha1.DriftAnnotation)),
			want:   []string{webhooks.NativePath},
		},
		"ChangedObserve": {
			reason: "A change of the observe annotation is validated.",
			do:     change(deployment("plain", v1alpha1.ScheduleRemote), annotate(v1alpha1.ObserveAnnotation)),
			want:   []string{webhooks.NativePath},
		},
		"OptingIn": {
			reason: "A Deployment of the hub may opt in.",
			do:     change(deployment("plain", ""), relabel(v1alpha1.ScheduleRemote)),
			want:   held,
		},
		"OptingOut": {
			reason: "The removal of the label is held and validated.",
			do:     change(deployment("plain", v1alpha1.ScheduleRemote), relabel("")),
			want:   held,
		},
		"Finalizer": {
			reason: "A change of finalizers calls no webhook.",
			do: change(deployment("plain", v1alpha1.ScheduleRemote), func(o client.Object) {
				o.SetFinalizers([]string{"example.org/finalizer"})
			}),
		},
		"Namespace": {
			reason: "An object in a labelled namespace is held.",
			do:     create(deployment("opted-in", "")),
			want:   []string{webhooks.HoldNamespacePath},
		},
		"NamespaceRemote": {
			reason: "An object with its own label in a labelled namespace is held once.",
			do:     create(deployment("opted-in", v1alpha1.ScheduleRemote)),
			want:   held,
		},
		"NamespaceLocal": {
			reason: "An object with label local in a labelled namespace is validated, not held.",
			do:     create(deployment("opted-in", v1alpha1.ScheduleLocal)),
			want:   []string{webhooks.NativePath},
		},
		"NamespaceArrived": {
			reason: "An object that Portico sent to this cluster is not sent on.",
			do: func(t *testing.T) client.Object {
				object := deployment("opted-in", "")
				object.Labels[v1alpha1.ManagedByLabel] = "hub"
				return create(object)(t)
			},
		},
		"NamespaceReplicaSet": {
			reason: "The ReplicaSet of a Deployment has the label of its Pod template, or none.",
			do:     create(replicaSet("opted-in", "", 3)),
		},
		"ProtectedNamespace": {
			reason: "An object in kube-system calls no webhook, because the hub starts from it.",
			do:     create(deployment("kube-system", v1alpha1.ScheduleRemote)),
		},
		"OwnNamespace": {
			reason: "An object in Portico's namespace calls no webhook, because Portico starts from it.",
			do:     create(deployment("portico-system", v1alpha1.ScheduleRemote)),
		},
		"ReplicaSetWithPods": {
			reason: "A labelled ReplicaSet with replicas is set to 0.",
			do:     create(replicaSet("plain", v1alpha1.ScheduleRemote, 3)),
			want:   []string{webhooks.PinPath},
		},
		"ReplicaSetDefault": {
			reason: "The default of replicas is 1.",
			do: func(t *testing.T) client.Object {
				rs := replicaSet("plain", v1alpha1.ScheduleRemote, 0)
				rs.Spec.Replicas = nil
				return create(rs)(t)
			},
			want: []string{webhooks.PinPath},
		},
		"ReplicaSetWithoutPods": {
			reason: "A labelled ReplicaSet with 0 replicas calls no webhook.",
			do:     create(replicaSet("plain", v1alpha1.ScheduleRemote, 0)),
		},
		"ReplicaSetScaled": {
			reason: "The Deployment controller may not scale a labelled ReplicaSet.",
			do:     change(replicaSet("plain", v1alpha1.ScheduleRemote, 0), replicas(3)),
			want:   []string{webhooks.PinPath},
		},
		"Status": {
			reason: "A changed status is protected.",
			do: changeStatus(deployment("plain", v1alpha1.ScheduleRemote), func(o client.Object) {
				o.(*appsv1.Deployment).Status.Replicas = 1
			}),
			want: []string{webhooks.ShieldPath},
		},
		"StatusOfReplicaSet": {
			reason: "The status of a ReplicaSet, which Helm reads, is protected.",
			do: changeStatus(replicaSet("plain", v1alpha1.ScheduleRemote, 0), func(o client.Object) {
				o.(*appsv1.ReplicaSet).Status.Replicas = 1
			}),
			want: []string{webhooks.ShieldPath},
		},
		"StatusOfService": {
			reason: "The status of a Service, with the target's address, is protected.",
			do: changeStatus(service("plain", v1alpha1.ScheduleRemote), func(o client.Object) {
				o.(*corev1.Service).Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
			}),
			want: []string{webhooks.ShieldPath},
		},
		"StatusOfCronJob": {
			reason: "The hub's controller writes the status of a CronJob that stays on the hub.",
			do: changeStatus(cronJob(v1alpha1.ScheduleOnHub), func(o client.Object) {
				o.(*batchv1.CronJob).Status.LastScheduleTime = &metav1.Time{Time: time.Unix(1e9, 0)}
			}),
		},
		"StatusOfSentCronJob": {
			reason: "The times of a CronJob that is sent are the target's.",
			do: changeStatus(cronJob(v1alpha1.ScheduleOnTarget), func(o client.Object) {
				o.(*batchv1.CronJob).Status.LastScheduleTime = &metav1.Time{Time: time.Unix(1e9, 0)}
			}),
			want: []string{webhooks.ShieldPath},
		},
		"ScheduledElsewhere": {
			reason: "Who makes the Jobs of a CronJob is decided by an annotation.",
			do: change(cronJob(v1alpha1.ScheduleOnHub), func(o client.Object) {
				o.SetAnnotations(map[string]string{v1alpha1.ScheduleOnAnnotation: v1alpha1.ScheduleOnTarget})
			}),
			want: held,
		},
		"SameStatus": {
			reason: "A status update without a change calls no webhook.",
			do:     changeStatus(deployment("plain", v1alpha1.ScheduleRemote), nothing),
		},
		"UnlabelledStatus": {
			reason: "A status of an object without the label calls no webhook.",
			do: changeStatus(deployment("plain", ""), func(o client.Object) {
				o.(*appsv1.Deployment).Status.Replicas = 1
			}),
		},
		"Deletion": {
			reason: "A deletion of an object with the label calls no webhook.",
			do: func(t *testing.T) client.Object {
				object := create(deployment("plain", v1alpha1.ScheduleRemote))(t)
				calls.reset()
				if err := cluster.Delete(t.Context(), object); err != nil {
					t.Fatal(err)
				}
				return nil
			},
		},
		"Target": {
			reason: "A new target is validated.",
			do:     create(target("plain")),
			want:   []string{webhooks.WorkloadPath},
		},
		"TargetFinalizer": {
			reason: "A change of finalizers calls no webhook.",
			do: change(target("plain"), func(o client.Object) {
				o.SetFinalizers([]string{"example.org/finalizer"})
			}),
		},
		"TargetController": {
			reason: "A new controller is validated, because the owner may have the label.",
			do: change(target("plain"), func(o client.Object) {
				o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "1", Controller: ptr.To(true)}})
			}),
			want: []string{webhooks.WorkloadPath},
		},
		"TargetOwner": {
			reason: "A new owner that is not the controller calls no webhook.",
			do: change(target("plain"), func(o client.Object) {
				o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "1"}})
			}),
		},
		"TargetOrphaned": {
			reason: "The removal of an owner calls no webhook. It is part of the owner's deletion.",
			do: func(t *testing.T) client.Object {
				owned := target("plain")
				owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "1", Controller: ptr.To(true)}})
				return change(owned, func(o client.Object) { o.SetOwnerReferences(nil) })(t)
			},
		},
		"TargetLeavesClaim": {
			reason: "The removal of a claim as owner is validated, because the claim must control its target's Secret.",
			do: func(t *testing.T) client.Object {
				owned := target("plain")
				owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "compute.crossplane.io/v1alpha1", Kind: "KubernetesCluster", Name: "dev", UID: "1", Controller: ptr.To(true)}})
				return change(owned, func(o client.Object) { o.SetOwnerReferences(nil) })(t)
			},
			want: []string{webhooks.WorkloadPath},
		},
		"Claim": {
			reason: "A new claim is validated, because it becomes a target.",
			do:     create(claim("plain")),
			want:   []string{webhooks.ClaimPath},
		},
		"ClaimLabel": {
			reason: "A change of a claim's labels is validated, because its target gets them.",
			do:     change(claim("plain"), relabel("")),
			want:   []string{webhooks.ClaimPath},
		},
		"ClaimSecret": {
			reason: "A change of a claim's Secret is validated, because its target gets it.",
			do: change(claim("plain"), func(o client.Object) {
				_ = unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, "other", "spec", "writeConnectionSecretToRef", "name")
			}),
			want: []string{webhooks.ClaimPath},
		},
		"ClaimAnnotation": {
			reason: "A change of a claim's annotations calls no webhook.",
			do:     change(claim("plain"), annotate("example.org/note")),
		},
		"ClaimStatus": {
			reason: "A change of a claim's status calls no webhook.",
			do: changeStatus(claim("plain"), func(o client.Object) {
				_ = unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, "Bound", "status", "bindingPhase")
			}),
		},
		"ClaimDeletion": {
			reason: "A deletion of a claim calls no webhook.",
			do:     deleted(claim("plain")),
		},
		"ConnectionSecret": {
			reason: "A Secret with key kubeconfig may be a connection.",
			do:     create(secret("plain", "kubeconfig")),
			want:   []string{webhooks.ConnectionPath},
		},
		"EndpointSecret": {
			reason: "A Secret with key endpoint may be a connection.",
			do:     create(secret("plain", "endpoint")),
			want:   []string{webhooks.ConnectionPath},
		},
		"OrdinarySecret": {
			reason: "A Secret with other keys calls no webhook.",
			do:     create(secret("plain", "password")),
		},
		"EmptySecret": {
			reason: "A Secret without data calls no webhook.",
			do:     create(secret("plain")),
		},
		"RotatedSecret": {
			reason: "New data of a connection is validated.",
			do: change(secret("plain", "kubeconfig"), func(o client.Object) {
				o.(*corev1.Secret).Data["kubeconfig"] = []byte("new")
			}),
			want: []string{webhooks.ConnectionPath},
		},
		"RelabelledSecret": {
			reason: "A change of a Secret's labels calls no webhook.",
			do:     change(secret("plain", "kubeconfig"), relabel("")),
		},
		"ProtectedSecret": {
			reason: "A Secret in kube-system calls no webhook, because the hub starts from it.",
			do:     create(secret("kube-system", "kubeconfig")),
		},
		"OwnSecret": {
			reason: "A Secret in Portico's namespace calls no webhook, because Portico starts from it.",
			do:     create(secret("portico-system", "kubeconfig")),
		},
		"TargetDeletion": {
			reason: "The deletion of a target is validated, because it may be in use.",
			do:     deleted(target("plain")),
			want:   []string{webhooks.InUsePath},
		},
		"NamespaceDeletion": {
			reason: "The deletion of a resource with a Namespace is validated, because the Namespace may have other objects.",
			do:     deleted(making(applicationResource("plain"))),
			want:   []string{webhooks.NamespacePath},
		},
		"NamespacesDeletion": {
			reason: "The deletion of an application with a Namespace is validated, because the Namespace may have other objects.",
			do:     deleted(making(application("plain"))),
			want:   []string{webhooks.NamespacePath},
		},
		"ResourceDeletion": {
			reason: "The deletion of another resource calls no webhook.",
			do:     deleted(applicationResource("plain")),
		},
		"ApplicationDeletion": {
			reason: "The deletion of another application calls no webhook.",
			do:     deleted(application("plain")),
		},
		"ConnectionDeletion": {
			reason: "The deletion of a connection Secret is validated, because it may be in use.",
			do: deleted(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "dev", Namespace: "plain"},
				Data: map[string][]byte{v1alpha1.SecretKubeconfig: []byte("{}")}}),
			want: []string{webhooks.InUseSecretPath},
		},
		"SecretDeletion": {
			reason: "The deletion of another Secret calls no webhook.",
			do: deleted(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "plain"},
				Data: map[string][]byte{v1alpha1.SecretToken: []byte("t")}}),
		},
		"EmptySecretDeletion": {
			reason: "The deletion of a Secret without data calls no webhook.",
			do:     deleted(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "empty", Namespace: "plain"}}),
		},
		"OwnSecretDeletion": {
			reason: "The deletion of a Secret in Portico's namespace calls no webhook, because Portico starts from it.",
			do: deleted(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "dev", Namespace: "portico-system"},
				Data: map[string][]byte{v1alpha1.SecretKubeconfig: []byte("{}")}}),
		},
		"RemoteConfigMap": {
			reason: "A ConfigMap with the label is validated. It has nothing to hold.",
			do:     create(configMap("plain", v1alpha1.ScheduleRemote)),
			want:   []string{webhooks.NativePath},
		},
		"RemoteConfigMapChanged": {
			reason: "A change of a ConfigMap's data is validated, because the data is sent.",
			do: change(configMap("plain", v1alpha1.ScheduleRemote), func(o client.Object) {
				o.(*corev1.ConfigMap).Data = map[string]string{"a": "b"}
			}),
			want: []string{webhooks.NativePath},
		},
		"RemoteConfigMapAnnotated": {
			reason: "A change of a ConfigMap's annotations calls no webhook, because annotations are not sent.",
			do:     change(configMap("plain", v1alpha1.ScheduleRemote), annotate("example.org/note")),
		},
		"RemoteSecret": {
			reason: "A Secret with the label is validated.",
			do: create(&corev1.Secret{ObjectMeta: meta("plain", v1alpha1.ScheduleRemote),
				Data: map[string][]byte{"password": []byte("value")}}),
			want: []string{webhooks.NativePath},
		},
		"NamespaceConfigMap": {
			reason: "A ConfigMap in a labelled namespace does not opt in, because tools keep their own there.",
			do:     create(configMap("opted-in", "")),
		},
		"UnknownKind": {
			reason: "An object of an unsupported kind calls no webhook, even with the label.",
			do: create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
				Name: "web", Namespace: "plain", Labels: scheduled(v1alpha1.ScheduleRemote)}}),
		},
	}
	for _, kind := range kinds.All {
		maps.Copy(cases, kindCases(t, kind, create))
	}
	for name, going := range goingCases(going, image) {
		cases["Going"+name] = going
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			calls.reset()
			object := tc.do(t)
			got := calls.paths()
			if object != nil {
				object.SetFinalizers(nil)
				if err := cluster.Update(t.Context(), object); err != nil {
					t.Fatal(err)
				}
				if err := cluster.Delete(t.Context(), object, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nwebhooks called: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// selection is a write with the webhooks that are called for it.
type selection struct {
	reason string
	do     func(*testing.T) client.Object
	want   []string
}

// kindCases create the sample of a kind.
func kindCases(t *testing.T, kind kinds.Kind, create func(client.Object) func(*testing.T) client.Object) map[string]selection {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(apiserver.Root(t), "api", "kinds", "testdata", "samples", kind.Resource()+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	sample := func(namespace, schedule string, change ...func(*unstructured.Unstructured)) func(*testing.T) client.Object {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, &object.Object); err != nil {
			t.Fatal(err)
		}
		object.SetNamespace(namespace)
		object.SetLabels(scheduled(schedule))
		for _, c := range change {
			c(object)
		}
		// The webhooks of this test change nothing, and an object that is not held is denied.
		if _, err := kinds.Hold(kind, object, nil, kinds.Anyone); err != nil {
			t.Fatal(err)
		}
		return create(object)
	}
	remote, optedIn := []string{webhooks.NativePath}, []string(nil)
	if kind.Properties().Held {
		remote = []string{webhooks.HoldPath, webhooks.NativePath}
	}
	if kind.Properties().OptIn {
		optedIn = []string{webhooks.HoldNamespacePath}
	}
	name := kind.GroupVersionKind().Kind
	cases := map[string]selection{
		name + "Remote":     {reason: "An object with the label is held and validated.", do: sample("plain", v1alpha1.ScheduleRemote), want: remote},
		name + "OfLabelled": {reason: "An object of a labelled namespace is held if its kind opts in by namespace.", do: sample("opted-in", ""), want: optedIn},
		name + "Unlabelled": {reason: "An object without the label calls no webhook.", do: sample("plain", "")},
	}
	if kind.Properties().HeldAtCreation {
		controlled := func(object *unstructured.Unstructured) {
			object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "1", Controller: ptr.To(true)}})
		}
		cases[name+"OfController"] = selection{reason: "A controller decides where its objects run.", do: sample("opted-in", "", controlled)}
	}
	return cases
}

// goingCases update objects that are being deleted. An update of the finalizers calls
// no webhook. Any other update calls the same webhooks as before the deletion.
func goingCases(going func(client.Object, func(client.Object)) func(*testing.T) client.Object, image func(client.Object)) map[string]selection {
	relabel := func(o client.Object) {
		o.SetLabels(map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote, "a": "b"})
	}
	data := func(o client.Object) { o.(*corev1.Secret).Data["kubeconfig"] = []byte("other") }
	respec := func(value any, path ...string) func(client.Object) {
		return func(o client.Object) {
			if err := unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, value, append([]string{"spec"}, path...)...); err != nil {
				panic(err)
			}
		}
	}
	opted := configMap("plain", v1alpha1.ScheduleRemote)
	opted.Data = map[string]string{"long": strings.Repeat("long ", 200_000)} // nearly the maximal size of an object
	cases := map[string]selection{}
	for name, kind := range map[string]struct {
		object client.Object
		change func(client.Object)
		want   []string
	}{
		"Deployment":       {deployment("plain", v1alpha1.ScheduleRemote), image, []string{webhooks.HoldPath, webhooks.NativePath}},
		"OfNamespace":      {deployment("opted-in", ""), image, []string{webhooks.HoldNamespacePath}},
		"ReplicaSet":       {replicaSet("plain", v1alpha1.ScheduleRemote, 3), relabel, []string{webhooks.PinPath}},
		"ConfigMap":        {opted, relabel, []string{webhooks.NativePath}},
		"ConnectionSecret": {secret("plain", "kubeconfig"), data, []string{webhooks.ConnectionPath}},
		"Target":           {target("plain"), respec("other", "connectionSecretRef", "name"), []string{webhooks.WorkloadPath}},
		"TargetAllowance":  {target("plain"), respec([]any{"kube-system"}, "allow", "namespaces"), []string{webhooks.WorkloadPath}},
		"TargetAsOthers":   {target("plain"), respec("root", "impersonate", "user"), []string{webhooks.WorkloadPath}},
		"TargetLabels":     {target("plain"), relabel, []string{webhooks.WorkloadPath}},
		"Resource":         {applicationResource("plain"), respec("x", "template", "data", "a"), []string{webhooks.WorkloadPath}},
		"Application":      {application("plain"), respec("x", "targetRef", "name"), []string{webhooks.WorkloadPath}},
		"Policy":           {policy(), respec("Audit", "action"), []string{webhooks.PolicyPath}},
	} {
		cases[name] = selection{reason: "A change during deletion is validated.", do: going(kind.object, kind.change), want: kind.want}
		cases[name+"WithFinalizer"] = selection{
			reason: "A change together with a removed finalizer is validated.", want: kind.want,
			do: going(kind.object, func(o client.Object) { kind.change(o); o.SetFinalizers(o.GetFinalizers()[:1]) }),
		}
		cases[name+"Finalizer"] = selection{
			reason: "The removal of a finalizer calls no webhook.",
			do:     going(kind.object, func(o client.Object) { o.SetFinalizers(o.GetFinalizers()[:1]) }),
		}
		cases[name+"Gone"] = selection{
			reason: "The removal of the last finalizer calls no webhook.",
			do:     going(kind.object, func(o client.Object) { o.SetFinalizers(nil) }),
		}
	}
	cases["ResourceReleased"] = selection{
		reason: "The release annotation is validated.", want: []string{webhooks.WorkloadPath},
		do: going(applicationResource("plain"), func(o client.Object) { o.SetAnnotations(map[string]string{v1alpha1.ReleaseAnnotation: "true"}) }),
	}
	controlled := func(kind string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "web", UID: "1", Controller: ptr.To(true)}}
	}
	owned := applicationResource("plain")
	owned.SetOwnerReferences(controlled("Release"))
	cases["ResourceController"] = selection{
		reason: "A change of the controller is validated.", want: []string{webhooks.WorkloadPath},
		do: going(owned, func(o client.Object) { o.SetOwnerReferences(controlled("Deployment")) }),
	}
	return cases
}

// trust adds the CA to the webhook configurations among the objects.
func trust(t *testing.T, objects []*unstructured.Unstructured, ca *x509.Certificate) {
	t.Helper()
	bundle := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw}))
	for _, object := range objects {
		configured, found, err := unstructured.NestedSlice(object.Object, "webhooks")
		if err != nil || !found {
			continue
		}
		for _, webhook := range configured {
			if err := unstructured.SetNestedField(webhook.(map[string]any), bundle, "clientConfig", "caBundle"); err != nil {
				t.Fatal(err)
			}
		}
		object.Object["webhooks"] = configured
	}
}

// waitUntilCalled waits until the API server has observed both configurations.
func waitUntilCalled(t *testing.T, cluster client.Client, calls *recorder) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		calls.reset()
		if err := cluster.Create(t.Context(), deployment("opted-in", v1alpha1.ScheduleRemote), client.DryRunAll); err != nil {
			continue
		}
		if len(calls.paths()) == 2 {
			return
		}
	}
	t.Fatalf("the API server does not call us: %v", calls.paths())
}

func scheduled(schedule string) map[string]string {
	out := map[string]string{"app": "web"}
	if schedule != "" {
		out[v1alpha1.ScheduleLabel] = schedule
	}
	return out
}

var template = corev1.PodTemplateSpec{
	ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
	Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
}

func meta(namespace, schedule string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: "web", Namespace: namespace, Labels: scheduled(schedule)}
}

func deployment(namespace, schedule string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: meta(namespace, schedule), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Template: *template.DeepCopy(),
	}}
}

// replicaSet is one of a Deployment.
func replicaSet(namespace, schedule string, replicas int32) *appsv1.ReplicaSet {
	out := &appsv1.ReplicaSet{ObjectMeta: meta(namespace, schedule), Spec: appsv1.ReplicaSetSpec{
		Replicas: ptr.To(replicas),
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Template: *template.DeepCopy(),
	}}
	out.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "1", Controller: ptr.To(true)}}
	return out
}

func service(namespace, schedule string) *corev1.Service {
	return &corev1.Service{ObjectMeta: meta(namespace, schedule), Spec: corev1.ServiceSpec{
		Type:  corev1.ServiceTypeLoadBalancer,
		Ports: []corev1.ServicePort{{Port: 80}},
	}}
}

func cronJob(scheduleOn string) *batchv1.CronJob {
	out := &batchv1.CronJob{ObjectMeta: meta("plain", v1alpha1.ScheduleRemote), Spec: batchv1.CronJobSpec{Schedule: "@daily"}}
	out.Annotations = map[string]string{v1alpha1.ScheduleOnAnnotation: scheduleOn}
	out.Spec.JobTemplate.Spec.Template = *template.DeepCopy()
	out.Spec.JobTemplate.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return out
}

func configMap(namespace, schedule string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: meta(namespace, schedule)}
}

func secret(namespace string, keys ...string) *corev1.Secret {
	data := map[string][]byte{}
	for _, key := range keys {
		data[key] = []byte("value")
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "dev", Namespace: namespace}, Data: data}
}

func target(namespace string) client.Object {
	return object("KubernetesTarget", "v1alpha1", namespace, map[string]any{"connectionSecretRef": map[string]any{"name": "dev"}})
}

func applicationResource(namespace string) *unstructured.Unstructured {
	return object("KubernetesApplicationResource", "v1alpha1", namespace, map[string]any{
		"template": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web"}, "data": map[string]any{}}})
}

func application(namespace string) *unstructured.Unstructured {
	return object("KubernetesApplication", "v1alpha2", namespace, map[string]any{})
}

// making returns a resource whose object is a Namespace.
func making(o *unstructured.Unstructured) *unstructured.Unstructured {
	template := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "web"}}
	spec := map[string]any{"template": template}
	if o.GetKind() == "KubernetesApplication" {
		spec = map[string]any{"resourceTemplates": []any{map[string]any{"metadata": map[string]any{"name": "web"}, "spec": spec}}}
	}
	o.Object["spec"] = spec
	return o
}

func policy() *unstructured.Unstructured {
	out := object("Policy", "v1alpha1", "", map[string]any{"type": "Scheduling", "modules": map[string]any{"a.rego": "package a"}})
	out.SetAPIVersion("policy.workload.crossplane.io/v1alpha1")
	return out
}

func object(kind, version, namespace string, spec map[string]any) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	out.SetAPIVersion(v1alpha1.Group + "/" + version)
	out.SetKind(kind)
	out.SetName("web")
	out.SetNamespace(namespace)
	return out
}

func claim(namespace string) client.Object {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "compute.crossplane.io/v1alpha1",
		"kind":       "KubernetesCluster",
		"metadata":   map[string]any{"name": "dev", "namespace": namespace},
		"spec":       map[string]any{"writeConnectionSecretToRef": map[string]any{"name": "dev"}},
	}}
}

// recorder allows all requests, and records the called webhooks.
type recorder struct {
	mu       sync.Mutex
	requests []string
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	r.requests = append(r.requests, request.URL.Path)
	r.mu.Unlock()
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	_ = json.NewEncoder(w).Encode(review) // the API server reports an incomplete response
}

func (r *recorder) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = nil
}

// paths returns the called webhooks, each once: the API server calls them for its
// cached object first, and again for the stored one if the cache was behind.
func (r *recorder) paths() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.Clone(r.requests)
	slices.Sort(out)
	return slices.Compact(out)
}
