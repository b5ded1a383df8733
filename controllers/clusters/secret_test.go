package clusters

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net/url"
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

// kubeconfig returns one with the lines of its cluster and its user.
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

func TestConfig(t *testing.T) {
	certificate, key := pair(t)
	encoded := base64.StdEncoding.EncodeToString

	cases := map[string]struct {
		reason string
		secret map[string]string
		want   *rest.Config
	}{
		"Token": {
			reason: "An endpoint and a token will do; the system's CAs vouch for the server.",
			secret: map[string]string{"endpoint": "https://eu-1.example.org", "token": "t"},
			want:   &rest.Config{Host: "https://eu-1.example.org", BearerToken: "t"},
		},
		"LineBreaks": {
			reason: "A Secret made from files has a line break at the end of each value.",
			secret: map[string]string{"endpoint": "https://eu-1.example.org\n", "token": "t\n"},
			want:   &rest.Config{Host: "https://eu-1.example.org", BearerToken: "t"},
		},
		"Certificate": {
			reason: "A client certificate is the usual credential.",
			secret: map[string]string{"endpoint": "https://10.0.0.1:6443", "clusterCA": certificate, "clientCert": certificate, "clientKey": key},
			want: &rest.Config{Host: "https://10.0.0.1:6443", TLSClientConfig: rest.TLSClientConfig{
				CAData: []byte(certificate), CertData: []byte(certificate), KeyData: []byte(key),
			}},
		},
		"Password": {
			reason: "A password may end in a space.",
			secret: map[string]string{"endpoint": "https://eu-1.example.org", "username": "u", "password": "p "},
			want:   &rest.Config{Host: "https://eu-1.example.org", Username: "u", Password: "p "},
		},
		"Kubeconfig": {
			reason: "A kubeconfig that carries everything it needs.",
			secret: kubeconfig(
				`server: "https://eu-1.example.org", certificate-authority-data: `+encoded([]byte(certificate))+`, tls-server-name: kubernetes`,
				`client-certificate-data: `+encoded([]byte(certificate))+`, client-key-data: `+encoded([]byte(key))),
			want: &rest.Config{Host: "https://eu-1.example.org", TLSClientConfig: rest.TLSClientConfig{
				ServerName: "kubernetes", CAData: []byte(certificate), CertData: []byte(certificate), KeyData: []byte(key),
			}},
		},
		"KubeconfigWins": {
			reason: "A provider may write both; the kubeconfig says more.",
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
			got, err := Config(data(tc.secret))
			if err != nil {
				t.Fatalf("%s %v", tc.reason, err)
			}
			if diff := cmp.Diff(connection(tc.want), connection(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// connection is the part of a rest.Config that a Secret decides.
func connection(c *rest.Config) map[string]any {
	return map[string]any{
		"host": c.Host, "user": c.Username, "password": c.Password, "token": c.BearerToken, "server": c.ServerName,
		"ca": string(c.CAData), "certificate": string(c.CertData), "key": string(c.KeyData),
		"plugins": c.ExecProvider != nil || c.AuthProvider != nil, "insecure": c.Insecure,
		"files": c.CAFile + c.CertFile + c.KeyFile + c.BearerTokenFile,
	}
}

// TestConfigRefusals refuses each Secret twice, with other values in it, and
// wants the same words: an error that depends on a value tells of it. CANARY
// stands for the value.
func TestConfigRefusals(t *testing.T) {
	certificate, key := pair(t)
	otherCertificate, _ := pair(t)
	const server = `server: "https://eu-1.example.org"`
	encoded := base64.StdEncoding.EncodeToString
	endpoint := func(more map[string]string) map[string]string {
		more["endpoint"] = "https://eu-1.example.org"
		return more
	}

	cases := map[string]struct {
		reason string
		secret map[string]string
		says   string // what tells a person where to look
	}{
		"Empty":          {reason: "There is nothing to connect with.", says: "key kubeconfig nor key endpoint"},
		"OtherKeys":      {reason: "Keys of another provider do not count.", secret: map[string]string{"config": "CANARY"}, says: "key kubeconfig nor key endpoint"},
		"PlainHTTP":      {reason: "A credential is not sent in the clear.", secret: map[string]string{"endpoint": "http://CANARY", "token": "t"}, says: "endpoint"},
		"NotAURL":        {reason: "A host alone may be reached in any way.", secret: map[string]string{"endpoint": "CANARY:6443", "token": "t"}, says: "endpoint"},
		"BadURL":         {reason: "The parser quotes what it cannot read.", secret: map[string]string{"endpoint": "https://CANARY\x00", "token": "t"}, says: "endpoint"},
		"UserInURL":      {reason: "A password in a URL ends up in logs.", secret: map[string]string{"endpoint": "https://me:CANARY@eu-1.example.org", "token": "t"}, says: "user name"},
		"NoCredential":   {reason: "Nobody is let in without one.", secret: endpoint(map[string]string{"clusterCA": certificate}), says: "no credential"},
		"BlankToken":     {reason: "A line break is none.", secret: endpoint(map[string]string{"token": "\n"}), says: "no credential"},
		"HalfAPair":      {reason: "A certificate needs its key.", secret: endpoint(map[string]string{"clientCert": "CANARY", "token": "t"}), says: "together"},
		"OtherHalf":      {reason: "And a key its certificate.", secret: endpoint(map[string]string{"clientKey": "CANARY", "token": "t"}), says: "together"},
		"TokenAndName":   {reason: "Two names for one caller are one too many.", secret: endpoint(map[string]string{"token": "CANARY", "username": "CANARY"}), says: "token and username"},
		"NotPEM":         {reason: "What is not a certificate is not one.", secret: endpoint(map[string]string{"clusterCA": "CANARY", "token": "t"}), says: "PEM"},
		"OtherPEM":       {reason: "The parser names the blocks it skips.", secret: endpoint(map[string]string{"clientCert": certificate, "clientKey": block("CANARY")}), says: "PEM"},
		"NotPaired":      {reason: "A certificate needs its own key.", secret: endpoint(map[string]string{"clientCert": otherCertificate, "clientKey": key}), says: "belong together"},
		"NotAConfig":     {reason: "YAML that is no kubeconfig.", secret: map[string]string{"kubeconfig": "[CANARY]"}, says: "key kubeconfig"},
		"NotYAML":        {reason: "The parser quotes the line.", secret: map[string]string{"kubeconfig": "{CANARY: ]"}, says: "key kubeconfig"},
		"OtherKind":      {reason: "The decoder names the kind.", secret: map[string]string{"kubeconfig": "{apiVersion: v1, kind: CANARY}"}, says: "key kubeconfig"},
		"NoContext":      {reason: "A token pasted in the wrong place is still a token.", secret: map[string]string{"kubeconfig": "{apiVersion: v1, kind: Config, current-context: CANARY}"}, says: "current-context"},
		"NoCluster":      {reason: "So it is in any other wrong place.", secret: map[string]string{"kubeconfig": "{apiVersion: v1, kind: Config, current-context: CANARY, contexts: [{name: CANARY, context: {cluster: CANARY, user: CANARY}}]}"}, says: "cluster"},
		"NoUser":         {reason: "And here.", secret: map[string]string{"kubeconfig": "{apiVersion: v1, kind: Config, current-context: CANARY, contexts: [{name: CANARY, context: {cluster: CANARY, user: CANARY}}], clusters: [{name: CANARY, cluster: {}}]}"}, says: "user"},
		"Exec":           {reason: "Portico does not run programs of those who publish targets.", secret: kubeconfig(server, "exec: {apiVersion: client.authentication.k8s.io/v1, command: CANARY, interactiveMode: Never}"), says: "exec"},
		"AuthProvider":   {reason: "Nor plugins of old.", secret: kubeconfig(server, "auth-provider: {name: CANARY}"), says: "auth providers"},
		"TokenFile":      {reason: "Portico's own files are not theirs to read.", secret: kubeconfig(server, "tokenFile: /CANARY"), says: "files"},
		"TokenAndFile":   {reason: "Also when there is a token as well.", secret: kubeconfig(server, "token: CANARY, tokenFile: /CANARY"), says: "files"},
		"CertFile":       {reason: "Nor its certificates.", secret: kubeconfig(server, "client-certificate: /CANARY, client-key-data: Q0E="), says: "files"},
		"KeyFile":        {reason: "Nor its keys.", secret: kubeconfig(server, "client-key: /CANARY, client-certificate-data: Q0E="), says: "files"},
		"CAFile":         {reason: "Nor its authorities.", secret: kubeconfig(server+", certificate-authority: /CANARY", "token: t"), says: "files"},
		"Insecure":       {reason: "A server that nobody vouches for may be anybody.", secret: kubeconfig(server+", insecure-skip-tls-verify: true", "token: CANARY"), says: "insecure-skip-tls-verify"},
		"ConfigNoServer": {reason: "There is nowhere to connect to.", secret: kubeconfig("", "token: CANARY"), says: "key kubeconfig"},
		"ConfigHTTP":     {reason: "A credential is not sent in the clear, whoever says so.", secret: kubeconfig(`server: "http://CANARY"`, "token: t"), says: "https"},
		"ConfigUserURL":  {reason: "Nor put in logs.", secret: kubeconfig(`server: "https://me:CANARY@eu-1.example.org"`, "token: t"), says: "user name"},
		"ConfigNobody":   {reason: "Nobody is let in without a credential.", secret: kubeconfig(server, ""), says: "no credential"},
		"ConfigProxy":    {reason: "A proxy's address may hold a password.", secret: kubeconfig(server+`, proxy-url: "CANARY://me:CANARY@proxy"`, "token: t"), says: "key kubeconfig"},
		"ConfigBoth":     {reason: "Two names for one caller are one too many.", secret: kubeconfig(server, "token: CANARY, username: CANARY, password: CANARY"), says: "key kubeconfig"},
		"ConfigNotPEM":   {reason: "What would be quoted when connecting is refused here.", secret: kubeconfig(server, "client-certificate-data: "+encoded([]byte(certificate))+", client-key-data: "+encoded([]byte(block("CANARY")))), says: "PEM"},
		"ConfigBase64":   {reason: "The decoder says where it stopped.", secret: kubeconfig(server, "client-certificate-data: '!CANARY'"), says: "key kubeconfig"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var texts []string
			for _, canary := range []string{"alpha", "omega-omega"} {
				secret := map[string]string{}
				for key, value := range tc.secret {
					secret[key] = strings.ReplaceAll(value, "CANARY", canary)
				}
				_, err := Config(data(secret))
				if err == nil {
					t.Fatalf("accepted: %s", tc.reason)
				}
				if strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), url.QueryEscape(canary)) {
					t.Errorf("%q tells what the Secret holds", err)
				}
				texts = append(texts, err.Error())
			}
			if texts[0] != texts[1] {
				t.Errorf("%q and %q tell one Secret from another", texts[0], texts[1])
			}
			if !strings.Contains(texts[0], tc.says) {
				t.Errorf("%q does not say where to look: %s", texts[0], tc.says)
			}
		})
	}
}

func block(kind string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte("x")}))
}

// FuzzConfig looks for a file that the parser cannot bear, or that an accepted
// connection reads more than the file from.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(kubeconfig(`server: "https://eu-1.example.org"`, "token: t")["kubeconfig"]))
	f.Add([]byte("{users: [{name: me}], clusters: [null], contexts: [{context: null}]}"))
	f.Add([]byte("null"))
	f.Add([]byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "", "contexts": [{"name": ""}], "clusters": [{"name": ""}], "users": [{"name": ""}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		config, err := Config(map[string][]byte{"kubeconfig": raw})
		if err != nil {
			return
		}
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
		"Same":        {reason: "The order of a map means nothing.", other: map[string]string{"token": "t", "endpoint": "https://eu-1.example.org"}, same: true},
		"Rotated":     {reason: "A new token is a new connection.", other: map[string]string{"endpoint": "https://eu-1.example.org", "token": "u"}},
		"Renamed":     {reason: "The same value under another key is another Secret.", other: map[string]string{"endpoint": "https://eu-1.example.org", "password": "t"}},
		"More":        {reason: "So is one that says more.", other: map[string]string{"endpoint": "https://eu-1.example.org", "token": "t", "username": ""}},
		"Boundaries":  {reason: "Where a value ends counts.", other: map[string]string{"endpoint": "https://eu-1.example.org5:token=1:t"}},
		"NothingLeft": {reason: "An empty Secret is another.", other: nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Digest(data(base)) == Digest(data(tc.other)); got != tc.same {
				t.Errorf("same = %t, want %t: %s", got, tc.same, tc.reason)
			}
		})
	}
	if strings.Contains(Digest(data(base)), "eu-1") {
		t.Error("a digest tells what it is of")
	}
}
