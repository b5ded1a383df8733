package kinds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// anything reads an object of a kind from the input of a fuzzer; nil when it is none.
func anything(k Kind, data []byte) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	if json.Unmarshal(data, &object.Object) != nil || object.Object == nil {
		return nil
	}
	object.SetGroupVersionKind(k.GroupVersionKind())
	return object
}

func seeds(f *testing.F) {
	f.Helper()
	for i := range All {
		for _, seed := range []string{
			`{}`,
			`{"metadata": {"name": "a", "namespace": "b", "generation": 3, "uid": "c", "labels": {"workload.crossplane.io/schedule": "remote", "d": "e"}, "annotations": {"f": "g"}}}`,
			`{"spec": {"replicas": 2, "template": {"metadata": {"labels": {"workload.crossplane.io/schedule": "remote"}}, "spec": {"containers": [{"name": "a"}]}}}, "status": {"replicas": 2}}`,
			`{"spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80, "nodePort": 30080}, {"port": 53, "protocol": "UDP"}]}}`,
			`{"metadata": {"annotations": {"workload.crossplane.io/intent": "{\"nodePorts\": {\"TCP/80\": 30080}}"}}, "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]}}`,
			`{"type": "Opaque", "data": {"a": "Yg=="}, "immutable": true}`,
			`{"metadata": 1, "spec": [], "data": "x"}`,
		} {
			f.Add(i, []byte(seed))
		}
	}
}

// FuzzProject projects any object. Each projection is the same and has no fields of the
// hub, and the object on the hub does not change.
func FuzzProject(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, which int, data []byte) {
		k := All[uint(which)%uint(len(All))]
		native := anything(k, data)
		if native == nil {
			return
		}
		before := native.DeepCopy()
		_, _, malformed := IntentOf(native)
		sent, err := Project(k, native)
		if diff := cmp.Diff(before.Object, native.Object); diff != "" {
			t.Fatalf("projecting changed the object (-before +after):\n%s", diff)
		}
		if err != nil {
			if malformed == nil {
				t.Fatalf("not projected, and not for its intent: %v", err)
			}
			return
		}
		if _, has := sent.Object["status"]; has {
			t.Error("a status is sent")
		}
		for key := range sent.GetLabels() {
			if isPorticoKey(key) {
				t.Errorf("label %s is sent", key)
			}
		}
		for key := range sent.GetAnnotations() {
			if isPorticoKey(key) && key != v1alpha1.HubGenerationAnnotation {
				t.Errorf("annotation %s is sent", key)
			}
		}
		found2, err := Project(k, native)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(sent.Object, found2.Object); diff != "" {
			t.Errorf("projecting twice differs:\n%s", diff)
		}
	})
}

// FuzzIntent reads any value of the annotation, and admits its object. The intent that
// is read is recorded unchanged.
func FuzzIntent(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `[]`, `{"moving": true}`, `{"moving": true, "moving": false}`, `{"unknown": 1}`, `{"Moving": true}`,
		`{"clusterIP": "None", "clusterIPs": ["None"], "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}`,
		`{"healthCheckNodePort": 30999, "loadBalancerClass": "fast", "nodePorts": {"TCP/80": 30080}}`,
		`{"nodePorts": {"TCP/80": 1e400}}`, `{"nodePorts": null}`, `{"nodePorts": {}}`, `{"clusterIPs": []}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, annotation string) {
		for _, k := range []Kind{Deployment{}, Service{}} { // the others have none
			object := New(k)
			object.SetLabels(map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote})
			object.SetAnnotations(map[string]string{v1alpha1.IntentAnnotation: annotation})
			intent, found, err := IntentOf(object)
			if !found {
				t.Fatal("the annotation was not found")
			}
			if err == nil {
				recorded := object.DeepCopy()
				intent.annotate(recorded)
				found2, _, err := IntentOf(recorded)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(intent, found2, cmpopts.EquateEmpty()); diff != "" { // none is not recorded
					t.Errorf("what was recorded is read as something else (-read +again):\n%s", diff)
				}
			}
			// Only an annotation that cannot be read is refused.
			if _, admitted := admit(t, k, object, object.DeepCopy(), Anyone); (admitted == nil) != (err == nil) {
				t.Errorf("%s: read with %v, admitted with %v", k.Resource(), err, admitted)
			}
		}
	})
}
