// Argocd reads objects from its standard input, as JSON, and writes for each the state that
// Argo CD shows. It is a module of its own: the library of Argo CD does not build with the
// version of Kubernetes that Portico builds with.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	scripts "github.com/argoproj/argo-cd/v3/resource_customizations"
	"github.com/argoproj/gitops-engine/pkg/diff"
	"github.com/argoproj/gitops-engine/pkg/health"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	luajson "layeh.com/gopher-json"
)

func main() {
	if err := assess(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// question is an object of a cluster, and its manifest; without a manifest it is not
// compared.
type question struct {
	Object, Manifest *unstructured.Unstructured
}

// state is what Argo CD shows of an object.
type state struct {
	// Health is nil for an object of a kind that has none.
	Health *health.HealthStatus
	// Difference is empty, or the object as it is and as a sync would change it.
	Difference []json.RawMessage
}

func assess(questions io.Reader, states io.Writer) error {
	in, out := json.NewDecoder(questions), json.NewEncoder(states)
	for {
		var of question
		if err := in.Decode(&of); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading an object: %w", err)
		}
		is, err := stateOf(of)
		if err != nil {
			return fmt.Errorf("assessing %s %s: %w", of.Object.GetKind(), of.Object.GetName(), err)
		}
		if err := out.Encode(is); err != nil {
			return fmt.Errorf("writing a state: %w", err)
		}
	}
}

func stateOf(of question) (state, error) {
	var out state
	var err error
	if out.Health, err = health.GetResourceHealth(of.Object, scripted{}); err != nil || of.Manifest == nil {
		return out, err
	}
	result, err := diff.Diff(of.Manifest, of.Object)
	if err == nil && result.Modified {
		out.Difference = []json.RawMessage{result.NormalizedLive, result.PredictedLive}
	}
	return out, err
}

// scripted runs the health rules that Argo CD has as scripts. They come before the other
// rules.
type scripted struct{}

// GetResourceHealth implements health.HealthOverride. It returns nil for a kind without a
// script.
func (scripted) GetResourceHealth(object *unstructured.Unstructured) (*health.HealthStatus, error) {
	gvk := object.GroupVersionKind()
	script, err := scripts.Embedded.ReadFile(path.Join(gvk.Group, gvk.Kind, "health.lua"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	raw, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	state := lua.NewState()
	defer state.Close()
	input, err := luajson.Decode(state, raw)
	if err != nil {
		return nil, err
	}
	state.SetGlobal("obj", input)
	if err := state.DoString(string(script)); err != nil {
		return nil, err
	}
	output, err := luajson.Encode(state.Get(-1))
	if err != nil {
		return nil, err
	}
	result := &health.HealthStatus{}
	return result, json.Unmarshal(output, result)
}
