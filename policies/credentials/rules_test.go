package credentials

import (
	"encoding/base64"
	"fmt"
	"testing"
	"time"
)

func jwt(claims string) string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"RS256"}`)) + "." + part([]byte(claims)) + "." + part([]byte("signature"))
}

func TestLocal(t *testing.T) {
	cases := map[string]struct {
		reason   string
		endpoint string
		local    bool
	}{
		"Name":        {reason: "The name of a host is allowed.", endpoint: "https://eu-1.example.org:6443"},
		"Address":     {reason: "A private address is allowed.", endpoint: "https://10.0.0.1"},
		"Localhost":   {reason: "Name localhost is local.", endpoint: "https://localhost:6443", local: true},
		"Dotted":      {reason: "Name localhost is local in each spelling.", endpoint: "https://LocalHost.:6443", local: true},
		"Under":       {reason: "A name under localhost is local.", endpoint: "https://api.localhost", local: true},
		"Loopback":    {reason: "Each loopback address is local.", endpoint: "https://127.8.0.1:6443", local: true},
		"Loopback6":   {reason: "The loopback address of IPv6 is local.", endpoint: "https://[::1]:6443", local: true},
		"Mapped":      {reason: "A loopback address mapped to IPv6 is local.", endpoint: "https://[::ffff:127.0.0.1]:6443", local: true},
		"Unspecified": {reason: "The unspecified address is local.", endpoint: "https://0.0.0.0:6443", local: true},
		"Metadata":    {reason: "A cloud's metadata service has a link-local address.", endpoint: "https://169.254.169.254", local: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			secret := data(map[string]string{"endpoint": tc.endpoint, "token": "t"})
			if _, errs := (Rules{}).ReadSecret(secret); (errs != nil) != tc.local {
				t.Errorf("local is %t, want %t: %s", errs != nil, tc.local, tc.reason)
			}
			if _, errs := (Rules{AllowLocal: true}).ReadSecret(secret); errs != nil {
				t.Errorf("refused although it is allowed: %v", errs)
			}
		})
	}
}

func TestServiceAccountToken(t *testing.T) {
	certificate, _ := pair(t)
	secret := data(map[string]string{"token": "t", "ca.crt": certificate, "namespace": "infra"})
	if _, errs := (Rules{}).ReadSecret(secret); errs == nil {
		t.Error("a Secret without an endpoint was accepted without the hub's endpoint")
	}
	got, errs := Rules{Hub: "https://127.0.0.1:6443"}.ReadSecret(secret)
	if errs != nil {
		t.Fatal(errs)
	}
	if got.Config.Host != "https://127.0.0.1:6443" || got.Config.BearerToken != "t" || string(got.Config.CAData) != certificate {
		t.Errorf("a ServiceAccount's token does not connect to the hub: %+v", got.Config.Host)
	}
	delete(secret, "ca.crt")
	if _, errs := (Rules{Hub: "https://127.0.0.1:6443"}).ReadSecret(secret); errs == nil {
		t.Error("a token alone connects to the hub, although it may be another cluster's")
	}
}

func TestExpiry(t *testing.T) {
	certificate, key := pair(t) // valid for an hour
	expiring, late := time.Now().Add(time.Minute).Truncate(time.Second), time.Now().Add(48*time.Hour)
	cases := map[string]struct {
		reason string
		secret map[string]string
		within time.Duration // 0 means unknown
	}{
		"Opaque":      {reason: "The expiry of an opaque token is unknown.", secret: map[string]string{"token": "opaque"}},
		"Token":       {reason: "The expiry of a JSON Web Token is its claim exp.", secret: map[string]string{"token": jwt(fmt.Sprintf(`{"exp":%d}`, expiring.Unix()))}, within: time.Minute},
		"Endless":     {reason: "A JSON Web Token without exp does not expire.", secret: map[string]string{"token": jwt(`{"sub":"me"}`)}},
		"Nonsense":    {reason: "An exp that is not a valid time is ignored.", secret: map[string]string{"token": jwt(`{"exp":1e300}`)}},
		"NotANumber":  {reason: "An exp that is not a number is ignored.", secret: map[string]string{"token": jwt(`{"exp":"expiring"}`)}},
		"Certificate": {reason: "The expiry of a certificate is its end.", secret: map[string]string{"clientCert": certificate, "clientKey": key}, within: time.Hour},
		"Both":        {reason: "The earlier expiry counts.", secret: map[string]string{"clientCert": certificate, "clientKey": key, "token": jwt(fmt.Sprintf(`{"exp":%d}`, late.Unix()))}, within: time.Hour},
		"BothToken":   {reason: "The token's expiry counts if it is earlier.", secret: map[string]string{"clientCert": certificate, "clientKey": key, "token": jwt(fmt.Sprintf(`{"exp":%d}`, expiring.Unix()))}, within: time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.secret["endpoint"] = "https://eu-1.example.org"
			got, errs := Rules{}.ReadSecret(data(tc.secret))
			if errs != nil {
				t.Fatal(errs)
			}
			left := time.Until(got.Expiry)
			if got.Expiry.IsZero() != (tc.within == 0) || left > tc.within || tc.within > 0 && left < tc.within-time.Minute {
				t.Errorf("ends %s, want within %s: %s", got.Expiry, tc.within, tc.reason)
			}
		})
	}
}
