package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	policycontroller "github.com/portico-io/portico/controllers/policy"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/simulate"
)

const (
	denyWeb   = "deny contains {\"code\": \"Web\", \"msg\": \"no web\"} if input.object.metadata.name == \"web\"\n"
	excludeEU = "exclude contains {\"target\": \"eu\", \"code\": \"EU\", \"msg\": \"not in eu\"}\n"
	excludeUS = "exclude contains {\"target\": \"us\", \"code\": \"US\", \"msg\": \"not in us\"}\n"
	requireEU = "require contains {\"key\": \"region\", \"operator\": \"In\", \"values\": [\"eu\"]}\n"
	failWeb   = "one := 1 if input.object.metadata.name == \"web\"\n\none := 2 if input.object.metadata.name == \"web\"\n\ndeny contains {\"code\": \"One\", \"msg\": \"one\"} if one == 1\n"
	labelled  = "deny contains {\"code\": \"Env\", \"msg\": \"wants env\"} if not input.namespace.metadata.labels.env\n"
	notSecret = "deny contains {\"code\": \"Data\", \"msg\": \"has data\"} if input.object.data\n"
)

// rulesOf returns a policy of a type, with rules in the package of this type.
func rulesOf(kind policyv1alpha1.PolicyType, rules string) *policyv1alpha1.Policy {
	return &policyv1alpha1.Policy{
		ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Spec: policyv1alpha1.PolicySpec{Type: kind, FailurePolicy: policyv1alpha1.Fail, Modules: map[string]string{
			"x.rego": "package " + strings.ToLower(string(kind)) + ".x\n\n" + rules,
		}},
	}
}

func inNamespace(namespace string, object client.Object) client.Object {
	object.SetNamespace(namespace)
	return object
}

func labelledBy(object client.Object, pairs ...string) client.Object {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	for i := 0; i < len(pairs); i += 2 {
		labels[pairs[i]] = pairs[i+1]
	}
	object.SetLabels(labels)
	return object
}

func annotatedBy(object client.Object, key, value string) client.Object {
	object.SetAnnotations(map[string]string{key: value})
	return object
}

// deleting is an object that is being deleted.
func deleting(object client.Object) client.Object {
	now := metav1.Now()
	object.SetDeletionTimestamp(&now)
	object.SetFinalizers([]string{"example.com/wait"})
	return object
}

// application returns an application with a template for each name. An empty target
// means that the application is not scheduled.
func application(name, target string, templates ...string) *v1alpha2.KubernetesApplication {
	app := &v1alpha2.KubernetesApplication{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	if target != "" {
		app.Spec.TargetRef = &v1alpha1.TargetReference{Name: target}
	}
	for _, template := range templates {
		t := v1alpha2.ResourceTemplate{Metadata: v1alpha2.TemplateMeta{Name: template}}
		t.Spec.Template = configMap(template)
		app.Spec.ResourceTemplates = append(app.Spec.ResourceTemplates, t)
	}
	return app
}

func configMap(name string) runtime.RawExtension {
	return runtime.RawExtension{Raw: fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": %q}}`, name)}
}

// resource returns a resource that a user wrote, without an application.
func resource(name, target string) *v1alpha1.KubernetesApplicationResource {
	out := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	out.Spec.Template = configMap(name)
	if target != "" {
		out.Spec.TargetRef = &v1alpha1.TargetReference{Name: target}
	}
	return out
}

func secret(name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote}},
		Data:       map[string][]byte{"password": []byte("secret")},
	}
}

// TestAuditsAgree: status.violations of a Policy and kubectl portico policy check
// --cluster give the same result, because the manager and the command evaluate the same
// policies for the same objects.
func TestAuditsAgree(t *testing.T) {
	cases := map[string]struct {
		reason  string
		kind    policyv1alpha1.PolicyType // Scheduling when it is empty
		rules   string
		objects []client.Object
		// want is the number of violations and of evaluations, and then the objects
		// in violation.
		want []string
	}{
		"Denied": {
			reason: "An object that a policy denies is a violation.", rules: denyWeb,
			objects: []client.Object{workload("web", ""), workload("api", "")},
			want:    []string{"1 of 2", "Deployment shop/web"},
		},
		"ExcludedTarget": {
			reason: "An object on a target that the policy excludes is a violation.", rules: excludeEU,
			objects: []client.Object{application("default", "eu"), workload("web", "")},
			want:    []string{"1 of 1", "Deployment shop/web"},
		},
		"OtherTargetExcluded": {
			reason: "The exclusion of another target is no violation.", rules: excludeUS,
			objects: []client.Object{application("default", "eu"), workload("web", "")},
			want:    []string{"0 of 1"},
		},
		"PlacedNowhereAllowed": {
			reason: "The target of the object counts, although the policy excludes all others.", rules: excludeEU + "\n" + excludeUS,
			objects: []client.Object{application("default", "us"), workload("web", "")},
			want:    []string{"1 of 1", "Deployment shop/web"},
		},
		"UnplacedSomeExcluded": {
			reason: "An object without a target can run on the target that is not excluded.", rules: excludeEU,
			objects: []client.Object{workload("web", "")},
			want:    []string{"0 of 1"},
		},
		"UnplacedAllExcluded": {
			reason: "An object without a target is in violation when every target is excluded.", rules: excludeEU + "\n" + excludeUS,
			objects: []client.Object{workload("web", "")},
			want:    []string{"1 of 1", "Deployment shop/web"},
		},
		"UnplacedSelectorExcluded": {
			reason: "Only targets that the selector of the object matches count.", rules: excludeEU,
			objects: []client.Object{annotatedBy(workload("web", ""), v1alpha1.TargetSelectorAnnotation, "region=eu")},
			want:    []string{"1 of 1", "Deployment shop/web"},
		},
		"UnplacedApplicationSelector": {
			reason: "Only targets that the selector of the application matches count.", rules: excludeEU,
			objects: []client.Object{selecting(application("default", ""), "eu"), workload("web", "")},
			want:    []string{"1 of 1", "Deployment shop/web"},
		},
		"UnplacedNoTarget": {
			reason: "Without a target, no target can be excluded.", rules: excludeEU,
			objects: []client.Object{inNamespace("empty", workload("web", ""))},
			want:    []string{"0 of 1"},
		},
		"Required": {
			reason: "A target that lacks a required label counts as excluded.", rules: requireEU,
			objects: []client.Object{application("default", "us"), workload("web", "")},
			want:    []string{"1 of 1", "Deployment shop/web"},
		},
		"Failing": {
			reason: "A failed evaluation is no violation, and does not stop the audit.", rules: failWeb,
			objects: []client.Object{workload("web", ""), workload("api", "")},
			want:    []string{"0 of 2"},
		},
		"Broken": {
			reason: "A policy that does not compile is not evaluated.", rules: "deny contains 1 if input.misspelt\n",
			objects: []client.Object{workload("web", "")},
			want:    []string{"0 of 0"},
		},
		"ExemptNamespace": {
			reason: "Policies are not evaluated for Portico's own namespace.", rules: denyWeb,
			objects: []client.Object{inNamespace("portico-system", workload("web", ""))},
			want:    []string{"0 of 0"},
		},
		"NamespaceLabels": {
			reason: "Policies see the labels of the namespace.", rules: labelled,
			objects: []client.Object{workload("web", ""), inNamespace("empty", workload("web", ""))},
			want:    []string{"1 of 2", "Deployment empty/web"},
		},
		"Deleting": {
			reason: "An object that is being deleted does not count.", rules: denyWeb,
			objects: []client.Object{deleting(workload("web", ""))},
			want:    []string{"0 of 0"},
		},
		"Malformed": {
			reason: "An object with a malformed selector does not count.", rules: denyWeb,
			objects: []client.Object{annotatedBy(workload("web", ""), v1alpha1.TargetSelectorAnnotation, "=,=")},
			want:    []string{"0 of 0"},
		},
		"HandWritten": {
			reason: "For a resource without an application, its own target counts.", rules: excludeUS,
			objects: []client.Object{resource("web", "us"), resource("api", "eu")},
			want:    []string{"1 of 2", "KubernetesApplicationResource shop/web"},
		},
		"HandWrittenMember": {
			reason: "For a resource that joined an application by its label, the target of the application counts.", rules: excludeUS,
			objects: []client.Object{application("app", "us"), labelledBy(resource("web", ""), v1alpha1.ApplicationLabel, "app")},
			want:    []string{"1 of 1", "KubernetesApplicationResource shop/web"},
		},
		"FrontDoor": {
			reason: "The resource of a native object does not count twice.", rules: denyWeb,
			objects: []client.Object{
				workload("web", ""), labelledBy(resource("web", ""), v1alpha1.FrontDoorLabel, v1alpha1.FrontDoor),
			},
			want: []string{"1 of 1", "Deployment shop/web"},
		},
		"Templates": {
			reason: "A template counts once, although its resource exists.", rules: denyWeb,
			objects: []client.Object{
				application("app", "us", "web", "api"), labelledBy(resource("web", "us"), v1alpha1.ApplicationLabel, "app"),
			},
			want: []string{"1 of 2", "KubernetesApplicationResource shop/web"},
		},
		"TemplatesWithoutResource": {
			reason: "Templates without a resource count.", rules: excludeEU + "\n" + excludeUS,
			objects: []client.Object{application("app", "", "web")},
			want:    []string{"1 of 1", "KubernetesApplication shop/app"},
		},
		"Content": {
			reason: "Policies never see the content of a Secret.", rules: notSecret,
			objects: []client.Object{secret("web")},
			want:    []string{"0 of 1"},
		},
		"Publish": {
			reason: "A publish policy is evaluated for targets.", kind: policyv1alpha1.Publish,
			rules:   "deny contains {\"code\": \"Region\", \"msg\": \"not in us\"} if input.target.metadata.labels.region == \"us\"\n",
			objects: []client.Object{workload("web", ""), inNamespace("portico-system", target("own", "us"))},
			want:    []string{"1 of 2", "KubernetesTarget shop/us"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kind := tc.kind
			if kind == "" {
				kind = policyv1alpha1.Scheduling
			}
			policy := rulesOf(kind, tc.rules)
			reader := fakeHub(t, append(tc.objects, policy)...)

			hub := hub{reader, "portico-system"}
			sources, err := hub.policies(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			results, err := hub.audit(t.Context(), sources, "")
			if err != nil {
				t.Fatal(err)
			}
			result := results.Cluster[0]
			client := []string{fmt.Sprintf("%d of %d", result.Refused, result.Evaluated)}
			for _, v := range result.Objects {
				client = append(client, v.Object)
			}
			if diff := cmp.Diff(tc.want, client); diff != "" {
				t.Errorf("%s check --cluster, -want +got:\n%s", tc.reason, diff)
			}

			active := engine.New(engine.Options{})
			active.Replace(t.Context(), []*policyv1alpha1.Policy{policy})
			snapshot, err := policycontroller.Snapshot(t.Context(), reader, policies.AllowDefaults{PorticoNamespace: "portico-system"})
			if err != nil {
				t.Fatal(err)
			}
			status := &policyv1alpha1.PolicyAudit{}
			if audit := simulate.Audit(t.Context(), active, snapshot, simulate.MaxStatusSample)["x"]; audit != nil {
				status = audit.Status()
			}
			manager := []string{fmt.Sprintf("%d of %d", status.Violations, status.Evaluated)}
			for _, v := range status.Sample {
				manager = append(manager, fmt.Sprintf("%s %s/%s", v.Kind, v.Namespace, v.Name))
			}
			if diff := cmp.Diff(tc.want, manager); diff != "" {
				t.Errorf("%s status.violations, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func selecting(app *v1alpha2.KubernetesApplication, region string) client.Object {
	app.Spec.TargetSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"region": region}}
	return app
}

// fakeHub has the targets eu and us in namespace shop, and objects.
func fakeHub(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := reconcilertest.Scheme(t, clientgoscheme.AddToScheme, policyv1alpha1.AddToScheme, v1alpha1.AddToScheme, v1alpha2.AddToScheme)
	all := []client.Object{target("eu", "eu"), target("us", "us")}
	for _, name := range []string{"shop", "empty", "portico-system"} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if name == "shop" {
			namespace.Labels = map[string]string{"env": "prod"}
		}
		all = append(all, namespace)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(all, objects...)...).Build()
}
