package badsecrets

import "time"

// keys returns Secrets with separate keys that are not valid.
func (m maker) keys() []Case {
	const ca = "data[clusterCA]"
	good := m.server.URL
	return []Case{
		{Name: "empty", Reason: "The Secret has no data.", Message: "neither key kubeconfig nor key endpoint"},
		{Name: "empty-values", Reason: "Empty values do not count.", Message: "neither key kubeconfig nor key endpoint",
			values: map[string]string{"kubeconfig": "", "endpoint": "", "token": ""}},
		{Name: "other-keys", Reason: "Keys of other providers do not count.", Message: "neither key kubeconfig nor key endpoint",
			values: map[string]string{"config": mark, "value": mark}},
		{Name: "misspelt-key", Reason: "The case of a key matters.", Message: "neither key kubeconfig nor key endpoint",
			values: map[string]string{"Kubeconfig": mark, "KUBECONFIG": mark}},
		{Name: "no-endpoint", Reason: "A credential without an endpoint is no connection.", Message: "neither key kubeconfig nor key endpoint",
			values: map[string]string{"token": mark, "clusterCA": m.mine.certificate}},

		{Name: "http", Reason: "Credentials must not be sent without TLS.", Message: "data[endpoint]: Invalid value: is not an https URL",
			values: m.endpoint("endpoint", "http://"+mark+".example.org", "token", mark)},
		{Name: "other-scheme", Reason: "Only https is supported.", Message: "is not an https URL",
			values: m.endpoint("endpoint", "ftp://"+mark+".example.org", "token", mark)},
		{Name: "no-scheme", Reason: "A host without a scheme is not a URL.", Message: "data[endpoint]: Invalid value: is not a URL",
			values: m.endpoint("endpoint", mark+":6443", "token", mark)},
		{Name: "unreadable-url", Reason: "The error of the parser quotes the value.", Message: "data[endpoint]: Invalid value: is not a URL",
			values: m.endpoint("endpoint", "https://"+mark+"\x00", "token", mark)},
		{Name: "no-host", Reason: "A URL needs a host.", Message: "data[endpoint]: Invalid value: is not a URL",
			values: m.endpoint("endpoint", "https:///"+mark, "token", mark)},
		{Name: "port-not-a-number", Reason: "A port must be a number.", Message: "data[endpoint]: Invalid value: is not a URL",
			values: m.endpoint("endpoint", "https://example.org:"+mark, "token", mark)},
		{Name: "port-too-high", Reason: "A port must be below 65536.", Message: "an invalid port",
			values: m.endpoint("endpoint", "https://example.org:66000", "token", mark)},
		{Name: "userinfo", Reason: "A password in a URL would appear in logs.", Message: "data[endpoint]: Forbidden: a URL with a user would appear in logs",
			values: m.endpoint("endpoint", "https://me:"+mark+"@example.org", "token", mark)},
		{Name: "token-in-query", Reason: "A token in a query would appear in logs.", Message: "a query or a fragment",
			values: m.endpoint("endpoint", "https://example.org/?access_token="+mark, "token", mark)},
		{Name: "fragment", Reason: "A fragment is not sent to a server.", Message: "a query or a fragment",
			values: m.endpoint("endpoint", "https://example.org/#"+mark, "token", mark)},
		{Name: "binary-endpoint", Reason: "Binary data is not a URL.", Message: "data[endpoint]: Invalid value: is not a URL",
			values: m.endpoint("endpoint", "\xff\xfe\x00"+mark, "token", mark)},
		{Name: "endpoint-in-base64", Reason: "The value is base64-encoded twice.", Message: "data[endpoint]: Invalid value: is not a URL",
			values: m.endpoint("endpoint", encode(good+"/"+mark), "token", mark)},

		{Name: "no-credential", Reason: "A credential is required.", Message: "no credential", values: m.endpoint()},
		{Name: "blank-token", Reason: "A line break is not a token.", Message: "no credential", values: m.endpoint("token", "\n")},
		{Name: "token-of-two-lines", Reason: "A token must be one line.", Message: "data[token]: Invalid value: contains a space, a line break", values: m.endpoint("token", mark+"\n"+mark)},
		{Name: "token-with-header", Reason: "A token must not add a header.", Message: "data[token]: Invalid value: contains a space, a line break",
			values: m.endpoint("token", "x\r\nImpersonate-User: "+mark)},
		{Name: "binary-token", Reason: "Binary data is not a token.", Message: "data[token]: Invalid value", values: m.endpoint("token", "\x00\x01"+mark)},
		{Name: "token-not-ascii", Reason: "A token must be ASCII.", Message: "data[token]: Invalid value", values: m.endpoint("token", "schlüssel"+mark)},
		{Name: "token-and-user", Reason: "Only one credential can be used.", Message: "data[username]: Forbidden",
			values: m.endpoint("token", mark, "username", mark, "password", mark)},
		{Name: "user-without-password", Reason: "A user needs a password.", Message: "data[password]: Required value", values: m.endpoint("username", mark)},
		{Name: "password-without-user", Reason: "A password needs a user.", Message: "data[username]: Required value", values: m.endpoint("password", mark)},
		{Name: "user-with-colon", Reason: "A colon would end the name of the user.", Message: "data[username]: Invalid value: has a colon",
			values: m.endpoint("username", "me:"+mark, "password", mark)},

		{Name: "certificate-without-key", Reason: "A certificate needs a key.", Message: "data[clientKey]: Required value", values: m.endpoint("clientCert", mark, "token", mark)},
		{Name: "key-without-certificate", Reason: "A key needs a certificate.", Message: "data[clientCert]: Required value", values: m.endpoint("clientKey", mark, "token", mark)},
		{Name: "key-of-another", Reason: "The key belongs to another certificate.", Message: "data[clientKey]: Invalid value: is not the key of the client certificate",
			values: m.endpoint("clientCert", m.other.certificate, "clientKey", m.mine.key)},
		{Name: "swapped", Reason: "Certificate and key are swapped.", Message: "data[clientCert]: Invalid value: holds no certificate",
			values: m.endpoint("clientCert", m.mine.key, "clientKey", m.mine.certificate)},
		{Name: "encrypted-key", Reason: "An encrypted key needs a passphrase.", Message: "data[clientKey]: Invalid value: is encrypted",
			values: m.endpoint("clientCert", m.mine.certificate, "clientKey", armour("ENCRYPTED PRIVATE KEY", []byte(mark)))},
		{Name: "encrypted-key-of-old", Reason: "A key in the older encrypted format needs a passphrase.", Message: "data[clientKey]: Invalid value: is encrypted",
			values: m.endpoint("clientCert", m.mine.certificate, "clientKey",
				"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,"+mark+"\n\nAAAA\n-----END RSA PRIVATE KEY-----\n")},
		{Name: "damaged-certificate", Reason: "The certificate is truncated.", Message: "data[clientCert]: Invalid value: holds no certificate",
			values: m.endpoint("clientCert", m.mine.certificate[:len(m.mine.certificate)/2]+mark, "clientKey", m.mine.key)},
		{Name: "damaged-key", Reason: "The content of the key is not a key.", Message: "data[clientKey]: Invalid value: is not the key",
			values: m.endpoint("clientCert", m.mine.certificate, "clientKey", armour("PRIVATE KEY", []byte(mark)))},
		{Name: "key-of-other-kind", Reason: "The error of the parser quotes the block's name.", Message: "data[clientKey]: Invalid value: holds no private key",
			values: m.endpoint("clientCert", m.mine.certificate, "clientKey", armour(mark, []byte("x")))},
		{Name: "certificate-in-base64", Reason: "The value is base64-encoded twice.", Message: "it looks base64-encoded twice",
			values: m.endpoint("clientCert", encode(m.mine.certificate+mark), "clientKey", m.mine.key)},

		{Name: "ca-not-pem", Reason: "A CA must be a certificate.", Message: ca, values: m.endpoint("clusterCA", mark, "token", mark)},
		{Name: "ca-in-base64", Reason: "The value is base64-encoded twice.", Message: "it looks base64-encoded twice",
			values: m.endpoint("clusterCA", encode(m.mine.certificate+mark), "token", mark)},
		{Name: "ca-is-a-key", Reason: "A key is not a CA.", Message: ca, values: m.endpoint("clusterCA", m.mine.key, "token", mark)},
		{Name: "ca-is-a-path", Reason: "A path is not a CA, because files are not read.", Message: ca, values: m.endpoint("clusterCA", "/etc/"+mark, "token", mark)},
		{Name: "ca-of-noise", Reason: "Binary data is not a CA.", Message: ca, values: m.endpoint("clusterCA", noise(64<<10), "token", mark)},
		{Name: "everything-too-long", Reason: "The length of a value is limited.", Message: "data[token]: Too long", values: m.endpoint("token", noise(600<<10))},
		{Name: "everything-wrong", Reason: "All errors are returned together.", Message: "data[clusterCA]",
			values: m.endpoint("endpoint", "http://"+mark, "clusterCA", mark, "token", mark+" "+mark)},
	}
}

// reaching returns Secrets that look valid, and that only the target can refuse.
func (m maker) reaching() []Case {
	const unaccepted = "does not accept the credentials"
	there := m.there()
	return []Case{
		{Name: "unknown-token", Reason: "The target does not know the token.", Message: unaccepted, Reaches: true, values: m.endpoint("token", mark)},
		{Name: "unknown-token-config", Reason: "The target does not know the token of the kubeconfig.", Message: unaccepted, Reaches: true, values: kubeconfig(there, "token: "+mark)},
		{Name: "password-nobody-knows", Reason: "The target does not support passwords.", Message: unaccepted, Reaches: true,
			values: m.endpoint("username", "me", "password", mark)},
		{Name: "expired-token", Reason: "The message has the expiry of the token.", Message: unaccepted + " of the connection secret, which ended at", Reaches: true,
			values: m.endpoint("token", token(time.Now().Add(-time.Hour)))},
		{Name: "expired-certificate", Reason: "The message has the expiry of the certificate.", Message: unaccepted + " of the connection secret, which ended at", Reaches: true,
			values: m.endpoint("clientCert", m.expired.certificate, "clientKey", m.expired.key)},
		{Name: "certificate-of-another-cluster", Reason: "The certificate is of another cluster's user.", Message: unaccepted, Reaches: true,
			values: kubeconfig(there, "client-certificate-data: "+encode(m.mine.certificate)+", client-key-data: "+encode(m.mine.key))},
		{Name: "ca-of-another-cluster", Reason: "The CA is another cluster's.", Message: "presents a certificate that cannot be verified", Reaches: true,
			values: m.endpoint("clusterCA", m.other.certificate, "token", mark)},
		{Name: "no-ca", Reason: "The system's CAs did not sign the target's certificate.", Message: "presents a certificate that cannot be verified", Reaches: true,
			values: map[string]string{"endpoint": m.server.URL, "token": mark}},
		{Name: "other-server-name", Reason: "The target's certificate is for other names.", Message: "presents a certificate that cannot be verified", Reaches: true,
			values: kubeconfig(there+", tls-server-name: other.example.org", "token: "+mark)},
		{Name: "nobody-listens", Reason: "The port is closed.", Message: "refuses connections", Reaches: true,
			values: m.endpoint("endpoint", "https://127.0.0.1:1", "token", mark)},
		{Name: "no-such-host", Reason: "The name does not exist.", Message: "does not resolve", Reaches: true,
			values: m.endpoint("endpoint", "https://nobody.invalid", "token", mark)},
		{Name: "wrong-path", Reason: "The path is not an API server's.", Message: unaccepted, Reaches: true,
			values: m.endpoint("endpoint", m.server.URL+"/k8s/clusters/none", "token", mark)},
	}
}
