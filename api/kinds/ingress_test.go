package kinds

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/portico-io/portico/api/kinds/fields"
	"github.com/portico-io/portico/api/kinds/references"
)

func TestHoldIngress(t *testing.T) {
	const (
		head  = `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}`
		wrote = `, managedFields: [{manager: kubectl, fieldsV1: {"f:spec": {"f:rules": {}}}}]`
		named = `, managedFields: [{manager: kubectl, fieldsV1: {"f:spec": {"f:ingressClassName": {}}}}]`
		held  = `}, spec: {ingressClassName: remote.workload.crossplane.io}}`
	)
	testHold(t, map[string]holdCase{
		"Create":     {reason: "A new Ingress without a class has one that no controller has.", object: head + `}, spec: {}}`, want: head + held},
		"HubDefault": {reason: "The default class of the hub is replaced.", object: head + wrote + `}, spec: {ingressClassName: hub}}`, want: head + wrote + held},
		"OwnClass":   {reason: "A class of the user is kept.", object: head + named + `}, spec: {ingressClassName: public}}`},
		"Annotation": {reason: "A class in the annotation is the user's, and the field must not be set next to it.", object: head + `, annotations: {kubernetes.io/ingress.class: public}}, spec: {}}`},
		"Replace":    {reason: "kubectl replace drops the class, and the Ingress stays held.", old: head + held, object: head + `}, spec: {}}`, want: head + held},
		"Label":      {reason: "An Ingress of the hub without a class is held by the label.", old: `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web}, spec: {}}`, object: head + `}, spec: {}}`, want: head + held},
		"Release":    {reason: "An Ingress without the label has no class of Portico.", old: head + held, object: `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web}, spec: {ingressClassName: remote.workload.crossplane.io}}`, want: `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web}, spec: {}}`},
		"ReleaseOwn": {reason: "A class of the user is kept without the label.", old: head + `}, spec: {ingressClassName: public}}`, object: `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web}, spec: {ingressClassName: public}}`},
	})
}

// TestReflectIngress: a target may report anything.
func TestReflectIngress(t *testing.T) {
	for name, tc := range map[string]struct{ reason, remote, want string }{
		"None":      {reason: "Without a status there is no address.", remote: `{}`, want: `{loadBalancer: {}}`},
		"Addresses": {reason: "Addresses and hostnames are copied, without the mode that only Services have.", remote: `{loadBalancer: {ingress: [{ip: 203.0.113.7}, {hostname: lb.example.org, ports: [{port: 443, protocol: TCP}]}]}}`, want: `{loadBalancer: {ingress: [{ip: 203.0.113.7}, {hostname: lb.example.org, ports: [{port: 443, protocol: TCP}]}]}}`},
		"Invalid":   {reason: "Invalid addresses are left out.", remote: `{loadBalancer: {ingress: [{ip: "fe80::1%eth0"}, {hostname: 10.0.0.1}, 7]}}`, want: `{loadBalancer: {}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := Ingress{}.Reflect(New(Ingress{}), Observation{Status: read(t, `{kind: A, status: `+tc.remote+`}`).Object["status"].(map[string]any)})
			if diff := cmp.Diff(read(t, `{kind: A, status: `+tc.want+`}`).Object["status"], any(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestIngressReferences(t *testing.T) {
	ingress := read(t, `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web}, spec: {tls: [{secretName: web-tls}, {hosts: [a]}], defaultBackend: {service: {name: none}}, rules: [{host: a}, {http: {paths: [{backend: {service: {name: web}}}, {backend: {resource: {name: x}}}, {backend: {service: {name: web}}}]}}]}}`)
	if diff := cmp.Diff([]references.Reference{{Kind: references.SecretKind, Name: "web-tls", Optional: true, Field: "spec.tls[0].secretName"}}, references.Of(ingress)); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
	want := []Needed{
		{Kind: Service{}, Name: "none", Field: "spec.defaultBackend.service.name"},
		{Kind: Service{}, Name: "web", Field: "spec.rules[1].http.paths[0].backend.service.name"},
	}
	if diff := cmp.Diff(want, NeededBy(ingress)); diff != "" {
		t.Errorf("backends, each once (-want +got):\n%s", diff)
	}
	references.Rewrite(ingress, func(r references.Reference) string { return "copy-of-" + r.Name })
	if got := fields.Items(fields.Child(ingress.Object, "spec")["tls"])[0]["secretName"]; got != "copy-of-web-tls" {
		t.Errorf("the Ingress refers to the copy: %v", got)
	}
}
