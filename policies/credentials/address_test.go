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
		"Elsewhere":     {reason: "A private address is allowed.", endpoint: "https://eu-1.example.org", resolves: "10.0.0.1"},
		"Loopback":      {reason: "A name that resolves to a loopback address is refused.", endpoint: "https://eu-1.example.org", resolves: "127.0.0.1", refused: true},
		"Mapped":        {reason: "A loopback address mapped to IPv6 is refused.", endpoint: "https://eu-1.example.org", resolves: "::ffff:127.0.0.1", refused: true},
		"Loopback6":     {reason: "The loopback address of IPv6 is refused.", endpoint: "https://eu-1.example.org", resolves: "::1", refused: true},
		"Link":          {reason: "A link-local address with a zone is refused.", endpoint: "https://eu-1.example.org", resolves: "fe80::1%eth0", refused: true},
		"Metadata":      {reason: "A cloud's metadata service has a link-local address.", endpoint: "https://eu-1.example.org", resolves: "169.254.169.254", refused: true},
		"Hub":           {reason: "Another name must not resolve to the hub's address.", endpoint: "https://eu-1.example.org", resolves: "10.96.0.1", refused: true},
		"HubByName":     {reason: "The name of Service kubernetes may resolve to the hub's address.", endpoint: "https://kubernetes.default.svc", resolves: "10.96.0.1"},
		"HubByFullName": {reason: "The full name of Service kubernetes may resolve to the hub's address.", endpoint: "https://kubernetes.default.svc.cluster.local:443", resolves: "10.96.0.1"},
		"HubByAddress":  {reason: "The hub's address itself is allowed.", endpoint: "https://10.96.0.1", resolves: "10.96.0.1"},
		"HubElsewhere":  {reason: "The name of Service kubernetes must not resolve to a loopback address.", endpoint: "https://kubernetes.default.svc", resolves: "127.0.0.1", refused: true},
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
