package badsecrets

import (
	"fmt"
	"strings"
)

// kubeconfigs returns Secrets with a kubeconfig that is not valid.
func (m maker) kubeconfigs() []Case {
	there, good := m.there(), m.server.URL
	const config, kind = "data[kubeconfig]", "data[kubeconfig]: Invalid value: is not"
	file := func(text string) map[string]string { return map[string]string{"kubeconfig": text} }
	names := func(context, cluster, user string) map[string]string {
		return file(fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: %s, contexts: [{name: a, context: {cluster: %s, user: %s}}], clusters: [{name: a, cluster: {%s}}], users: [{name: a, user: {token: CANARY}}]}",
			context, cluster, user, there))
	}
	whole := kubeconfig(there, "token: "+mark)["kubeconfig"]
	return []Case{
		{Name: "not-yaml", Reason: "The error of the YAML parser quotes the line.", Message: "is not YAML or JSON", values: file("{" + mark + ": ]")},
		{Name: "broken-json", Reason: "The error of the JSON parser quotes the line.", Message: "is not YAML or JSON", values: file(`{"apiVersion": "v1", "` + mark + `": `)},
		{Name: "tabs", Reason: "Tabs cannot indent YAML.", Message: "is not YAML or JSON", values: file("users:\n\t- " + mark)},
		{Name: "a-list", Reason: "A list is not a kubeconfig.", Message: kind, values: file("[" + mark + "]")},
		{Name: "a-word", Reason: "A text is not a kubeconfig.", Message: kind, values: file(mark)},
		{Name: "null", Reason: "A null is not a kubeconfig.", Message: kind, values: file("null")},
		{Name: "blank", Reason: "A line break is not a kubeconfig.", Message: config, values: file("\n")},
		{Name: "other-kind", Reason: "The error of the decoder quotes the kind.", Message: kind, values: file("{apiVersion: v1, kind: " + mark + "}")},
		{Name: "a-status", Reason: "The user saved an error of the API server.", Message: kind, values: file(`{"kind":"Status","apiVersion":"v1","message":"` + mark + `"}`)},
		{Name: "other-version", Reason: "The error of the decoder quotes the version.", Message: config, values: file("{apiVersion: " + mark + "/v9, kind: Config}")},
		{Name: "html", Reason: "The user saved a web page.", Message: kind, values: file("<html><body>" + mark + "</body></html>")},
		{Name: "binary", Reason: "Binary data is not YAML.", Message: config, values: file("\x7fELF\x00\x01\xff" + mark)},
		{Name: "noise", Reason: "The longest value of a Secret is not parsed.", Message: "Too long", values: file(noise(1<<20 - 64))},
		{Name: "less-noise", Reason: "Shorter binary data is not YAML.", Message: config, values: file(noise(300 << 10))},
		{Name: "deep", Reason: "The nesting is too deep.", Message: config, values: file(strings.Repeat("[", 20000) + mark + strings.Repeat("]", 20000))},
		{Name: "in-base64", Reason: "The value is base64-encoded twice.", Message: "it looks base64-encoded twice", values: file(encode(whole + "# " + mark))},
		{Name: "two-documents", Reason: "A kubeconfig must be one document.", Message: "more than one YAML document", values: file(whole + "\n---\n" + whole)},
		{Name: "key-twice", Reason: "Parsers differ about a duplicate key.", Message: "gives a key twice", values: kubeconfig(there, "token: "+mark+", token: other")},
		{Name: "user-twice", Reason: "Parsers differ about a duplicate name.", Message: config, values: file(strings.Replace(whole, "users: [", "users: [{name: me, user: {token: "+mark+"}}, ", 1))},
		{Name: "bomb", Reason: "Nested aliases would expand to gigabytes.", Message: "anchors and aliases", values: file(bomb())},
		{Name: "alias", Reason: "Aliases are not supported.", Message: "anchors and aliases", values: file("x: &a " + mark + "\ny: *a\n")},
		{Name: "alias-of-itself", Reason: "A recursive alias would expand forever.", Message: config, values: file("x: &a [" + mark + ", *a]\n")},
		{Name: "merge", Reason: "Parsers differ about merged keys.", Message: "anchors and aliases",
			values: file("x: &a {token: " + mark + "}\nusers: [{name: me, user: {<<: *a}}]\n")},
		{Name: "wrong-types", Reason: "The error of the decoder quotes the value.", Message: config, values: file("{apiVersion: v1, kind: Config, contexts: " + mark + "}")},

		{Name: "no-current-context", Reason: "The current context is required.", Message: "current-context: Required value", values: names(`""`, "a", "a")},
		{Name: "unknown-context", Reason: "The error does not quote an unknown context, which may be a token.", Message: "current-context: Invalid value", values: names(mark, "a", "a")},
		{Name: "unknown-cluster", Reason: "The error does not quote an unknown cluster, which may be a token.", Message: "context.cluster: Invalid value", values: names("a", mark, "a")},
		{Name: "unknown-user", Reason: "The error does not quote an unknown user, which may be a token.", Message: "context.user: Invalid value", values: names("a", "a", mark)},
		{Name: "null-entries", Reason: "A context may be null.", Message: config,
			values: file("{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: null}], clusters: [null], users: [{name: " + mark + "}]}")},

		{Name: "exec", Reason: "Portico does not run programs.", Message: "user.exec: Forbidden: plugins are not run",
			values: kubeconfig(there, "exec: {apiVersion: client.authentication.k8s.io/v1, command: "+mark+", interactiveMode: Never}")},
		{Name: "exec-beside-token", Reason: "Portico does not run programs, even if there is a token.", Message: "user.exec: Forbidden",
			values: kubeconfig(there, "token: "+mark+", exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: sh, args: [-c, "+mark+"]}")},
		{Name: "auth-provider", Reason: "Portico does not run plugins.", Message: "user.auth-provider: Forbidden", values: kubeconfig(there, "auth-provider: {name: oidc, config: {id-token: "+mark+"}}")},
		{Name: "token-file", Reason: "Portico does not read a token from a file.", Message: "user.tokenFile: Forbidden: files are not read", values: kubeconfig(there, "tokenFile: /"+mark)},
		{Name: "certificate-file", Reason: "Portico does not read a certificate from a file.", Message: "user.client-certificate: Forbidden: files are not read", values: kubeconfig(there, "client-certificate: /"+mark+", token: t")},
		{Name: "key-file", Reason: "Portico does not read a key from a file.", Message: "user.client-key: Forbidden: files are not read", values: kubeconfig(there, "client-key: /"+mark+", token: t")},
		{Name: "ca-file", Reason: "Portico does not read a CA from a file.", Message: "cluster.certificate-authority: Forbidden: files are not read",
			values: kubeconfig(fmt.Sprintf("server: %q, certificate-authority: /%s", good, mark), "token: "+mark)},
		{Name: "insecure", Reason: "The server's certificate must be verified.", Message: "cluster.insecure-skip-tls-verify: Forbidden",
			values: kubeconfig(fmt.Sprintf("server: %q, insecure-skip-tls-verify: true", good), "token: "+mark)},
		{Name: "proxy", Reason: "The URL of a proxy may have a password.", Message: "cluster.proxy-url: Forbidden", values: kubeconfig(there+`, proxy-url: "http://me:`+mark+`@proxy"`, "token: "+mark)},
		{Name: "act-as", Reason: "Impersonation of a user is not supported.", Message: "user.as: Forbidden", values: kubeconfig(there, "token: "+mark+", as: "+mark)},
		{Name: "act-as-groups", Reason: "Impersonation of groups is not supported.", Message: "user.as: Forbidden", values: kubeconfig(there, "token: "+mark+", as-groups: ["+mark+"]")},
		{Name: "act-as-extra", Reason: "Extra fields of impersonation are not supported.", Message: "user.as: Forbidden", values: kubeconfig(there, "token: "+mark+", as-user-extra: {scopes: ["+mark+"]}")},
		{Name: "config-http", Reason: "Credentials must not be sent without TLS.", Message: "cluster.server: Invalid value: is not an https URL",
			values: kubeconfig(`server: "http://`+mark+`"`, "token: "+mark)},
		{Name: "config-userinfo", Reason: "A password in a URL would appear in logs.", Message: "cluster.server: Forbidden", values: kubeconfig(`server: "https://me:`+mark+`@example.org"`, "token: "+mark)},
		{Name: "config-no-server", Reason: "A server is required.", Message: "cluster.server: Required value", values: kubeconfig("", "token: "+mark)},
		{Name: "config-no-credential", Reason: "A credential is required.", Message: "no credential", values: kubeconfig(there, "")},
		{Name: "config-both", Reason: "Only one credential can be used.", Message: "user.username: Forbidden", values: kubeconfig(there, "token: "+mark+", username: "+mark+", password: "+mark)},
		{Name: "config-broken-base64", Reason: "The error of the decoder quotes the position.", Message: "data[kubeconfig]: Invalid value", values: kubeconfig(there, "client-certificate-data: '!"+mark+"'")},
		{Name: "config-half-base64", Reason: "The base64 value is truncated.", Message: "data[kubeconfig]: Invalid value",
			values: kubeconfig(there, "client-certificate-data: "+encode(m.mine.certificate)[:101]+", client-key-data: "+encode(m.mine.key))},
		{Name: "config-not-pem", Reason: "A later error of the connection would quote the block's name.", Message: "user.client-key-data: Invalid value: holds no private key",
			values: kubeconfig(there, "client-certificate-data: "+encode(m.mine.certificate)+", client-key-data: "+encode(armour("X "+mark, []byte("x"))))},
		{Name: "config-ca-not-pem", Reason: "A CA must be a certificate.", Message: "cluster.certificate-authority-data: Invalid value",
			values: kubeconfig(fmt.Sprintf("server: %q, certificate-authority-data: %s", good, encode("no certificate")), "token: "+mark)},
	}
}

// bomb returns a document that expands to a billion values.
func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [" + mark + "]\n")
	for i := 1; i < 10; i++ {
		before := fmt.Sprintf("*a%d", i-1)
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(before+",", 9), ","))
	}
	return b.String()
}
