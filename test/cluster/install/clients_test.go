package install_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiserverwebhook "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/cluster/install"
	"github.com/portico-io/portico/webhooks"
)

// authority is a CA for client certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	a := authority{}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.certificate, a.key = a.sign(t, template)
	return a
}

func (a authority) sign(t *testing.T, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

// client returns a client certificate with its PEM files.
func (a authority) client(t *testing.T, name string) (tls.Certificate, []byte, []byte) {
	t.Helper()
	certificate, key := a.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM, keyPEM := encodePEM("CERTIFICATE", certificate.Raw), encodePEM("PRIVATE KEY", der)
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return pair, certPEM, keyPEM
}

func (a authority) pem() []byte { return encodePEM("CERTIFICATE", a.certificate.Raw) }

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// admissionConfiguration is the file in docs/install.md, with the paths of a test.
const admissionConfiguration = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: MutatingAdmissionWebhook
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: %[1]s
- name: ValidatingAdmissionWebhook
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: %[1]s
`

// webhookKubeconfig has the Service, as in docs/install.md, and an entry for all other
// servers, because the webhooks of the test have a URL.
const webhookKubeconfig = `apiVersion: v1
kind: Config
users:
- name: portico-webhook.portico-system.svc
  user: &client
    client-certificate: %[1]s/client.crt
    client-key: %[1]s/client.key
- name: "*"
  user: *client
`

// TestClientCertificates gives an API server a client certificate. Another client that
// reaches the port, and sends a review in the name of an administrator, gets no answer
// and causes no request.
func TestClientCertificates(t *testing.T) {
	ours, others := newAuthority(t, "ours"), newAuthority(t, "others")
	apiServer, certPEM, keyPEM := ours.client(t, "kube-apiserver")
	kubelet, _, _ := ours.client(t, "kubelet")
	other, _, _ := others.client(t, "kube-apiserver")

	dir := t.TempDir()
	file := func(name string, data []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file("client.crt", certPEM)
	file("client.key", keyPEM)
	clientCA := file("ca.crt", ours.pem())
	kubeconfig := file("kubeconfig", fmt.Appendf(nil, webhookKubeconfig, dir))
	configuration := file("admission.yaml", fmt.Appendf(nil, admissionConfiguration, kubeconfig))

	hub, admin := startHub(t, "--admission-control-config-file="+configuration)
	manager, err := install.Portico(t.Context(), hub, install.Options{
		Args: []string{"--webhook-client-ca=" + clientCA, "--webhook-client-name=kube-apiserver",
			"--access-review-user-qps=0.2", "--access-review-user-burst=1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = manager.Kill9() })

	t.Run("APIServer", func(t *testing.T) {
		deployment := remote("default")
		if err := admin.Create(t.Context(), deployment); err != nil {
			t.Fatal(err)
		}
		if deployment.Spec.Template.Labels[v1alpha1.ScheduleLabel] != v1alpha1.ScheduleRemote {
			t.Errorf("want the Deployment held, got labels %v in its template", deployment.Spec.Template.Labels)
		}
	})

	// An API server has no client certificate for conversion.
	t.Run("Conversion", func(t *testing.T) {
		application := &unstructured.Unstructured{}
		application.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("KubernetesApplication"))
		application.SetNamespace("default")
		application.SetName("shop")
		application.Object["spec"] = map[string]any{"clusterSelector": map[string]any{"matchLabels": map[string]any{"env": "dev"}}}
		if err := admin.Create(t.Context(), application); err != nil {
			t.Fatal(err)
		}
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(application), application); err != nil {
			t.Fatal(err)
		}
		if env, _, _ := unstructured.NestedString(application.Object, "spec", "clusterSelector", "matchLabels", "env"); env != "dev" {
			t.Errorf("want the selector as it was written, got %v", application.Object["spec"])
		}
	})

	// docs/install.md names the user after the Service.
	t.Run("Service", func(t *testing.T) {
		resolver, err := apiserverwebhook.NewDefaultAuthenticationInfoResolver(kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		config, err := resolver.ClientConfigForService("portico-webhook", install.Namespace, 443)
		if err != nil || config.CertFile != filepath.Join(dir, "client.crt") {
			t.Errorf("want the client certificate for Portico's Service, got %q (%v)", config.CertFile, err)
		}
	})

	url := manager.WebhookURL() + webhooks.WorkloadPath
	for name, tc := range map[string]struct {
		reason      string
		certificate []tls.Certificate
		answered    bool
	}{
		"Nobody":    {reason: "A review without a certificate is refused."},
		"OtherName": {reason: "A certificate of the same CA with another name is refused.", certificate: []tls.Certificate{kubelet}},
		"Foreign":   {reason: "A certificate of another CA with the right name is refused.", certificate: []tls.Certificate{other}},
		"TheirsToo": {reason: "A review with the API server's certificate is accepted.", certificate: []tls.Certificate{apiServer}, answered: true},
	} {
		t.Run("Forged"+name, func(t *testing.T) {
			code, answer := forge(t, url, tc.certificate...)
			if answered := code == http.StatusOK && strings.Contains(answer, "forged"); answered != tc.answered {
				t.Errorf("%s Got HTTP status %d: %s", tc.reason, code, answer)
			}
			if !tc.answered && strings.Contains(answer, "secret") {
				t.Errorf("the answer tells something of the request's subject: %s", answer)
			}
		})
	}

	// A check of rights above the limit is refused, and clients retry.
	t.Run("TooMany", func(t *testing.T) {
		target := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"connectionSecretRef": map[string]any{"name": "eu-1"}}}}
		target.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("KubernetesTarget"))
		target.SetNamespace("default")
		target.SetName("eu-1")
		body, err := target.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		plain, err := rest.HTTPClientFor(hub.Config())
		if err != nil {
			t.Fatal(err)
		}
		var response *http.Response
		for range 20 {
			response, err = plain.Post(hub.Config().Host+"/apis/workload.crossplane.io/v1alpha1/namespaces/default/kubernetestargets?dryRun=All", "application/json", bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != http.StatusCreated {
				break
			}
		}
		if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") == "" {
			t.Errorf("want an answer that clients retry, got %s with %v", response.Status, response.Header)
		}
		if err := admin.Create(t.Context(), target); err != nil {
			t.Errorf("want the request tried again, got %v", err)
		}
	})

	t.Run("NewAuthority", func(t *testing.T) {
		file("ca.crt", others.pem())
		if err := cluster.Poll(t.Context(), time.Minute, "the new authority", func(context.Context) error {
			if code, answer := forge(t, url, apiServer); code == http.StatusOK {
				return fmt.Errorf("a certificate of the old authority is answered: %s", answer)
			}
			if code, answer := forge(t, url, other); code != http.StatusOK {
				return fmt.Errorf("a certificate of the new authority is not: %s", answer)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}

// forge sends a forged review, and returns the HTTP status and the response, or the
// error instead.
func forge(t *testing.T, url string, certificates ...tls.Certificate) (int, string) {
	t.Helper()
	object := `{"apiVersion":"workload.crossplane.io/v1alpha1","kind":"KubernetesTarget","metadata":{"name":"eu-1","namespace":"default"},"spec":{"connectionSecretRef":{"name":"secret"}}}`
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: types.UID("forged"), Operation: admissionv1.Create, Name: "eu-1", Namespace: "default",
			Kind:     metav1.GroupVersionKind{Group: "workload.crossplane.io", Version: "v1alpha1", Kind: "KubernetesTarget"},
			UserInfo: authenticationv1.UserInfo{Username: "admin", Groups: []string{"system:masters"}},
			Object:   runtime.RawExtension{Raw: []byte(object)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, // a forger does not verify the server
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if len(certificates) == 0 {
				return &tls.Certificate{}, nil
			}
			return &certificates[0], nil
		},
	}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(answer)
}
