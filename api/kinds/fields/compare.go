package fields

import (
	"bytes"
	"reflect"

	"k8s.io/apimachinery/pkg/util/json"
)

// EqualJSON tells whether two documents have equal values. Order and spacing do not
// matter. Whole numbers are compared to the last digit. A text that is not JSON equals
// only itself.
func EqualJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}
