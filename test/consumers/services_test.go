package consumers

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func serviceRows() map[string]row {
	var pending corev1.ServiceStatus
	const (
		address = "10.96.0.10"
		ready   = "Service is ready"
		noIP    = "Service does not have load balancer ingress IP address: default/web"
	)
	byIP := balanced(corev1.LoadBalancerIngress{IP: "203.0.113.7", IPMode: ptr.To(corev1.LoadBalancerIPModeVIP)})
	proxied := balanced(corev1.LoadBalancerIngress{IP: "203.0.113.7", IPMode: ptr.To(corev1.LoadBalancerIPModeProxy)})
	byName := balanced(corev1.LoadBalancerIngress{Hostname: "web.elb.example.com", Ports: []corev1.PortStatus{{Port: 80, Protocol: corev1.ProtocolTCP}}})
	return map[string]row{
		"ClusterIP": {
			reason:  "The hub allocates a cluster IP as ever, and that is all there is to wait for.",
			hub:     service(corev1.ServiceTypeClusterIP, address, pending),
			target:  &observedObject{status: pending},
			kubectl: noViewer, kstatus: done(ready), helm3: done(""),
		},
		"Headless": {
			reason:  "None is an address to those who wait for one.",
			hub:     service(corev1.ServiceTypeClusterIP, corev1.ClusterIPNone, pending),
			target:  &observedObject{status: pending},
			kubectl: noViewer, kstatus: done(ready), helm3: done(""),
		},
		"NodePort": {
			reason:  "As a cluster IP.",
			hub:     service(corev1.ServiceTypeNodePort, address, pending),
			target:  &observedObject{status: pending},
			kubectl: noViewer, kstatus: done(ready), helm3: done(""),
		},
		"ExternalName": {
			reason:  "Has no address, and nobody waits for one.",
			hub:     service(corev1.ServiceTypeExternalName, "", pending),
			target:  &observedObject{status: pending},
			kubectl: noViewer, kstatus: done(ready), helm3: done(""),
		},
		"BalancerNotAppliedYet": {
			reason:  "A load balancer was accepted a moment ago. kstatus asks for a cluster IP only, on any cluster.",
			hub:     service(corev1.ServiceTypeLoadBalancer, address, pending),
			kubectl: noViewer, kstatus: done(ready), helm3: waiting(noIP),
		},
		"BalancerPending": {
			reason:  "The target's cloud has given no address yet. An empty list of addresses would be one to Helm 3.",
			hub:     service(corev1.ServiceTypeLoadBalancer, address, pending),
			target:  &observedObject{status: pending},
			kubectl: noViewer, kstatus: done(ready), helm3: waiting(noIP),
		},
		"BalancerByIP": {
			reason:  "The target's address is the hub's.",
			hub:     service(corev1.ServiceTypeLoadBalancer, address, pending),
			target:  &observedObject{status: byIP},
			kubectl: noViewer, kstatus: done(ready), helm3: done(""),
		},
		"BalancerByName": {
			reason:  "Some clouds give a name and not an address, and say what ports it has.",
			hub:     service(corev1.ServiceTypeLoadBalancer, address, pending),
			target:  &observedObject{status: byName},
			kubectl: noViewer, kstatus: done(ready), helm3: done(""),
		},
		"BalancerOfOlderTarget": {
			reason:  "A target from before ipMode gives an address without one; the hub does not store it like that.",
			hub:     service(corev1.ServiceTypeLoadBalancer, address, pending),
			target:  &observedObject{status: balanced(corev1.LoadBalancerIngress{IP: "203.0.113.7"})},
			kubectl: noViewer, kstatus: done(ready), helm3: done(""),
		},
		"BalancerTakenAway": {
			reason:  "The target's cloud took its address back, and so does the hub.",
			hub:     service(corev1.ServiceTypeLoadBalancer, address, proxied),
			target:  &observedObject{status: pending},
			kubectl: noViewer, kstatus: done(ready), helm3: waiting(noIP),
		},
		"NoLongerBalancer": {
			reason:  "The type changed on the hub, and the target still has its balancer. The hub stores no address for a Service of another type.",
			hub:     service(corev1.ServiceTypeClusterIP, address, pending),
			target:  &observedObject{status: byIP},
			kubectl: noViewer, kstatus: done(ready), helm3: done(""),
		},
		"BalancerUnreachable": {
			reason:     "The target went away. Its last address is kept: users may well reach it where the hub does not.",
			hub:        service(corev1.ServiceTypeLoadBalancer, address, proxied),
			target:     &observedObject{status: byIP},
			conditions: []metav1.Condition{unreachable},
			kubectl:    noViewer, kstatus: done(ready), helm3: done(""),
		},
		"BalancerNeverReached": {
			reason:     "The target has not answered since the Service was applied.",
			hub:        service(corev1.ServiceTypeLoadBalancer, address, pending),
			conditions: []metav1.Condition{unreachable},
			kubectl:    noViewer, kstatus: done(ready), helm3: waiting(noIP),
		},
		"ServiceOfNoTarget": {
			reason:     "There is nowhere to run, which a condition says.",
			hub:        service(corev1.ServiceTypeLoadBalancer, address, pending),
			conditions: []metav1.Condition{homeless},
			kubectl:    noViewer, kstatus: done(ready), helm3: waiting(noIP),
		},
	}
}

func balanced(ingress ...corev1.LoadBalancerIngress) corev1.ServiceStatus {
	return corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: ingress}}
}
