package kinds

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-io/portico/api/kinds/fields"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Service needs no hold: without Pods it has no endpoints. Only a LoadBalancer is held,
// by a class of Portico that the hub's cloud controller ignores.
type Service struct{}

var _ immovable = Service{}

// GroupVersionKind implements Kind.
func (Service) GroupVersionKind() schema.GroupVersionKind {
	return corev1.SchemeGroupVersion.WithKind("Service")
}

// Resource implements Kind.
func (Service) Resource() string { return "services" }

// Properties implements Kind.
func (Service) Properties() Properties {
	return Properties{
		OptIn: true, Held: true, HasStatus: true,
		Sent:    "the spec you wrote",
		NotSent: "cluster IPs, and node ports that the hub allocated",
	}
}

var classPath = []string{"spec", "loadBalancerClass"}

// Hold implements Kind.
func (Service) Hold(object, old *unstructured.Unstructured, _ Author) (fields.Patch, error) {
	intent, err := serviceIntent(object, old)
	if err != nil {
		return nil, err
	}
	patch := intent.annotate(object)
	switch class := fields.String(object, classPath...); {
	case IsLoadBalancer(object) && canSetClass(old):
		patch = append(patch, fields.Set(object, v1alpha1.RemoteLoadBalancerClass, classPath...)...)
	case !IsLoadBalancer(object) && class == v1alpha1.RemoteLoadBalancerClass:
		patch = append(patch, fields.Remove(object, classPath...)...)
	}
	return patch, nil
}

// canSetClass tells whether the API server would accept our class: it does not
// change while the Service stays a LoadBalancer.
func canSetClass(old *unstructured.Unstructured) bool {
	return old == nil || !IsLoadBalancer(old) || fields.String(old, classPath...) == v1alpha1.RemoteLoadBalancerClass
}

// Release implements Kind. The class cannot be taken off a LoadBalancer;
// validation says so to the user.
func (Service) Release(object *unstructured.Unstructured) fields.Patch {
	patch := removeIntent(object)
	if !IsLoadBalancer(object) && fields.String(object, classPath...) == v1alpha1.RemoteLoadBalancerClass {
		patch = append(patch, fields.Remove(object, classPath...)...)
	}
	return patch
}

// Held implements Kind.
func (Service) Held(object *unstructured.Unstructured) bool { return IsRemote(object) }

// IsLoadBalancer tells whether a Service is of type LoadBalancer.
func IsLoadBalancer(service *unstructured.Unstructured) bool {
	return fields.String(service, "spec", "type") == string(corev1.ServiceTypeLoadBalancer)
}

// immovableReason implements immovable.
func (Service) immovableReason(object *unstructured.Unstructured) (reason, remedy string) {
	if !IsLoadBalancer(object) {
		return "", ""
	}
	return "a LoadBalancer cannot move between clusters, because its loadBalancerClass is immutable",
		"delete and re-create the Service, or change its type to ClusterIP in the same edit"
}

// serviceIntent returns the values of the user, without those of the hub. Admission runs
// before the hub allocates, so on create all values are the user's. Later, a value that
// did not change keeps its author, and one that changed is the user's.
func serviceIntent(object, old *unstructured.Unstructured) (Intent, error) {
	now := allocatableFields(object)
	var recorded, before Intent
	switch {
	case old == nil:
		restored, found, err := IntentOf(object)
		if err != nil {
			return Intent{}, err
		}
		if !found {
			return now.forServiceType(object), nil
		}
		// The object was read from a hub and is created again: the annotation has the
		// fields of the user, and maybe not their current values.
		recorded, before = restored.withValuesOf(now), now
	case IsRemote(old):
		var err error
		if recorded, err = intentBefore(object, old); err != nil {
			return Intent{}, err
		}
		before = allocatableFields(old)
	default:
		// It ran on the hub until now: its values were allocated there.
		before = allocatableFields(old)
	}

	out := Intent{
		ClusterIP:           userValue(recorded.ClusterIP, before.ClusterIP, now.ClusterIP),
		IPFamilyPolicy:      userValue(recorded.IPFamilyPolicy, before.IPFamilyPolicy, now.IPFamilyPolicy),
		HealthCheckNodePort: userValue(recorded.HealthCheckNodePort, before.HealthCheckNodePort, now.HealthCheckNodePort),
		LoadBalancerClass:   now.LoadBalancerClass, // never allocated, and hidden by ours
		ClusterIPs:          userValues(recorded.ClusterIPs, before.ClusterIPs, now.ClusterIPs),
		IPFamilies:          userValues(recorded.IPFamilies, before.IPFamilies, now.IPFamilies),
		NodePorts:           userNodePorts(recorded.NodePorts, before.NodePorts, now.NodePorts),
	}
	if now.LoadBalancerClass == v1alpha1.RemoteLoadBalancerClass {
		// The class that Portico's hides is in the annotation of the object, when the
		// API server calls admission a second time for the same change.
		out.LoadBalancerClass = recorded.LoadBalancerClass
		if own, found, err := IntentOf(object); found && err == nil {
			out.LoadBalancerClass = own.LoadBalancerClass
		}
	}
	return out.forServiceType(object), nil
}

// withValuesOf returns the recorded fields of the user, with the values of now.
func (i Intent) withValuesOf(now Intent) Intent {
	if i.ClusterIP != "" {
		i.ClusterIP = now.ClusterIP
	}
	if i.IPFamilyPolicy != "" {
		i.IPFamilyPolicy = now.IPFamilyPolicy
	}
	if i.HealthCheckNodePort != 0 {
		i.HealthCheckNodePort = now.HealthCheckNodePort
	}
	if len(i.ClusterIPs) > 0 {
		i.ClusterIPs = now.ClusterIPs
	}
	if len(i.IPFamilies) > 0 {
		i.IPFamilies = now.IPFamilies
	}
	for port := range i.NodePorts {
		i.NodePorts[port] = now.NodePorts[port]
	}
	return i
}

// forServiceType leaves out the fields that a Service of its type cannot have, because
// the API server drops them when the type changes. It also leaves out Portico's own
// class, and the addresses of a headless Service, which has none.
func (i Intent) forServiceType(service *unstructured.Unstructured) Intent {
	kind := corev1.ServiceType(fields.String(service, "spec", "type"))
	local := fields.String(service, "spec", "externalTrafficPolicy") == string(corev1.ServiceExternalTrafficPolicyLocal)
	if kind != corev1.ServiceTypeLoadBalancer || i.LoadBalancerClass == v1alpha1.RemoteLoadBalancerClass {
		i.LoadBalancerClass = ""
	}
	if kind != corev1.ServiceTypeLoadBalancer || !local {
		i.HealthCheckNodePort = 0
	}
	if kind != corev1.ServiceTypeLoadBalancer && kind != corev1.ServiceTypeNodePort {
		i.NodePorts = nil
	}
	switch {
	case kind == corev1.ServiceTypeExternalName:
		i.ClusterIP, i.ClusterIPs, i.IPFamilies, i.IPFamilyPolicy = "", nil, nil, ""
	case fields.String(service, "spec", "clusterIP") == corev1.ClusterIPNone: // never allocated, always meant
		i.ClusterIP, i.ClusterIPs = corev1.ClusterIPNone, nil
	}
	return i
}

func userValue[T comparable](recorded, before, now T) T {
	if now == before {
		return recorded
	}
	return now
}

func userValues(recorded, before, now []string) []string {
	if fmt.Sprint(now) == fmt.Sprint(before) {
		return recorded
	}
	return now
}

// userNodePorts goes by the value and not by the port: one that the hub allocated
// stays the hub's when the port it belongs to gets another number.
func userNodePorts(recorded, before, now map[string]int64) map[string]int64 {
	type allocation struct {
		protocol string
		value    int64
	}
	allocated := map[allocation]bool{}
	for port, value := range before {
		if recorded[port] == 0 {
			protocol, _, _ := strings.Cut(port, "/")
			allocated[allocation{protocol, value}] = true
		}
	}
	out := map[string]int64{}
	for port, value := range now {
		protocol, _, _ := strings.Cut(port, "/")
		if !allocated[allocation{protocol, value}] {
			out[port] = value
		}
	}
	return out
}

// allocatableFields reads the fields a hub may allocate, as they stand.
func allocatableFields(service *unstructured.Unstructured) Intent {
	i := Intent{
		ClusterIP:         fields.String(service, "spec", "clusterIP"),
		IPFamilyPolicy:    fields.String(service, "spec", "ipFamilyPolicy"),
		LoadBalancerClass: fields.String(service, classPath...),
		NodePorts:         map[string]int64{},
	}
	i.ClusterIPs, _, _ = unstructured.NestedStringSlice(service.Object, "spec", "clusterIPs")
	i.IPFamilies, _, _ = unstructured.NestedStringSlice(service.Object, "spec", "ipFamilies")
	i.HealthCheckNodePort, _, _ = unstructured.NestedInt64(service.Object, "spec", "healthCheckNodePort")
	for key, port := range ports(service) {
		if n, ok, _ := unstructured.NestedInt64(port, "nodePort"); ok && n != 0 {
			i.NodePorts[key] = n
		}
	}
	return i
}

// ports returns a Service's ports by protocol and number, such as "TCP/80".
func ports(service *unstructured.Unstructured) map[string]map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(service.Object, "spec", "ports")
	items, _ := list.([]any)
	out := make(map[string]map[string]any, len(items))
	for _, item := range items {
		port, ok := item.(map[string]any)
		if !ok {
			continue
		}
		protocol, _ := port["protocol"].(string)
		if protocol == "" {
			protocol = string(corev1.ProtocolTCP)
		}
		out[fmt.Sprintf("%s/%v", protocol, port["port"])] = port
	}
	return out
}

func (Service) removeHubFields(template *unstructured.Unstructured, intent Intent) {
	spec, _, _ := unstructured.NestedFieldNoCopy(template.Object, "spec")
	fields, ok := spec.(map[string]any)
	if !ok {
		return
	}
	for _, allocated := range []string{"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort", "loadBalancerClass"} {
		delete(fields, allocated)
	}
	given := map[string]any{
		"clusterIP":           intent.ClusterIP,
		"ipFamilyPolicy":      intent.IPFamilyPolicy,
		"healthCheckNodePort": intent.HealthCheckNodePort,
		"loadBalancerClass":   intent.LoadBalancerClass,
		"clusterIPs":          toAnySlice(intent.ClusterIPs),
		"ipFamilies":          toAnySlice(intent.IPFamilies),
	}
	maps.DeleteFunc(given, func(_ string, v any) bool {
		list, isList := v.([]any)
		return v == "" || v == int64(0) || isList && len(list) == 0
	})
	maps.Copy(fields, given)
	for key, port := range ports(template) {
		delete(port, "nodePort")
		if n, ok := intent.NodePorts[key]; ok {
			port["nodePort"] = n
		}
	}
}

func (Service) reportsObservedGeneration() bool { return false }

// Reflect implements Kind: the load balancer is the target's; conditions others
// set on the hub stay.
func (Service) Reflect(native *unstructured.Unstructured, seen Observation) map[string]any {
	status := map[string]any{"loadBalancer": map[string]any{}}
	if ingress := reflectIngress(seen.Status); len(ingress) > 0 && IsLoadBalancer(native) {
		status["loadBalancer"] = map[string]any{"ingress": ingress}
	}
	if conditions, _ := WithoutProblems(native); len(conditions) > 0 {
		status["conditions"] = conditions
	}
	appendProblems(status, seen.Problems)
	return status
}

// How much of a load balancer is reflected. A target is not trusted to stop.
const (
	maxIngress      = 32
	maxIngressPorts = 100
)

// reflectIngress returns the addresses of a target's load balancer as the hub may
// have them: valid ones, not too many, and none that the hub's kube-proxy routes.
// With ipMode VIP, kube-proxy would route the traffic of the hub's Pods to the endpoints
// of the hub's Service, and there are none.
func reflectIngress(status map[string]any) []any {
	list, _, _ := unstructured.NestedFieldNoCopy(status, "loadBalancer", "ingress")
	items, _ := list.([]any)
	var out []any
	for _, item := range items {
		if len(out) == maxIngress {
			break
		}
		fields, _ := item.(map[string]any)
		entry := map[string]any{}
		if ip, _ := fields["ip"].(string); validIP(ip) {
			entry["ip"], entry["ipMode"] = ip, string(corev1.LoadBalancerIPModeProxy)
		}
		if hostname, _ := fields["hostname"].(string); len(validation.IsDNS1123Subdomain(hostname)) == 0 && net.ParseIP(hostname) == nil {
			entry["hostname"] = hostname
		}
		if len(entry) == 0 {
			continue
		}
		if ports := reflectPorts(fields["ports"]); len(ports) > 0 {
			entry["ports"] = ports
		}
		out = append(out, entry)
	}
	return out
}

// reflectPorts returns the states of a load balancer's ports that are valid.
func reflectPorts(list any) []any {
	items, _ := list.([]any)
	var out []any
	for _, item := range items {
		if len(out) == maxIngressPorts {
			break
		}
		fields, _ := item.(map[string]any)
		port, _ := fields["port"].(int64)
		protocol, _ := fields["protocol"].(string)
		switch corev1.Protocol(protocol) {
		case corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP:
		default:
			continue
		}
		if len(validation.IsValidPortNum(int(port))) > 0 {
			continue
		}
		entry := map[string]any{"port": port, "protocol": protocol}
		if reason, _ := fields["error"].(string); len(validation.IsQualifiedName(reason)) == 0 {
			entry["error"] = reason
		}
		out = append(out, entry)
	}
	return out
}

// validIP tells an address that every version of Kubernetes takes.
func validIP(ip string) bool {
	address, err := netip.ParseAddr(ip)
	return err == nil && address.Zone() == "" && !address.Is4In6()
}

func toAnySlice(values []string) []any {
	out := make([]any, 0, len(values))
	for _, v := range values {
		out = append(out, v)
	}
	return out
}
