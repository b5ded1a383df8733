package kinds

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/portico-io/portico/api/kinds/fields"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Intent has the facts about an object that only admission can know: in a stored object,
// a value that the user gave looks like one that the hub allocated. It is stored in the
// annotation workload.crossplane.io/intent.
type Intent struct {
	// Moving is true from the moment a running Deployment is labelled until
	// the hub has stopped its Pods.
	Moving bool `json:"moving,omitempty"`

	// Suspended is true if the user suspended a CronJob that Portico suspends on the hub.
	Suspended bool `json:"suspended,omitempty"`

	// HubStorageClass is true if the StorageClass of a PersistentVolumeClaim is the
	// default of the hub.
	HubStorageClass bool `json:"hubStorageClass,omitempty"`

	// ClusterIP and the rest are a Service's, as the user gave them.
	ClusterIP           string           `json:"clusterIP,omitempty"`
	ClusterIPs          []string         `json:"clusterIPs,omitempty"`
	IPFamilies          []string         `json:"ipFamilies,omitempty"`
	IPFamilyPolicy      string           `json:"ipFamilyPolicy,omitempty"`
	HealthCheckNodePort int64            `json:"healthCheckNodePort,omitempty"`
	LoadBalancerClass   string           `json:"loadBalancerClass,omitempty"`
	NodePorts           map[string]int64 `json:"nodePorts,omitempty"` // by "TCP/80"
}

// IntentPath is where an object's intent is, for errors.
var IntentPath = field.NewPath("metadata", "annotations").Key(v1alpha1.IntentAnnotation)

// IntentOf reads an object's intent; found is false when none is recorded. It
// returns a *field.Error when the annotation is malformed.
func IntentOf(object *unstructured.Unstructured) (intent Intent, found bool, err error) {
	value, found := object.GetAnnotations()[v1alpha1.IntentAnnotation]
	if !found {
		return Intent{}, false, nil
	}
	strict, err := kjson.UnmarshalStrict([]byte(value), &intent)
	if err != nil || len(strict) > 0 {
		return Intent{}, true, field.Invalid(IntentPath, value,
			"is not what Portico recorded; remove the annotation, it is written at admission")
	}
	return intent, true, nil
}

// intentBefore reads the intent of the object that a change replaces. A malformed one is
// an error until a change removes it; then there is no intent.
func intentBefore(object, old *unstructured.Unstructured) (Intent, error) {
	intent, _, err := IntentOf(old)
	if err == nil {
		return intent, nil
	}
	if _, _, errNew := IntentOf(object); errNew != nil {
		return Intent{}, err
	}
	return Intent{}, nil
}

// annotate returns the patch that stores an intent on its object.
func (i Intent) annotate(object *unstructured.Unstructured) fields.Patch {
	data, err := json.Marshal(i)
	if err != nil {
		panic(err) // strings, numbers and maps of them
	}
	return fields.Set(object, string(data), "metadata", "annotations", v1alpha1.IntentAnnotation)
}

// removeIntent returns the patch that removes an object's intent.
func removeIntent(object *unstructured.Unstructured) fields.Patch {
	return fields.Remove(object, "metadata", "annotations", v1alpha1.IntentAnnotation)
}

// isPorticoKey tells whether a label or annotation is for Portico, not for the target.
func isPorticoKey(key string) bool {
	return strings.HasPrefix(key, v1alpha1.Group+"/")
}
