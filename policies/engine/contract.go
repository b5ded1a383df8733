package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
)

// contractErr is the code of a problem with the outputs of a policy.
const contractErr = "policy_contract_error"

// entryPoints are the rules that are evaluated, by type of policy. All other rules are
// helpers.
var entryPoints = map[policyv1alpha1.PolicyType][]string{
	policyv1alpha1.Scheduling: {"deny", "exclude", "require", "score", "warn"},
	policyv1alpha1.Publish:    {"deny", "warn"},
}

// allEntryPoints are the entry points of any type.
var allEntryPoints = entryPoints[policyv1alpha1.Scheduling]

// The first part of a package's path, by type of policy.
var roots = map[policyv1alpha1.PolicyType]string{
	policyv1alpha1.Scheduling: "scheduling",
	policyv1alpha1.Publish:    "publish",
	policyv1alpha1.Library:    "lib",
}

// otherEngineRules maps entry points of other policy engines to the rule of Portico.
var otherEngineRules = map[string]string{
	"allow":      "a policy can only tighten: write deny",
	"allowed":    "a policy can only tighten: write deny",
	"violation":  "did you mean deny?",
	"violations": "did you mean deny?",
	"denied":     "did you mean deny?",
	"warning":    "did you mean warn?",
	"warnings":   "did you mean warn?",
}

// checkPackages checks that all modules of a policy are in one package, with the path
// that its type requires.
func checkPackages(t policyv1alpha1.PolicyType, m modules, text sources) (pkg ast.Ref, problems []Problem) {
	files := make([]string, 0, len(m))
	for file := range m {
		files = append(files, file)
	}
	// Modules with rules are first: they define the package.
	slices.SortFunc(files, func(a, b string) int {
		if isTest(a) != isTest(b) {
			if isTest(a) {
				return 1
			}
			return -1
		}
		return strings.Compare(a, b)
	})
	for _, file := range files {
		path := m[file].Package.Path
		location := m[file].Package.Location
		var names []string
		for _, part := range path[1:] {
			name, _ := part.Value.(ast.String)
			names = append(names, string(name))
		}
		switch {
		case len(names) < 2 || names[0] != roots[t]:
			problems = append(problems, text.problemAt(location, contractErr,
				"package %s: the package of a %s policy is %s.<name>", strings.Join(names, "."), t, roots[t]))
		case isTest(file):
			names[len(names)-1] = strings.TrimSuffix(names[len(names)-1], "_test")
			if pkg != nil && !path.Equal(pkg) && strings.Join(names, ".") != packageName(pkg) {
				problems = append(problems, text.problemAt(location, contractErr,
					"package %s: the tests of package %s are in it, or in %s_test", packageName(path), packageName(pkg), packageName(pkg)))
			}
		case pkg == nil:
			pkg = path
		case !path.Equal(pkg):
			problems = append(problems, text.problemAt(location, contractErr,
				"package %s: the modules of one policy are one package, here %s", packageName(path), packageName(pkg)))
		}
	}
	return pkg, problems
}

// packageName formats the path of a package as in a module.
func packageName(path ast.Ref) string {
	return strings.TrimPrefix(path.String(), "data.")
}

// checkNames finds rules that look like an entry point and are none, which would not be
// evaluated. It also finds entry points of the wrong form.
func checkNames(t policyv1alpha1.PolicyType, m modules, text sources) []Problem {
	if t == policyv1alpha1.Library {
		return nil
	}
	var problems []Problem
	found := false
	var anywhere *ast.Location
	for file, module := range m.rules() {
		if anywhere == nil || file < anywhere.File {
			anywhere = module.Package.Location
		}
		seen := map[string]bool{} // the names of helpers
		for _, rule := range module.Rules {
			switch name := ruleName(rule); {
			case name == "" || seen[name]:
			case slices.Contains(entryPoints[t], name):
				found = true
				if why := wrongForm(name, rule); why != "" {
					problems = append(problems, text.problemAt(rule.Location, contractErr, "%s", why))
				}
			default:
				seen[name] = true
				why, intended := unreadRule(t, name)
				found = found || intended
				if why != "" {
					problems = append(problems, text.problemAt(rule.Location, contractErr, "%s", why))
				}
			}
		}
	}
	if !found && len(m.rules()) > 0 {
		problems = append(problems, text.problemAt(anywhere, contractErr,
			"the policy decides nothing: it defines none of %s", strings.Join(entryPoints[t], ", ")))
	}
	return problems
}

// unreadRule returns the problem of a rule whose name looks like an entry point; empty
// for a helper. intended means that the author meant an entry point of this type of
// policy.
func unreadRule(t policyv1alpha1.PolicyType, name string) (why string, intended bool) {
	if slices.Contains(allEntryPoints, name) {
		return fmt.Sprintf("rule %q is never read: a %s policy answers %s", name, t, strings.Join(entryPoints[t], " and ")), false
	}
	lower := strings.ToLower(name)
	if hint, ok := otherEngineRules[lower]; ok {
		return fmt.Sprintf("rule %q is never read; %s", name, hint), true
	}
	for _, entry := range entryPoints[t] {
		if oneSlipApart(lower, entry) {
			return fmt.Sprintf("rule %q is never read; did you mean %s?", name, entry), true
		}
	}
	return "", false
}

func ruleName(rule *ast.Rule) string {
	ref := rule.Head.Ref()
	if len(ref) == 0 {
		return ""
	}
	switch name := ref[0].Value.(type) {
	case ast.Var:
		return string(name)
	case ast.String:
		return string(name)
	}
	return ""
}

// wrongForm returns the reason why a rule cannot be an entry point; empty if it can.
// Only sets and partial objects can be entry points, because they have no conflicts.
func wrongForm(name string, rule *ast.Rule) string {
	head := rule.Head
	switch {
	case len(head.Args) > 0:
		return fmt.Sprintf("%s must not be a function; write %s", name, example(name))
	case name == "score":
		if head.Key != nil && head.Value == nil || len(head.Ref()) != 2 {
			return "score must be an object of numbers by target; write " + example(name)
		}
	case rule.Default, head.DocKind() == ast.CompleteDoc, head.Key == nil, len(head.Ref()) != 1:
		return fmt.Sprintf("%s must be a partial set; write %s", name, example(name))
	}
	return ""
}

func example(name string) string {
	switch name {
	case "score":
		return "score[target] := 0..100 if ..."
	case "require":
		return `require contains {"key": ..., "operator": "In", "values": [...]} if ...`
	case "exclude":
		return `exclude contains {"target": ..., "code": ..., "msg": ...} if ...`
	default:
		return name + ` contains {"code": ..., "msg": ...} if ...`
	}
}

// oneSlipApart tells whether two names differ by one letter: added, missing, replaced,
// or swapped with its neighbour.
func oneSlipApart(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch len(b) - len(a) {
	case 0:
		if i == len(a) || a[i+1:] == b[i+1:] {
			return true
		}
		return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
	case 1:
		return a[i:] == b[i+1:]
	default:
		return false
	}
}

// elementShape lists the keys of one element in the set of an entry point.
type elementShape struct{ required, optional []string }

var elementShapes = map[string]elementShape{
	"deny":    {required: []string{"code", "msg"}, optional: []string{"field"}},
	"warn":    {required: []string{"code", "msg"}, optional: []string{"field"}},
	"exclude": {required: []string{"code", "msg", "target"}},
	"require": {required: []string{"key", "operator"}, optional: []string{"values"}},
}

// checkType compares an inferred type with the contract. A value of type any is checked
// during evaluation.
func checkType(name string, t types.Type) []string {
	if name == "score" {
		object, ok := t.(*types.Object)
		if !ok {
			return []string{fmt.Sprintf("score must be an object of numbers by target, got %v", t)}
		}
		var problems []string
		for _, p := range object.StaticProperties() {
			problems = append(problems, numberProblem(p.Value)...)
		}
		if d := object.DynamicProperties(); d != nil {
			if !mayBe(d.Key, isString) {
				problems = append(problems, fmt.Sprintf("the key of score must be the name of a target, got %v", d.Key))
			}
			problems = append(problems, numberProblem(d.Value)...)
		}
		return problems
	}
	set, ok := t.(*types.Set)
	if !ok {
		return []string{fmt.Sprintf("%s must be a set, got %v; write %s", name, t, example(name))}
	}
	var problems []string
	for _, element := range alternatives(set.Of()) {
		problems = append(problems, checkElement(name, element)...)
	}
	return problems
}

func numberProblem(t types.Type) []string {
	if mayBe(t, func(t types.Type) bool { _, ok := t.(types.Number); return ok }) {
		return nil
	}
	return []string{fmt.Sprintf("score must be a number from 0 to 100, got %v", t)}
}

func checkElement(name string, t types.Type) []string {
	want := elementShapes[name]
	all := slices.Sorted(slices.Values(slices.Concat(want.required, want.optional)))
	object, ok := t.(*types.Object)
	if !ok {
		return []string{fmt.Sprintf("%s holds objects with %s, got %v", name, strings.Join(all, ", "), t)}
	}
	var problems []string
	have := map[string]bool{}
	for _, p := range object.StaticProperties() {
		key, _ := p.Key.(string)
		if !slices.Contains(all, key) {
			problems = append(problems, fmt.Sprintf("unknown key %q in %s, want one of %s", key, name, strings.Join(all, ", ")))
			continue
		}
		have[key] = true
		if key == "values" {
			if !mayBe(p.Value, isList) {
				problems = append(problems, fmt.Sprintf("key %q of %s must be an array of strings, got %v", key, name, p.Value))
			}
		} else if !mayBe(p.Value, isString) {
			problems = append(problems, fmt.Sprintf("key %q of %s must be a string, got %v", key, name, p.Value))
		}
	}
	if object.DynamicProperties() == nil {
		for _, key := range want.required {
			if !have[key] {
				problems = append(problems, fmt.Sprintf("key %q is missing in %s, which holds objects with %s", key, name, strings.Join(all, ", ")))
			}
		}
	}
	return problems
}

// alternatives returns the possible types of a value; none if the type is any.
func alternatives(t types.Type) []types.Type {
	if any, ok := t.(types.Any); ok {
		return any
	}
	if t == nil {
		return nil
	}
	return []types.Type{t}
}

// mayBe reports whether a value of a type can have a wanted type.
func mayBe(t types.Type, wanted func(types.Type) bool) bool {
	of := alternatives(t)
	return len(of) == 0 || slices.ContainsFunc(of, wanted)
}

func isString(t types.Type) bool { _, ok := t.(types.String); return ok }

func isList(t types.Type) bool {
	switch list := t.(type) {
	case *types.Set:
		return mayBe(list.Of(), isString)
	case *types.Array:
		for i := range list.Len() {
			if !mayBe(list.Select(i), isString) {
				return false
			}
		}
		return list.Dynamic() == nil || mayBe(list.Dynamic(), isString)
	}
	return false
}
