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
		"New":       {reason: "A bound claim gets a target of its name and labels.", claim: claim, secret: secret, want: made},
		"NoSecret":  {reason: "Its Secret may come later; the target says so meanwhile.", claim: claim, want: made},
		"Same":      {reason: "What is right is left alone.", claim: claim, secret: secret, existing: target("env: dev", spec), want: target("env: dev", spec), unchanged: true},
		"Relabeled": {reason: "Labels are kept in step: what the claim lost, the target loses, and keeps what others added.", claim: claim, secret: secret, existing: target("env: prod, old: x, mine: x", spec), want: target("env: dev, mine: x", spec)},
		"Bare":      {reason: "Also the last one.", claim: strings.Replace(claim, ", labels: {env: dev}", "", 1), secret: secret, existing: target("env: dev, mine: x", spec), want: target("mine: x", spec)},
		"Moved":     {reason: "It follows the claim to another Secret.", claim: claim, secret: secret, existing: target("env: dev", "\nspec: {connectionSecretRef: {name: other}}"), want: target("env: dev", spec)},
		"Settings":  {reason: "What else a target says is not the claim's to say.", claim: claim, secret: secret, existing: target("env: dev", "\nspec: {unschedulable: true, connectionSecretRef: {name: demo-creds}}"), want: target("env: dev", "\nspec: {unschedulable: true, connectionSecretRef: {name: demo-creds}}"), unchanged: true},
		"Unnamed":   {reason: "Without a Secret there is no way there.", claim: "metadata: {name: demo, uid: the-claim}", refusal: v1alpha1.ReasonSecretMissing},
		"Taken":     {reason: "A target that somebody else made is theirs.", claim: claim, secret: secret, existing: "metadata: {namespace: team, name: demo}" + spec, refusal: v1alpha1.EventNameTaken},
		"Former":    {reason: "So is that of a claim that was there before.", claim: claim, secret: secret, existing: strings.Replace(made, "the-claim", "former", 1), refusal: v1alpha1.EventNameTaken},
		"Foreign":   {reason: "A claim cannot lend what is not its own.", claim: claim, secret: "metadata: {namespace: team, name: demo-creds}", refusal: v1alpha1.ReasonSecretNotControlled},
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
		"New":       {reason: "A claim becomes a target.", claim: claim, proposed: true},
		"Same":      {reason: "A change of nothing changes nothing.", claim: claim, old: claim},
		"Labels":    {reason: "Labels are the target's.", claim: edit("dev", "prod"), old: claim, existing: target, proposed: true, was: true},
		"Secret":    {reason: "So is the Secret.", claim: edit("demo-creds", "x"), old: claim, existing: target, proposed: true, was: true},
		"Resource":  {reason: "The resource decides which cluster it is.", claim: edit("spec: {", "spec: {resourceRef: {name: a}, "), old: claim, proposed: true},
		"Class":     {reason: "So does the class.", claim: edit("spec: {", "spec: {classRef: {name: a}, "), old: claim, proposed: true},
		"Selector":  {reason: "Or its selector.", claim: edit("spec: {", "spec: {classSelector: {matchLabels: {a: b}}, "), old: claim, proposed: true},
		"Version":   {reason: "The version does not.", claim: edit("spec: {", "spec: {clusterVersion: '1.36', "), old: claim},
		"NoSecret":  {reason: "Without a Secret there is no target.", claim: edit("writeConnectionSecretToRef: {name: demo-creds}", ""), old: claim},
		"Going":     {reason: "Nor with a claim that goes.", claim: edit("uid:", "deletionTimestamp: '2020-01-01T00:00:00Z', uid:")},
		"NameTaken": {reason: "A target that is not the claim's may go, and the claim's come.", claim: claim, existing: "metadata: {namespace: team, name: demo}", proposed: true},
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
