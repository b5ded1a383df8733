package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// Shipped returns the policies that are part of Portico, by name. They are indented
// with spaces, because kubectl shows a text with tabs as one long quoted line, which is
// hard to edit.
func Shipped() ([]*policyv1alpha1.Policy, error) {
	out, err := Load(policies.Files)
	for _, policy := range out {
		for file, source := range policy.Spec.Modules {
			policy.Spec.Modules[file] = indentWithSpaces(source)
		}
	}
	return out, err
}

func indentWithSpaces(source string) string {
	lines := strings.Split(source, "\n")
	for i, line := range lines {
		text := strings.TrimLeft(line, "\t")
		lines[i] = strings.Repeat("    ", len(line)-len(text)) + text
	}
	return strings.Join(lines, "\n")
}

// Load reads policies from a tree of files, by name; see Assemble.
func Load(files fs.FS) ([]*policyv1alpha1.Policy, error) {
	text := map[string]string{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".rego" {
			return err
		}
		source, err := fs.ReadFile(files, name)
		text[name] = string(source)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading policies: %w", err)
	}
	assembled, err := Assemble(text)
	out := make([]*policyv1alpha1.Policy, 0, len(assembled))
	for _, a := range assembled {
		out = append(out, a.Policy)
	}
	return out, err
}

// Assembled is a policy from files.
type Assembled struct {
	// Policy is the policy.
	Policy *policyv1alpha1.Policy
	// Files are the paths of its modules.
	Files map[string]string
}

// Assemble makes policies of Rego files, given by path, sorted by name. One file
// of rules is one policy, and the file next to it that ends in _test.rego is its
// tests. The first part of the package is the type, and the package's metadata has
// the rest of the spec:
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
func Assemble(files map[string]string) ([]Assembled, error) {
	byName := map[string]Assembled{}
	tests := map[string]bool{}
	var problems []error
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if isTest(file) {
			tests[file] = true
			continue
		}
		policy, err := readPolicy(file, files[file])
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if other, taken := byName[policy.Name]; taken {
			problems = append(problems, fmt.Errorf("%s and %s are both policy %s; rename one of them", other.rules(), file, policy.Name))
			continue
		}
		byName[policy.Name] = Assembled{Policy: policy, Files: map[string]string{path.Base(file): file}}
	}
	out := make([]Assembled, 0, len(byName))
	for _, a := range byName {
		test := strings.TrimSuffix(a.rules(), ".rego") + "_test.rego"
		if tests[test] {
			a.Policy.Spec.Modules[path.Base(test)], a.Files[path.Base(test)] = files[test], test
		}
		out = append(out, a)
	}
	for test := range tests {
		subject := strings.TrimSuffix(test, "_test.rego") + ".rego"
		if _, ok := files[subject]; !ok {
			problems = append(problems, fmt.Errorf("%s tests nothing: there is no %s", test, subject))
		}
	}
	if len(problems) > 0 {
		slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
		return nil, fmt.Errorf("reading policies: %w", errors.Join(problems...))
	}
	slices.SortFunc(out, func(a, b Assembled) int { return strings.Compare(a.Policy.Name, b.Policy.Name) })
	return out, nil
}

// rules returns the path of the file with the rules.
func (a Assembled) rules() string {
	for _, file := range a.Files {
		if !isTest(file) {
			return file
		}
	}
	return ""
}

// readPolicy returns the policy of one file. A file with syntax errors is a policy too,
// so that its problems are reported.
func readPolicy(name, source string) (*policyv1alpha1.Policy, error) {
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

// typeOf returns the type of a policy: the first part of its package, or else its
// directory.
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
