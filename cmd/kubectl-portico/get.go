package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

const getHelp = `Show an object as it is on its target.

Name the object as on the hub, or by its KubernetesApplicationResource (kar). In
YAML, a comment follows each field that you did not set: "# defaulted" by the
API server, or "# set by" another field manager.

The output comes from the KubernetesApplicationResource, so you need no rights on
the target. It is the applied object with its status, or the whole object if you
annotate it with workload.crossplane.io/observe=Full. Values of Secrets, and
values that look like secrets, are never shown.`

func (s *session) get() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "get (KIND NAME | KIND/NAME)", Short: "Show an object as it is on its target", Long: getHelp,
		Example: `  # Show a whole Deployment
  kubectl annotate deployment web workload.crossplane.io/observe=Full
  kubectl portico get deployment web

  # By its KubernetesApplicationResource, which may be of any kind
  kubectl portico get kar/web-deployment -o json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, err := parseObjectArgs(args)
			if err != nil {
				return err
			}
			if output != "yaml" && output != "json" {
				return fmt.Errorf("unknown output format %q; it may be yaml or json", output)
			}
			if err := s.connect(); err != nil {
				return err
			}
			resource, err := s.findResource(cmd.Context(), kind, name)
			if err != nil {
				return err
			}
			return printObject(resource, output, s.out, cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "yaml", "yaml, with comments, or json")
	return cmd
}

// parseObjectArgs parses "KIND NAME" or "KIND/NAME".
func parseObjectArgs(args []string) (kind, name string, err error) {
	if len(args) == 2 {
		kind, name = args[0], args[1]
	} else {
		kind, name, _ = strings.Cut(args[0], "/")
	}
	if kind == "" || name == "" || strings.Contains(name, "/") {
		return "", "", errors.New("name one object, such as deployment web, deployment/web or kar/web-deployment")
	}
	return kind, name, nil
}

// findResource returns the resource of an object.
func (s *session) findResource(ctx context.Context, kind, name string) (*v1alpha1.KubernetesApplicationResource, error) {
	resolved, err := s.resolveKind(kind)
	if err != nil {
		return nil, err
	}
	if resolved.Group == v1alpha1.Group && resolved.Kind == "KubernetesApplicationResource" {
		resource := &v1alpha1.KubernetesApplicationResource{}
		return resource, s.hub.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, resource)
	}
	all, err := s.resources(ctx)
	if err != nil {
		return nil, err
	}
	var found []*v1alpha1.KubernetesApplicationResource
	for i := range all {
		template := policies.TemplateObject(all[i].Spec.Template)
		if template == nil || template.GetName() != name || !matchesKind(resolved, template.GroupVersionKind().GroupKind()) {
			continue
		}
		found = append(found, &all[i])
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("%s %s of namespace %s runs on no target: it has no KubernetesApplicationResource", kind, name, s.namespace)
	case 1:
		return found[0], nil
	}
	var choices []string
	for _, resource := range found {
		choices = append(choices, "kar/"+resource.Name)
	}
	return nil, fmt.Errorf("there are %d of that name on targets, name one of %s", len(found), strings.Join(choices, ", "))
}

// resolveKind resolves the name of a kind. A kind that the hub does not have may
// exist on a target, and is compared by its name.
func (s *session) resolveKind(kind string) (schema.GroupKind, error) {
	mapper, err := s.flags.ToRESTMapper()
	if err != nil {
		return schema.GroupKind{}, err
	}
	versioned, unversioned := schema.ParseResourceArg(strings.ToLower(kind))
	if versioned != nil {
		if found, err := mapper.KindFor(*versioned); err == nil {
			return found.GroupKind(), nil
		}
	}
	found, err := mapper.KindFor(unversioned.WithVersion(""))
	if err == nil {
		return found.GroupKind(), nil
	}
	if meta.IsNoMatchError(err) {
		return schema.GroupKind{Group: unversioned.Group, Kind: unversioned.Resource}, nil
	}
	return schema.GroupKind{}, fmt.Errorf("looking up kind %s on the hub: %w", kind, err)
}

// matchesKind tells whether a kind is the named one. The name may be the kind in
// lower case, singular or plural.
func matchesKind(named, is schema.GroupKind) bool {
	if named == is {
		return true
	}
	plural, singular := meta.UnsafeGuessKindToResource(is.WithVersion(""))
	return (named.Group == "" || named.Group == is.Group) && (named.Kind == plural.Resource || named.Kind == singular.Resource)
}

// printObject prints the object of a resource. It writes comments to another
// writer, so that programs can read the object.
func printObject(resource *v1alpha1.KubernetesApplicationResource, output string, out, comments io.Writer) error {
	for _, comment := range commentsOn(resource) {
		_, _ = fmt.Fprintln(comments, comment)
	}
	object, err := objectOf(resource)
	if err != nil {
		return err
	}
	if output == "json" {
		return (&printers.JSONPrinter{}).PrintObj(object, out)
	}
	var text []byte
	if resource.Status.Observed != nil {
		text, err = commentedYAML(object, resource.Status.Ownership)
	} else {
		text, err = plainYAML(object)
	}
	if err != nil {
		return fmt.Errorf("writing %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	_, err = out.Write(text)
	return err
}

// objectOf returns the observed object, or else the template with the status from
// the target.
func objectOf(resource *v1alpha1.KubernetesApplicationResource) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if observed := resource.Status.Observed; observed != nil {
		if err := utiljson.Unmarshal(observed.Raw, &object.Object); err != nil {
			return nil, fmt.Errorf("reading the observed object: %w", err)
		}
		return object, nil
	}
	if err := utiljson.Unmarshal(resource.Spec.Template.Raw, &object.Object); err != nil {
		return nil, fmt.Errorf("reading the template: %w", err)
	}
	if remote := resource.Status.Remote; remote != nil {
		var status any
		if err := json.Unmarshal(remote.Raw, &status); err != nil {
			return nil, fmt.Errorf("reading the status: %w", err)
		}
		object.Object["status"] = status
	}
	return policies.Redact(object), nil
}

// commentsOn returns comments on the printed object.
func commentsOn(resource *v1alpha1.KubernetesApplicationResource) []string {
	var out []string
	about := func(kind string) *metav1.Condition { return meta.FindStatusCondition(resource.Status.Conditions, kind) }
	if away := about(v1alpha1.TargetReachable); away != nil && away.Status == metav1.ConditionFalse {
		out = append(out, "# this is the last observed state: "+away.Message)
	}
	if drift := about(v1alpha1.Drifted); drift != nil && drift.Status == metav1.ConditionTrue {
		out = append(out, "# "+drift.Message)
	}
	if resource.Status.Observed != nil {
		return out
	}
	out = append(out, "# this is the desired object, with its status on the target")
	switch full := about(v1alpha1.Observed); {
	case full != nil && full.Status == metav1.ConditionFalse:
		out = append(out, "# "+full.Message)
	case resource.Spec.Observe == v1alpha1.ObserveFull:
		out = append(out, "# the object on the target was not observed yet")
	default:
		out = append(out, "# to see the whole object: "+observeCommand(resource))
	}
	return out
}

// observeCommand returns how to have the whole object observed.
func observeCommand(resource *v1alpha1.KubernetesApplicationResource) string {
	owner := metav1.GetControllerOf(resource)
	switch {
	case owner != nil && resource.Labels[v1alpha1.FrontDoorLabel] == v1alpha1.FrontDoor:
		return fmt.Sprintf("kubectl -n %s annotate %s %s %s=%s", resource.Namespace, strings.ToLower(owner.Kind), owner.Name, v1alpha1.ObserveAnnotation, v1alpha1.ObserveFull)
	case owner != nil:
		return fmt.Sprintf("set spec.observe to %s in template %s of %s %s", v1alpha1.ObserveFull, resource.Name, owner.Kind, owner.Name)
	}
	return fmt.Sprintf(`kubectl -n %s patch kar %s --type=merge -p '{"spec":{"observe":"%s"}}'`, resource.Namespace, resource.Name, v1alpha1.ObserveFull)
}
