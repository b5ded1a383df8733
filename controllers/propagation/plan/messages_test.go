package plan

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestIsNamespaceMissing(t *testing.T) {
	missing := func(resource string) error {
		return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, "shop")
	}
	if !IsNamespaceMissing(missing("namespaces")) {
		t.Error("a namespace that is missing was not noticed")
	}
	for _, err := range []error{nil, missing("configmaps"), errors.New("namespaces"), apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "shop", nil)} {
		if IsNamespaceMissing(err) {
			t.Errorf("%v is taken for a namespace that is missing", err)
		}
	}
}
