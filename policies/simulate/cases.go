package simulate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
)

// Case is one applied object with its question for policies.
type Case struct {
	// Object is the applied object, or a template of it.
	Object *unstructured.Unstructured
	// Parent names the KubernetesApplication or KubernetesApplicationResource with the
	// object as a template; empty for other objects.
	Parent string
	// Skipped is the reason why no policy is evaluated; empty if policies are.
	Skipped string
	// Refused holds the validation errors of the object.
	Refused field.ErrorList
	// Question for the policies.
	Question engine.Question
	// Member is the membership of an object that is sent to a target; nil for any
	// other object.
	Member *Member

	order int
}

// Member is the membership of an object in an application.
type Member struct {
	Namespace string
	policies.Membership
	allowItem policies.AllowItem
	isNew     bool
}

// Cases returns one case for each applied object, or template of it, in order. It
// adds the namespaces, targets and applications among the objects to the snapshot
// first, so that their order does not matter.
func Cases(s *Snapshot, request input.Request, objects ...*unstructured.Unstructured) ([]Case, error) {
	var out []Case
	var rest []int
	for i, object := range objects {
		var found []Case
		var err error
		switch object.GroupVersionKind().GroupKind() {
		case corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind():
			err = s.applyNamespace(object)
			found = []Case{{Object: object, Skipped: "policies are evaluated for the objects in it"}}
		case v1alpha1.GroupVersion.WithKind("KubernetesTarget").GroupKind():
			found, err = s.publish(request, object)
		case v1alpha2.GroupVersion.WithKind("KubernetesApplication").GroupKind():
			err = s.applyApplication(object)
			rest = append(rest, i)
		default:
			rest = append(rest, i)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", DisplayName(object), err)
		}
		out = appendInOrder(out, i, found...)
	}
	for _, i := range rest {
		found, err := s.cases(request, objects[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", DisplayName(objects[i]), err)
		}
		out = appendInOrder(out, i, found...)
	}
	for i := range out {
		if out[i].Question.Type != "" && s.exempt(out[i].Question.Request.Namespace) {
			out[i].Question, out[i].Skipped = engine.Question{}, "policies are not evaluated for Portico's own namespace"
		}
	}
	slices.SortStableFunc(out, func(a, b Case) int { return cmp.Compare(a.order, b.order) })
	return out, nil
}

func appendInOrder(out []Case, order int, found ...Case) []Case {
	for _, c := range found {
		c.order = order
		out = append(out, c)
	}
	return out
}

// DisplayName names an object, such as Deployment shop/web.
func DisplayName(object *unstructured.Unstructured) string {
	name := cmp.Or(object.GetName(), object.GetGenerateName()+"*")
	if namespace := object.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return object.GetKind() + " " + name
}

func decodeInto(object *unstructured.Unstructured, typed any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true)
}

func (s *Snapshot) applyNamespace(object *unstructured.Unstructured) error {
	namespace := &corev1.Namespace{}
	if err := decodeInto(object, namespace); err != nil {
		return err
	}
	s.Namespaces = append(slices.DeleteFunc(slices.Clone(s.Namespaces), func(n *corev1.Namespace) bool { return n.Name == namespace.Name }), namespace)
	return nil
}

func (s *Snapshot) applyApplication(object *unstructured.Unstructured) error {
	app := &v1alpha2.KubernetesApplication{}
	if err := decodeInto(object, app); err != nil {
		return err
	}
	if old := s.application(app.Namespace, app.Name); old != nil && app.Spec.TargetRef == nil {
		app.Spec.TargetRef = old.Spec.TargetRef // an update does not change the target
	}
	s.Applications = append(slices.DeleteFunc(slices.Clone(s.Applications), func(a *v1alpha2.KubernetesApplication) bool { return sameName(a, app) }), app)
	return nil
}

// publish returns the case of a target, and adds the target to the snapshot.
func (s *Snapshot) publish(request input.Request, object *unstructured.Unstructured) ([]Case, error) {
	target := &v1alpha1.KubernetesTarget{}
	if err := decodeInto(object, target); err != nil {
		return nil, err
	}
	old := s.target(target.Namespace, target.Name)
	if old != nil && len(target.Status.Conditions) == 0 {
		target.Status = old.Status // kubectl apply does not change the status
	}
	var before *v1alpha1.KubernetesTarget
	if request.Operation != decisions.AuditOperation {
		before = old
	}
	c := Case{
		Object:   object,
		Refused:  policies.ValidateTarget(target, before),
		Question: decisions.PublishQuestion(withOperation(request, before != nil), target, before, s.namespace(target.Namespace), s.Targets),
	}
	published := target.DeepCopy()
	MarkReachable(published) // the target is published before any object is scheduled
	s.SetTarget(*published)
	return []Case{c}, nil
}

// withOperation sets the operation of a request if it is empty.
func withOperation(request input.Request, update bool) input.Request {
	request.Operation = cmp.Or(request.Operation, map[bool]string{true: "UPDATE", false: "CREATE"}[update])
	return request
}

func (s *Snapshot) cases(request input.Request, object *unstructured.Unstructured) ([]Case, error) {
	switch object.GroupVersionKind().GroupKind() {
	case v1alpha2.GroupVersion.WithKind("KubernetesApplication").GroupKind():
		return s.templates(request, object)
	case v1alpha1.GroupVersion.WithKind("KubernetesApplicationResource").GroupKind():
		return s.resource(request, object)
	}
	kind, known := kinds.For(object.GroupVersionKind())
	if !known {
		return []Case{{Object: object, Skipped: fmt.Sprintf("a %s stays on the hub; Portico does not send this kind", object.GetKind())}}, nil
	}
	return []Case{s.native(request, object, kind)}, nil
}

// native returns the case of a native object as admission sees it: held on the
// hub.
func (s *Snapshot) native(request input.Request, object *unstructured.Unstructured, kind kinds.Kind) Case {
	namespace := s.namespace(object.GetNamespace())
	old := s.existing(object)
	c := Case{Object: object.DeepCopy()}
	if kinds.HasRemoteLabel(namespace) {
		kinds.OptIn(c.Object, old)
	}
	if !kinds.IsRemote(c.Object) {
		c.Skipped = fmt.Sprintf("stays on the hub, because it has no label %s=%s", v1alpha1.ScheduleLabel, v1alpha1.ScheduleRemote)
		return c
	}
	if _, err := kinds.Hold(kind, c.Object, old, kinds.Anyone); err != nil {
		c.Refused = append(c.Refused, asFieldError(err))
		return c
	}
	c.Refused = policies.ValidateNative(policies.NativeReview{
		Kind: kind, Object: c.Object, Old: old, Namespace: namespace,
		Application: func(name string) *v1alpha2.KubernetesApplication { return s.application(namespace.Name, name) },
	})
	membership, _ := policies.MembershipOf(c.Object, namespace)
	c.Member = s.member(namespace.Name, membership, policies.AllowItemOfNative(c.Object))
	c.Member.isNew = !kinds.IsRemote(old)
	if c.Member.Target != "" && c.Member.isNew {
		c.Refused = append(c.Refused, s.AllowDefaults.ValidateNative(c.Object, s.target(namespace.Name, c.Member.Target))...)
	}
	c.Question = s.scheduling(withOperation(request, old != nil), c.Object, old, c.Member)
	return c
}

func asFieldError(err error) *field.Error {
	var malformed *field.Error
	if errors.As(err, &malformed) {
		return malformed
	}
	return field.InternalError(nil, err)
}

// member completes a membership with the fields of its application.
func (s *Snapshot) member(namespace string, membership policies.Membership, item policies.AllowItem) *Member {
	return &Member{
		Namespace: namespace, allowItem: item,
		Membership: membership.WithApplication(s.application(namespace, membership.Application)),
	}
}

func (s *Snapshot) scheduling(request input.Request, object, old *unstructured.Unstructured, m *Member) engine.Question {
	q, err := s.candidates(m.Namespace).ForMember(m.Membership, m.allowItem)
	if err != nil {
		q, _ = s.candidates(m.Namespace).ForMember(policies.Membership{}) // validation denied the selector
	}
	return decisions.NewSchedulingContext(s.namespace(m.Namespace), input.Application{Name: m.Application, Target: m.Target}, q).
		Question(request, object, old)
}

// templates returns a case for each template of an application.
func (s *Snapshot) templates(request input.Request, object *unstructured.Unstructured) ([]Case, error) {
	app := s.application(object.GetNamespace(), object.GetName())
	refused := policies.ValidateApplication(app, nil)
	if len(app.Spec.ResourceTemplates) == 0 || len(refused) > 0 {
		return []Case{{Object: object, Refused: refused, Skipped: "has no templates"}}, nil
	}
	var out []Case
	for i, t := range app.Spec.ResourceTemplates {
		c, err := s.template(request, app.Namespace, t.Spec.Template, policies.Membership{
			Application: app.Name, Selector: app.Spec.TargetSelector, Tolerations: app.Spec.Tolerations,
		})
		if err != nil {
			return nil, fmt.Errorf("spec.resourceTemplates[%d]: %w", i, err)
		}
		c.Parent = DisplayName(object)
		out = append(out, c)
	}
	return out, nil
}

// resource returns the case of the template of a KubernetesApplicationResource.
func (s *Snapshot) resource(request input.Request, object *unstructured.Unstructured) ([]Case, error) {
	resource := &v1alpha1.KubernetesApplicationResource{}
	if err := decodeInto(object, resource); err != nil {
		return nil, err
	}
	if refused := policies.ValidateResource(resource, nil); len(refused) > 0 {
		return []Case{{Object: object, Refused: refused}}, nil
	}
	tolerations, _ := policies.TolerationsOf(resource, &resource.ObjectMeta)
	name, member := resource.Labels[v1alpha1.ApplicationLabel]
	if !member {
		name = resource.Name
	}
	c, err := s.template(request, resource.Namespace, resource.Spec.Template, policies.Membership{
		Application: name, Selector: resource.Spec.TargetSelector, Tolerations: tolerations,
	})
	c.Parent = DisplayName(object)
	return []Case{c}, err
}

func (s *Snapshot) template(request input.Request, namespace string, raw runtime.RawExtension, m policies.Membership) (Case, error) {
	template := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw.Raw, &template.Object); err != nil {
		return Case{}, fmt.Errorf("reading the template: %w", err)
	}
	// The scope of the kind is not known here.
	member := s.member(namespace, m, policies.AllowItemOfNative(template))
	member.isNew = true
	return Case{Object: template, Member: member, Question: s.scheduling(withOperation(request, false), template, nil, member)}, nil
}
