package clusters

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"github.com/portico-io/portico/policies/credentials"
)

// AddressRefused is the error for an endpoint that resolves to an address that targets
// must not have.
type AddressRefused struct{ why string }

func (e *AddressRefused) Error() string { return "has an endpoint that resolves to " + e.why }

// dialerFor returns the function that opens connections to an endpoint. It checks the
// address of each connection after the name was resolved, because a name may resolve
// to another address later.
func dialerFor(endpoint string, allowed credentials.AddressRules, resolver *net.Resolver) func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	checkedDialer := dialer
	checkedDialer.Resolver = resolver
	checkedDialer.ControlContext = func(ctx context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("reading an address: %w", err)
		}
		if why := allowed.RefuseAddress(at.Addr(), lookupAddresses(ctx, resolver, allowed.HubHosts)); why != "" {
			return &AddressRefused{why: why}
		}
		return nil
	}
	proxy := proxyHost(endpoint)
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		// The operator configured the proxy, which resolves the name of the endpoint.
		if host, _, err := net.SplitHostPort(address); err == nil && proxy != "" && host == proxy {
			return dialer.DialContext(ctx, network, address)
		}
		return checkedDialer.DialContext(ctx, network, address)
	}
}

// proxyHost returns the host of the proxy for an endpoint, from the environment of
// the process; "" for none.
func proxyHost(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u})
	if err != nil || proxy == nil {
		return ""
	}
	return proxy.Hostname()
}

// lookupAddresses returns the addresses of hosts. A name that does not resolve has none.
func lookupAddresses(ctx context.Context, resolver *net.Resolver, hosts []string) []netip.Addr {
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	var out []netip.Addr
	for _, host := range hosts {
		if ip, err := netip.ParseAddr(host); err == nil {
			out = append(out, ip)
			continue
		}
		if found, err := resolver.LookupNetIP(ctx, "ip", host); err == nil {
			out = append(out, found...)
		}
	}
	return out
}
