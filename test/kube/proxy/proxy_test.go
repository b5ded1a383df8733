// Package proxy runs the kube-proxy of Kubernetes for a Service on the hub. The status
// of that Service contains addresses that a target reported.
package proxy

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sysctltesting "k8s.io/component-helpers/node/util/sysctl/testing"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/proxy/iptables"
	proxyutil "k8s.io/kubernetes/pkg/proxy/util"
	iptablestesting "k8s.io/kubernetes/pkg/util/iptables/testing"
	"sigs.k8s.io/yaml"
)

// address is the address that the target reports in every case.
const address = "203.0.113.7"

// TestReflectedAddress: no rule of the hub's kube-proxy contains an address that a
// target reported. The tests of api/kinds test the reported status.
func TestReflectedAddress(t *testing.T) {
	data, err := os.ReadFile("../../../api/kinds/testdata/load_balancers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Reason      string
		Target, Hub corev1.LoadBalancerStatus
	}
	if err := yaml.UnmarshalStrict(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("there is no case")
	}
	for _, tc := range cases {
		if named := rules(t, tc.Hub); len(named) > 0 {
			t.Errorf("%s\nkube-proxy routes the address of the target:\n%s", tc.Reason, strings.Join(named, "\n"))
		}
		if named := rules(t, tc.Target); len(named) == 0 {
			t.Errorf("%s\nkube-proxy does not route the address as the target reports it, so this case proves nothing", tc.Reason)
		}
	}
}

// rules returns kube-proxy's rules with the address, for a Service without endpoints.
func rules(t *testing.T, status corev1.LoadBalancerStatus) []string {
	t.Helper()
	// The hub's API server stores it so.
	for i := range status.Ingress {
		if vip := corev1.LoadBalancerIPModeVIP; status.Ingress[i].IP != "" && status.Ingress[i].IPMode == nil {
			status.Ingress[i].IPMode = &vip
		}
	}
	ipt := iptablestesting.NewFake()
	proxier, err := iptables.NewProxier(klog.NewContext(context.Background(), logr.Discard()), corev1.IPv4Protocol, ipt, sysctltesting.NewFake(),
		time.Hour, time.Hour, false, false, 14, proxyutil.NewNoOpLocalDetector(), "hub", net.ParseIP("192.0.2.1"), nil, nil, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	class := "workload.crossplane.io/remote"
	proxier.OnServiceAdd(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: &class,
			ClusterIP: "10.96.0.10", ClusterIPs: []string{"10.96.0.10"}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}},
		},
		Status: corev1.ServiceStatus{LoadBalancer: status},
	})
	proxier.OnServiceSynced()
	proxier.OnEndpointSlicesSynced()

	dump := ipt.Dump.String()
	if !strings.Contains(dump, "10.96.0.10") {
		t.Fatalf("kube-proxy did not see the Service:\n%s", dump)
	}
	var out []string
	for line := range strings.Lines(dump) {
		if strings.Contains(line, address) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}
