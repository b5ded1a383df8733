package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

func TestCompareHostile(t *testing.T) {
	b := &beside{planes: &planes{system: &system{report: &report{}}}}
	b.compareHostile(
		[]turn{{samples: samples{applied: []float64{20, 20}, reported: []float64{5}}, resident: 2048, left: 1024}},
		[]turn{{samples: samples{applied: []float64{10, 20}, reported: []float64{5}}, resident: 1024, left: 1024}}, 3)
	got := map[string]string{}
	for _, row := range b.report.Rows {
		got[row.What] = row.text() + " " + row.Aim.String()
	}
	const against = "while 3 others attack ÷ while those behave"
	want := map[string]string{
		"p50 until a Deployment is on its target, of 5 healthy targets " + against: "1.33 ≤ 1.20",
		"p90 until a Deployment is on its target, of 5 healthy targets " + against: "1.05 ",
		"p50 until a status change is on the hub, of 5 healthy targets " + against: "1 ≤ 1.20",
		"p90 until a status change is on the hub, of 5 healthy targets " + against: "1 ",
		"most resident memory, " + against:                                         "2 ≤ 1.10",
		"heap when all was over, " + against:                                       "1 ≤ 1.10",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRemoteTicked(t *testing.T) {
	resource := &v1alpha1.KubernetesApplicationResource{}
	if remoteTicked(resource, 7) {
		t.Error("a resource without a status has no sample")
	}
	resource.Status.Remote = &apiextensionsv1.JSON{Raw: []byte(`{"conditions":[{"type":"BenchTick","message":"7"}]}`)}
	if !remoteTicked(resource, 7) || remoteTicked(resource, 8) {
		t.Error("a resource has the sample that its Deployment's status has")
	}
}

func TestResourceFor(t *testing.T) {
	d := deployment("team-a", "group", "web", false)
	d.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
	for _, on := range []string{"", "eu-1"} {
		r, err := resourceFor(d, on)
		if err != nil {
			t.Fatal(err)
		}
		if errs := policies.ValidateResource(r, nil); len(errs) > 0 {
			t.Errorf("Portico refuses it: %v", errs)
		}
		if (r.Spec.TargetRef != nil) != (on != "") {
			t.Errorf("its target is %v, want %q", r.Spec.TargetRef, on)
		}
	}
}
