package main

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/test/cluster"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   string // the error; empty if there is none
	}{
		"Nothing":    {reason: "All flags have defaults."},
		"Sizes":      {reason: "Flags set smaller sizes.", args: []string{"-large", "200", "-namespaces", "4", "-only", placementSection}},
		"Zero":       {reason: "Sizes must be at least 1.", args: []string{"-members", "0", "-flaps", "-1"}, want: "-flaps must be at least 1\n-members must be at least 1"},
		"Namespaces": {reason: "Each namespace needs at least one object.", args: []string{"-large", "10"}, want: "-namespaces must not be more than -large"},
		"Section":    {reason: "An unknown section is an error.", args: []string{"-only", "burts"}, want: `invalid value "burts" for flag -only: no such section`},
		"Arguments":  {reason: "Arguments without a flag are an error.", args: []string{"burst"}, want: `unknown argument "burst"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if _, err := parse(tc.args); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("%s\nwant error %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func TestUnevenness(t *testing.T) {
	cases := map[string]struct {
		reason     string
		loads      map[string]int
		most, mean float64
	}{
		"Nothing": {reason: "Without placed objects the load is even."},
		"Even":    {reason: "The aim is that maximum and mean are equal.", loads: map[string]int{"a": 4, "b": 4}, most: 4, mean: 4},
		"One":     {reason: "Targets without objects count.", loads: map[string]int{"a": 4}, most: 4, mean: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if most, mean := unevenness(tc.loads, 2); most != tc.most || mean != tc.mean {
				t.Errorf("%s\nwant %v and %v, got %v and %v", tc.reason, tc.most, tc.mean, most, mean)
			}
		})
	}
}

func TestTallied(t *testing.T) {
	lines, total := tallied(map[string]int{"patch pods by b": 2, "create pods by a": 10})
	if total != 12 || len(lines) != 2 || lines[0] != "    10 create pods by a" || lines[1] != "     2 patch pods by b" {
		t.Errorf("got %d, %q", total, lines)
	}
}

func TestConnectionOf(t *testing.T) {
	user := &cluster.User{Config: &rest.Config{Host: "https://127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca"), CertData: []byte("cert"), KeyData: []byte("key")}}}
	for endpoint, want := range map[string]string{"": "https://127.0.0.1:1", "https://127.0.0.1:2": "https://127.0.0.1:2"} {
		published := publication{namespace: "team-a", name: "eu-1", connection: connectionOf(user, endpoint)}
		if got := string(published.secret().Data[v1alpha1.SecretEndpoint]); got != want {
			t.Errorf("the endpoint is %s, want %s", got, want)
		}
		if ref := published.target().Spec.ConnectionSecretRef; ref == nil || ref.Name != published.secret().Name {
			t.Errorf("the target names Secret %v, which is %s", ref, published.secret().Name)
		}
	}
}
