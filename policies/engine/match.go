package engine

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
)

// matcher selects the objects for which a policy is evaluated.
type matcher struct {
	namespaces, objects labels.Selector
	kinds               []string
}

func newMatcher(match *policyv1alpha1.PolicyMatch) (matcher, error) {
	out := matcher{namespaces: labels.Everything(), objects: labels.Everything()}
	if match == nil {
		return out, nil
	}
	var err error
	if match.NamespaceSelector != nil {
		if out.namespaces, err = metav1.LabelSelectorAsSelector(match.NamespaceSelector); err != nil {
			return out, fmt.Errorf("namespaceSelector: %w", err)
		}
	}
	if match.ObjectSelector != nil {
		if out.objects, err = metav1.LabelSelectorAsSelector(match.ObjectSelector); err != nil {
			return out, fmt.Errorf("objectSelector: %w", err)
		}
	}
	out.kinds = match.Kinds
	return out, nil
}

// subject holds the properties of an object that a matcher reads.
type subject struct {
	kind      string
	namespace labels.Set
	// object and old have the labels of the object now and before. A policy also matches
	// an update that removes a matching label.
	object, old labels.Set
}

func (m matcher) match(s subject) bool {
	if len(m.kinds) > 0 && !slices.Contains(m.kinds, s.kind) {
		return false
	}
	return m.namespaces.Matches(s.namespace) && (m.objects.Matches(s.object) || s.old != nil && m.objects.Matches(s.old))
}

func subjectOf(q Question) subject {
	s := subject{kind: q.Request.Kind.Kind}
	name := q.Request.Namespace
	object := func(o metav1.Object, kind string) {
		s.object = o.GetLabels()
		if s.kind == "" {
			s.kind = kind
		}
		if name == "" {
			name = o.GetNamespace()
		}
	}
	if q.Object != nil {
		object(q.Object, q.Object.GetKind())
	}
	if q.OldObject != nil {
		s.old = orEmptyMap(q.OldObject.GetLabels())
	}
	if q.Target != nil {
		object(q.Target, "KubernetesTarget")
	}
	if q.OldTarget != nil {
		s.old = orEmptyMap(q.OldTarget.Labels)
	}
	s.namespace = labels.Set{}
	if q.Namespace != nil {
		name = q.Namespace.Name
		s.namespace = labels.Merge(s.namespace, q.Namespace.Labels)
	}
	s.namespace[corev1.LabelMetadataName] = name
	return s
}

func orEmptyMap(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
