package scope

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/reconciler"
)

// HasDependencies tells whether a resource has dependencies, or had dependencies before.
func (s *Scope) HasDependencies() bool {
	return len(plan.DependenciesOf(s.Resource)) > 0 || s.HasCopies() ||
		meta.FindStatusCondition(s.Resource.Status.Conditions, v1alpha1.DependenciesReady) != nil
}

// HasCopies tells whether a resource has copies, or had copies before.
func (s *Scope) HasCopies() bool {
	return slices.ContainsFunc(plan.DependenciesOf(s.Resource), IsCopied) ||
		meta.FindStatusCondition(s.Resource.Status.Conditions, v1alpha1.SecretsReady) != nil
}

// SetDependenciesReady reports that all dependencies of the object are on the target.
func (s *Scope) SetDependenciesReady() {
	if len(s.Dependencies) == 0 {
		return
	}
	s.SetCondition(v1alpha1.DependenciesReady, metav1.ConditionTrue, v1alpha1.ReasonApplied, plan.DependenciesReadyMessage(s.Desired, s.Target.Name, s.Dependencies))
	s.SetSecretsReady()
}

// SetSecretsReady reports that the Secrets and ConfigMaps of the object are on the target.
func (s *Scope) SetSecretsReady() {
	if slices.ContainsFunc(s.Dependencies, func(d plan.Dependency) bool { return HasContent(d.Dependency) }) {
		s.SetCondition(v1alpha1.SecretsReady, metav1.ConditionTrue, v1alpha1.ReasonApplied,
			fmt.Sprintf("the Secrets and ConfigMaps of %s %s are on target %s", s.Desired.GetKind(), s.Desired.GetName(), s.Target.Name))
	}
}

// CopyError distinguishes the refusal of a copy, which is a problem for users, from an
// error of the connection.
func (s *Scope) CopyError(d *plan.Dependency, err error) (reason, problem string, _ error) {
	if clusters.IsUnreachable(err) || errors.Is(err, clusters.ErrFenced) || reconciler.IsEnd(err) {
		return "", "", s.ProbeIfUnreachable(err)
	}
	message := plan.ErrorMessage(err)
	return v1alpha1.ReasonRefused, fmt.Sprintf("target %s refused %s %s: %s", s.Target.Name, d.Kind, d.CopyName, message),
		fmt.Errorf("applying %s to target %s: %s", d.Kind, s.Target.Name, message)
}

// IsCopied tells whether a dependency is sent as a copy.
func IsCopied(d v1alpha1.Dependency) bool { return !d.Shared }

// HasContent tells whether a dependency is a Secret or ConfigMap.
func HasContent(d v1alpha1.Dependency) bool { return kinds.HasContent(kinds.DependencyKind(d.Kind)) }
