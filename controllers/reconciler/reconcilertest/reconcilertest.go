// Package reconcilertest has what the tests of reconcilers share: a fake hub whose
// requests are recorded or fail, the steps that ran, and the events that were emitted.
package reconcilertest

import (
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// Scheme returns a scheme with the types that the functions add.
func Scheme(t testing.TB, add ...func(*runtime.Scheme) error) *runtime.Scheme {
	t.Helper()
	scheme, builder := runtime.NewScheme(), runtime.NewSchemeBuilder(add...)
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// Steps returns a log that appends to names the name of each step that runs.
func Steps(names *[]string) logr.Logger {
	return funcr.New(func(_, entry string) {
		if _, step, found := strings.Cut(entry, `"step"="`); found {
			step, _, _ = strings.Cut(step, `"`)
			*names = append(*names, step)
		}
	}, funcr.Options{Verbosity: 4})
}

// NextEvent returns the next event that was emitted; "" for none.
func NextEvent(recorder *events.FakeRecorder) string {
	select {
	case event := <-recorder.Events:
		return event
	default:
		return ""
	}
}
