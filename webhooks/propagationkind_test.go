package webhooks

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/kinds"
)

// TestCustomKinds is not parallel, because the registry is one of the process.
func TestCustomKinds(t *testing.T) {
	kinds.ReplaceCustom([]*kinds.Custom{{Served: schema.GroupVersionKind{Group: "webhooks.example.org", Version: "v1", Kind: "Lake"}, Plural: "lakes", HasStatus: true}})
	t.Cleanup(func() { kinds.ReplaceCustom(nil) })
	const lake = "{apiVersion: webhooks.example.org/v1, kind: Lake, metadata: {name: one, namespace: team-a, labels: {workload.crossplane.io/schedule: remote}}, spec: {depth: 3}}"
	other := strings.ReplaceAll(lake, "Lake", "Pond")
	status := func(level string) string { return strings.TrimSuffix(lake, "}") + ", status: {level: " + level + "}}" }
	for name, tc := range map[string]struct {
		reason      string
		testRequest testRequest
		refused     string // a part of the refusal
		warning     string // a part of the warnings
		patched     bool
	}{
		"Sent": {reason: "An object of a custom kind waits for a target as any other.",
			testRequest: testRequest{path: NativePath, object: lake}, warning: "waiting for a target"},
		"OtherVersion": {reason: "A user may write another version.",
			testRequest: testRequest{path: NativePath, object: strings.Replace(lake, "/v1,", "/v2,", 1)}, warning: "waiting for a target"},
		"Malformed": {reason: "The label has two values.",
			testRequest: testRequest{path: NativePath, object: strings.Replace(lake, ": remote", ": Remote", 1)}, refused: "metadata.labels[workload.crossplane.io/schedule]"},
		"NotSent": {reason: "A user expects that the label has an effect.",
			testRequest: testRequest{path: NativePath, object: other}, warning: "no effect on a Pond, which stays on the hub: no PropagationKind for Pond.webhooks.example.org is ready"},
		"NotSentAsBefore": {reason: "There is one warning.",
			testRequest: testRequest{path: NativePath, object: other, old: other}},
		"Shielded": {reason: "The status is that of the target.",
			testRequest: testRequest{path: ShieldPath, subresource: "status", object: status("1"), old: status("2")}, patched: true},
		"NotShielded": {reason: "The status of an object that stays on the hub is its own.",
			testRequest: testRequest{path: ShieldPath, subresource: "status", object: strings.ReplaceAll(status("1"), "Lake", "Pond"), old: strings.ReplaceAll(status("2"), "Lake", "Pond")}},
	} {
		t.Run(name, func(t *testing.T) {
			resp := submit(t, front(t), tc.testRequest)
			switch {
			case resp.Allowed != (tc.refused == ""), !resp.Allowed && !strings.Contains(resp.Result.Message, tc.refused):
				t.Errorf("%s Allowed: %t, %v", tc.reason, resp.Allowed, resp.Result)
			case (tc.warning == "") != (len(resp.Warnings) == 0), !strings.Contains(strings.Join(resp.Warnings, "\n"), tc.warning):
				t.Errorf("%s Warnings: %q", tc.reason, resp.Warnings)
			case tc.patched != (len(resp.Patch) > 0):
				t.Errorf("%s Patch: %s", tc.reason, resp.Patch)
			}
		})
	}
}
