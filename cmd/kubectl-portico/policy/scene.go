package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
	"github.com/portico-io/portico/policies/load"
	"github.com/portico-io/portico/policies/whatif"
)

// sceneFlags say what is applied, to what, and by whom.
type sceneFlags struct {
	manifests []string
	targets   []string
	policies  []string
	only      []string
	action    string
	cluster   bool
}

const sceneHelp = `

Among the manifests may be Namespaces, whose labels count; KubernetesTargets, about
which Publish policies are asked and to which the rest may go; and KubernetesApplications.
A Policy among them without modules changes action, match, parameters or weight of the
policy of that name. A document that has only the field request says who asks.

--targets names what is there already: KubernetesTargets, and Namespaces. A target whose
file has no status is taken to answer. With --cluster all this is read from the hub.

Without --policies the policies are those of the cluster, or else those that Portico ships.
--as and --as-group say who applies the manifests; with --cluster it is you by default.
What an API server fills in by default is in an object only if you wrote it.`

func (f *sceneFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.manifests, "filename", "f", nil, "manifests to apply: a file, a directory, or - for standard input; repeatable")
	flags.StringArrayVar(&f.targets, "targets", nil, "manifests of the targets that exist: a file or a directory; repeatable")
	flags.StringArrayVar(&f.policies, "policies", nil, "policies to ask: a file, a directory or a bundle; repeatable")
	flags.StringArrayVar(&f.only, "only", nil, "ask only the policy of this name; repeatable")
	flags.StringVar(&f.action, "action", "", "ask as if this were the action of every policy: Deny, Warn or Audit")
	flags.BoolVar(&f.cluster, "cluster", false, "read policies, targets and what else is there from the cluster")
}

// scene is all that a rehearsal needs.
type scene struct {
	world    *whatif.World
	cases    []whatif.Case
	policies collection
	// elsewhere tells that nobody said which targets there are.
	elsewhere bool
}

// asks tells whether any of the policies is asked about a case.
func (s *scene) asks(one whatif.Case) bool {
	return one.Question.Type == "" || slices.ContainsFunc(s.policies.sources, func(p load.Source) bool { return p.Spec.Type == one.Question.Type })
}

// scene reads what the flags say.
func (c *command) scene(ctx context.Context, f sceneFlags) (*scene, error) {
	if len(f.manifests) == 0 {
		return nil, errors.New("say which manifests with -f")
	}
	who, err := c.who()
	if err != nil {
		return nil, err
	}
	documents, err := load.Documents(c.host.In, f.manifests...)
	if err != nil {
		return nil, err
	}
	existing, err := load.Documents(c.host.In, f.targets...)
	if err != nil {
		return nil, err
	}
	s := &scene{world: &whatif.World{Frontier: policies.Frontier{Portico: porticoNamespace}}}
	sources, err := load.Shipped()
	if err != nil {
		return nil, err
	}
	if f.cluster {
		hub, err := c.connect()
		if err != nil {
			return nil, err
		}
		if sources, err = hub.policies(ctx); err != nil {
			return nil, err
		}
		if s.world, err = hub.world(ctx, ""); err != nil {
			return nil, err
		}
		if who.User.Username == "" {
			if who.User, err = hub.whoAmI(ctx); err != nil {
				return nil, err
			}
		}
	}
	if len(f.policies) > 0 {
		chosen, err := load.Policies(c.host.In, f.policies...)
		if err != nil {
			return nil, err
		}
		if f.cluster {
			chosen = overlay(sources, chosen)
		}
		sources = chosen
	}
	namespace, err := c.namespace()
	if err != nil {
		return nil, err
	}
	if err := s.furnish(existing, namespace); err != nil {
		return nil, err
	}
	objects, err := apart(documents, namespace, &who, sources)
	if err != nil {
		return nil, err
	}
	if sources, err = f.choose(sources); err != nil {
		return nil, err
	}
	if s.policies, err = withLibraries(sources); err != nil {
		return nil, err
	}
	if s.cases, err = whatif.Cases(s.world, who, objects...); err != nil {
		return nil, err
	}
	if len(f.only) > 0 {
		s.cases = slices.DeleteFunc(s.cases, func(one whatif.Case) bool { return !s.asks(one) })
	}
	s.elsewhere = !f.cluster && len(s.world.Targets) == 0
	return s, nil
}

// choose narrows policies to those that shall be asked. Libraries stay.
func (f *sceneFlags) choose(sources []load.Source) ([]load.Source, error) {
	for _, name := range f.only {
		if !slices.ContainsFunc(sources, func(s load.Source) bool { return s.Name == name }) {
			return nil, fmt.Errorf("--only: there is no policy %s; there are %s", name, names(sources))
		}
	}
	if f.action != "" && !slices.Contains([]policyv1alpha1.Action{policyv1alpha1.Deny, policyv1alpha1.Warn, policyv1alpha1.Audit}, policyv1alpha1.Action(f.action)) {
		return nil, fmt.Errorf("--action: must be Deny, Warn or Audit, not %q", f.action)
	}
	var out []load.Source
	for _, s := range sources {
		if s.Spec.Type != policyv1alpha1.Library && len(f.only) > 0 && !slices.Contains(f.only, s.Name) {
			continue
		}
		if f.action != "" {
			s.Policy = s.DeepCopy()
			s.Spec.Action = policyv1alpha1.Action(f.action)
		}
		out = append(out, s)
	}
	return out, nil
}

func names(sources []load.Source) string {
	var out []string
	for _, s := range sources {
		out = append(out, s.Name)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// furnish puts into the world what is there already.
func (s *scene) furnish(documents []load.Document, namespace string) error {
	for _, d := range documents {
		switch apiVersion, kind := d.Kind(); {
		case kind == "KubernetesTarget" && apiVersion == v1alpha1.GroupVersion.String():
			var target v1alpha1.KubernetesTarget
			if err := d.Into(&target); err != nil {
				return err
			}
			target.Namespace = cmp.Or(target.Namespace, namespace)
			whatif.Reach(&target)
			s.world.Add(target)
		case kind == "Namespace" && apiVersion == "v1":
			n := &corev1.Namespace{}
			if err := d.Into(n); err != nil {
				return err
			}
			s.world.Namespaces = append(s.world.Namespaces, n)
		}
	}
	return nil
}

// apart tells what is applied from what the documents say of the rehearsal
// itself: who asks, and how a policy differs.
func apart(documents []load.Document, namespace string, who *input.Request, sources []load.Source) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, d := range documents {
		apiVersion, kind := d.Kind()
		object := &unstructured.Unstructured{Object: d.Content}
		switch {
		case kind == "" && len(d.Content) == 1 && d.Content["request"] != nil:
			if err := asks(d, who); err != nil {
				return nil, err
			}
		case kind == "" || apiVersion == "":
			return nil, d.Errorf("has no apiVersion and kind, so it is no manifest")
		case load.IsPolicy(d):
			if err := adjust(d, sources); err != nil {
				return nil, err
			}
		default:
			if object.GetNamespace() == "" && kind != "Namespace" {
				object.SetNamespace(namespace)
			}
			out = append(out, object)
		}
	}
	return out, nil
}

// asks reads who asks; what the flags say wins.
func asks(d load.Document, who *input.Request) error {
	var document struct {
		Request input.Request `json:"request"`
	}
	if err := d.Into(&document); err != nil {
		return err
	}
	if who.User.Username == "" {
		who.User = document.Request.User
	}
	who.Operation = cmp.Or(who.Operation, document.Request.Operation)
	who.DryRun = who.DryRun || document.Request.DryRun
	return nil
}

// adjust changes a policy by what a document without modules says of it.
func adjust(d load.Document, sources []load.Source) error {
	patch := &policyv1alpha1.Policy{}
	if err := d.Into(patch); err != nil {
		return err
	}
	if len(patch.Spec.Modules) > 0 {
		return d.Errorf("a Policy with modules is given with --policies")
	}
	i := slices.IndexFunc(sources, func(s load.Source) bool { return s.Name == patch.Name })
	if i < 0 {
		return d.Errorf("there is no policy %q to change; there are %s", patch.Name, names(sources))
	}
	changed := sources[i].DeepCopy()
	spec := &changed.Spec
	spec.Action = cmp.Or(patch.Spec.Action, spec.Action)
	spec.FailurePolicy = cmp.Or(patch.Spec.FailurePolicy, spec.FailurePolicy)
	spec.Match = cmp.Or(patch.Spec.Match, spec.Match)
	spec.Parameters = cmp.Or(patch.Spec.Parameters, spec.Parameters)
	spec.Weight = cmp.Or(patch.Spec.Weight, spec.Weight)
	sources[i].Policy = changed
	return nil
}

// who is who asks, with the groups that an API server would add.
func (c *command) who() (input.Request, error) {
	var who input.Request
	flags := c.host.Flags
	if flags.Impersonate == nil || *flags.Impersonate == "" {
		if flags.ImpersonateGroup != nil && len(*flags.ImpersonateGroup) > 0 {
			return who, errors.New("--as-group: say who is in the group with --as")
		}
		return who, nil
	}
	who.User.Username = *flags.Impersonate
	if flags.ImpersonateGroup != nil {
		who.User.Groups = slices.Clone(*flags.ImpersonateGroup)
	}
	if flags.ImpersonateUID != nil {
		who.User.UID = *flags.ImpersonateUID
	}
	// It is not who reads the cluster.
	flags.Impersonate, flags.ImpersonateGroup, flags.ImpersonateUID = nil, nil, nil
	if namespace, _, err := serviceaccount.SplitUsername(who.User.Username); err == nil && len(who.User.Groups) == 0 {
		who.User.Groups = serviceaccount.MakeGroupNames(namespace)
	}
	if who.User.Username != user.Anonymous && !slices.Contains(who.User.Groups, user.AllAuthenticated) {
		who.User.Groups = append(who.User.Groups, user.AllAuthenticated)
	}
	return who, nil
}

// namespace of what has none, as kubectl has it.
func (c *command) namespace() (string, error) {
	namespace, _, err := c.host.Flags.ToRawKubeConfigLoader().Namespace()
	return cmp.Or(namespace, corev1.NamespaceDefault), err
}

// parameters reads JSON or YAML.
func parameters(text string) (*apiextensionsv1.JSON, error) {
	raw, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		return nil, fmt.Errorf("want an object such as {max: 3}, not %s", raw)
	}
	return &apiextensionsv1.JSON{Raw: raw}, nil
}

// engine puts the scene's policies in force, if they work.
func (s *scene) engine(ctx context.Context, prints io.Writer) (*engine.Engine, error) {
	if err := s.policies.mustWork(ctx); err != nil {
		return nil, err
	}
	return s.policies.engine(ctx, engine.Options{Print: prints}), nil
}
