package consumers

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json" // keeps integers
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestHub(t *testing.T) {
	h := startHub(t)
	t.Run("Rows", func(t *testing.T) { testRows(t, h) })
	t.Run("OddStatuses", func(t *testing.T) { testOddStatuses(t, h) })
}

// testRows writes the status of every row to a real API server with the status
// controller. The API server stores it unchanged, and a second reconcile writes
// nothing.
func testRows(t *testing.T, h *hub) {
	for name, r := range rows() {
		t.Run(name, func(t *testing.T) {
			stored := h.store(t, name, r)
			want := []map[string]any{statusOf(stored.onHub(t))}
			for _, rs := range stored.shadows(t) {
				want = append(want, statusOf(toUnstructured(t, &rs)))
			}
			h.must(t, h.reconcile(t, stored))
			got := []map[string]any{h.stored(t, stored.hub)}
			for _, rs := range stored.shadows(t) {
				got = append(got, h.stored(t, &rs))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\nthe hub stored another status, -wrote +stored:\n%s", r.reason, diff)
			}

			h.writes = 0
			h.must(t, h.reconcile(t, stored))
			if h.writes != 0 {
				t.Errorf("%d writes of a status that is there", h.writes)
			}
			select {
			case event := <-h.events.Events:
				t.Errorf("unexpected event: %s", event)
			default:
			}
		})
	}
}

// testOddStatuses tests statuses that no controller of Kubernetes reports. The hub
// stores the valid ones. A rejected status has one event, and is not written again.
func testOddStatuses(t *testing.T, h *hub) {
	lastDeployment := counts(1, 1, 1, 1, 1, 0, available, complete)
	lastService := balanced(corev1.LoadBalancerIngress{Hostname: "web.example.com"})
	for name, test := range map[string]struct {
		reason string
		native string // "Deployment" or "Service"
		remote string
		want   string // the status on the hub; none if it is rejected
		event  string // the quotation in the event
	}{
		"NoneReady": {
			reason: "Without ready Pods the count of available Pods is omitted. The hub would not store a zero.",
			native: "Deployment", remote: `{"observedGeneration": 1, "replicas": 2, "availableReplicas": 2}`,
			want: `{"observedGeneration": 1, "replicas": 2}`,
		},
		"FieldOfTomorrow": {
			reason: "A field that the hub does not know is omitted.",
			native: "Deployment", remote: `{"observedGeneration": 1, "replicas": 2, "dreamingReplicas": 2}`,
			want: `{"observedGeneration": 1, "replicas": 2}`,
		},
		"NegativeCount": {
			reason: "A negative count is rejected.",
			native: "Deployment", remote: `{"observedGeneration": 1, "replicas": 2, "updatedReplicas": -1}`,
			event: "must be greater than or equal to 0",
		},
		"TextForCount": {
			reason: "A count that is a text is rejected.",
			native: "Deployment", remote: `{"observedGeneration": 1, "replicas": "two"}`,
			event: "cannot unmarshal string",
		},
		"NotAnObject": {
			reason: "A status that is a text is rejected.",
			native: "Deployment", remote: `"fine, thank you"`,
			event: "it is not an object",
		},
		"TextForTime": {
			reason: "A time that cannot be parsed is rejected.",
			native: "Deployment", remote: `{"observedGeneration": 1, "conditions": [{"type": "Available", "status": "True", "lastUpdateTime": "a while ago"}]}`,
			event: "parsing time",
		},
		"TextForIngress": {
			reason: "An entry that is a text is omitted, and the next one is kept.",
			native: "Service", remote: `{"loadBalancer": {"ingress": ["soon", {"ip": "203.0.113.7", "ipMode": "VIP"}]}}`,
			want: `{"loadBalancer": {"ingress": [{"ip": "203.0.113.7", "ipMode": "Proxy"}]}}`,
		},
		"AddressOfNothing": {
			reason: "An address that the hub would reject is omitted.",
			native: "Service", remote: `{"loadBalancer": {"ingress": [{"ip": "pending"}]}}`,
			want: `{"loadBalancer": {}}`,
		},
		"AddressForName": {
			reason: "A hostname that is an address is omitted.",
			native: "Service", remote: `{"loadBalancer": {"ingress": [{"hostname": "203.0.113.7"}]}}`,
			want: `{"loadBalancer": {}}`,
		},
		"OddPorts": {
			reason: "Ports that the hub would reject are omitted.",
			native: "Service", remote: `{"loadBalancer": {"ingress": [{"hostname": "a.example.com", "ipMode": "VIP", "ports": [{"port": 80, "protocol": "TCP", "error": "example.org/Broken"}, {"port": 0, "protocol": "TCP"}]}]}}`,
			want: `{"loadBalancer": {"ingress": [{"hostname": "a.example.com", "ports": [{"port": 80, "protocol": "TCP", "error": "example.org/Broken"}]}]}}`,
		},
		"TextForBalancer": {
			reason: "A load balancer that is a text is omitted.",
			native: "Service", remote: `{"loadBalancer": "soon"}`,
			want: `{"loadBalancer": {}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var r row
			switch test.native {
			case "Deployment":
				r = row{hub: deployment(1, 1, lastDeployment), target: &observedObject{generation: 1, stamp: 1, status: lastDeployment, raw: test.remote}}
			case "Service":
				r = row{hub: service(corev1.ServiceTypeLoadBalancer, "", lastService), target: &observedObject{status: lastService, raw: test.remote}}
			}
			stored := h.store(t, name, r)
			before := h.stored(t, stored.hub)
			err := h.reconcile(t, stored)
			got := h.stored(t, stored.hub)
			if test.event == "" {
				h.must(t, err)
				want := map[string]any{}
				h.must(t, json.Unmarshal([]byte(test.want), &want))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s\n-want +stored:\n%s", test.reason, diff)
				}
				return
			}
			if !errors.Is(err, reconcile.TerminalError(nil)) {
				t.Errorf("%s\nwant a terminal error, got %v", test.reason, err)
			}
			if diff := cmp.Diff(before, got); diff != "" {
				t.Errorf("%s\nthe last status was not kept, -before +after:\n%s", test.reason, diff)
			}
			select {
			case event := <-h.events.Events:
				if !strings.Contains(event, test.event) {
					t.Errorf("%s\nwant an event that says %q, got %q", test.reason, test.event, event)
				}
			default:
				t.Errorf("%s\nno event says why", test.reason)
			}
		})
	}
}

func statusOf(object *unstructured.Unstructured) map[string]any {
	out, _, _ := unstructured.NestedMap(object.Object, "status")
	return out
}
