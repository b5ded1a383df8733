package intake

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// current tells whether a ReplicaSet has its Deployment's Pod template, the way
// the Deployment controller compares them: without the hash.
func current(native *unstructured.Unstructured, rs *appsv1.ReplicaSet) bool {
	var deployment appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(native.Object, &deployment); err != nil {
		return false
	}
	want, have := deployment.Spec.Template.DeepCopy(), rs.Spec.Template.DeepCopy()
	delete(want.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	delete(have.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return equality.Semantic.DeepEqual(want, have)
}
