package clusters

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/portico-io/portico/policies/credentials"
)

// TestExpiryMetric: the metric has the credentials with a known expiry, while their
// targets are connected with them.
func TestExpiryMetric(t *testing.T) {
	c := New(Options{})
	name := func(target string) types.NamespacedName {
		return types.NamespacedName{Namespace: "team-a", Name: target}
	}
	connect := func(target, digest string, expiry time.Time) {
		t.Helper()
		connectionConfig := ConnectionConfig{Connection: &credentials.Connection{Config: &rest.Config{Host: "https://127.0.0.1:1"}, Expiry: expiry}, Digest: digest}
		if err := c.Connect(t.Context(), name(target), connectionConfig); err != nil {
			t.Fatal(err)
		}
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	reported := func() map[string]float64 {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]float64{}
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				labels := metric.GetLabel()
				if family.GetName() != "portico_target_credential_expiry_seconds" || len(labels) != 2 || labels[0].GetValue() != "team-a" {
					t.Errorf("unexpected: %s %v", family.GetName(), labels)
				}
				out[labels[1].GetValue()] = metric.GetGauge().GetValue()
			}
		}
		return out
	}

	connect("good", "1", time.Now().Add(time.Hour))
	connect("ended", "1", time.Now().Add(-time.Hour))
	connect("unknown", "1", time.Time{})
	c.Disconnect(name("broken"), "SecretMissing", "has no connection")
	got := reported()
	if good := got["good"]; len(got) != 2 || good <= 0 || good > 3600 || got["ended"] > -3600 {
		t.Errorf("reported are %v", got)
	}

	connect("ended", "2", time.Now().Add(2*time.Hour)) // rotated
	c.Close(name("good"))
	if got := reported(); len(got) != 1 || got["ended"] <= 3600 {
		t.Errorf("after a rotation and the end of a target, reported are %v", got)
	}
}
