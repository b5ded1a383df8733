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
		{Name: "not-yaml", Reason: "The parser quotes the line.", Message: "is not YAML or JSON", values: file("{" + mark + ": ]")},
		{Name: "broken-json", Reason: "So it does for JSON.", Message: "is not YAML or JSON", values: file(`{"apiVersion": "v1", "` + mark + `": `)},
		{Name: "tabs", Reason: "YAML is not indented with tabs.", Message: "is not YAML or JSON", values: file("users:\n\t- " + mark)},
		{Name: "a-list", Reason: "A kubeconfig is a mapping.", Message: kind, values: file("[" + mark + "]")},
		{Name: "a-word", Reason: "A word is no kubeconfig.", Message: kind, values: file(mark)},
		{Name: "null", Reason: "Nothing is none either.", Message: kind, values: file("null")},
		{Name: "blank", Reason: "Nor is a line break.", Message: config, values: file("\n")},
		{Name: "other-kind", Reason: "The decoder names the kind.", Message: kind, values: file("{apiVersion: v1, kind: " + mark + "}")},
		{Name: "a-status", Reason: "An API server's error was saved instead.", Message: kind, values: file(`{"kind":"Status","apiVersion":"v1","message":"` + mark + `"}`)},
		{Name: "other-version", Reason: "The decoder names the version.", Message: config, values: file("{apiVersion: " + mark + "/v9, kind: Config}")},
		{Name: "html", Reason: "A sign-in page was saved instead.", Message: kind, values: file("<html><body>" + mark + "</body></html>")},
		{Name: "binary", Reason: "What is not text is not YAML.", Message: config, values: file("\x7fELF\x00\x01\xff" + mark)},
		{Name: "noise", Reason: "A mebibyte of noise, as much as a Secret may hold, is refused unread.", Message: "Too long", values: file(noise(1<<20 - 64))},
		{Name: "less-noise", Reason: "And less of it is not YAML.", Message: config, values: file(noise(300 << 10))},
		{Name: "deep", Reason: "Nobody nests so deep.", Message: config, values: file(strings.Repeat("[", 20000) + mark + strings.Repeat("]", 20000))},
		{Name: "in-base64", Reason: "Data is encoded once, by the API.", Message: "it looks base64-encoded twice", values: file(encode(whole + "# " + mark))},
		{Name: "two-documents", Reason: "Which one counts?", Message: "more than one YAML document", values: file(whole + "\n---\n" + whole)},
		{Name: "key-twice", Reason: "Parsers differ about which counts.", Message: "gives a key twice", values: kubeconfig(there, "token: "+mark+", token: other")},
		{Name: "user-twice", Reason: "So they do about names.", Message: config, values: file(strings.Replace(whole, "users: [", "users: [{name: me, user: {token: "+mark+"}}, ", 1))},
		{Name: "bomb", Reason: "A few lines stand for gigabytes.", Message: "anchors and aliases", values: file(bomb())},
		{Name: "alias", Reason: "One alias is one too many.", Message: "anchors and aliases", values: file("x: &a " + mark + "\ny: *a\n")},
		{Name: "alias-of-itself", Reason: "It would never end.", Message: config, values: file("x: &a [" + mark + ", *a]\n")},
		{Name: "merge", Reason: "What is merged in is seen by some only.", Message: "anchors and aliases",
			values: file("x: &a {token: " + mark + "}\nusers: [{name: me, user: {<<: *a}}]\n")},
		{Name: "wrong-types", Reason: "The decoder quotes the value.", Message: config, values: file("{apiVersion: v1, kind: Config, contexts: " + mark + "}")},

		{Name: "no-current-context", Reason: "Portico does not guess.", Message: "current-context: Required value", values: names(`""`, "a", "a")},
		{Name: "unknown-context", Reason: "A token pasted in the wrong place is still a token.", Message: "current-context: Invalid value", values: names(mark, "a", "a")},
		{Name: "unknown-cluster", Reason: "So it is in any other wrong place.", Message: "context.cluster: Invalid value", values: names("a", mark, "a")},
		{Name: "unknown-user", Reason: "And here.", Message: "context.user: Invalid value", values: names("a", "a", mark)},
		{Name: "null-entries", Reason: "Names that stand for nothing.", Message: config,
			values: file("{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: null}], clusters: [null], users: [{name: " + mark + "}]}")},

		{Name: "exec", Reason: "Portico does not run programs of those who publish targets.", Message: "user.exec: Forbidden: plugins are not run",
			values: kubeconfig(there, "exec: {apiVersion: client.authentication.k8s.io/v1, command: "+mark+", interactiveMode: Never}")},
		{Name: "exec-beside-token", Reason: "Also when there is a token as well.", Message: "user.exec: Forbidden",
			values: kubeconfig(there, "token: "+mark+", exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: sh, args: [-c, "+mark+"]}")},
		{Name: "auth-provider", Reason: "Nor plugins of old.", Message: "user.auth-provider: Forbidden", values: kubeconfig(there, "auth-provider: {name: oidc, config: {id-token: "+mark+"}}")},
		{Name: "token-file", Reason: "Portico's own files are not theirs to read.", Message: "user.tokenFile: Forbidden: files are not read", values: kubeconfig(there, "tokenFile: /"+mark)},
		{Name: "certificate-file", Reason: "Nor its certificates.", Message: "user.client-certificate: Forbidden: files are not read", values: kubeconfig(there, "client-certificate: /"+mark+", token: t")},
		{Name: "key-file", Reason: "Nor its keys.", Message: "user.client-key: Forbidden: files are not read", values: kubeconfig(there, "client-key: /"+mark+", token: t")},
		{Name: "ca-file", Reason: "Nor its authorities.", Message: "cluster.certificate-authority: Forbidden: files are not read",
			values: kubeconfig(fmt.Sprintf("server: %q, certificate-authority: /%s", good, mark), "token: "+mark)},
		{Name: "insecure", Reason: "A server that nobody vouches for may be anybody.", Message: "cluster.insecure-skip-tls-verify: Forbidden",
			values: kubeconfig(fmt.Sprintf("server: %q, insecure-skip-tls-verify: true", good), "token: "+mark)},
		{Name: "proxy", Reason: "A proxy's address may hold a password.", Message: "cluster.proxy-url: Forbidden", values: kubeconfig(there+`, proxy-url: "http://me:`+mark+`@proxy"`, "token: "+mark)},
		{Name: "act-as", Reason: "Whom Portico acts as is said in the open.", Message: "user.as: Forbidden", values: kubeconfig(there, "token: "+mark+", as: "+mark)},
		{Name: "act-as-groups", Reason: "Their groups too.", Message: "user.as: Forbidden", values: kubeconfig(there, "token: "+mark+", as-groups: ["+mark+"]")},
		{Name: "act-as-extra", Reason: "And whatever else is said of them.", Message: "user.as: Forbidden", values: kubeconfig(there, "token: "+mark+", as-user-extra: {scopes: ["+mark+"]}")},
		{Name: "config-http", Reason: "A credential is not sent in the clear, whoever says so.", Message: "cluster.server: Invalid value: is not an https URL",
			values: kubeconfig(`server: "http://`+mark+`"`, "token: "+mark)},
		{Name: "config-userinfo", Reason: "Nor put in logs.", Message: "cluster.server: Forbidden", values: kubeconfig(`server: "https://me:`+mark+`@example.org"`, "token: "+mark)},
		{Name: "config-no-server", Reason: "There is nowhere to connect to.", Message: "cluster.server: Required value", values: kubeconfig("", "token: "+mark)},
		{Name: "config-no-credential", Reason: "Nobody is let in without a credential.", Message: "no credential", values: kubeconfig(there, "")},
		{Name: "config-both", Reason: "Two names for one caller are one too many.", Message: "user.username: Forbidden", values: kubeconfig(there, "token: "+mark+", username: "+mark+", password: "+mark)},
		{Name: "config-broken-base64", Reason: "The decoder says where it stopped.", Message: "data[kubeconfig]: Invalid value", values: kubeconfig(there, "client-certificate-data: '!"+mark+"'")},
		{Name: "config-half-base64", Reason: "A line was lost.", Message: "data[kubeconfig]: Invalid value",
			values: kubeconfig(there, "client-certificate-data: "+encode(m.mine.certificate)[:101]+", client-key-data: "+encode(m.mine.key))},
		{Name: "config-not-pem", Reason: "What would be quoted when connecting is refused here.", Message: "user.client-key-data: Invalid value: holds no private key",
			values: kubeconfig(there, "client-certificate-data: "+encode(m.mine.certificate)+", client-key-data: "+encode(armour("X "+mark, []byte("x"))))},
		{Name: "config-ca-not-pem", Reason: "An authority is a certificate.", Message: "cluster.certificate-authority-data: Invalid value",
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
