package manifests

import (
	"net/netip"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/portico-io/portico/test/cluster/install"
)

// parameters is an overlay with the parameters of the NetworkPolicies.
var parameters = filepath.Join("..", "test", "manifests", "testdata", "network")

// TestNetworkPolicies tests which clients reach which port of the manager. There is no
// network plugin here, so the test evaluates the policies as their API defines them.
func TestNetworkPolicies(t *testing.T) {
	cases := map[string]struct {
		reason  string
		overlay string
		address string
		from    string // a namespace
		port    string
		want    bool
	}{
		"APIServer":           {reason: "API servers may call webhooks.", overlay: parameters, address: "192.0.2.11", port: "webhook", want: true},
		"Pod":                 {reason: "Other Pods may not call webhooks.", overlay: parameters, address: "10.244.0.7", from: "default", port: "webhook"},
		"MonitoringAtWebhook": {reason: "Monitoring may not call webhooks.", overlay: parameters, address: "10.244.0.7", from: "observability", port: "webhook"},
		"Monitoring":          {reason: "Monitoring may read metrics.", overlay: parameters, address: "10.244.0.7", from: "observability", port: "metrics", want: true},
		"APIServerAtMetrics":  {reason: "API servers may not read metrics.", overlay: parameters, address: "192.0.2.11", port: "metrics"},
		"PodAtMetrics":        {reason: "Other Pods may not read metrics, which have no authentication.", overlay: parameters, address: "10.244.0.7", from: "default", port: "metrics"},
		"PodAtHealth":         {reason: "Other Pods may not call the health endpoint. A kubelet needs no policy.", overlay: parameters, address: "10.244.0.7", from: "default", port: "health"},
		"UnsetAPIServer":      {reason: "Without its parameter the policy allows all API servers.", overlay: "hardened", address: "198.51.100.1", port: "webhook", want: true},
		"UnsetAPIServer6":     {reason: "Without its parameter the policy allows all API servers with IPv6.", overlay: "hardened", address: "2001:db8::1", port: "webhook", want: true},
		"UnsetMonitoring":     {reason: "By default monitoring has the usual namespace.", overlay: "hardened", from: "monitoring", address: "10.244.0.7", port: "metrics", want: true},
		"UnsetPodAtMetrics":   {reason: "By default other Pods may not read metrics.", overlay: "hardened", from: "default", address: "10.244.0.7", port: "metrics"},
		"Without":             {reason: "The default installation has no network policies.", overlay: "default", from: "default", address: "10.244.0.7", port: "metrics", want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var pod corev1.PodTemplateSpec
			var policies []networkingv1.NetworkPolicy
			for _, object := range render(t, tc.overlay) {
				switch object.GetKind() {
				case "Deployment":
					var deployment appsv1.Deployment
					convert(t, object, &deployment)
					pod = deployment.Spec.Template
				case "NetworkPolicy":
					var policy networkingv1.NetworkPolicy
					convert(t, object, &policy)
					if policy.Namespace != install.Namespace || !slices.Equal(policy.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
						t.Errorf("%s: want a policy for ingress only, and no limit for egress to targets, got %+v", policy.Name, policy)
					}
					policies = append(policies, policy)
				}
			}
			if got := admits(t, policies, pod, tc.port, netip.MustParseAddr(tc.address), tc.from); got != tc.want {
				t.Errorf("%s Want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// admits tells whether policies allow a connection to a port of a Pod, from an address,
// and from a namespace if the address is that of a Pod.
func admits(t *testing.T, policies []networkingv1.NetworkPolicy, pod corev1.PodTemplateSpec, port string, address netip.Addr, namespace string) bool {
	t.Helper()
	selects := func(selector *metav1.LabelSelector, set labels.Set) bool {
		parsed, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		return parsed.Matches(set)
	}
	if !slices.ContainsFunc(pod.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == port }) {
		t.Fatalf("the manager has no port %s", port)
	}
	isolated := false
	for _, policy := range policies {
		if !selects(&policy.Spec.PodSelector, pod.Labels) {
			continue
		}
		isolated = true
		for _, rule := range policy.Spec.Ingress {
			if !slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port.String() == port }) {
				continue
			}
			for _, peer := range rule.From {
				if peer.IPBlock != nil && netip.MustParsePrefix(peer.IPBlock.CIDR).Contains(address) {
					return true
				}
				if peer.NamespaceSelector != nil && namespace != "" && selects(peer.NamespaceSelector, labels.Set{corev1.LabelMetadataName: namespace}) {
					return true
				}
			}
		}
	}
	return !isolated
}
