package propagation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

const hubID = "hub-1"

func fields(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(append(append([]byte(`{"kind":"x","of":`), data...), '}')); err != nil {
		t.Fatal(err)
	}
	of, _ := out.Object["of"].(map[string]any)
	return of
}

func templated(t testing.TB, template string) *v1alpha1.KubernetesApplicationResource {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(template))
	if err != nil {
		t.Fatal(err)
	}
	return &v1alpha1.KubernetesApplicationResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "settings", UID: "u1"},
		Spec:       v1alpha1.KubernetesApplicationResourceSpec{Template: runtime.RawExtension{Raw: data}},
	}
}

func TestDesire(t *testing.T) {
	const want = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, labels: {app: web, workload.crossplane.io/managed-by: hub-1}, annotations: {
  note: mine,
  kubernetesapplicationresource.workload.crossplane.io/uid: u1,
  kubernetesapplicationresource.workload.crossplane.io/namespace: team-a,
  kubernetesapplicationresource.workload.crossplane.io/name: settings}}, data: {a: b}}`
	cases := map[string]struct {
		reason, template, want string
	}{
		"Marked": {
			reason:   "Every object says whose it is.",
			template: `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, labels: {app: web}, annotations: {note: mine}}, data: {a: b}}`,
			want:     want,
		},
		"Claimed": {
			reason: "Nobody passes for another's, whatever the template says.",
			template: `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, labels: {app: web, workload.crossplane.io/managed-by: hub-2}, annotations: {
  note: mine, workload.crossplane.io/applied: "1", kubernetesapplicationresource.workload.crossplane.io/namespace: team-b,
  kubernetesapplicationresource.workload.crossplane.io/name: other, kubernetesapplicationresource.workload.crossplane.io/uid: u2}}, data: {a: b}}`,
			want: want,
		},
		"Exported": {
			reason: "What another cluster wrote is not sent.",
			template: `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, uid: x, resourceVersion: "1", generation: 2, creationTimestamp: null, finalizers: [a/b],
  ownerReferences: [], managedFields: [], labels: {app: web}, annotations: {note: mine}}, data: {a: b}, status: {x: y}}`,
			want: want,
		},
	}
	digests := map[string]bool{}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := desire(templated(t, tc.template), hubID)
			if err != nil {
				t.Fatal(err)
			}
			digests[digestOf(got)] = true
			annotations := got.GetAnnotations()
			delete(annotations, v1alpha1.AppliedAnnotation)
			got.SetAnnotations(annotations)
			if diff := cmp.Diff(fields(t, tc.want), got.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	if len(digests) != 1 || digests[""] {
		t.Errorf("the digests of one object are %v", digests)
	}
	other, err := desire(templated(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}}`), hubID)
	if err != nil || digests[digestOf(other)] {
		t.Errorf("another object has the same digest %q (%v)", digestOf(other), err)
	}
	if _, err := desire(templated(t, `{metadata: {}}`), hubID); err == nil {
		t.Error("a template without a kind was read")
	}
}

func TestStand(t *testing.T) {
	resource := templated(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {a: b}}`)
	desired, err := desire(resource, hubID)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		change func(*unstructured.Unstructured)
		want   standing
		owner  string // of a foreign object
	}{
		"InSync":   {reason: "It is as it should be.", change: func(*unstructured.Unstructured) {}, want: inSync},
		"More":     {reason: "What others add is theirs.", change: func(o *unstructured.Unstructured) { o.Object["data"].(map[string]any)["c"] = "d" }, want: inSync},
		"Drifted":  {reason: "What others change is ours.", change: func(o *unstructured.Unstructured) { o.Object["data"].(map[string]any)["a"] = "c" }, want: drifted},
		"Outdated": {reason: "A field that was removed on the hub is still there; only the digest tells.", change: func(o *unstructured.Unstructured) { annotate(o, v1alpha1.AppliedAnnotation, "old") }, want: drifted},
		"Restored": {reason: "A hub that was restored from a backup has new UIDs, and its own objects.", change: func(o *unstructured.Unstructured) { annotate(o, v1alpha1.ResourceUIDAnnotation, "u0") }, want: drifted},
		"Unmarked": {reason: "What Portico did not make it does not touch.", change: func(o *unstructured.Unstructured) { o.SetLabels(nil); o.SetAnnotations(nil) }, want: foreign, owner: "nobody Portico knows"},
		"Controlled": {
			reason: "Who controls it is named.",
			change: func(o *unstructured.Unstructured) {
				o.SetLabels(nil)
				o.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Application", Name: "argo", Controller: new(true)}})
			},
			want: foreign, owner: "Application argo on the target",
		},
		"OtherHub":       {reason: "So is another hub's.", change: func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{v1alpha1.ManagedByLabel: "hub-2"}) }, want: foreign, owner: "KubernetesApplicationResource team-a/settings of another hub (hub-2)"},
		"OtherResource":  {reason: "And another resource's.", change: func(o *unstructured.Unstructured) { annotate(o, v1alpha1.ResourceNameAnnotation, "other") }, want: foreign, owner: "KubernetesApplicationResource team-a/other"},
		"OtherNamespace": {reason: "Also of another namespace, which is another team.", change: func(o *unstructured.Unstructured) { annotate(o, v1alpha1.ResourceNamespaceAnnotation, "team-b") }, want: foreign, owner: "KubernetesApplicationResource team-b/settings"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			observed := desired.DeepCopy()
			tc.change(observed)
			if got := stand(desired, observed, resource, hubID); got != tc.want {
				t.Errorf("stands %s, want %s: %s", got, tc.want, tc.reason)
			}
			if tc.want == foreign {
				if diff := cmp.Diff(tc.owner, owner(observed, hubID)); diff != "" {
					t.Errorf("owner (-want +got):\n%s", diff)
				}
			}
		})
	}
	if got := stand(desired, nil, resource, hubID); got != absent {
		t.Errorf("what is not there stands %s", got)
	}
}

func annotate(o *unstructured.Unstructured, key, value string) {
	annotations := o.GetAnnotations()
	annotations[key] = value
	o.SetAnnotations(annotations)
}

func TestDifferences(t *testing.T) {
	cases := map[string]struct {
		reason            string
		desired, observed string
		want              []string
	}{
		"Same":          {reason: "Nothing differs.", desired: `{a: 1, b: [x], c: {d: true}}`, observed: `{a: 1, b: [x], c: {d: true}}`},
		"Defaults":      {reason: "What the target filled in is no difference.", desired: `{containers: [{name: web}]}`, observed: `{containers: [{name: web, imagePullPolicy: Always}], dnsPolicy: ClusterFirst}`},
		"Numbers":       {reason: "A number is a number however it is written.", desired: `{a: 1.0}`, observed: `{a: 1}`},
		"NumberAndText": {reason: "A number is no text.", desired: `{a: 1}`, observed: `{a: "1"}`, want: []string{".a"}},
		"Null":          {reason: "To ask for nothing is to ask for nothing.", desired: `{a: null}`, observed: `{a: 1}`},
		"Absent":        {reason: "Everything that is missing is named, in order.", desired: `{c: {d: 1, a: x}, b: y}`, observed: `{}`, want: []string{".b", ".c.a", ".c.d"}},
		"EmptyMap":      {reason: "An empty map may be dropped.", desired: `{emptyDir: {}, list: []}`, observed: `{}`},
		"OtherShape":    {reason: "A map is no list, nor text.", desired: `{a: {b: 1}, c: [1]}`, observed: `{a: x, c: x}`, want: []string{".a", ".c"}},
		"ItemAdded":     {reason: "An item that others put into a list of named items is theirs, wherever they put it.", desired: `{containers: [{name: web, image: a}]}`, observed: `{containers: [{name: mesh}, {name: web, image: a}]}`},
		"ItemChanged":   {reason: "An item is found by its name.", desired: `{containers: [{name: a, image: x}, {name: b, image: y}]}`, observed: `{containers: [{name: b, image: z}, {name: a, image: x}]}`, want: []string{".containers[name=b].image"}},
		"ItemGone":      {reason: "So it is missed.", desired: `{containers: [{name: a}, {name: b}]}`, observed: `{containers: [{name: a}]}`, want: []string{".containers[name=b]"}},
		"TwoProtocols":  {reason: "A port is a number and a protocol.", desired: `{ports: [{port: 53, protocol: UDP, nodePort: 1}, {port: 53, protocol: TCP, nodePort: 2}]}`, observed: `{ports: [{port: 53, protocol: TCP, nodePort: 2}, {port: 53, protocol: UDP, nodePort: 1}]}`},
		"Unnamed":       {reason: "Items without a name are told by their place.", desired: `{args: [a, b]}`, observed: `{args: [b, a]}`, want: []string{".args[0]", ".args[1]"}},
		"UnnamedMore":   {reason: "One more is one too many.", desired: `{args: [a]}`, observed: `{args: [a, b]}`, want: []string{".args"}},
		"SameName":      {reason: "Names that do not tell items apart are not used.", desired: `{rules: [{name: a, x: 1}, {name: a, x: 2}]}`, observed: `{rules: [{name: a, x: 1}, {name: a, x: 3}]}`, want: []string{".rules[1].x"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, differences(fields(t, tc.desired), fields(t, tc.observed))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
