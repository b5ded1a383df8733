package engine

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// Shipped returns the policies that Portico brings, by name.
func Shipped() ([]*policyv1alpha1.Policy, error) {
	return Load(policies.Files)
}

// Load reads policies from a tree of files, by name. One file of rules is one
// policy, and the file next to it that ends in _test.rego is its tests. The
// first part of the package says the type, and the package's metadata the rest
// of the spec:
//
//	# METADATA
//	# scope: package
//	# custom:
//	#   policy:
//	#     action: Audit
//	#     parameters: {max: 3}
//	package scheduling.quota
//
// A policy is named after its file; a library after its file, with lib- before.
func Load(files fs.FS) ([]*policyv1alpha1.Policy, error) {
	byName := map[string]*policyv1alpha1.Policy{}
	tests := map[string]string{}
	directories := map[string]string{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".rego" {
			return err
		}
		source, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if isTest(name) {
			tests[name] = string(source)
			return nil
		}
		policy, err := read(name, string(source))
		if err != nil {
			return err
		}
		if other, taken := directories[policy.Name]; taken {
			return fmt.Errorf("%s and %s are both policy %s", other, name, policy.Name)
		}
		byName[policy.Name], directories[policy.Name] = policy, name
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading policies: %w", err)
	}
	out := make([]*policyv1alpha1.Policy, 0, len(byName))
	for name, policy := range byName {
		test := strings.TrimSuffix(directories[name], ".rego") + "_test.rego"
		if source, ok := tests[test]; ok {
			policy.Spec.Modules[path.Base(test)] = source
			delete(tests, test)
		}
		out = append(out, policy)
	}
	for name := range tests {
		return nil, fmt.Errorf("reading policies: %s tests nothing: there is no %s.rego", name, strings.TrimSuffix(name, "_test.rego"))
	}
	slices.SortFunc(out, func(a, b *policyv1alpha1.Policy) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// read makes a policy of one file. One that does not parse is a policy as well,
// so that its problems are told like all others.
func read(name, source string) (*policyv1alpha1.Policy, error) {
	stem := strings.ReplaceAll(strings.TrimSuffix(path.Base(name), ".rego"), "_", "-")
	policy := &policyv1alpha1.Policy{
		TypeMeta:   metav1.TypeMeta{APIVersion: policyv1alpha1.GroupVersion.String(), Kind: "Policy"},
		ObjectMeta: metav1.ObjectMeta{Name: stem},
		Spec:       policyv1alpha1.PolicySpec{Type: typeOf(name, nil)},
	}
	if module, err := ast.ParseModuleWithOpts(name, source, ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true}); err == nil && module != nil {
		policy.Spec.Type = typeOf(name, module)
		for _, annotation := range module.Annotations {
			custom, ok := annotation.Custom["policy"]
			if annotation.Scope != "package" || !ok {
				continue
			}
			encoded, err := json.Marshal(custom)
			if err != nil {
				return nil, fmt.Errorf("%s: metadata: %w", name, err)
			}
			decoder := json.NewDecoder(strings.NewReader(string(encoded)))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&policy.Spec); err != nil {
				return nil, fmt.Errorf("%s: metadata: custom.policy: %w", name, err)
			}
		}
	}
	if policy.Spec.Type == policyv1alpha1.Library {
		policy.Name = "lib-" + stem
	}
	setDefaults(&policy.Spec)
	policy.Spec.Modules = map[string]string{path.Base(name): source}
	return policy, nil
}

// typeOf reads a policy's type off its package, or else its directory.
func typeOf(name string, module *ast.Module) policyv1alpha1.PolicyType {
	root := path.Base(path.Dir(name))
	if module != nil && len(module.Package.Path) > 1 {
		if text, ok := module.Package.Path[1].Value.(ast.String); ok {
			root = string(text)
		}
	}
	for t, want := range roots {
		if root == want {
			return t
		}
	}
	return policyv1alpha1.Scheduling
}
