package credentials

import (
	"testing"

	"k8s.io/client-go/rest"
)

func TestClusterID(t *testing.T) {
	ca, key := pair(t)
	other, _ := pair(t)
	config := func(host, ca string, change ...func(*rest.Config)) string {
		c := &rest.Config{Host: host, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(ca)}}
		for _, f := range change {
			f(c)
		}
		return (&Connection{Config: c}).ClusterID()
	}
	first := config("https://prod.example.org:6443", ca)
	for name, tc := range map[string]struct {
		reason string
		id     string
		same   bool
	}{
		"Spelling":       {"An endpoint has several spellings.", config("https://PROD.example.org.:6443/", ca), true},
		"Credential":     {"The credential does not matter.", config("https://prod.example.org:6443", ca, func(c *rest.Config) { c.BearerToken, c.KeyData = "a", []byte(key) }), true},
		"Comments":       {"Comments and duplicates in the CA bundle do not matter.", config("https://prod.example.org:6443", "# prod\n"+ca+"\n"+ca), true},
		"Port":           {"Another port is another server.", config("https://prod.example.org", ca), false},
		"Path":           {"A proxy may serve several clusters by path.", config("https://prod.example.org:6443/k8s/clusters/a", ca), false},
		"ServerName":     {"A proxy may serve several clusters by server name.", config("https://prod.example.org:6443", ca, func(c *rest.Config) { c.ServerName = "dev" }), false},
		"Authority":      {"A server with another CA is another cluster.", config("https://prod.example.org:6443", other), false},
		"NoAuthority":    {"Without a CA the system's CAs apply, which are others.", config("https://prod.example.org:6443", ""), false},
		"MoreAuthorised": {"A CA bundle with more certificates trusts other servers too.", config("https://prod.example.org:6443", ca+other), false},
	} {
		if (tc.id == first) != tc.same {
			t.Errorf("%s: same = %t, want %t: %s", name, tc.id == first, tc.same, tc.reason)
		}
	}
	if config("https://prod.example.org", ca) != config("https://prod.example.org:443", ca) {
		t.Error("443 is the port of https")
	}
	if config("https://prod.example.org:6443", ca+other) != config("https://prod.example.org:6443", other+ca) {
		t.Error("a bundle has no order")
	}
	if len(first) != 32 {
		t.Errorf("the identity is %q", first)
	}
}
