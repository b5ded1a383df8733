package credentials

import (
	"net/netip"
	"slices"
	"strings"
)

// AddressRules decide which addresses the endpoint of a connection may resolve to. A
// name may resolve to another address at each dial, so they are checked at each dial.
type AddressRules struct {
	// AllowLocal is Rules.AllowLocal.
	AllowLocal bool
	// Hub is set if the endpoint names the hub itself.
	Hub bool
	// HubHosts are the names and addresses of the hub.
	HubHosts []string
}

// RefuseAddress returns why an address may not be dialled; "" if it may. hub are the
// addresses of HubHosts.
func (a AddressRules) RefuseAddress(ip netip.Addr, hub []netip.Addr) string {
	ip = ip.Unmap().WithZone("")
	ofHub := slices.ContainsFunc(hub, func(other netip.Addr) bool { return other.Unmap().WithZone("") == ip })
	switch {
	case a.AllowLocal, a.Hub && ofHub:
		return ""
	case isLocalAddress(ip):
		return "an address of Portico's own machine or link"
	case ofHub:
		return "an address of the hub, which the endpoint does not name"
	}
	return ""
}

func isLocalAddress(ip netip.Addr) bool {
	return ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast()
}

// addressRules returns the rules for a connection to a host.
func (r Rules) addressRules(host string, hub bool) AddressRules {
	return AddressRules{AllowLocal: r.AllowLocal, Hub: hub || r.namesHub(host), HubHosts: r.HubHosts}
}

// namesHub tells whether a host is a name or an address of the hub: one that Portico
// itself uses, or the Service kubernetes.
func (r Rules) namesHub(host string) bool {
	const service = "kubernetes.default"
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == service || host == service+".svc" || strings.HasPrefix(host, service+".svc.") {
		return true
	}
	return slices.ContainsFunc(r.HubHosts, func(other string) bool { return strings.EqualFold(other, host) })
}
