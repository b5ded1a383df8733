package kinds

import (
	"bytes"
	"reflect"

	"k8s.io/apimachinery/pkg/util/json"
)

// EqualJSON tells whether two documents say the same, in whatever order and
// spacing. Whole numbers are compared to the last digit. What is not JSON is
// the same as itself only.
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
