package credentials

import (
	"net/netip"
	"testing"
)

func TestAddresses(t *testing.T) {
	hub := []string{"10.96.0.1"}
	cases := map[string]struct {
		reason   string
		endpoint string
		resolves string
		refused  bool
	}{
		"Elsewhere":     {reason: "A private address may be a cluster's.", endpoint: "https://eu-1.example.org", resolves: "10.0.0.1"},
		"Loopback":      {reason: "A name may resolve to Portico's own machine.", endpoint: "https://eu-1.example.org", resolves: "127.0.0.1", refused: true},
		"Mapped":        {reason: "In whatever form.", endpoint: "https://eu-1.example.org", resolves: "::ffff:127.0.0.1", refused: true},
		"Loopback6":     {reason: "In both families.", endpoint: "https://eu-1.example.org", resolves: "::1", refused: true},
		"Link":          {reason: "Also with a zone.", endpoint: "https://eu-1.example.org", resolves: "fe80::1%eth0", refused: true},
		"Metadata":      {reason: "On the link, clouds tell a machine its secrets.", endpoint: "https://eu-1.example.org", resolves: "169.254.169.254", refused: true},
		"Hub":           {reason: "Only who names the hub means the hub.", endpoint: "https://eu-1.example.org", resolves: "10.96.0.1", refused: true},
		"HubByName":     {reason: "Service kubernetes is a name of the hub.", endpoint: "https://kubernetes.default.svc", resolves: "10.96.0.1"},
		"HubByFullName": {reason: "With the cluster's domain as well.", endpoint: "https://kubernetes.default.svc.cluster.local:443", resolves: "10.96.0.1"},
		"HubByAddress":  {reason: "So is its address.", endpoint: "https://10.96.0.1", resolves: "10.96.0.1"},
		"HubElsewhere":  {reason: "Who names the hub may not be led to this machine.", endpoint: "https://kubernetes.default.svc", resolves: "127.0.0.1", refused: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, local := range []bool{false, true} {
				got, errs := Rules{AllowLocal: local, HubHosts: hub}.ReadSecret(data(map[string]string{"endpoint": tc.endpoint, "token": "t"}))
				if errs != nil {
					t.Fatal(errs)
				}
				why := got.AddressRules.RefuseAddress(netip.MustParseAddr(tc.resolves), []netip.Addr{netip.MustParseAddr(hub[0])})
				if (why != "") != (tc.refused && !local) {
					t.Errorf("allowing local targets is %t: %q; %s", local, why, tc.reason)
				}
			}
		})
	}
}
