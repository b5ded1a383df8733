package credentials

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

// pair returns a certificate and its key, in PEM.
func pair(t testing.TB) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}

// kubeconfig returns a kubeconfig with the given lines in its cluster and its user.
func kubeconfig(cluster, user string) map[string]string {
	return map[string]string{"kubeconfig": `
apiVersion: v1
kind: Config
current-context: main
contexts: [{name: main, context: {cluster: there, user: me}}]
clusters: [{name: there, cluster: {` + cluster + `}}]
users: [{name: me, user: {` + user + `}}]
`}
}

func data(text map[string]string) map[string][]byte {
	out := map[string][]byte{}
	for key, value := range text {
		out[key] = []byte(value)
	}
	return out
}

func TestRead(t *testing.T) {
	certificate, key := pair(t)
	encoded := base64.StdEncoding.EncodeToString

	cases := map[string]struct {
		reason string
		secret map[string]string
		want   *rest.Config
	}{
		"Token": {
			reason: "An endpoint and a token suffice. The system's CAs verify the server.",
			secret: map[string]string{"endpoint": "https://eu-1.example.org", "token": "t"},
			want:   &rest.Config{Host: "https://eu-1.example.org", BearerToken: "t"},
		},
		"LineBreaks": {
			reason: "A Secret made from files has a line break at the end of each value.",
			secret: map[string]string{"endpoint": "https://eu-1.example.org\n", "token": "t\n"},
			want:   &rest.Config{Host: "https://eu-1.example.org", BearerToken: "t"},
		},
		"Certificate": {
			reason: "A client certificate is a credential.",
			secret: map[string]string{"endpoint": "https://10.0.0.1:6443", "clusterCA": certificate, "clientCert": certificate, "clientKey": key},
			want: &rest.Config{Host: "https://10.0.0.1:6443", TLSClientConfig: rest.TLSClientConfig{
				CAData: []byte(certificate), CertData: []byte(certificate), KeyData: []byte(key),
			}},
		},
		"Password": {
			reason: "A password may end with a space.",
			secret: map[string]string{"endpoint": "https://eu-1.example.org", "username": "u", "password": "p "},
			want:   &rest.Config{Host: "https://eu-1.example.org", Username: "u", Password: "p "},
		},
		"Kubeconfig": {
			reason: "A kubeconfig with all data inside is a connection.",
			secret: kubeconfig(
				`server: "https://eu-1.example.org", certificate-authority-data: `+encoded([]byte(certificate))+`, tls-server-name: kubernetes`,
				`client-certificate-data: `+encoded([]byte(certificate))+`, client-key-data: `+encoded([]byte(key))),
			want: &rest.Config{Host: "https://eu-1.example.org", TLSClientConfig: rest.TLSClientConfig{
				ServerName: "kubernetes", CAData: []byte(certificate), CertData: []byte(certificate), KeyData: []byte(key),
			}},
		},
		"KubeconfigWins": {
			reason: "A kubeconfig has priority over the other keys.",
			secret: func() map[string]string {
				out := kubeconfig(`server: "https://eu-1.example.org"`, `token: t`)
				out["endpoint"], out["token"] = "https://other.example.org", "other"
				return out
			}(),
			want: &rest.Config{Host: "https://eu-1.example.org", BearerToken: "t"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, errs := Rules{}.ReadSecret(data(tc.secret))
			if errs != nil {
				t.Fatalf("%s %v", tc.reason, errs)
			}
			if diff := cmp.Diff(connection(tc.want), connection(got.Config)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// connection returns the fields of a rest.Config that depend on the Secret.
func connection(c *rest.Config) map[string]any {
	return map[string]any{
		"host": c.Host, "user": c.Username, "password": c.Password, "token": c.BearerToken, "server": c.ServerName,
		"ca": string(c.CAData), "certificate": string(c.CertData), "key": string(c.KeyData),
		"plugins": c.ExecProvider != nil || c.AuthProvider != nil, "insecure": c.Insecure,
		"files": c.CAFile + c.CertFile + c.KeyFile + c.BearerTokenFile,
	}
}

// FuzzRead searches for a file that makes the parser fail, or for an accepted
// connection that reads local files.
func FuzzRead(f *testing.F) {
	f.Add([]byte(kubeconfig(`server: "https://eu-1.example.org"`, "token: t")["kubeconfig"]))
	f.Add([]byte("{users: [{name: me}], clusters: [null], contexts: [{context: null}]}"))
	f.Add([]byte("null"))
	f.Add([]byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "", "contexts": [{"name": ""}], "clusters": [{"name": ""}], "users": [{"name": ""}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		read, errs := Rules{}.ReadSecret(map[string][]byte{"kubeconfig": raw})
		if errs != nil {
			return
		}
		config := read.Config
		if c := connection(config); c["plugins"] != false || c["insecure"] != false || c["files"] != "" || !strings.HasPrefix(config.Host, "https://") {
			t.Errorf("accepted %v", c)
		}
	})
}

func TestDigest(t *testing.T) {
	base := map[string]string{"endpoint": "https://eu-1.example.org", "token": "t"}
	cases := map[string]struct {
		reason string
		other  map[string]string
		same   bool
	}{
		"Same":        {reason: "The order of keys does not matter.", other: map[string]string{"token": "t", "endpoint": "https://eu-1.example.org"}, same: true},
		"Rotated":     {reason: "A new token gives another digest.", other: map[string]string{"endpoint": "https://eu-1.example.org", "token": "u"}},
		"Renamed":     {reason: "The same value with another key gives another digest.", other: map[string]string{"endpoint": "https://eu-1.example.org", "password": "t"}},
		"More":        {reason: "An additional empty key gives another digest.", other: map[string]string{"endpoint": "https://eu-1.example.org", "token": "t", "username": ""}},
		"Boundaries":  {reason: "The boundary between key and value is part of the digest.", other: map[string]string{"endpoint": "https://eu-1.example.org5:token=1:t"}},
		"NothingLeft": {reason: "An empty Secret gives another digest.", other: nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Digest(data(base)) == Digest(data(tc.other)); got != tc.same {
				t.Errorf("same = %t, want %t: %s", got, tc.same, tc.reason)
			}
		})
	}
	if strings.Contains(Digest(data(base)), "eu-1") {
		t.Error("the digest contains data of the Secret")
	}
}
