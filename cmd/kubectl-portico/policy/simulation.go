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
	"github.com/portico-io/portico/policies/manifests"
	"github.com/portico-io/portico/policies/simulate"
)

// simulationFlags select the applied manifests, the existing targets and the
// policies.
type simulationFlags struct {
	manifests []string
	targets   []string
	policies  []string
	only      []string
	action    string
	cluster   bool
}

const simulationHelp = `

The manifests may contain Namespaces, whose labels apply; KubernetesTargets, for which
Publish policies are evaluated, and which may be selected; and KubernetesApplications. A Policy
without modules changes action, match, parameters or weight of the policy of that name. A
document with only the field request describes the request.

--targets names manifests of existing KubernetesTargets and Namespaces. A target without a
status counts as reachable. With --cluster all of these are read from the hub.

Without --policies the policies are those of the cluster, or else the shipped ones. --as
and --as-group name the user who applies the manifests; the default with --cluster is you.
Fields that an API server would default are in an object only if the manifest has them.`

func (f *simulationFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.manifests, "filename", "f", nil, "manifests to apply: a file, a directory, or - for standard input; repeatable")
	flags.StringArrayVar(&f.targets, "targets", nil, "manifests of the targets that exist: a file or a directory; repeatable")
	flags.StringArrayVar(&f.policies, "policies", nil, "policies to evaluate: a file, a directory or a bundle; repeatable")
	flags.StringArrayVar(&f.only, "only", nil, "evaluate only the policy with this name; repeatable")
	flags.StringVar(&f.action, "action", "", "the action to assume for every policy: Deny, Warn or Audit")
	flags.BoolVar(&f.cluster, "cluster", false, "read policies, targets and other existing objects from the cluster")
}

// simulation holds the input of a simulation.
type simulation struct {
	snapshot *simulate.Snapshot
	cases    []simulate.Case
	policies policySet
	// targetsUnknown tells that the user gave no targets.
	targetsUnknown bool
}

// evaluates tells whether a policy is evaluated for a case.
func (s *simulation) evaluates(one simulate.Case) bool {
	return one.Question.Type == "" || slices.ContainsFunc(s.policies.sources, func(p manifests.Source) bool { return p.Spec.Type == one.Question.Type })
}

// simulation reads the input that the flags select.
func (c *command) simulation(ctx context.Context, f simulationFlags) (*simulation, error) {
	if len(f.manifests) == 0 {
		return nil, errors.New("name the manifests with -f")
	}
	request, err := c.requester()
	if err != nil {
		return nil, err
	}
	documents, err := manifests.Documents(c.host.In, f.manifests...)
	if err != nil {
		return nil, err
	}
	existing, err := manifests.Documents(c.host.In, f.targets...)
	if err != nil {
		return nil, err
	}
	s := &simulation{}
	sources, err := c.readHub(ctx, f, s, &request)
	if err != nil {
		return nil, err
	}
	if sources, err = c.readPolicies(f, sources); err != nil {
		return nil, err
	}
	namespace, err := c.namespace()
	if err != nil {
		return nil, err
	}
	if err := s.addExisting(existing, namespace); err != nil {
		return nil, err
	}
	objects, err := readObjects(documents, namespace, &request, sources)
	if err != nil {
		return nil, err
	}
	if sources, err = f.choose(sources); err != nil {
		return nil, err
	}
	if s.policies, err = withLibraries(sources); err != nil {
		return nil, err
	}
	if s.cases, err = simulate.Cases(s.snapshot, request, objects...); err != nil {
		return nil, err
	}
	if len(f.only) > 0 {
		s.cases = slices.DeleteFunc(s.cases, func(one simulate.Case) bool { return !s.evaluates(one) })
	}
	s.targetsUnknown = !f.cluster && len(s.snapshot.Targets) == 0
	return s, nil
}

// readHub reads, with --cluster, the policies, the snapshot and the user from the
// cluster. Otherwise the policies are the shipped ones, and the snapshot is empty.
func (c *command) readHub(ctx context.Context, f simulationFlags, s *simulation, request *input.Request) ([]manifests.Source, error) {
	if !f.cluster {
		s.snapshot = &simulate.Snapshot{AllowDefaults: policies.AllowDefaults{PorticoNamespace: c.portico}}
		return manifests.Shipped()
	}
	hub, err := c.connect()
	if err != nil {
		return nil, err
	}
	sources, err := hub.policies(ctx)
	if err != nil {
		return nil, err
	}
	if s.snapshot, err = hub.snapshot(ctx, ""); err != nil {
		return nil, err
	}
	if request.User.Username == "" {
		request.User, err = hub.currentUser(ctx)
	}
	return sources, err
}

// readPolicies returns the policies of --policies, or else the existing ones. With
// --cluster, it adds those of --policies to the existing ones.
func (c *command) readPolicies(f simulationFlags, existing []manifests.Source) ([]manifests.Source, error) {
	if len(f.policies) == 0 {
		return existing, nil
	}
	chosen, err := manifests.Policies(c.host.In, f.policies...)
	if err != nil {
		return nil, err
	}
	if f.cluster {
		return overlay(existing, chosen), nil
	}
	return chosen, nil
}

// choose returns the policies that --only selects, with the action of --action,
// and all libraries.
func (f *simulationFlags) choose(sources []manifests.Source) ([]manifests.Source, error) {
	for _, name := range f.only {
		if !slices.ContainsFunc(sources, func(s manifests.Source) bool { return s.Name == name }) {
			return nil, fmt.Errorf("--only: there is no policy %s; there are %s", name, names(sources))
		}
	}
	if f.action != "" && !slices.Contains([]policyv1alpha1.Action{policyv1alpha1.Deny, policyv1alpha1.Warn, policyv1alpha1.Audit}, policyv1alpha1.Action(f.action)) {
		return nil, fmt.Errorf("--action: must be Deny, Warn or Audit, not %q", f.action)
	}
	var out []manifests.Source
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

func names(sources []manifests.Source) string {
	var out []string
	for _, s := range sources {
		out = append(out, s.Name)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// addExisting adds existing targets and namespaces to the snapshot.
func (s *simulation) addExisting(documents []manifests.Document, namespace string) error {
	for _, d := range documents {
		switch apiVersion, kind := d.Kind(); {
		case kind == "KubernetesTarget" && apiVersion == v1alpha1.GroupVersion.String():
			var target v1alpha1.KubernetesTarget
			if err := d.DecodeInto(&target); err != nil {
				return err
			}
			target.Namespace = cmp.Or(target.Namespace, namespace)
			simulate.MarkReachable(&target)
			s.snapshot.SetTarget(target)
		case kind == "Namespace" && apiVersion == "v1":
			n := &corev1.Namespace{}
			if err := d.DecodeInto(n); err != nil {
				return err
			}
			s.snapshot.Namespaces = append(s.snapshot.Namespaces, n)
		}
	}
	return nil
}

// readObjects returns the applied objects. It applies the documents about the
// simulation itself: the request, and changes of policies.
func readObjects(documents []manifests.Document, namespace string, request *input.Request, sources []manifests.Source) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, d := range documents {
		apiVersion, kind := d.Kind()
		object := &unstructured.Unstructured{Object: d.Content}
		switch {
		case kind == "" && len(d.Content) == 1 && d.Content["request"] != nil:
			if err := readRequest(d, request); err != nil {
				return nil, err
			}
		case kind == "" || apiVersion == "":
			return nil, d.Errorf("has no apiVersion and kind, so it is no manifest")
		case manifests.IsPolicy(d):
			if err := overridePolicy(d, sources); err != nil {
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

// readRequest reads a request document. Flags take precedence.
func readRequest(d manifests.Document, request *input.Request) error {
	var document struct {
		Request input.Request `json:"request"`
	}
	if err := d.DecodeInto(&document); err != nil {
		return err
	}
	if request.User.Username == "" {
		request.User = document.Request.User
	}
	request.Operation = cmp.Or(request.Operation, document.Request.Operation)
	request.DryRun = request.DryRun || document.Request.DryRun
	return nil
}

// overridePolicy changes a policy by a manifest without modules.
func overridePolicy(d manifests.Document, sources []manifests.Source) error {
	patch := &policyv1alpha1.Policy{}
	if err := d.DecodeInto(patch); err != nil {
		return err
	}
	if len(patch.Spec.Modules) > 0 {
		return d.Errorf("a Policy with modules is given with --policies")
	}
	i := slices.IndexFunc(sources, func(s manifests.Source) bool { return s.Name == patch.Name })
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

// requester returns the request of the user of --as, with the groups that an API
// server adds.
func (c *command) requester() (input.Request, error) {
	var request input.Request
	flags := c.host.Flags
	if flags.Impersonate == nil || *flags.Impersonate == "" {
		if flags.ImpersonateGroup != nil && len(*flags.ImpersonateGroup) > 0 {
			return request, errors.New("--as-group: name the user with --as")
		}
		return request, nil
	}
	request.User.Username = *flags.Impersonate
	if flags.ImpersonateGroup != nil {
		request.User.Groups = slices.Clone(*flags.ImpersonateGroup)
	}
	if flags.ImpersonateUID != nil {
		request.User.UID = *flags.ImpersonateUID
	}
	// --as names the author of the manifests, and not the user who reads the
	// cluster.
	flags.Impersonate, flags.ImpersonateGroup, flags.ImpersonateUID = nil, nil, nil
	if namespace, _, err := serviceaccount.SplitUsername(request.User.Username); err == nil && len(request.User.Groups) == 0 {
		request.User.Groups = serviceaccount.MakeGroupNames(namespace)
	}
	if request.User.Username != user.Anonymous && !slices.Contains(request.User.Groups, user.AllAuthenticated) {
		request.User.Groups = append(request.User.Groups, user.AllAuthenticated)
	}
	return request, nil
}

// namespace returns the namespace for objects without one, as kubectl does.
func (c *command) namespace() (string, error) {
	namespace, _, err := c.host.Flags.ToRawKubeConfigLoader().Namespace()
	return cmp.Or(namespace, corev1.NamespaceDefault), err
}

// parameters parses JSON or YAML.
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

// engine returns an engine with the policies of the simulation, if they work.
func (s *simulation) engine(ctx context.Context, prints io.Writer) (*engine.Engine, error) {
	if err := s.policies.validate(ctx); err != nil {
		return nil, err
	}
	return s.policies.engine(ctx, engine.Options{Print: prints}), nil
}
