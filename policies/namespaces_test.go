package policies

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func resourceIn(name, application, target, kind, namespace, object string) v1alpha1.KubernetesApplicationResource {
	r := v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	if application != "" {
		r.Labels = map[string]string{v1alpha1.ApplicationLabel: application}
	}
	r.Spec.TargetRef = &v1alpha1.TargetReference{Name: target}
	r.Spec.Template.Raw = fmt.Appendf(nil, `{"apiVersion":"v1","kind":%q,"metadata":{"namespace":%q,"name":%q}}`, kind, namespace, object)
	return r
}

func TestOthersInNamespace(t *testing.T) {
	made := resourceIn("space", "shop", "dev", "Namespace", "", "shop")
	all := []v1alpha1.KubernetesApplicationResource{
		made,
		resourceIn("same-application", "shop", "dev", "ConfigMap", "shop", "a"),
		resourceIn("other-application", "bank", "dev", "ConfigMap", "shop", "b"),
		resourceIn("of-none", "", "dev", "ConfigMap", "shop", "c"),
		resourceIn("other-target", "bank", "prod", "ConfigMap", "shop", "d"),
		resourceIn("other-namespace", "bank", "dev", "ConfigMap", "bank", "e"),
	}
	set := func(names ...string) map[types.NamespacedName]bool {
		out := map[types.NamespacedName]bool{}
		for _, name := range names {
			out[types.NamespacedName{Namespace: "team", Name: name}] = true
		}
		return out
	}
	own, others := OthersInNamespace(&made, "dev", all)
	if diff := cmp.Diff(set("space", "same-application"), own); diff != "" {
		t.Errorf("own (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(set("other-application", "of-none"), others); diff != "" {
		t.Errorf("others (-want +got):\n%s", diff)
	}
}

func TestKeepNamespace(t *testing.T) {
	made := resourceIn("space", "shop", "dev", "Namespace", "", "shop")
	if why := NamespaceInUseMessage(&made, "dev", ObjectCounts{}); why != "" {
		t.Errorf("an empty Namespace is kept: %s", why)
	}
	o := ObjectCounts{Hidden: []string{"Pod"}}
	o.Add("Secret", 2)
	o.Add("ConfigMap", 1)
	o.Add("Job", 0)
	why := NamespaceInUseMessage(&made, "dev", o)
	for _, want := range []string{"Namespace shop on target dev", "1 ConfigMap, 2 Secret, an unknown number of Pod", "deletion=Orphan", "force=true", "kubernetesapplicationresource space"} {
		if !strings.Contains(why, want) {
			t.Errorf("%q does not say %q", why, want)
		}
	}
}
