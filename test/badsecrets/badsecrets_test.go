package badsecrets

import (
	"strings"
	"testing"
)

// TestLeaks finds the data of a Secret in every encoding.
func TestLeaks(t *testing.T) {
	const canary = "nightingale"
	corpus, err := Corpus(Server{URL: "https://127.0.0.1:6443", CA: []byte("none")})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]Case{}
	for _, tc := range corpus {
		cases[tc.Name] = tc
		if tc.Leaks("target eu-1 has no usable connection: data[endpoint]: Invalid value: is not a URL", canary) {
			t.Errorf("%s: an innocent text is said to leak", tc.Name)
		}
	}
	key := string(cases["swapped"].Data(canary)["clientCert"]) // this value has no canary
	for name, text := range map[string]string{
		"unknown-token": "is not a token: " + canary,
		"ca-not-pem":    "is not PEM: " + encode("x"+canary+"y"),
		"swapped":       "is not a certificate: " + strings.Split(key, "\n")[1],
	} {
		if !cases[name].Leaks(text, canary) {
			t.Errorf("%s: %q came out unnoticed", name, text)
		}
	}
}
