package credentials

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// fromKubeconfig reads the current context of a kubeconfig. Other contexts are
// neither used nor validated.
func fromKubeconfig(raw []byte, path *field.Path) (parts, field.ErrorList) {
	if why := unsafeYAML(raw); why != "" {
		return parts{}, field.ErrorList{invalid(path, why)}
	}
	config, err := clientcmd.Load(raw)
	if err != nil {
		// The error of the parser may quote the file, and with it a credential.
		why := "is not a kubeconfig: a field has a value of a wrong type, or a name is given twice"
		var corrupt base64.CorruptInputError
		if errors.As(err, &corrupt) {
			why = "is not a kubeconfig: a field whose name ends in -data is not base64"
		}
		return parts{}, field.ErrorList{invalid(path, why)}
	}
	if config.CurrentContext == "" {
		return parts{}, field.ErrorList{field.Required(path.Child("current-context"), "Portico has to know which context to use")}
	}
	current, ok := config.Contexts[config.CurrentContext]
	if !ok {
		return parts{}, field.ErrorList{invalid(path.Child("current-context"), "is not among the contexts")}
	}
	cluster, ok := config.Clusters[current.Cluster]
	if !ok {
		return parts{}, field.ErrorList{invalid(path.Child("context", "cluster"), "the current context names a cluster that is not in the file")}
	}
	user, ok := config.AuthInfos[current.AuthInfo]
	if !ok {
		return parts{}, field.ErrorList{invalid(path.Child("context", "user"), "the current context names a user that is not in the file")}
	}
	at := func(value []byte, names ...string) part {
		return part{path: path.Child(names[0], names[1:]...), value: value}
	}
	return parts{
		root:       path.Child("user"),
		server:     at([]byte(cluster.Server), "cluster", "server"),
		serverName: cluster.TLSServerName,
		ca:         at(cluster.CertificateAuthorityData, "cluster", "certificate-authority-data"),
		cert:       at(user.ClientCertificateData, "user", "client-certificate-data"),
		key:        at(user.ClientKeyData, "user", "client-key-data"),
		token:      at([]byte(user.Token), "user", "token"),
		username:   at([]byte(user.Username), "user", "username"),
		password:   at([]byte(user.Password), "user", "password"),
		choices:    "client-certificate-data and client-key-data, or token, or username and password",
	}, forbiddenFields(cluster, user, path)
}

// unsafeYAML returns why a document must not be parsed; "" if it may. A few hundred
// bytes of YAML can expand to gigabytes, by aliases.
func unsafeYAML(raw []byte) string {
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if isDoubleEncoded(raw) {
			return "is not YAML or JSON; it looks base64-encoded twice"
		}
		return "is not YAML or JSON"
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return "is more than one YAML document"
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		if isDoubleEncoded(raw) {
			return "is not a kubeconfig; it looks base64-encoded twice"
		}
		return "is not a kubeconfig: it is no mapping"
	}
	switch kind := mappingValue(document.Content[0], "kind"); {
	case kind == nil:
	case kind.Kind != yaml.ScalarNode || kind.Value != "Config":
		return "is not a kubeconfig: its kind is not Config"
	}
	return ambiguousYAML(document.Content[0])
}

func mappingValue(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// ambiguousYAML returns a problem for YAML that two parsers may read differently.
func ambiguousYAML(node *yaml.Node) string {
	if node.Kind == yaml.AliasNode || node.Anchor != "" {
		return "uses YAML anchors and aliases, which are not followed; write values out"
	}
	if node.Kind == yaml.MappingNode {
		seen := map[string]bool{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			if key := node.Content[i].Value; seen[key] {
				return "gives a key twice in one mapping"
			}
			seen[node.Content[i].Value] = true
		}
	}
	for _, below := range node.Content {
		if why := ambiguousYAML(below); why != "" {
			return why
		}
	}
	return ""
}

// forbiddenFields returns a problem for each field of a kubeconfig that Portico does
// not support.
func forbiddenFields(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo, path *field.Path) field.ErrorList {
	const files = "files are not read; embed the data (kubectl config view --raw --flatten)"
	var errs field.ErrorList
	for _, rule := range []struct {
		broken bool
		at     []string
		why    string
	}{
		{user.Exec != nil, []string{"user", "exec"}, "plugins are not run; give a token or a client certificate"},
		{user.AuthProvider != nil, []string{"user", "auth-provider"}, "auth providers are not supported; give a token or a client certificate"},
		{user.TokenFile != "", []string{"user", "tokenFile"}, files},
		{user.ClientCertificate != "", []string{"user", "client-certificate"}, files},
		{user.ClientKey != "", []string{"user", "client-key"}, files},
		{cluster.CertificateAuthority != "", []string{"cluster", "certificate-authority"}, files},
		{cluster.InsecureSkipTLSVerify, []string{"cluster", "insecure-skip-tls-verify"}, "credentials are not sent to a server that is not verified; give its certificate-authority-data"},
		{cluster.ProxyURL != "", []string{"cluster", "proxy-url"}, "a Secret cannot set a proxy; set HTTPS_PROXY on Portico's Pods"},
		{user.Impersonate != "" || user.ImpersonateUID != "" || len(user.ImpersonateGroups) > 0 || len(user.ImpersonateUserExtra) > 0,
			[]string{"user", "as"}, "name the impersonated user in spec.impersonate of the KubernetesTarget, where other users see it"},
	} {
		if rule.broken {
			errs = append(errs, field.Forbidden(path.Child(rule.at[0], rule.at[1:]...), rule.why))
		}
	}
	return errs
}
