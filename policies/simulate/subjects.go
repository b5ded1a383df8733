package simulate

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/kinds"
	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
	"github.com/portico-io/portico/policies/targetselection"
)

// Subject is one existing object with its question for policies.
type Subject struct {
	Kind, Namespace, Name string
	Question              engine.Question
}

func (s Subject) String() string { return s.Kind + " " + s.Namespace + "/" + s.Name }

// auditRequest is the request in the input of an audit. It has no user.
var auditRequest = input.Request{Operation: decisions.AuditOperation}

// Subjects returns the existing objects that policies of a type are asked about,
// by namespace and name. These are:
//   - for Publish, targets;
//   - for Scheduling, native objects that run on a target, resources that no
//     native object controls, and templates of applications that have no resource
//     yet.
//
// An object that is being deleted is no subject, nor is one in a namespace that
// does not exist or in Portico's own, nor one with a malformed membership, which
// validation refuses.
func (s *Snapshot) Subjects(t policyv1alpha1.PolicyType) []Subject {
	var out []Subject
	switch t {
	case policyv1alpha1.Scheduling:
		out = s.schedulingSubjects()
	case policyv1alpha1.Publish:
		out = s.publishSubjects()
	}
	slices.SortStableFunc(out, func(a, b Subject) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

// exempt tells whether a namespace is Portico's own, for which no policies are
// evaluated.
func (s *Snapshot) exempt(namespace string) bool {
	return namespace != "" && namespace == s.AllowDefaults.PorticoNamespace
}

func (s *Snapshot) publishSubjects() []Subject {
	var out []Subject
	namespaces := s.indexNamespaces()
	for i := range s.Targets {
		target := &s.Targets[i]
		namespace, exists := namespaces[target.Namespace]
		if !exists || target.DeletionTimestamp != nil {
			continue
		}
		out = append(out, Subject{
			Kind: "KubernetesTarget", Namespace: target.Namespace, Name: target.Name,
			Question: decisions.PublishQuestion(auditRequest, target, nil, namespace.Namespace, s.Targets),
		})
	}
	return out
}

func (s *Snapshot) schedulingSubjects() []Subject {
	namespaces := s.indexNamespaces()
	return slices.Concat(s.nativeSubjects(namespaces), s.resourceSubjects(namespaces), s.templateSubjects(namespaces))
}

// nativeSubjects returns the native objects that run on a target.
func (s *Snapshot) nativeSubjects(namespaces map[string]*indexedNamespace) []Subject {
	var out []Subject
	for _, native := range s.Objects {
		namespace, exists := namespaces[native.GetNamespace()]
		if !exists || !kinds.IsRemote(native) || native.GetDeletionTimestamp() != nil {
			continue
		}
		member, malformed := policies.MembershipOf(native, namespace.Namespace)
		if len(malformed) > 0 {
			continue
		}
		if question, ok := namespace.question(native, member.WithApplication(namespace.applications[member.Application])); ok {
			out = append(out, Subject{Kind: native.GetKind(), Namespace: native.GetNamespace(), Name: native.GetName(), Question: question})
		}
	}
	return out
}

// resourceSubjects returns the resources that no native object controls.
func (s *Snapshot) resourceSubjects(namespaces map[string]*indexedNamespace) []Subject {
	var out []Subject
	for i := range s.Resources {
		resource := &s.Resources[i]
		namespace, exists := namespaces[resource.Namespace]
		if !exists || resource.Labels[v1alpha1.FrontDoorLabel] == v1alpha1.FrontDoor || resource.DeletionTimestamp != nil {
			continue // the native object of a front-door resource is the subject
		}
		object := policies.TemplateObject(resource.Spec.Template)
		if question, ok := namespace.question(object, namespace.membershipOfResource(resource)); ok {
			out = append(out, Subject{Kind: "KubernetesApplicationResource", Namespace: resource.Namespace, Name: resource.Name, Question: question})
		}
	}
	return out
}

// templateSubjects returns the templates of applications that have no resource yet.
func (s *Snapshot) templateSubjects(namespaces map[string]*indexedNamespace) []Subject {
	resources := map[types.NamespacedName]bool{}
	for i := range s.Resources {
		resources[types.NamespacedName{Namespace: s.Resources[i].Namespace, Name: s.Resources[i].Name}] = true
	}
	var out []Subject
	for _, app := range s.Applications {
		namespace, exists := namespaces[app.Namespace]
		if !exists || app.DeletionTimestamp != nil {
			continue
		}
		for _, template := range app.Spec.ResourceTemplates {
			if resources[types.NamespacedName{Namespace: app.Namespace, Name: template.Metadata.Name}] {
				continue // the resource is the subject
			}
			object := policies.TemplateObject(template.Spec.Template)
			if question, ok := namespace.question(object, policies.Membership{Application: app.Name}.WithApplication(app)); ok {
				out = append(out, Subject{Kind: "KubernetesApplication", Namespace: app.Namespace, Name: app.Name, Question: question})
			}
		}
	}
	return out
}

// indexedNamespace holds the parts of a question that are the same for all objects of a
// namespace.
type indexedNamespace struct {
	*corev1.Namespace
	candidates   targetselection.Candidates
	applications map[string]*v1alpha2.KubernetesApplication
}

// indexNamespaces returns the namespaces that are not exempt, by name.
func (s *Snapshot) indexNamespaces() map[string]*indexedNamespace {
	out := map[string]*indexedNamespace{}
	for _, namespace := range s.Namespaces {
		if !s.exempt(namespace.Name) {
			out[namespace.Name] = &indexedNamespace{
				Namespace:    decisions.NamespaceFromMetadata(namespace.Name, namespace),
				candidates:   targetselection.Candidates{Placed: map[string]int{}, AllowDefaults: s.AllowDefaults},
				applications: map[string]*v1alpha2.KubernetesApplication{},
			}
		}
	}
	for _, target := range s.Targets {
		if n := out[target.Namespace]; n != nil {
			n.candidates.Targets = append(n.candidates.Targets, target)
		}
	}
	for _, app := range s.Applications {
		if n := out[app.Namespace]; n != nil {
			n.applications[app.Name] = app
		}
	}
	for i := range s.Resources {
		if n := out[s.Resources[i].Namespace]; n != nil && s.Resources[i].Spec.TargetRef != nil {
			n.candidates.Placed[s.Resources[i].Spec.TargetRef.Name]++
		}
	}
	return out
}

// question returns the question about an object of an application. ok is false if the
// object or the selector cannot be read.
func (n *indexedNamespace) question(object *unstructured.Unstructured, m policies.Membership) (question engine.Question, ok bool) {
	if object == nil {
		return question, false
	}
	q, err := n.candidates.ForMember(m)
	if err != nil {
		return question, false
	}
	app := input.Application{Name: m.Application, Target: m.Target}
	return decisions.NewSchedulingContext(n.Namespace, app, q).Question(auditRequest, object, nil), true
}

// membershipOfResource returns the membership of a resource. The selector of an
// application takes precedence over that of a member.
func (n *indexedNamespace) membershipOfResource(resource *v1alpha1.KubernetesApplicationResource) policies.Membership {
	m := policies.Membership{Application: resource.Labels[v1alpha1.ApplicationLabel], Selector: resource.Spec.TargetSelector}
	if app := n.applications[m.Application]; app != nil {
		m = policies.Membership{Application: app.Name}.WithApplication(app)
	}
	if resource.Spec.TargetRef != nil {
		m.Target = resource.Spec.TargetRef.Name
	}
	return m
}

// NativeFromMetadata returns a Secret or ConfigMap without its content, as
// policies see it.
func NativeFromMetadata(kind kinds.Kind, metadata *metav1.PartialObjectMetadata) *unstructured.Unstructured {
	out := kinds.New(kind)
	out.SetNamespace(metadata.Namespace)
	out.SetName(metadata.Name)
	out.SetUID(metadata.UID)
	out.SetLabels(metadata.Labels)
	out.SetAnnotations(metadata.Annotations)
	out.SetCreationTimestamp(metadata.CreationTimestamp)
	out.SetDeletionTimestamp(metadata.DeletionTimestamp)
	return out
}
