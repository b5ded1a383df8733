package webhooks

import (
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies/engine"
)

// policyOf returns a Policy as YAML, with modules by file name.
func policyOf(t testing.TB, name string, of policyv1alpha1.PolicyType, modules map[string]string) string {
	t.Helper()
	out, err := yaml.Marshal(policyv1alpha1.Policy{
		TypeMeta:   metav1.TypeMeta{APIVersion: policyv1alpha1.GroupVersion.String(), Kind: "Policy"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       policyv1alpha1.PolicySpec{Type: of, Modules: modules},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestWrittenPolicies(t *testing.T) {
	library := map[string]string{"limits.rego": "package lib.limits\n\nmost := 3\n"}
	imports := map[string]string{"count.rego": "package scheduling.count\n\nimport data.lib.limits\n\ndeny contains {\"code\": \"Many\", \"msg\": \"too many\"} if input.object.spec.replicas > limits.most\n"}
	policies := engine.New(engine.Options{})
	policies.Replace(t.Context(), nil)
	for _, text := range []string{policyOf(t, "lib-limits", policyv1alpha1.Library, library), policyOf(t, "count", policyv1alpha1.Scheduling, imports)} {
		policy := &policyv1alpha1.Policy{}
		if err := yaml.Unmarshal([]byte(text), policy); err != nil {
			t.Fatal(err)
		}
		if err := policies.Apply(t.Context(), policy).Err(); err != nil {
			t.Fatal(err)
		}
	}
	server := webhook.NewServer(webhook.Options{})
	Register(server, Options{Identity: porticoUser, Scheme: scheme(), Engine: policies})

	wrong := policyOf(t, "wrong", policyv1alpha1.Scheduling, map[string]string{
		"wrong.rego": "package scheduling.wrong\n\ndeny contains {\"code\": \"A\", \"msg\": \"no\"} if input.objct\n\nwarn contains {\"code\": \"B\", \"mesg\": \"no\"}\n",
	})
	untested := policyOf(t, "untested", policyv1alpha1.Scheduling, map[string]string{
		"untested.rego": "package scheduling.untested\n\nfew(object) if object.spec.replicas < 3\n\ndeny contains {\"code\": \"A\", \"msg\": \"no\"} if not few(input.object)\n",
	})
	cases := map[string]struct {
		reason      string
		testRequest testRequest
		refused     []string // all parts of the refusal
		warnings    []string // a part of each warning
	}{
		"Wrong": {
			reason:      "All errors are reported, with their lines and carets.",
			testRequest: testRequest{object: wrong},
			refused:     []string{"wrong.rego:3:", "want one of", "wrong.rego:5:", `"mesg"`, "^"},
		},
		"WrongOnceDeleted": {
			reason:      "A policy that is being deleted is validated, because it is still in force.",
			testRequest: testRequest{object: strings.Replace(wrong, `"metadata":{`, `"metadata":{"deletionTimestamp":"2030-01-01T00:00:00Z",`, 1)},
			refused:     []string{"wrong.rego:3:"},
		},
		"Doubtful": {
			reason:      "A likely mistake is a warning.",
			testRequest: testRequest{object: untested},
			warnings:    []string{"no tests", "import rego.v2"},
		},
		"LibraryBreaks": {
			reason:      "A change of a Library must not break the policies that import it.",
			testRequest: testRequest{object: policyOf(t, "lib-limits", policyv1alpha1.Library, map[string]string{"limits.rego": "package lib.limits\n\nleast := 3\n"}), old: policyOf(t, "lib-limits", policyv1alpha1.Library, library)},
			refused:     []string{"policy count would break"}, warnings: []string{"no tests"},
		},
		"LibraryGoes": {
			reason:      "A Library that is imported cannot be deleted, and the message says how to proceed.",
			testRequest: testRequest{operation: admissionv1.Delete, old: policyOf(t, "lib-limits", policyv1alpha1.Library, library)},
			refused:     []string{"imported by count; change or delete those policies first"},
		},
		"ImporterGoes": {
			reason:      "Other deletions are allowed.",
			testRequest: testRequest{operation: admissionv1.Delete, old: policyOf(t, "count", policyv1alpha1.Scheduling, imports)},
		},
		"Status": {
			reason:      "The status is not validated.",
			testRequest: testRequest{object: wrong, subresource: "status"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.testRequest.path = PolicyPath
			resp := submit(t, server.WebhookMux(), tc.testRequest)
			if resp.Allowed != (len(tc.refused) == 0) {
				t.Fatalf("%s\nallowed: %v (%v)", tc.reason, resp.Allowed, resp.Result)
			}
			for _, want := range tc.refused {
				if !strings.Contains(resp.Result.Message, want) {
					t.Errorf("%s\nthe refusal does not say %q:\n%s", tc.reason, want, resp.Result.Message)
				}
			}
			if got := fmt.Sprint(resp.Warnings); len(resp.Warnings) != len(tc.warnings) {
				t.Errorf("%s\nwarnings: %s", tc.reason, got)
			}
			for _, want := range tc.warnings {
				if !strings.Contains(fmt.Sprint(resp.Warnings), want) {
					t.Errorf("%s\nno warning says %q: %q", tc.reason, want, resp.Warnings)
				}
			}
			for _, warning := range resp.Warnings {
				if len(warning) > 200 {
					t.Errorf("a warning has %d characters: %s", len(warning), warning)
				}
			}
		})
	}
}
