package webhooks

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/references"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// roleWarnings returns a warning of the RoleBindings of the ServiceAccount of an object's
// Pods that stay on the hub, if nobody decided about them. It reads the cache alone.
func roleWarnings(cache *cacheLookup, q nativeRequest) []string {
	account := references.ServiceAccount(q.object)
	if account == "" || account == kinds.DefaultServiceAccount || policies.DecidesAboutRBAC(q.object, cache.namespaceMeta()) {
		return nil
	}
	bindings := cache.roleBindings(account)
	if len(bindings) == 0 {
		return nil
	}
	return []string{shorten(fmt.Sprintf(
		"%s: ServiceAccount %s has no rights of RoleBinding %s on the target; annotate %s %s, or its namespace, with %s=true to send its Roles",
		references.ServiceAccountField(q.object), account, strings.Join(bindings, ", "), q.object.GetKind(), q.object.GetName(), v1alpha1.WithRBACAnnotation))}
}

// roleBindings returns the names of the RoleBindings that bind a Role to a ServiceAccount of
// the namespace, in order. An error is no reason for a warning.
func (l *cacheLookup) roleBindings(account string) []string {
	var list rbacv1.RoleBindingList
	if err := l.reader.List(l.ctx, &list, client.InNamespace(l.namespace), client.UnsafeDisableDeepCopy,
		client.MatchingFields{policies.SubjectIndex: account}); err != nil {
		return nil
	}
	var out []string
	for i := range list.Items {
		if binding := &list.Items[i]; kinds.BindsRole(binding) {
			out = append(out, binding.Name)
		}
	}
	slices.Sort(out)
	return out
}
