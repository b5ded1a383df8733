package plan

import (
	"encoding/json"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// The limits on the data from a target in a status on the hub.
const (
	// maxMessage is the length of a condition's message.
	maxMessage = 4 << 10
	// maxText is the length of a string in the status of an object on a target.
	maxText = 32 << 10
	// MaxRemoteStatus is the size of that status; see MaxObservedBytes.
	MaxRemoteStatus = 256 << 10
	// maxName is the length of a name, a UID or a manager.
	maxName = 253
)

// TruncateStatus makes every string from a target in a status valid UTF-8, and cuts it
// to its limit. If the status of the object is still too large, it removes that part,
// and returns false.
func TruncateStatus(status *v1alpha1.KubernetesApplicationResourceStatus) bool {
	for i := range status.Conditions {
		status.Conditions[i].Message = truncate(status.Conditions[i].Message, maxMessage)
	}
	status.RemoteUID = types.UID(truncate(string(status.RemoteUID), maxName))
	for i := range status.Drift {
		d := &status.Drift[i]
		d.Path, d.Manager = truncate(d.Path, maxMessage), truncate(d.Manager, maxName)
	}
	if status.Remote == nil || len(status.Remote.Raw) <= MaxRemoteStatus {
		return true
	}
	short, ok := truncateJSON(status.Remote.Raw)
	status.Remote = short
	return ok
}

// truncateJSON shortens the strings in a value. It returns false if the value is still too
// large.
func truncateJSON(raw []byte) (*apiextensionsv1.JSON, bool) {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, false
	}
	data, err := json.Marshal(truncateStrings(value))
	if err != nil || len(data) > MaxRemoteStatus {
		return nil, false
	}
	return &apiextensionsv1.JSON{Raw: data}, true
}

func truncateStrings(value any) any {
	switch v := value.(type) {
	case string:
		return truncate(v, maxText)
	case []any:
		for i := range v {
			v[i] = truncateStrings(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = truncateStrings(v[key])
		}
	}
	return value
}

func truncate(text string, most int) string {
	return policies.Shorten(strings.ToValidUTF8(text, "\uFFFD"), most)
}
