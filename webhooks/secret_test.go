package webhooks

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/test/badsecrets"
)

const goodServer = "https://eu-1.example.org"

var goodData = map[string][]byte{"endpoint": []byte(goodServer), "token": []byte("t")}

func badData(token string) map[string][]byte {
	return map[string][]byte{"endpoint": []byte("http://eu-1.example.org"), "token": []byte(token)}
}

func secretObject(data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: "eu-1", Namespace: "team-a"}, Data: data,
	}
}

func targetObject(secret string) *v1alpha1.KubernetesTarget {
	return &v1alpha1.KubernetesTarget{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "KubernetesTarget"},
		ObjectMeta: metav1.ObjectMeta{Name: "eu-1", Namespace: "team-a"},
		Spec:       v1alpha1.KubernetesTargetSpec{ConnectionSecretRef: &v1alpha1.SecretReference{Name: secret}},
	}
}

// TestConnection validates a Secret and the target that names it, whichever is created
// later.
func TestConnection(t *testing.T) {
	expired := "x." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, time.Now().Add(-time.Hour).Unix())) + ".x"
	secretRequest := func(now, old map[string][]byte) testRequest {
		a := testRequest{path: ConnectionPath, object: encode(t, secretObject(now))}
		if old != nil {
			a.old = encode(t, secretObject(old))
		}
		return a
	}
	targetRequest := func(name string, old *v1alpha1.KubernetesTarget) testRequest {
		a := testRequest{path: WorkloadPath, object: encode(t, targetObject(name))}
		if old != nil {
			a.old = encode(t, old)
		}
		return a
	}
	deletedTargetRequest := func(a testRequest) testRequest {
		const begins = `"metadata":{`
		a.object = strings.Replace(a.object, begins, begins+`"deletionTimestamp":"2030-01-01T00:00:00Z",`, 1)
		a.old = strings.Replace(a.old, begins, begins+`"deletionTimestamp":"2030-01-01T00:00:00Z",`, 1)
		return a
	}
	ours := func(a testRequest) testRequest {
		a.user = porticoUser
		return a
	}
	local := map[string][]byte{"endpoint": []byte("https://localhost"), "token": []byte("t")}

	awaitedObject := secretObject(nil)
	awaitedObject.Type = corev1.SecretTypeServiceAccountToken

	cases := map[string]struct {
		reason      string
		hub         []client.Object
		testRequest testRequest
		answer      string // a part of the message; empty if the request is allowed
		warns       string
	}{
		"SecretNobodyNames": {
			reason:      "A Secret that no target names is not validated.",
			testRequest: secretRequest(badData("t"), nil),
		},
		"SecretOfTarget": {
			reason:      "A Secret that a target names is validated.",
			hub:         []client.Object{targetObject("eu-1")},
			testRequest: secretRequest(badData("t"), nil),
			answer:      "data[endpoint]: Invalid value: is not an https URL",
		},
		"SecretOfOther": {
			reason:      "Another Secret of the namespace is not validated.",
			hub:         []client.Object{targetObject("eu-2")},
			testRequest: secretRequest(badData("t"), nil),
		},
		"GoodSecret": {
			reason:      "A valid connection is accepted.",
			hub:         []client.Object{targetObject("eu-1")},
			testRequest: secretRequest(goodData, nil),
		},
		"Worse": {
			reason:      "A valid Secret cannot become invalid.",
			hub:         []client.Object{targetObject("eu-1")},
			testRequest: secretRequest(badData("t"), goodData),
			answer:      "is not an https URL",
		},
		"WorseOnceDeleted": {
			reason:      "A Secret that is being deleted cannot become invalid, either.",
			hub:         []client.Object{targetObject("eu-1")},
			testRequest: deletedTargetRequest(secretRequest(badData("t"), goodData)),
			answer:      "is not an https URL",
		},
		"RepointedOnceDeleted": {
			reason:      "The connection of a target that is being deleted does not change, which is a warning.",
			testRequest: deletedTargetRequest(targetRequest("eu-2", targetObject("eu-1"))),
			warns:       "connects with the Secret that it named before",
		},
		"StillWrong": {
			reason:      "An invalid Secret can be corrected in steps.",
			hub:         []client.Object{targetObject("eu-1")},
			testRequest: secretRequest(badData("u"), badData("t")),
		},
		"WrongElsewhere": {
			reason:      "An invalid Secret must not get further errors.",
			hub:         []client.Object{targetObject("eu-1")},
			testRequest: secretRequest(badData("u u"), badData("t")),
			answer:      "data[token]",
		},
		"LocalSecret": {
			reason:      "Local addresses are refused unless an option allows them.",
			hub:         []client.Object{targetObject("eu-1")},
			testRequest: secretRequest(local, nil),
			answer:      "data[endpoint]: Forbidden",
		},
		"ExpiredSecret": {
			reason:      "An expired credential is a warning, and the target decides.",
			hub:         []client.Object{targetObject("eu-1")},
			testRequest: secretRequest(map[string][]byte{"endpoint": []byte(goodServer), "token": []byte(expired)}, nil),
			warns:       "expired at",
		},
		"CopiedSecret": {
			reason:      "Portico's own copies are validated by its controller.",
			hub:         []client.Object{targetObject("eu-1")},
			testRequest: ours(secretRequest(badData("t"), nil)),
		},

		"TargetFirst": {
			reason:      "A Secret that does not exist yet is validated when it is created.",
			testRequest: targetRequest("eu-1", nil),
		},
		"TargetOfGood": {
			reason:      "A valid connection is accepted.",
			hub:         []client.Object{secretObject(goodData)},
			testRequest: targetRequest("eu-1", nil),
		},
		"TargetOfBad": {
			reason:      "A target that names an invalid Secret is refused.",
			hub:         []client.Object{secretObject(badData("t"))},
			testRequest: targetRequest("eu-1", nil),
			answer:      "spec.connectionSecretRef.name: Invalid value: \"eu-1\": the secret does not connect: data[endpoint]",
		},
		"TargetOfAwaited": {
			reason:      "The token of a service account is written later.",
			hub:         []client.Object{awaitedObject},
			testRequest: targetRequest("eu-1", nil),
		},
		"AwaitedSecret": {
			reason:      "A token Secret without a token is accepted before the target, too.",
			hub:         []client.Object{targetObject("eu-1")},
			testRequest: testRequest{path: ConnectionPath, object: encode(t, awaitedObject)},
		},
		"TargetTurnsToBad": {
			reason:      "A change of the Secret's name is validated.",
			hub:         []client.Object{secretObject(badData("t"))},
			testRequest: targetRequest("eu-1", targetObject("other")),
			answer:      "the secret does not connect",
		},
		"TargetOfExpired": {
			reason:      "An expired credential is a warning.",
			hub:         []client.Object{secretObject(map[string][]byte{"endpoint": []byte(goodServer), "token": []byte(expired)})},
			testRequest: targetRequest("eu-1", nil),
			warns:       "expired at",
		},
		"TargetUnchanged": {
			reason:      "The labels of a target with an invalid Secret can be changed.",
			hub:         []client.Object{secretObject(badData("t"))},
			testRequest: targetRequest("eu-1", targetObject("eu-1")),
		},
		"TargetOfOurs": {
			reason:      "Portico's own targets are validated by its controller.",
			hub:         []client.Object{secretObject(badData("t"))},
			testRequest: ours(targetRequest("eu-1", nil)),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			resp := submit(t, front(t, tc.hub...), tc.testRequest)
			if resp.Allowed != (tc.answer == "") {
				t.Fatalf("allowed is %t: %s %v", resp.Allowed, tc.reason, resp.Result)
			}
			if !resp.Allowed && (resp.Result.Code != http.StatusUnprocessableEntity || !strings.Contains(resp.Result.Message, tc.answer)) {
				t.Errorf("%d %q does not say %q: %s", resp.Result.Code, resp.Result.Message, tc.answer, tc.reason)
			}
			if warnings := strings.Join(resp.Warnings, " "); (warnings == "") != (tc.warns == "") || !strings.Contains(warnings, tc.warns) {
				t.Errorf("warns %q, want %q: %s", warnings, tc.warns, tc.reason)
			}
		})
	}
}

// TestConnectionUnread allows a target whose Secret cannot be read, because the
// controller validates the Secret again.
func TestConnectionUnread(t *testing.T) {
	hooks := serve(fake.NewClientBuilder().WithScheme(scheme()).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewInternalError(errors.New("nightingale"))
		},
	}).Build())
	resp := submit(t, hooks, testRequest{path: WorkloadPath, object: encode(t, targetObject("eu-1"))})
	if warnings := strings.Join(resp.Warnings, " "); !resp.Allowed || !strings.Contains(warnings, "could not be read") || strings.Contains(warnings, "nightingale") {
		t.Errorf("allowed is %t, with warnings %q", resp.Allowed, warnings)
	}
}

// TestConnectionCorpus validates every bad Secret in both orders. No response contains
// any of its data.
func TestConnectionCorpus(t *testing.T) {
	const canary = "nightingale-nightingale"
	// No connection is made to this address.
	corpus, err := badsecrets.Corpus(badsecrets.Server{URL: goodServer})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range corpus {
		if tc.Reaches {
			continue // only the target can refuse this Secret
		}
		t.Run(tc.Name, func(t *testing.T) {
			secret := secretObject(tc.Data(canary))
			for order, resp := range map[string]any{
				"secret second": submit(t, front(t, targetObject("eu-1")), testRequest{path: ConnectionPath, object: encode(t, secret)}),
				"target second": submit(t, front(t, secret), testRequest{path: WorkloadPath, object: encode(t, targetObject("eu-1"))}),
			} {
				answer := encode(t, resp)
				if !strings.Contains(answer, `"allowed":false`) || !strings.Contains(answer, `"code":422`) {
					t.Errorf("%s: not refused as invalid: %s", order, answer)
				}
				if tc.Leaks(answer, canary) {
					t.Errorf("%s: the answer has data of the Secret: %s", order, answer)
				}
			}
		})
	}
}
