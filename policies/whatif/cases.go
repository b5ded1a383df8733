package whatif

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

// Case is one object, and what policies are asked about it.
type Case struct {
	// Object that is applied, or a template in it.
	Object *unstructured.Unstructured
	// In names the KubernetesApplication whose template the object is; empty for
	// an object of its own.
	In string
	// Skipped says why no policy is asked; empty when they are.
	Skipped string
	// Refused is what is wrong with the object, whatever policies say.
	Refused field.ErrorList
	// Question that policies are asked.
	Question engine.Question
	// Member says where the object may go, and with what; nil for what goes
	// nowhere.
	Member *Member

	order int
}

// Member is an object's part in an application.
type Member struct {
	Namespace string
	policies.Membership
	// Target the application runs on already.
	Target string
	cargo  policies.Cargo
	isNew  bool
}

// Cases returns what policies are asked when somebody applies objects, in their
// order. Namespaces, targets and applications among the objects are in the world
// by then, whatever their order.
func Cases(w *World, who input.Request, objects ...*unstructured.Unstructured) ([]Case, error) {
	var out []Case
	var rest []int
	for i, object := range objects {
		var found []Case
		var err error
		switch object.GroupVersionKind().GroupKind() {
		case corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind():
			err = w.enterNamespace(object)
			found = []Case{{Object: object, Skipped: "policies judge what is in it"}}
		case v1alpha1.GroupVersion.WithKind("KubernetesTarget").GroupKind():
			found, err = w.publish(who, object)
		case v1alpha2.GroupVersion.WithKind("KubernetesApplication").GroupKind():
			err = w.enterApplication(object)
			rest = append(rest, i)
		default:
			rest = append(rest, i)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", Title(object), err)
		}
		out = appendInOrder(out, i, found...)
	}
	for _, i := range rest {
		found, err := w.cases(who, objects[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", Title(objects[i]), err)
		}
		out = appendInOrder(out, i, found...)
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

// Title names an object as people do: Deployment shop/web.
func Title(object *unstructured.Unstructured) string {
	name := cmp.Or(object.GetName(), object.GetGenerateName()+"*")
	if namespace := object.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return object.GetKind() + " " + name
}

func into(object *unstructured.Unstructured, typed any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true)
}

func (w *World) enterNamespace(object *unstructured.Unstructured) error {
	namespace := &corev1.Namespace{}
	if err := into(object, namespace); err != nil {
		return err
	}
	w.Namespaces = append(slices.DeleteFunc(slices.Clone(w.Namespaces), func(n *corev1.Namespace) bool { return n.Name == namespace.Name }), namespace)
	return nil
}

func (w *World) enterApplication(object *unstructured.Unstructured) error {
	app := &v1alpha2.KubernetesApplication{}
	if err := into(object, app); err != nil {
		return err
	}
	if old := w.application(app.Namespace, app.Name); old != nil && app.Spec.TargetRef == nil {
		app.Spec.TargetRef = old.Spec.TargetRef // it runs where it runs
	}
	w.Applications = append(slices.DeleteFunc(slices.Clone(w.Applications), func(a *v1alpha2.KubernetesApplication) bool { return same(a, app) }), app)
	return nil
}

// publish is the case of a target, which is there from now on.
func (w *World) publish(who input.Request, object *unstructured.Unstructured) ([]Case, error) {
	target := &v1alpha1.KubernetesTarget{}
	if err := into(object, target); err != nil {
		return nil, err
	}
	old := w.target(target.Namespace, target.Name)
	if old != nil && len(target.Status.Conditions) == 0 {
		target.Status = old.Status // a change of spec is no change of status
	}
	var before *v1alpha1.KubernetesTarget
	if who.Operation != decisions.AuditOperation {
		before = old
	}
	c := Case{
		Object:   object,
		Refused:  policies.ValidateTarget(target, before),
		Question: decisions.Publish(of(who, before != nil), target, before, w.namespace(target.Namespace), w.Targets),
	}
	there := target.DeepCopy()
	Reach(there) // by the time something is scheduled
	w.Add(*there)
	return []Case{c}, nil
}

// of completes a request: what is there already is updated.
func of(who input.Request, update bool) input.Request {
	who.Operation = cmp.Or(who.Operation, map[bool]string{true: "UPDATE", false: "CREATE"}[update])
	return who
}

func (w *World) cases(who input.Request, object *unstructured.Unstructured) ([]Case, error) {
	switch object.GroupVersionKind().GroupKind() {
	case v1alpha2.GroupVersion.WithKind("KubernetesApplication").GroupKind():
		return w.templates(who, object)
	case v1alpha1.GroupVersion.WithKind("KubernetesApplicationResource").GroupKind():
		return w.resource(who, object)
	}
	kind, travels := kinds.For(object.GroupVersionKind())
	if !travels {
		return []Case{{Object: object, Skipped: fmt.Sprintf("a %s stays on the hub; Portico leaves it alone", object.GetKind())}}, nil
	}
	return []Case{w.native(who, object, kind)}, nil
}

// native is the case of a Deployment or a Service, as admission sees it: held
// still on the hub.
func (w *World) native(who input.Request, object *unstructured.Unstructured, kind kinds.Kind) Case {
	namespace := w.namespace(object.GetNamespace())
	old := w.before(object)
	c := Case{Object: object.DeepCopy()}
	if namespace.Labels[v1alpha1.ScheduleLabel] == v1alpha1.ScheduleRemote {
		kinds.OptIn(c.Object, old)
	}
	if !kinds.IsRemote(c.Object) {
		c.Skipped = fmt.Sprintf("stays on the hub, because it has no label %s=%s", v1alpha1.ScheduleLabel, v1alpha1.ScheduleRemote)
		return c
	}
	if _, err := kinds.Hold(kind, c.Object, old, kinds.Anyone); err != nil {
		c.Refused = append(c.Refused, asField(err))
		return c
	}
	c.Refused = policies.ValidateNative(policies.NativeQuestion{
		Kind: kind, Object: c.Object, Old: old, Namespace: namespace,
		Application: func(name string) *v1alpha2.KubernetesApplication { return w.application(namespace.Name, name) },
	})
	membership, _ := policies.MembershipOf(c.Object, namespace)
	c.Member = w.member(namespace.Name, membership, policies.CargoOfNative(c.Object))
	c.Member.isNew = !kinds.IsRemote(old)
	if c.Member.Target != "" && c.Member.isNew {
		c.Refused = append(c.Refused, w.Frontier.ValidateNative(c.Object, w.target(namespace.Name, c.Member.Target))...)
	}
	c.Question = w.scheduling(of(who, old != nil), c.Object, old, c.Member)
	return c
}

func asField(err error) *field.Error {
	var malformed *field.Error
	if errors.As(err, &malformed) {
		return malformed
	}
	return field.InternalError(nil, err)
}

// member completes a membership with what its application says already.
func (w *World) member(namespace string, membership policies.Membership, cargo policies.Cargo) *Member {
	m := &Member{Namespace: namespace, Membership: membership, cargo: cargo}
	app := w.application(namespace, m.Application)
	if app == nil {
		return m
	}
	if m.Selector == nil {
		m.Selector = app.Spec.TargetSelector
	}
	if m.Tolerations == nil {
		m.Tolerations = app.Spec.Tolerations
	}
	if app.Spec.TargetRef != nil {
		m.Target = app.Spec.TargetRef.Name
	}
	return m
}

func (w *World) scheduling(request input.Request, object, old *unstructured.Unstructured, m *Member) engine.Question {
	selector, err := policies.Selector(m.Selector)
	if err != nil {
		selector = nil // refused already, by validation
	}
	return decisions.Place{
		Namespace:   w.namespace(m.Namespace),
		Application: input.Application{Name: m.Application, Target: m.Target},
		Selector:    selector, Targets: w.targetsIn(m.Namespace), Placed: w.placed(m.Namespace),
	}.Scheduling(request, object, old)
}

// templates are the cases of what an application sends.
func (w *World) templates(who input.Request, object *unstructured.Unstructured) ([]Case, error) {
	app := w.application(object.GetNamespace(), object.GetName())
	refused := policies.ValidateApplication(app, nil)
	if len(app.Spec.ResourceTemplates) == 0 || len(refused) > 0 {
		return []Case{{Object: object, Refused: refused, Skipped: "has no templates"}}, nil
	}
	var out []Case
	for i, t := range app.Spec.ResourceTemplates {
		c, err := w.template(who, app.Namespace, t.Spec.Template, policies.Membership{
			Application: app.Name, Selector: app.Spec.TargetSelector, Tolerations: app.Spec.Tolerations,
		})
		if err != nil {
			return nil, fmt.Errorf("spec.resourceTemplates[%d]: %w", i, err)
		}
		c.In = Title(object)
		out = append(out, c)
	}
	return out, nil
}

// resource is the case of a resource that somebody wrote by itself.
func (w *World) resource(who input.Request, object *unstructured.Unstructured) ([]Case, error) {
	resource := &v1alpha1.KubernetesApplicationResource{}
	if err := into(object, resource); err != nil {
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
	c, err := w.template(who, resource.Namespace, resource.Spec.Template, policies.Membership{
		Application: name, Selector: resource.Spec.TargetSelector, Tolerations: tolerations,
	})
	c.In = Title(object)
	return []Case{c}, err
}

func (w *World) template(who input.Request, namespace string, raw runtime.RawExtension, m policies.Membership) (Case, error) {
	template := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw.Raw, &template.Object); err != nil {
		return Case{}, fmt.Errorf("reading the template: %w", err)
	}
	// A kind without namespaces cannot be told from here.
	member := w.member(namespace, m, policies.CargoOfNative(template))
	member.isNew = true
	return Case{Object: template, Member: member, Question: w.scheduling(of(who, false), template, nil, member)}, nil
}
