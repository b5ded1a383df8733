package reconciler

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/portico-io/portico/api/workload/v1alpha1"
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
		"Absent": {reason: "No object is an answer."},
		"Failed": {reason: "Another error is a failure.", objects: []client.Object{target()}, err: failure},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.objects...).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
					if tc.err != nil {
						return tc.err
					}
					return c.Get(ctx, key, object, o...)
				},
			}).Build()
			object := &v1alpha1.KubernetesTarget{}
			found, err := Find(t.Context(), hub, client.ObjectKeyFromObject(target()), object)
			if found != tc.want || !errors.Is(err, tc.err) || found != (object.Name != "") {
				t.Errorf("found %t, error %v: %s", found, err, tc.reason)
			}
		})
	}
}
