package badsecrets

import "time"

// keys returns Secrets with separate keys that are not valid.
func (m maker) keys() []Case {
	const ca = "data[clusterCA]"
	good := m.server.URL
	return []Case{
		{Name: "empty", Reason: "There is nothing to connect with.", Message: "neither key kubeconfig nor key endpoint"},
		{Name: "empty-values", Reason: "A key without a value is none.", Message: "neither key kubeconfig nor key endpoint",
			values: map[string]string{"kubeconfig": "", "endpoint": "", "token": ""}},
		{Name: "other-keys", Reason: "Keys of another provider do not count.", Message: "neither key kubeconfig nor key endpoint",
			values: map[string]string{"config": mark, "value": mark}},
		{Name: "misspelt-key", Reason: "Nor do keys in another spelling.", Message: "neither key kubeconfig nor key endpoint",
			values: map[string]string{"Kubeconfig": mark, "KUBECONFIG": mark}},
		{Name: "no-endpoint", Reason: "A credential alone leads nowhere.", Message: "neither key kubeconfig nor key endpoint",
			values: map[string]string{"token": mark, "clusterCA": m.mine.certificate}},

		{Name: "http", Reason: "A credential is not sent in the clear.", Message: "data[endpoint]: Invalid value: is not an https URL",
			values: m.endpoint("endpoint", "http://"+mark+".example.org", "token", mark)},
		{Name: "other-scheme", Reason: "Nor by any other protocol.", Message: "is not an https URL",
			values: m.endpoint("endpoint", "ftp://"+mark+".example.org", "token", mark)},
		{Name: "no-scheme", Reason: "A host alone may be reached in any way.", Message: "data[endpoint]: Invalid value: is not a URL",
			values: m.endpoint("endpoint", mark+":6443", "token", mark)},
		{Name: "unreadable-url", Reason: "The parser quotes what it cannot read.", Message: "data[endpoint]: Invalid value: is not a URL",
			values: m.endpoint("endpoint", "https://"+mark+"\x00", "token", mark)},
		{Name: "no-host", Reason: "A URL has a host.", Message: "data[endpoint]: Invalid value: is not a URL",
			values: m.endpoint("endpoint", "https:///"+mark, "token", mark)},
		{Name: "port-not-a-number", Reason: "A port is a number.", Message: "data[endpoint]: Invalid value: is not a URL",
			values: m.endpoint("endpoint", "https://example.org:"+mark, "token", mark)},
		{Name: "port-too-high", Reason: "And not any number.", Message: "an invalid port",
			values: m.endpoint("endpoint", "https://example.org:66000", "token", mark)},
		{Name: "userinfo", Reason: "A password in a URL ends up in logs.", Message: "data[endpoint]: Forbidden: a URL with a user would appear in logs",
			values: m.endpoint("endpoint", "https://me:"+mark+"@example.org", "token", mark)},
		{Name: "token-in-query", Reason: "So does one in a query.", Message: "a query or a fragment",
			values: m.endpoint("endpoint", "https://example.org/?access_token="+mark, "token", mark)},
		{Name: "fragment", Reason: "A fragment is nothing an API server sees.", Message: "a query or a fragment",
			values: m.endpoint("endpoint", "https://example.org/#"+mark, "token", mark)},
		{Name: "binary-endpoint", Reason: "What is not text is not a URL.", Message: "data[endpoint]: Invalid value: is not a URL",
			values: m.endpoint("endpoint", "\xff\xfe\x00"+mark, "token", mark)},
		{Name: "endpoint-in-base64", Reason: "Data is encoded once, by the API.", Message: "data[endpoint]: Invalid value: is not a URL",
			values: m.endpoint("endpoint", encode(good+"/"+mark), "token", mark)},

		{Name: "no-credential", Reason: "Nobody is let in without one.", Message: "no credential", values: m.endpoint()},
		{Name: "blank-token", Reason: "A line break is no token.", Message: "no credential", values: m.endpoint("token", "\n")},
		{Name: "token-of-two-lines", Reason: "A header has one line.", Message: "data[token]: Invalid value: contains a space, a line break", values: m.endpoint("token", mark+"\n"+mark)},
		{Name: "token-with-header", Reason: "What looks like a second header is none.", Message: "data[token]: Invalid value: contains a space, a line break",
			values: m.endpoint("token", "x\r\nImpersonate-User: "+mark)},
		{Name: "binary-token", Reason: "A token is text.", Message: "data[token]: Invalid value", values: m.endpoint("token", "\x00\x01"+mark)},
		{Name: "token-not-ascii", Reason: "A token is plain text.", Message: "data[token]: Invalid value", values: m.endpoint("token", "schlüssel"+mark)},
		{Name: "token-and-user", Reason: "Two names for one caller are one too many.", Message: "data[username]: Forbidden",
			values: m.endpoint("token", mark, "username", mark, "password", mark)},
		{Name: "user-without-password", Reason: "A user proves who they are.", Message: "data[password]: Required value", values: m.endpoint("username", mark)},
		{Name: "password-without-user", Reason: "A password is somebody's.", Message: "data[username]: Required value", values: m.endpoint("password", mark)},
		{Name: "user-with-colon", Reason: "The colon ends the name.", Message: "data[username]: Invalid value: has a colon",
			values: m.endpoint("username", "me:"+mark, "password", mark)},

		{Name: "certificate-without-key", Reason: "A certificate needs its key.", Message: "data[clientKey]: Required value", values: m.endpoint("clientCert", mark, "token", mark)},
		{Name: "key-without-certificate", Reason: "And a key its certificate.", Message: "data[clientCert]: Required value", values: m.endpoint("clientKey", mark, "token", mark)},
		{Name: "key-of-another", Reason: "A certificate needs its own key.", Message: "data[clientKey]: Invalid value: is not the key of the client certificate",
			values: m.endpoint("clientCert", m.other.certificate, "clientKey", m.mine.key)},
		{Name: "swapped", Reason: "Each has its place.", Message: "data[clientCert]: Invalid value: holds no certificate",
			values: m.endpoint("clientCert", m.mine.key, "clientKey", m.mine.certificate)},
		{Name: "encrypted-key", Reason: "Nobody is there to type a passphrase.", Message: "data[clientKey]: Invalid value: is encrypted",
			values: m.endpoint("clientCert", m.mine.certificate, "clientKey", armour("ENCRYPTED PRIVATE KEY", []byte(mark)))},
		{Name: "encrypted-key-of-old", Reason: "Also in the older form.", Message: "data[clientKey]: Invalid value: is encrypted",
			values: m.endpoint("clientCert", m.mine.certificate, "clientKey",
				"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,"+mark+"\n\nAAAA\n-----END RSA PRIVATE KEY-----\n")},
		{Name: "damaged-certificate", Reason: "Half a certificate is none.", Message: "data[clientCert]: Invalid value: holds no certificate",
			values: m.endpoint("clientCert", m.mine.certificate[:len(m.mine.certificate)/2]+mark, "clientKey", m.mine.key)},
		{Name: "damaged-key", Reason: "Nor is the hull of a key.", Message: "data[clientKey]: Invalid value: is not the key",
			values: m.endpoint("clientCert", m.mine.certificate, "clientKey", armour("PRIVATE KEY", []byte(mark)))},
		{Name: "key-of-other-kind", Reason: "The parser names the blocks it skips.", Message: "data[clientKey]: Invalid value: holds no private key",
			values: m.endpoint("clientCert", m.mine.certificate, "clientKey", armour(mark, []byte("x")))},
		{Name: "certificate-in-base64", Reason: "Data is encoded once, by the API.", Message: "it looks base64-encoded twice",
			values: m.endpoint("clientCert", encode(m.mine.certificate+mark), "clientKey", m.mine.key)},

		{Name: "ca-not-pem", Reason: "An authority is a certificate.", Message: ca, values: m.endpoint("clusterCA", mark, "token", mark)},
		{Name: "ca-in-base64", Reason: "Data is encoded once, by the API.", Message: "it looks base64-encoded twice",
			values: m.endpoint("clusterCA", encode(m.mine.certificate+mark), "token", mark)},
		{Name: "ca-is-a-key", Reason: "A key vouches for nobody.", Message: ca, values: m.endpoint("clusterCA", m.mine.key, "token", mark)},
		{Name: "ca-is-a-path", Reason: "Files are not read.", Message: ca, values: m.endpoint("clusterCA", "/etc/"+mark, "token", mark)},
		{Name: "ca-of-noise", Reason: "What is not a certificate is not one.", Message: ca, values: m.endpoint("clusterCA", noise(64<<10), "token", mark)},
		{Name: "everything-too-long", Reason: "Nothing that is needed is so long.", Message: "data[token]: Too long", values: m.endpoint("token", noise(600<<10))},
		{Name: "everything-wrong", Reason: "All of it is told at once.", Message: "data[clusterCA]",
			values: m.endpoint("endpoint", "http://"+mark, "clusterCA", mark, "token", mark+" "+mark)},
	}
}

// reaching returns Secrets that look valid, and that only the target can refuse.
func (m maker) reaching() []Case {
	const unaccepted = "does not accept the credentials"
	there := m.there()
	return []Case{
		{Name: "unknown-token", Reason: "The target knows its tokens.", Message: unaccepted, Reaches: true, values: m.endpoint("token", mark)},
		{Name: "unknown-token-config", Reason: "In whatever form it is given.", Message: unaccepted, Reaches: true, values: kubeconfig(there, "token: "+mark)},
		{Name: "password-nobody-knows", Reason: "A server that does not know passwords lets nobody in by one.", Message: unaccepted, Reaches: true,
			values: m.endpoint("username", "me", "password", mark)},
		{Name: "expired-token", Reason: "When it ended is told.", Message: unaccepted + " of the connection secret, which ended at", Reaches: true,
			values: m.endpoint("token", token(time.Now().Add(-time.Hour)))},
		{Name: "expired-certificate", Reason: "When it ended is told.", Message: unaccepted + " of the connection secret, which ended at", Reaches: true,
			values: m.endpoint("clientCert", m.expired.certificate, "clientKey", m.expired.key)},
		{Name: "certificate-of-another-cluster", Reason: "Another cluster's users are not known here.", Message: unaccepted, Reaches: true,
			values: kubeconfig(there, "client-certificate-data: "+encode(m.mine.certificate)+", client-key-data: "+encode(m.mine.key))},
		{Name: "ca-of-another-cluster", Reason: "The server may be anybody.", Message: "CA does not vouch for", Reaches: true,
			values: m.endpoint("clusterCA", m.other.certificate, "token", mark)},
		{Name: "no-ca", Reason: "The system's authorities do not know a private one.", Message: "CA does not vouch for", Reaches: true,
			values: map[string]string{"endpoint": m.server.URL, "token": mark}},
		{Name: "other-server-name", Reason: "The certificate is for other names.", Message: "CA does not vouch for", Reaches: true,
			values: kubeconfig(there+", tls-server-name: other.example.org", "token: "+mark)},
		{Name: "nobody-listens", Reason: "There is no server.", Message: "refuses connections", Reaches: true,
			values: m.endpoint("endpoint", "https://127.0.0.1:1", "token", mark)},
		{Name: "no-such-host", Reason: "The name says nothing to anybody.", Message: "does not resolve", Reaches: true,
			values: m.endpoint("endpoint", "https://nobody.invalid", "token", mark)},
		{Name: "wrong-path", Reason: "The API is not there, and who asks is not known.", Message: unaccepted, Reaches: true,
			values: m.endpoint("endpoint", m.server.URL+"/k8s/clusters/none", "token", mark)},
	}
}
