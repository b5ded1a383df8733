package plan

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// TestTruncateStatus removes the parts of a target's status that are too large.
func TestTruncateStatus(t *testing.T) {
	encode := func(value any) *apiextensionsv1.JSON {
		t.Helper()
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return &apiextensionsv1.JSON{Raw: data}
	}
	list := make([]string, 100_000)
	for name, tc := range map[string]struct {
		reason string
		remote *apiextensionsv1.JSON
		kept   bool
	}{
		"Small": {reason: "A small status is kept.", remote: encode(map[string]any{"replicas": 3}), kept: true},
		"Text":  {reason: "A long text is truncated.", remote: encode(map[string]any{"message": strings.Repeat("x", 1<<20)}), kept: true},
		"List":  {reason: "A status that is too long without texts is omitted, with a message.", remote: encode(list)},
	} {
		t.Run(name, func(t *testing.T) {
			status := &v1alpha1.KubernetesApplicationResourceStatus{}
			status.Remote = tc.remote
			status.RemoteUID = types.UID(strings.Repeat("u", 10_000))
			status.Conditions = []metav1.Condition{{Type: v1alpha1.Synced, Message: strings.Repeat("é\xff", 100_000)}}
			fits := TruncateStatus(status)
			if message := status.Conditions[0].Message; len(message) > maxMessage || !utf8.ValidString(message) {
				t.Errorf("the message has %d bytes", len(message))
			}
			if len(status.RemoteUID) > maxName {
				t.Error("a UID may be as long as it likes")
			}
			remote := status.Remote
			if (remote != nil) != tc.kept || remote != nil && len(remote.Raw) > MaxRemoteStatus {
				t.Errorf("%s: kept is %t", tc.reason, remote != nil)
			}
			if fits != tc.kept {
				t.Errorf("%s: fits = %t", tc.reason, fits)
			}
			before := status.DeepCopy()
			if TruncateStatus(status); remote != nil && string(before.Remote.Raw) != string(status.Remote.Raw) {
				t.Error("bounding twice is not bounding once")
			}
		})
	}
}
