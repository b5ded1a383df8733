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
			reason:  "The hub allocates the cluster IP, and tools wait only for it.",
			hub:     service(corev1.ServiceTypeClusterIP, address, pending),
			target:  &observedObject{status: pending},
			kubectl: noViewer, kstatus: done(ready), helm3: done(""), argoCD: "Healthy",
		},
		"Headless": {
			reason:  "The cluster IP None suffices for all tools.",
			hub:     service(corev1.ServiceTypeClusterIP, corev1.ClusterIPNone, pending),
			target:  &observedObject{status: pending},
			kubectl: noViewer, kstatus: done(ready), helm3: done(""), argoCD: "Healthy",
		},
		"NodePort": {
			reason:  "A NodePort Service has a cluster IP.",
			hub:     service(corev1.ServiceTypeNodePort, address, pending),
			target:  &observedObject{status: pending},
			kubectl: noViewer, kstatus: done(ready), helm3: done(""), argoCD: "Healthy",
		},
		"ExternalName": {
			reason:  "A Service without a cluster IP is ready.",
			hub:     service(corev1.ServiceTypeExternalName, "", pending),
			target:  &observedObject{status: pending},
			kubectl: noViewer, kstatus: done(ready), helm3: done(""), argoCD: "Healthy",
		},
		"BalancerNotAppliedYet": {
			reason:  "A load balancer was just created. kstatus waits for the cluster IP only, on any cluster.",
			hub:     service(corev1.ServiceTypeLoadBalancer, address, pending),
			kubectl: noViewer, kstatus: done(ready), helm3: waiting(noIP), argoCD: "Progressing",
		},
		"BalancerPending": {
			reason:  "The target's load balancer has no address yet. For Helm 3 an empty list would be an address.",
			hub:     service(corev1.ServiceTypeLoadBalancer, address, pending),
			target:  &observedObject{status: pending},
			kubectl: noViewer, kstatus: done(ready), helm3: waiting(noIP), argoCD: "Progressing",
		},
		"BalancerByIP": {
			reason:  "The address of the target's load balancer is copied.",
			hub:     service(corev1.ServiceTypeLoadBalancer, address, pending),
			target:  &observedObject{status: byIP},
			kubectl: noViewer, kstatus: done(ready), helm3: done(""), argoCD: "Healthy",
		},
		"BalancerByName": {
			reason:  "Some clouds give a name with ports, not an address.",
			hub:     service(corev1.ServiceTypeLoadBalancer, address, pending),
			target:  &observedObject{status: byName},
			kubectl: noViewer, kstatus: done(ready), helm3: done(""), argoCD: "Healthy",
		},
		"BalancerOfOlderTarget": {
			reason:  "An older target gives an address without ipMode. The hub requires ipMode.",
			hub:     service(corev1.ServiceTypeLoadBalancer, address, pending),
			target:  &observedObject{status: balanced(corev1.LoadBalancerIngress{IP: "203.0.113.7"})},
			kubectl: noViewer, kstatus: done(ready), helm3: done(""), argoCD: "Healthy",
		},
		"BalancerTakenAway": {
			reason:  "The target's load balancer lost its address, and so does the Service on the hub.",
			hub:     service(corev1.ServiceTypeLoadBalancer, address, proxied),
			target:  &observedObject{status: pending},
			kubectl: noViewer, kstatus: done(ready), helm3: waiting(noIP), argoCD: "Progressing",
		},
		"NoLongerBalancer": {
			reason:  "The type changed on the hub, and the target still has a load balancer. The hub stores no address for a Service of another type.",
			hub:     service(corev1.ServiceTypeClusterIP, address, pending),
			target:  &observedObject{status: byIP},
			kubectl: noViewer, kstatus: done(ready), helm3: done(""), argoCD: "Healthy",
		},
		"BalancerUnreachable": {
			reason:     "The target became unreachable. Its last address is kept, because users may still reach it.",
			hub:        service(corev1.ServiceTypeLoadBalancer, address, proxied),
			target:     &observedObject{status: byIP},
			conditions: []metav1.Condition{unreachable},
			kubectl:    noViewer, kstatus: done(ready), helm3: done(""), argoCD: "Healthy",
		},
		"BalancerNeverReached": {
			reason:     "The target has not answered since the Service was created.",
			hub:        service(corev1.ServiceTypeLoadBalancer, address, pending),
			conditions: []metav1.Condition{unreachable},
			kubectl:    noViewer, kstatus: done(ready), helm3: waiting(noIP), argoCD: "Progressing",
		},
		"ServiceOfNoTarget": {
			reason:     "The Service has no target, and a condition reports this.",
			hub:        service(corev1.ServiceTypeLoadBalancer, address, pending),
			conditions: []metav1.Condition{homeless},
			kubectl:    noViewer, kstatus: done(ready), helm3: waiting(noIP), argoCD: "Progressing",
		},
	}
}

func balanced(ingress ...corev1.LoadBalancerIngress) corev1.ServiceStatus {
	return corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: ingress}}
}
