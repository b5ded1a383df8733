package reconciler

import (
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
)

func TestFind(t *testing.T) {
	failure := errors.New("the hub is away")
	cases := map[string]struct {
		reason  string
		objects []client.Object
		err     error
		want    bool
	}{
		"Found":  {reason: "An object that exists is read.", objects: []client.Object{target()}, want: true},
		"Absent": {reason: "A missing object is no error."},
		"Failed": {reason: "Another error is a failure.", objects: []client.Object{target()}, err: failure},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme := reconcilertest.Scheme(t, v1alpha1.AddToScheme)
			hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.objects...).WithInterceptorFuncs(reconcilertest.Before(func(reconcilertest.Request) error { return tc.err })).Build()
			object := &v1alpha1.KubernetesTarget{}
			found, err := Find(t.Context(), hub, client.ObjectKeyFromObject(target()), object)
			if found != tc.want || !errors.Is(err, tc.err) || found != (object.Name != "") {
				t.Errorf("found %t, error %v: %s", found, err, tc.reason)
			}
		})
	}
}
