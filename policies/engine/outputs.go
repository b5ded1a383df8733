package engine

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
)

// checkOutputs compares the types of a policy's entry points with the contract. The
// compiler infers one type for all rules of a name. If the type is wrong, each rule is
// compiled alone to find the wrong one.
func checkOutputs(t policyv1alpha1.PolicyType, pkg ast.Ref, c *compiler, m, libraries modules, text sources) []Problem {
	var problems []Problem
	for _, name := range entryPoints[t] {
		ref := pkg.Append(ast.StringTerm(name))
		if len(c.GetRulesExact(ref)) == 0 && len(c.GetRulesForVirtualDocument(ref)) == 0 && len(c.GetRulesWithPrefix(ref)) == 0 {
			continue
		}
		rules := rulesNamed(m, name)
		malformed := slices.ContainsFunc(rules, func(rule *ast.Rule) bool { return wrongForm(name, rule) != "" })
		if malformed || !c.Failed() && len(checkType(name, c.TypeEnv.GetByRef(ref))) == 0 {
			continue // checkNames reports the problem, or there is none
		}
		before := len(problems)
		for _, rule := range rules {
			alone := newCompiler(t)
			if len(alone.compile(withOnlyRule(m, name, rule).with(libraries), text)) > 0 {
				continue // a helper reads the entry point; tests and evaluations find the mistake
			}
			for _, why := range checkType(name, alone.TypeEnv.GetByRef(ref)) {
				problems = append(problems, text.problemAt(rule.Location, contractErr, "%s", why))
			}
		}
		if len(problems) == before && len(rules) > 0 && !c.Failed() {
			for _, why := range checkType(name, c.TypeEnv.GetByRef(ref)) {
				problems = append(problems, text.problemAt(rules[0].Location, contractErr, "%s", why))
			}
		}
	}
	return problems
}

func rulesNamed(m modules, name string) []*ast.Rule {
	var rules []*ast.Rule
	for _, module := range m {
		for _, rule := range module.Rules {
			if ruleName(rule) == name {
				rules = append(rules, rule)
			}
		}
	}
	slices.SortFunc(rules, func(a, b *ast.Rule) int { return a.Location.Compare(b.Location) })
	return rules
}

// withOnlyRule returns the modules with only one rule of a name.
func withOnlyRule(m modules, name string, keep *ast.Rule) modules {
	out := modules{}
	for file, module := range m {
		trimmed := *module
		trimmed.Rules = slices.DeleteFunc(slices.Clone(module.Rules), func(rule *ast.Rule) bool {
			return ruleName(rule) == name && rule != keep
		})
		out[file] = &trimmed
	}
	return out
}

// checkNegation warns of `not` with an operand that may be undefined. In Rego v1, `not
// f(x)` is false if x is undefined, so a deny rule with it does not deny.
func checkNegation(m modules, text sources) []Problem {
	var problems []Problem
	for file, module := range m {
		if isTest(file) || slices.ContainsFunc(module.Imports, fixesNegation) {
			continue
		}
		var first *ast.Expr
		ast.WalkExprs(module, func(expr *ast.Expr) bool {
			if expr.Negated && first == nil {
				first = expr
			}
			return false
		})
		if first != nil {
			problems = append(problems, text.problemAt(first.Location, "policy_negation",
				"`not` is false if its operand has an undefined argument, such as a missing label; import rego.v2"))
		}
	}
	return problems
}

func fixesNegation(i *ast.Import) bool {
	path := i.Path.Value.String()
	return path == "rego.v2" || path == "future.keywords.not"
}
