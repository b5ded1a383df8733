package packs

import (
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/portico-io/portico/api/resourcepacks/v1alpha1"
)

// tierCost is the cost limit of one evaluation.
const tierCost = 100_000

var tierEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	set, err := environment.MustBaseEnvSet(version.MajorMinor(1, 34)).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable("self", cel.DynType)},
	})
	if err != nil {
		return nil, err
	}
	return set.Env(environment.NewExpressions)
})

// tier returns the folder of the first tier whose expression is true for an instance,
// or resources.
func tier(pack *v1alpha1.ResourcePack, instance *unstructured.Unstructured) (string, Problems) {
	var problems Problems
	for i, t := range pack.Spec.Tiers {
		field := fmt.Sprintf("spec.tiers[%d].when", i)
		program, err := compileTier(t.When)
		if err != nil {
			problems.add(PackFile, 0, field, "%v", err)
			return "", problems
		}
		result, _, err := program.Eval(map[string]any{"self": instance.Object})
		if err != nil {
			problems.add(PackFile, 0, field, "%v", err)
			return "", problems
		}
		if result.Value() == true {
			return strings.TrimSuffix(t.Path, "/"), nil
		}
	}
	return resourcesFolder, nil
}

func compileTier(expression string) (cel.Program, error) {
	env, err := tierEnvironment()
	if err != nil {
		return nil, fmt.Errorf("preparing CEL: %w", err)
	}
	tree, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	if !tree.OutputType().IsExactType(cel.BoolType) {
		return nil, fmt.Errorf("the expression gives %s, and must give true or false", tree.OutputType())
	}
	return env.Program(tree, cel.CostLimit(tierCost))
}
