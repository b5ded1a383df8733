package connectionsecret

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func read[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func resource(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: *read[map[string]any](t, text)}
}

const (
	gke = `
apiVersion: compute.gcp.crossplane.io/v1alpha3
kind: GKECluster
metadata: {name: dev, uid: the-cluster}
spec: {writeConnectionSecretToRef: {namespace: infra, name: dev-secret}}
`
	gkeBound = gke + "status: {bindingPhase: Bound}\n"
	capi     = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {namespace: team, name: dev, uid: the-cluster}
spec: {controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: KubeadmControlPlane, name: dev-cp}}
status: {phase: Provisioned}
`
	capiV1beta1 = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {namespace: team, name: dev, uid: the-cluster}
spec: {controlPlaneRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlane, name: dev-cp}}
status: {phase: Provisioned}
`
)

func TestSecret(t *testing.T) {
	infra := types.NamespacedName{Namespace: "infra", Name: "dev-secret"}
	cases := map[string]struct {
		reason, cluster string
		want            types.NamespacedName
		refusal         string
	}{
		"Bound":          {reason: "A bound cluster can be used.", cluster: gkeBound, want: infra},
		"Unbound":        {reason: "An unbound cluster cannot be used.", cluster: gke + "status: {bindingPhase: Unbound}", refusal: v1alpha1.ReasonClusterNotBound},
		"Released":       {reason: "A released cluster may have data of its earlier user.", cluster: gke + "status: {bindingPhase: Released}", refusal: v1alpha1.ReasonClusterNotBound},
		"ReadyUnbound":   {reason: "The binding phase has priority over Ready.", cluster: gke + "status: {bindingPhase: Unbound, conditions: [{type: Ready, status: 'True'}]}", refusal: v1alpha1.ReasonClusterNotBound},
		"Ready":          {reason: "A kind without a binding phase can be used if it is ready.", cluster: gke + "status: {conditions: [{type: Synced, status: 'True'}, {type: Ready, status: 'True'}]}", want: infra},
		"NotReady":       {reason: "A cluster that is not ready cannot be used.", cluster: gke + "status: {conditions: [{type: Ready, status: 'False'}]}", refusal: v1alpha1.ReasonClusterNotBound},
		"New":            {reason: "A resource without a status is not bound.", cluster: gke, refusal: v1alpha1.ReasonClusterNotBound},
		"Odd":            {reason: "A status with other types is not bound.", cluster: gke + "status: {bindingPhase: {a: b}, conditions: [1, {type: Ready}]}", refusal: v1alpha1.ReasonClusterNotBound},
		"Going":          {reason: "A cluster that is being deleted cannot be used.", cluster: "apiVersion: a/v1\nkind: A\nmetadata: {name: dev, deletionTimestamp: '2020-01-01T00:00:00Z'}\nstatus: {bindingPhase: Bound}", refusal: v1alpha1.ReasonClusterNotBound},
		"NoSecret":       {reason: "A resource without a Secret has no connection.", cluster: "apiVersion: a/v1\nkind: A\nmetadata: {name: dev}\nstatus: {bindingPhase: Bound}", refusal: v1alpha1.ReasonSecretMissing},
		"NoNamespace":    {reason: "A Secret without a namespace has no connection.", cluster: "apiVersion: a/v1\nkind: A\nmetadata: {name: dev}\nspec: {writeConnectionSecretToRef: {name: x}}\nstatus: {bindingPhase: Bound}", refusal: v1alpha1.ReasonSecretMissing},
		"ClusterAPI":     {reason: "The name of the Secret follows from the name of the Cluster API Cluster.", cluster: capi, want: types.NamespacedName{Namespace: "team", Name: "dev-kubeconfig"}},
		"ClusterAPIMade": {reason: "A Cluster that is being provisioned has no control plane.", cluster: "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {namespace: team, name: dev}\nstatus: {phase: Provisioning}", refusal: v1alpha1.ReasonClusterNotBound},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for what, cluster := range map[string]*unstructured.Unstructured{"whole": resource(t, tc.cluster), "trimmed": TrimCluster(resource(t, tc.cluster))} {
				got, refusal := SourceSecret(cluster)
				if diff := cmp.Diff(tc.refusal, reason(refusal)); diff != "" {
					t.Errorf("%s %s (-want +got):\n%s", what, tc.reason, diff)
				}
				if got != tc.want {
					t.Errorf("%s %s: got %s, want %s", what, tc.reason, got, tc.want)
				}
			}
		})
	}
}

func reason(refusal *Refusal) string {
	if refusal == nil {
		return ""
	}
	return refusal.Reason
}

func TestData(t *testing.T) {
	const (
		ofCluster  = "ownerReferences: [{apiVersion: compute.gcp.crossplane.io/v1alpha3, kind: GKECluster, name: dev, uid: the-cluster, controller: true}]"
		ofPlane    = "ownerReferences: [{apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlane, name: dev-cp, uid: the-plane, controller: true}]"
		labelled   = "labels: {cluster.x-k8s.io/cluster-name: dev}, "
		kubeconfig = "\ndata: {value: aGVsbG8=}"
	)
	hello := map[string][]byte{v1alpha1.SecretKubeconfig: []byte("hello")}
	cases := map[string]struct {
		reason, cluster, secret string
		want                    map[string][]byte
		refusal                 string
	}{
		"Controlled":    {reason: "The cluster controls the Secret.", cluster: gkeBound, secret: "metadata: {" + ofCluster + "}\ndata: {kubeconfig: aGVsbG8=}", want: hello},
		"OnlyOurKeys":   {reason: "Unknown keys and empty values are not copied.", cluster: gkeBound, secret: "metadata: {" + ofCluster + "}\ndata: {kubeconfig: aGVsbG8=, token: '', gcp-service-account: aGVsbG8=, port: NDQz}", want: hello},
		"Parts":         {reason: "The keys for endpoint and credentials are copied.", cluster: gkeBound, secret: "metadata: {" + ofCluster + "}\ndata: {endpoint: YQ==, clusterCA: Yg==, clientCert: Yw==, clientKey: ZA==, username: ZQ==, password: Zg==, token: Zw==}", want: map[string][]byte{"endpoint": []byte("a"), "clusterCA": []byte("b"), "clientCert": []byte("c"), "clientKey": []byte("d"), "username": []byte("e"), "password": []byte("f"), "token": []byte("g")}},
		"NoKeys":        {reason: "A Secret without a known key is no connection.", cluster: gkeBound, secret: "metadata: {" + ofCluster + "}\ndata: {other: aGVsbG8=}", refusal: v1alpha1.ReasonInvalidConnection},
		"Missing":       {reason: "The Secret does not exist yet.", cluster: gkeBound, refusal: v1alpha1.ReasonSecretMissing},
		"Nobodys":       {reason: "A Secret without a controller is not copied.", cluster: gkeBound, secret: "data: {kubeconfig: aGVsbG8=}", refusal: v1alpha1.ReasonSecretNotControlled},
		"Owned":         {reason: "An owner that is not the controller does not suffice.", cluster: gkeBound, secret: "metadata: {ownerReferences: [{apiVersion: a/v1, kind: GKECluster, name: dev, uid: the-cluster}]}\ndata: {kubeconfig: aGVsbG8=}", refusal: v1alpha1.ReasonSecretNotControlled},
		"Namesakes":     {reason: "A cluster with the same name and another UID does not suffice.", cluster: gkeBound, secret: "metadata: {ownerReferences: [{apiVersion: a/v1, kind: GKECluster, name: dev, uid: former, controller: true}]}\ndata: {kubeconfig: aGVsbG8=}", refusal: v1alpha1.ReasonSecretNotControlled},
		"ClusterAPI":    {reason: "The control plane that the Cluster names may control the Secret.", cluster: capi, secret: "metadata: {" + labelled + ofPlane + "}" + kubeconfig, want: hello},
		"ClusterAPIOld": {reason: "A reference of v1beta1 is read too.", cluster: capiV1beta1, secret: "metadata: {" + labelled + ofPlane + "}" + kubeconfig, want: hello},
		"ClusterAPIOwn": {reason: "The Cluster may own the Secret.", cluster: capi, secret: "metadata: {" + labelled + "ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, name: dev, uid: the-cluster}]}" + kubeconfig, want: hello},
		"CAPIUnlabeled": {reason: "A Secret without Cluster API's label is not copied.", cluster: capi, secret: "metadata: {" + ofPlane + "}" + kubeconfig, refusal: v1alpha1.ReasonSecretNotControlled},
		"CAPIOthers":    {reason: "A Secret with only the label is not copied.", cluster: capi, secret: "metadata: {labels: {cluster.x-k8s.io/cluster-name: dev}}" + kubeconfig, refusal: v1alpha1.ReasonSecretNotControlled},
		"CAPIOtherKind": {reason: "A control plane of another group does not suffice.", cluster: capi, secret: "metadata: {" + labelled + "ownerReferences: [{apiVersion: example.org/v1, kind: KubeadmControlPlane, name: dev-cp, uid: x, controller: true}]}" + kubeconfig, refusal: v1alpha1.ReasonSecretNotControlled},
		"CAPIOtherKey":  {reason: "Cluster API stores the kubeconfig in key value.", cluster: capi, secret: "metadata: {" + labelled + ofPlane + "}\ndata: {kubeconfig: aGVsbG8=}", refusal: v1alpha1.ReasonInvalidConnection},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var secret *corev1.Secret
			if tc.secret != "" {
				secret = read[corev1.Secret](t, tc.secret)
			}
			got, refusal := DataToCopy(resource(t, tc.cluster), types.NamespacedName{Namespace: "infra", Name: "dev-secret"}, secret)
			if diff := cmp.Diff(tc.refusal, reason(refusal)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestKey(t *testing.T) {
	target := func(version, kind string) *v1alpha1.KubernetesTarget {
		out := &v1alpha1.KubernetesTarget{Spec: v1alpha1.KubernetesTargetSpec{ClusterRef: &v1alpha1.ClusterReference{APIVersion: version, Kind: kind, Name: "dev"}}}
		out.Namespace = "team"
		return out
	}
	cases := map[string]struct {
		reason     string
		target     *v1alpha1.KubernetesTarget
		namespaced bool
		want       types.NamespacedName
		refusal    string
	}{
		"Managed":      {reason: "A managed resource is cluster-scoped.", target: target("compute.gcp.crossplane.io/v1alpha3", "GKECluster"), want: types.NamespacedName{Name: "dev"}},
		"ClusterAPI":   {reason: "A Cluster is read in the target's namespace.", target: target("cluster.x-k8s.io/v1beta2", "Cluster"), namespaced: true, want: types.NamespacedName{Namespace: "team", Name: "dev"}},
		"Namespaced":   {reason: "A claim is not a managed resource.", target: target("compute.crossplane.io/v1alpha1", "KubernetesCluster"), namespaced: true, refusal: v1alpha1.ReasonInvalidClusterRef},
		"OtherCluster": {reason: "A Cluster of another group is not Cluster API's.", target: target("example.org/v1", "Cluster"), namespaced: true, refusal: v1alpha1.ReasonInvalidClusterRef},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, refusal := ClusterKey(tc.target, tc.namespaced)
			if got != tc.want || reason(refusal) != tc.refusal {
				t.Errorf("%s: got %s %v, want %s %s", tc.reason, got, refusal, tc.want, tc.refusal)
			}
		})
	}
}

func TestTrim(t *testing.T) {
	cases := map[string]struct {
		reason, before, after string
		same                  bool
	}{
		"Heartbeat": {reason: "The time of a condition is trimmed.", same: true,
			before: gke + "status: {conditions: [{type: Ready, status: 'True', lastTransitionTime: a}]}",
			after:  gke + "status: {nodes: 4, conditions: [{type: Ready, status: 'True', lastTransitionTime: b}]}"},
		"NotReady": {reason: "The status of Ready is kept.",
			before: gke + "status: {conditions: [{type: Ready, status: 'True'}]}",
			after:  gke + "status: {conditions: [{type: Ready, status: 'False'}]}"},
		"Bound":    {reason: "The binding phase is kept.", before: gke, after: gkeBound},
		"Replaced": {reason: "The UID is kept.", before: "metadata: {name: a, uid: a}", after: "metadata: {name: a, uid: b}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			diff := cmp.Diff(TrimCluster(resource(t, tc.before)).Object, TrimCluster(resource(t, tc.after)).Object)
			if tc.same != (diff == "") {
				t.Errorf("%s (-before +after):\n%s", tc.reason, diff)
			}
		})
	}
}
