package kinds

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// wish is a Service as a user writes it. Each value that a hub would allocate
// is the user's, or absent.
type wish struct {
	kind        string
	local       bool // externalTrafficPolicy
	clusterIP   string
	class       string
	healthCheck int64
	nodePorts   map[int64]int64 // by port; 0 when not given
}

// author writes wishes that an API server accepts, one after the other. Node
// ports below 31000 are users', those above the hub's.
type author struct {
	*rand.Rand
	address     string // for all of a Service's life
	healthCheck int64
	next        int64
}

func (a *author) wish() wish {
	kinds := []string{"ClusterIP", "NodePort", "LoadBalancer", "ExternalName"}
	w := wish{kind: kinds[a.IntN(len(kinds))], local: a.IntN(2) == 0, nodePorts: map[int64]int64{}}
	if a.address == "None" {
		w.kind = "ClusterIP"
	}
	if w.kind != "ExternalName" {
		w.clusterIP = a.address
	}
	if w.kind == "LoadBalancer" {
		w.class = []string{"", "fast", "slow"}[a.IntN(3)]
		if w.local {
			w.healthCheck = a.healthCheck
		}
	}
	for _, port := range []int64{80, 443, 8080} {
		if a.IntN(3) == 0 {
			continue
		}
		w.nodePorts[port] = 0
		if w.hasNodePorts() && a.IntN(2) == 0 {
			a.next++
			w.nodePorts[port] = 30000 + a.next
		}
	}
	return w
}

func (w wish) hasNodePorts() bool { return w.kind == "NodePort" || w.kind == "LoadBalancer" }

// object is the wish as a target should get it.
func (w wish) object() *unstructured.Unstructured { return w.applied(nil, wish{}) }

// applied returns the object after kubectl apply of the wish: its values, without those
// that only the last wish had.
func (w wish) applied(there *unstructured.Unstructured, last wish) *unstructured.Unstructured {
	out := New(Service{})
	if there != nil {
		out = there.DeepCopy()
	}
	out.SetName("web")
	out.SetLabels(map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote})
	put := func(key string, value, before, none any) {
		switch {
		case value != none:
			_ = unstructured.SetNestedField(out.Object, value, "spec", key)
		case before != none:
			unstructured.RemoveNestedField(out.Object, "spec", key)
		}
	}
	put("type", w.kind, last.kind, "")
	put("tomorrow", w.kind, last.kind, "")
	put("clusterIP", w.clusterIP, last.clusterIP, "")
	put("loadBalancerClass", w.class, last.class, "")
	put("healthCheckNodePort", w.healthCheck, last.healthCheck, int64(0))
	policy := map[bool]string{true: "Local", false: "Cluster"}
	if w.hasNodePorts() {
		put("externalTrafficPolicy", policy[w.local], "", "")
	} else {
		unstructured.RemoveNestedField(out.Object, "spec", "externalTrafficPolicy")
	}
	had := ports(out)
	list := []any{}
	for _, port := range []int64{80, 443, 8080} {
		given, wanted := w.nodePorts[port]
		if !wanted {
			continue
		}
		item := map[string]any{"port": port}
		if there := had[fmt.Sprintf("TCP/%d", port)]["nodePort"]; there != nil && last.nodePorts[port] == 0 {
			item["nodePort"] = there
		}
		if given != 0 {
			item["nodePort"] = given
		}
		list = append(list, item)
	}
	_ = unstructured.SetNestedSlice(out.Object, list, "spec", "ports")
	return out
}

// allocate does the work of the API server after admission: it gives values, keeps
// those it gave, and drops those that the type no longer has.
func (a *author) allocate(object, old *unstructured.Unstructured) *unstructured.Unstructured {
	out := object.DeepCopy()
	spec := out.Object["spec"].(map[string]any)
	keep := func(key string, otherwise any) {
		if spec[key] != nil {
			return
		}
		spec[key] = otherwise
		if old != nil {
			if value, _, _ := unstructured.NestedFieldCopy(old.Object, "spec", key); value != nil {
				spec[key] = value
			}
		}
	}
	kind := spec["type"]
	if kind == "ExternalName" {
		for _, key := range []string{"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} {
			delete(spec, key)
		}
	} else {
		keep("clusterIP", "10.0.0.7")
		keep("clusterIPs", []any{spec["clusterIP"]})
		keep("ipFamilies", []any{"IPv4"})
		keep("ipFamilyPolicy", "SingleStack")
	}
	if kind != "LoadBalancer" || spec["externalTrafficPolicy"] != "Local" {
		delete(spec, "healthCheckNodePort")
	} else {
		a.next++
		keep("healthCheckNodePort", 32000+a.next)
	}
	before := map[string]map[string]any{}
	if old != nil {
		before = ports(old)
	}
	for key, port := range ports(out) {
		switch {
		case kind != "NodePort" && kind != "LoadBalancer":
			delete(port, "nodePort")
		case port["nodePort"] == nil && before[key]["nodePort"] != nil:
			port["nodePort"] = before[key]["nodePort"]
		case port["nodePort"] == nil:
			a.next++
			port["nodePort"] = 31000 + a.next
		}
	}
	return out
}

// TestServicesAreProjectedAsRequested changes many Services at random. The target is sent
// exactly the values of the user, for any allocation of the hub and any number of calls
// of admission.
func TestServicesAreProjectedAsRequested(t *testing.T) {
	for seed := range uint64(400) {
		a := &author{Rand: rand.New(rand.NewPCG(seed, 0))}
		a.address = []string{"", "10.9.0.9", "None"}[a.IntN(3)]
		a.healthCheck = []int64{0, 30999}[a.IntN(2)]
		var there *unstructured.Unstructured
		var last wish
		for step := range 6 {
			w := a.wish()
			admitted, err := admit(t, Service{}, w.applied(there, last), there, Anyone)
			if err != nil {
				t.Fatal(err)
			}
			there, last = a.allocate(admitted, there), w
			sent, err := Project(Service{}, there)
			if err != nil {
				t.Fatal(err)
			}
			found2, err := Project(Service{}, there)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(sent.Object, found2.Object); diff != "" {
				t.Errorf("projecting twice differs:\n%s", diff)
			}
			if diff := cmp.Diff(w.object().Object["spec"], sent.Object["spec"]); diff != "" {
				t.Fatalf("life %d, step %d: the target is not sent what the user wrote, -wrote +sent:\n%s\nstored: %v", seed, step, diff, there.Object)
			}
		}
	}
}

// TestDeploymentsAreProjectedAsWritten holds, releases and moves Deployments at
// random. The target is always sent the values of the user.
func TestDeploymentsAreProjectedAsWritten(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		var there *unstructured.Unstructured
		for step := range 6 {
			object := read(t, fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: %d, tomorrow: {a: [1]}, template: {spec: {b: c}}}}`, random.IntN(4)))
			if random.IntN(4) > 0 {
				object.SetLabels(map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote})
			}
			if random.IntN(2) == 0 {
				object.SetAnnotations(map[string]string{"team": "blue"})
			}
			if random.IntN(2) == 0 {
				_ = unstructured.SetNestedStringMap(object.Object, map[string]string{"app": "web"}, "spec", "template", "metadata", "labels")
			}
			written := object.DeepCopy()
			by := Anyone
			if there != nil && IsRemote(there) && IsRemote(object) && random.IntN(4) == 0 {
				by, object = Portico, SetHeld(Deployment{}, object, random.IntN(2) == 0)
			}
			held, err := admit(t, Deployment{}, object, there, by)
			if err != nil {
				t.Fatal(err)
			}
			if by == Anyone && IsRemote(object) && (there == nil || IsRemote(there) && Deployment{}.Held(there)) && !(Deployment{}.Held(held)) {
				t.Fatalf("life %d, step %d: a Deployment that was held, or new, is not held: %v", seed, step, held.Object)
			}
			if by == Anyone && there != nil && !(Deployment{}.Held(there)) && (Deployment{}.Held(held)) {
				t.Fatalf("life %d, step %d: somebody other than intake stopped a Deployment that runs here: %v", seed, step, held.Object)
			}
			there = held
			sent, err := Project(Deployment{}, there)
			if err != nil {
				t.Fatal(err)
			}
			want := written.Object["spec"].(map[string]any)
			if metadata, _, _ := unstructured.NestedMap(sent.Object, "spec", "template", "metadata"); len(metadata) == 0 {
				unstructured.RemoveNestedField(sent.Object, "spec", "template", "metadata") // empty says nothing
			}
			if diff := cmp.Diff(want, sent.Object["spec"]); diff != "" {
				t.Fatalf("life %d, step %d: the target is not sent what the user wrote, -wrote +sent:\n%s", seed, step, diff)
			}
			if diff := cmp.Diff(written.GetAnnotations(), sent.GetAnnotations()); diff != "" {
				t.Fatalf("life %d, step %d: annotations, -wrote +sent:\n%s", seed, step, diff)
			}
		}
	}
}
