package references

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestClusterObjectsOf(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, object string
		want           []string
	}{
		"Claim":     {reason: "A claim names a StorageClass.", object: `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {storageClassName: fast}}`, want: []string{"StorageClass fast spec.storageClassName"}},
		"Default":   {reason: "Without a class it is the default class.", object: `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {}}`},
		"NoClass":   {reason: "The empty class is none.", object: `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {storageClassName: ""}}`},
		"Volume":    {reason: "A claim with a volume of its own needs no StorageClass.", object: `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {storageClassName: manual, volumeName: mine}}`, want: []string{"PersistentVolume mine spec.volumeName"}},
		"Templates": {reason: "Each class is listed once.", object: `{apiVersion: apps/v1, kind: StatefulSet, spec: {volumeClaimTemplates: [{spec: {}}, {spec: {storageClassName: fast}}, {spec: {storageClassName: fast}}]}}`, want: []string{"StorageClass fast spec.volumeClaimTemplates[1].spec.storageClassName"}},
		"Ephemeral": {reason: "A volume of a Pod may be made of a template.", object: `{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [], volumes: [{emptyDir: {}}, {ephemeral: {volumeClaimTemplate: {spec: {storageClassName: fast}}}}]}}}}`, want: []string{"StorageClass fast spec.template.spec.volumes[1].ephemeral.volumeClaimTemplate.spec.storageClassName"}},
		"Pods":      {reason: "Pods name a PriorityClass and a RuntimeClass.", object: `{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {containers: [], priorityClassName: high, runtimeClassName: sandbox}}}}`, want: []string{"PriorityClass high spec.template.spec.priorityClassName", "RuntimeClass sandbox spec.template.spec.runtimeClassName"}},
		"Ingress":   {reason: "An Ingress names an IngressClass.", object: `{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {ingressClassName: public}}`, want: []string{"IngressClass public spec.ingressClassName"}},
		"Legacy":    {reason: "The annotation needs no IngressClass.", object: `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {annotations: {kubernetes.io/ingress.class: public}}, spec: {}}`},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(tc.object), &object.Object); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, class := range ClusterObjectsOf(object) {
				got = append(got, class.Kind.Kind+" "+class.Name+" "+class.Field)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
