package kinds

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Service needs no holding: without Pods it has no endpoints. Only a
// LoadBalancer is kept from the hub's cloud controller, by a class of ours.
type Service struct{}

var _ Kind = Service{}

// GroupVersionKind implements Kind.
func (Service) GroupVersionKind() schema.GroupVersionKind {
	return corev1.SchemeGroupVersion.WithKind("Service")
}

// Resource implements Kind.
func (Service) Resource() string { return "services" }

var classPath = []string{"spec", "loadBalancerClass"}

// Hold implements Kind.
func (Service) Hold(object, old *unstructured.Unstructured, _ Author) (Patch, error) {
	intent, err := serviceIntent(object, old)
	if err != nil {
		return nil, err
	}
	patch := intent.record(object)
	switch class := str(object, classPath...); {
	case IsLoadBalancer(object) && classMaySet(old):
		patch = append(patch, set(object, v1alpha1.RemoteLoadBalancerClass, classPath...)...)
	case !IsLoadBalancer(object) && class == v1alpha1.RemoteLoadBalancerClass:
		patch = append(patch, remove(object, classPath...)...)
	}
	return patch, nil
}

// classMaySet tells whether the API server would accept our class: it does not
// change while the Service stays a LoadBalancer.
func classMaySet(old *unstructured.Unstructured) bool {
	return old == nil || !IsLoadBalancer(old) || str(old, classPath...) == v1alpha1.RemoteLoadBalancerClass
}

// Release implements Kind. The class cannot be taken off a LoadBalancer;
// validation says so to the user.
func (Service) Release(object *unstructured.Unstructured) Patch {
	patch := forget(object)
	if !IsLoadBalancer(object) && str(object, classPath...) == v1alpha1.RemoteLoadBalancerClass {
		patch = append(patch, remove(object, classPath...)...)
	}
	return patch
}

// Held implements Kind.
func (Service) Held(object *unstructured.Unstructured) bool { return IsRemote(object) }

// IsLoadBalancer tells whether a Service is of type LoadBalancer.
func IsLoadBalancer(service *unstructured.Unstructured) bool {
	return str(service, "spec", "type") == string(corev1.ServiceTypeLoadBalancer)
}

// serviceIntent tells the user's values from the hub's. Admission runs before
// the hub allocates, so on create what is set is the user's. Later, a value
// that did not change keeps its author, and one that changed is the user's.
func serviceIntent(object, old *unstructured.Unstructured) (Intent, error) {
	now := givenBy(object)
	var recorded, before Intent
	switch {
	case old == nil:
		restored, found, err := IntentOf(object)
		if err != nil {
			return Intent{}, err
		}
		if !found {
			return now.withoutOurClass(), nil
		}
		// Re-created from what was read from a hub: the record says whose
		// value each one is.
		recorded, before = restored, now
	case IsRemote(old):
		var err error
		if recorded, err = intentBefore(object, old); err != nil {
			return Intent{}, err
		}
		before = givenBy(old)
	default:
		// It lived on the hub until now: what it has was allocated there.
		before = givenBy(old)
	}

	out := Intent{
		ClusterIP:           keep(recorded.ClusterIP, before.ClusterIP, now.ClusterIP),
		IPFamilyPolicy:      keep(recorded.IPFamilyPolicy, before.IPFamilyPolicy, now.IPFamilyPolicy),
		HealthCheckNodePort: keep(recorded.HealthCheckNodePort, before.HealthCheckNodePort, now.HealthCheckNodePort),
		LoadBalancerClass:   keep(recorded.LoadBalancerClass, before.LoadBalancerClass, now.LoadBalancerClass),
		ClusterIPs:          keepAll(recorded.ClusterIPs, before.ClusterIPs, now.ClusterIPs),
		IPFamilies:          keepAll(recorded.IPFamilies, before.IPFamilies, now.IPFamilies),
		NodePorts:           map[string]int64{},
	}
	for port, value := range now.NodePorts {
		if v := keep(recorded.NodePorts[port], before.NodePorts[port], value); v != 0 {
			out.NodePorts[port] = v
		}
	}
	if now.ClusterIP == corev1.ClusterIPNone { // never allocated, always meant
		out.ClusterIP, out.ClusterIPs = now.ClusterIP, now.ClusterIPs
	}
	return out.withoutOurClass(), nil
}

func keep[T comparable](recorded, before, now T) T {
	if now == before {
		return recorded
	}
	return now
}

func keepAll(recorded, before, now []string) []string {
	if fmt.Sprint(now) == fmt.Sprint(before) {
		return recorded
	}
	return now
}

func (i Intent) withoutOurClass() Intent {
	if i.LoadBalancerClass == v1alpha1.RemoteLoadBalancerClass {
		i.LoadBalancerClass = ""
	}
	return i
}

// givenBy reads the fields a hub may allocate, as they stand.
func givenBy(service *unstructured.Unstructured) Intent {
	i := Intent{
		ClusterIP:         str(service, "spec", "clusterIP"),
		IPFamilyPolicy:    str(service, "spec", "ipFamilyPolicy"),
		LoadBalancerClass: str(service, classPath...),
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

// ports returns a Service's ports by what identifies them, such as "TCP/80".
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

func (Service) prune(template *unstructured.Unstructured, intent Intent) {
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
		"clusterIPs":          anys(intent.ClusterIPs),
		"ipFamilies":          anys(intent.IPFamilies),
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

func (Service) observes() bool { return false }

// Reflect implements Kind: the load balancer is the target's; conditions others
// set on the hub stay.
func (Service) Reflect(native *unstructured.Unstructured, seen Observation) map[string]any {
	status := map[string]any{"loadBalancer": map[string]any{}}
	if balancer, _, _ := unstructured.NestedMap(seen.Status, "loadBalancer"); balancer != nil && IsLoadBalancer(native) {
		defaultIPMode(balancer)
		status["loadBalancer"] = balancer
	}
	conditions, _ := WithoutProblems(native)
	for _, problem := range seen.Problems {
		conditions = append(conditions, map[string]any{
			"type":               problem.Type,
			"status":             string(problem.Status),
			"reason":             problem.Reason,
			"message":            problem.Message,
			"lastTransitionTime": rfc3339(problem.LastTransitionTime),
		})
	}
	if len(conditions) > 0 {
		status["conditions"] = conditions
	}
	return status
}

// defaultIPMode says of an address what the hub would: a target from before
// ipMode leaves it out.
func defaultIPMode(balancer map[string]any) {
	ingress, _ := balancer["ingress"].([]any)
	for _, item := range ingress {
		fields, ok := item.(map[string]any)
		if !ok || fields["ip"] == nil || fields["ipMode"] != nil {
			continue
		}
		fields["ipMode"] = string(corev1.LoadBalancerIPModeVIP)
	}
}

func str(object *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(object.Object, path...)
	return value
}

func anys(values []string) []any {
	out := make([]any, 0, len(values))
	for _, v := range values {
		out = append(out, v)
	}
	return out
}
