package connectionsecret

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func TestForClaim(t *testing.T) {
	const (
		claim = `
apiVersion: compute.crossplane.io/v1alpha1
kind: KubernetesCluster
metadata: {namespace: team, name: demo, uid: the-claim, labels: {env: dev}}
spec: {writeConnectionSecretToRef: {name: demo-creds}}
`
		owner  = "ownerReferences: [{apiVersion: compute.crossplane.io/v1alpha1, kind: KubernetesCluster, name: demo, uid: the-claim, controller: true}]"
		secret = "metadata: {namespace: team, name: demo-creds, " + owner + "}"
		fields = "managedFields: [{manager: portico-claim, operation: Update, fieldsType: FieldsV1, fieldsV1: {'f:metadata': {'f:labels': {.: {}, 'f:env': {}, 'f:old': {}}}}}, " +
			"{manager: kubectl, operation: Update, fieldsType: FieldsV1, fieldsV1: {'f:metadata': {'f:labels': {'f:mine': {}}}}}]"
		spec = "\nspec: {connectionSecretRef: {name: demo-creds}}"
		made = "metadata: {namespace: team, name: demo, labels: {env: dev}, " + owner + "}" + spec
	)
	target := func(labels, rest string) string {
		return "metadata: {namespace: team, name: demo, labels: {" + labels + "}, " + owner + ", " + fields + "}" + rest
	}
	cases := map[string]struct {
		reason, claim, secret, existing, want, refusal string
		unchanged                                      bool
	}{
		"New":       {reason: "A bound claim gets a target with its name and labels.", claim: claim, secret: secret, want: made},
		"NoSecret":  {reason: "The target is created before the Secret exists.", claim: claim, want: made},
		"Same":      {reason: "A correct target is not written.", claim: claim, secret: secret, existing: target("env: dev", spec), want: target("env: dev", spec), unchanged: true},
		"Relabeled": {reason: "A label removed from the claim is removed from the target, and other labels of the target stay.", claim: claim, secret: secret, existing: target("env: prod, old: x, mine: x", spec), want: target("env: dev, mine: x", spec)},
		"Bare":      {reason: "The last label of the claim is removed too.", claim: strings.Replace(claim, ", labels: {env: dev}", "", 1), secret: secret, existing: target("env: dev, mine: x", spec), want: target("mine: x", spec)},
		"Moved":     {reason: "The target follows the claim to another Secret.", claim: claim, secret: secret, existing: target("env: dev", "\nspec: {connectionSecretRef: {name: other}}"), want: target("env: dev", spec)},
		"Settings":  {reason: "Other fields of the target stay.", claim: claim, secret: secret, existing: target("env: dev", "\nspec: {unschedulable: true, connectionSecretRef: {name: demo-creds}}"), want: target("env: dev", "\nspec: {unschedulable: true, connectionSecretRef: {name: demo-creds}}"), unchanged: true},
		"Unnamed":   {reason: "A claim without a Secret gets no target.", claim: "metadata: {name: demo, uid: the-claim}", refusal: v1alpha1.ReasonSecretMissing},
		"Taken":     {reason: "A target that the claim does not control is not changed.", claim: claim, secret: secret, existing: "metadata: {namespace: team, name: demo}" + spec, refusal: v1alpha1.EventNameTaken},
		"Former":    {reason: "A target of an earlier claim with the same name is not changed.", claim: claim, secret: secret, existing: strings.Replace(made, "the-claim", "former", 1), refusal: v1alpha1.EventNameTaken},
		"Foreign":   {reason: "The claim must control its Secret.", claim: claim, secret: "metadata: {namespace: team, name: demo-creds}", refusal: v1alpha1.ReasonSecretNotControlled},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var secret metav1.Object
			if tc.secret != "" {
				secret = read[corev1.Secret](t, tc.secret)
			}
			var existing, want *v1alpha1.KubernetesTarget
			if tc.existing != "" {
				existing = read[v1alpha1.KubernetesTarget](t, tc.existing)
			}
			if tc.want != "" {
				want = read[v1alpha1.KubernetesTarget](t, tc.want)
			}
			got, changed, refusal := TargetForClaim(resource(t, tc.claim), secret, existing)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if reason(refusal) != tc.refusal {
				t.Errorf("%s: got %v, want %q", tc.reason, refusal, tc.refusal)
			}
			if refusal == nil && changed == tc.unchanged {
				t.Errorf("%s: changed %t", tc.reason, changed)
			}
		})
	}
}

// TestProposed tests which changes of a claim change its target. TestTargetForClaim
// tests the target itself.
func TestProposed(t *testing.T) {
	const (
		head   = "apiVersion: compute.crossplane.io/v1alpha1\nkind: KubernetesCluster\n"
		claim  = head + "metadata: {namespace: team, name: demo, uid: the-claim, labels: {env: dev}}\nspec: {writeConnectionSecretToRef: {name: demo-creds}}"
		owner  = "ownerReferences: [{apiVersion: compute.crossplane.io/v1alpha1, kind: KubernetesCluster, name: demo, uid: the-claim, controller: true}]"
		target = "metadata: {namespace: team, name: demo, labels: {zone: eu}, " + owner + "}"
	)
	edit := func(old, new string) string { return strings.Replace(claim, old, new, 1) }
	cases := map[string]struct {
		reason, claim, old, existing string
		proposed, was                bool
	}{
		"New":       {reason: "A new claim creates a target.", claim: claim, proposed: true},
		"Same":      {reason: "An update without a change proposes nothing.", claim: claim, old: claim},
		"Labels":    {reason: "Labels are copied to the target.", claim: edit("dev", "prod"), old: claim, existing: target, proposed: true, was: true},
		"Secret":    {reason: "The Secret's name is copied to the target.", claim: edit("demo-creds", "x"), old: claim, existing: target, proposed: true, was: true},
		"Resource":  {reason: "The resource determines the cluster.", claim: edit("spec: {", "spec: {resourceRef: {name: a}, "), old: claim, proposed: true},
		"Class":     {reason: "The class determines the cluster.", claim: edit("spec: {", "spec: {classRef: {name: a}, "), old: claim, proposed: true},
		"Selector":  {reason: "The class selector determines the cluster.", claim: edit("spec: {", "spec: {classSelector: {matchLabels: {a: b}}, "), old: claim, proposed: true},
		"Version":   {reason: "The version does not determine the cluster.", claim: edit("spec: {", "spec: {clusterVersion: '1.36', "), old: claim},
		"NoSecret":  {reason: "A claim without a Secret has no target.", claim: edit("writeConnectionSecretToRef: {name: demo-creds}", ""), old: claim},
		"Going":     {reason: "A claim that is being deleted has no target.", claim: edit("uid:", "deletionTimestamp: '2020-01-01T00:00:00Z', uid:")},
		"NameTaken": {reason: "A target that the claim does not control may be deleted later.", claim: claim, existing: "metadata: {namespace: team, name: demo}", proposed: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var old *unstructured.Unstructured
			if tc.old != "" {
				old = resource(t, tc.old)
			}
			var existing *v1alpha1.KubernetesTarget
			if tc.existing != "" {
				existing = read[v1alpha1.KubernetesTarget](t, tc.existing)
			}
			got, was := ProposedTarget(resource(t, tc.claim), old, existing)
			if (got != nil) != tc.proposed || (was != nil) != tc.was {
				t.Errorf("%s got %v, was %v", tc.reason, got, was)
			}
		})
	}
}
