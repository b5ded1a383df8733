package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/groups"
)

// regions returns the text of each region.
func regions(all []kinds.Kind) map[string]string {
	held := selectKinds(all, func(p kinds.Properties) bool { return p.Held })
	optedIn := selectKinds(all, func(p kinds.Properties) bool { return p.OptIn })
	withStatus := selectKinds(all, func(p kinds.Properties) bool { return p.HasStatus })
	return map[string]string{
		"kinds that are held":                 webhookRules(held, "", "CREATE, UPDATE"),
		"kinds that a namespace opts in":      webhookRules(optedIn, "", "CREATE, UPDATE"),
		"kinds with a status":                 webhookRules(withStatus, "/status", "UPDATE"),
		"kinds that are sent":                 webhookRules(all, "", "CREATE, UPDATE"),
		"kinds that are sent, in any version": excludedRules(all),
		"names of kinds that are sent":        "expression: >-\n  \"" + plurals(all) + "\"\n",
		"rights to kinds that a namespace opts in": roleRules(optedIn, true,
			"get, list, watch, create, update, patch, delete, deletecollection"),
		"rights to kinds that are sent":            roleRules(all, false, "get, list, watch, create, patch, delete"),
		"rights to watch kinds that are sent":      roleRules(all, false, "get, list, watch"),
		"rights to write kinds that are sent":      roleRules(all, false, "get, create, patch, delete"),
		"kinds that are sent without a controller": withoutController(selectKinds(all, func(p kinds.Properties) bool { return p.WithoutController })),
		"kinds that are denied Pods":               eventKinds(selectKinds(all, func(p kinds.Properties) bool { return p.DeniesPods })),
		"groups of custom kinds":                   ofCustomKind,
		"groups that are not of custom kinds":      notOfCustomKind,
		"table of kinds":                           table(all),
	}
}

func selectKinds(all []kinds.Kind, has func(kinds.Properties) bool) []kinds.Kind {
	var out []kinds.Kind
	for _, kind := range all {
		if has(kind.Properties()) {
			out = append(out, kind)
		}
	}
	return out
}

// group is an API group and version, and the resources of the kinds in it.
type group struct {
	group, version string
	resources      []string
}

// byGroup groups the resources of kinds, in the order of the registry.
func byGroup(list []kinds.Kind, resources func(kinds.Kind) []string) []group {
	var out []group
	for _, kind := range list {
		gvk := kind.GroupVersionKind()
		i := slices.IndexFunc(out, func(g group) bool { return g.group == gvk.Group && g.version == gvk.Version })
		if i < 0 {
			i = len(out)
			out = append(out, group{group: gvk.Group, version: gvk.Version})
		}
		out[i].resources = append(out[i].resources, resources(kind)...)
	}
	return out
}

func webhookRules(list []kinds.Kind, subresource, operations string) string {
	var out strings.Builder
	for _, g := range byGroup(list, func(k kinds.Kind) []string { return []string{k.Resource() + subresource} }) {
		fmt.Fprintf(&out, "- apiGroups: [%q]\n  apiVersions: [%s]\n  operations: [%s]\n  resources: [%s]\n  scope: Namespaced\n",
			g.group, g.version, operations, strings.Join(g.resources, ", "))
	}
	return out.String()
}

func excludedRules(list []kinds.Kind) string {
	var out strings.Builder
	for _, g := range byGroup(list, func(k kinds.Kind) []string { return []string{k.Resource()} }) {
		fmt.Fprintf(&out, "- apiGroups: [%q]\n  apiVersions: [\"*\"]\n  operations: [\"*\"]\n  resources: [%s]\n",
			g.group, strings.Join(g.resources, ", "))
	}
	return out.String()
}

// withoutController returns a match condition for kinds whose objects are not sent when
// they have a controller.
func withoutController(list []kinds.Kind) string {
	var resources []string
	for _, kind := range list {
		resources = append(resources, strconv.Quote(kind.Resource()))
	}
	return "- name: not-made-by-a-controller\n  expression: >-\n    !(request.resource.resource in [" + strings.Join(resources, ", ") + "]) ||\n" +
		"    !object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false)) &&\n" +
		"    !(\"pod-template-hash\" in object.metadata.?labels.orValue({}))\n"
}

// eventKinds returns a variable with the names of kinds.
func eventKinds(list []kinds.Kind) string {
	var names []string
	for _, kind := range list {
		names = append(names, strconv.Quote(kind.GroupVersionKind().Kind))
	}
	return "expression: >-\n  [" + strings.Join(names, ", ") + "]\n"
}

// roleRules returns the rules of a role, with the subresource scale or without it.
func roleRules(list []kinds.Kind, scale bool, verbs string) string {
	var out strings.Builder
	for _, g := range byGroup(list, func(k kinds.Kind) []string {
		if scale && k.Properties().HasScale {
			return []string{k.Resource(), k.Resource() + "/scale"}
		}
		return []string{k.Resource()}
	}) {
		fmt.Fprintf(&out, "- apiGroups: [%q]\n  resources: [%s]\n  verbs: [%s]\n", g.group, strings.Join(g.resources, ", "), verbs)
	}
	return out.String()
}

// markers returns a Go file with the rights of Portico to the kinds. An owner reference
// that blocks the deletion of its owner needs the right to the owner's finalizers, on
// hubs with that admission plugin.
func markers(all []kinds.Kind) string {
	var out strings.Builder
	out.WriteString("// Code generated by api/kinds/generate. DO NOT EDIT.\n\npackage kinds\n\n")
	marker := func(kind kinds.Kind, subresource, verbs string) {
		fmt.Fprintf(&out, "// +kubebuilder:rbac:groups=%q,resources=%s,verbs=%s\n", kind.GroupVersionKind().Group, kind.Resource()+subresource, verbs)
	}
	for _, kind := range all {
		p := kind.Properties()
		verbs := "get;list;watch"
		if p.OptIn && !p.HeldAtCreation {
			verbs += ";patch" // of labels and holds
		}
		marker(kind, "", verbs)
		marker(kind, "/finalizers", "update")
		if p.HasStatus {
			marker(kind, "/status", "patch")
		}
		if p.HasScale {
			marker(kind, "/scale", "patch")
		}
	}
	return out.String()
}

// table returns the table of the docs. Kinds that are sent alike share a row.
func table(all []kinds.Kind) string {
	type row struct{ names, sent, notSent string }
	var rows []row
	for _, kind := range all {
		p := kind.Properties()
		name := kind.GroupVersionKind().Kind
		if last := len(rows) - 1; last >= 0 && rows[last].sent == p.Sent && rows[last].notSent == p.NotSent {
			rows[last].names += ", " + name
			continue
		}
		rows = append(rows, row{name, p.Sent, p.NotSent})
	}
	var out strings.Builder
	out.WriteString("| kind | sent | not sent |\n| --- | --- | --- |\n")
	for _, r := range rows {
		fmt.Fprintf(&out, "| %s | %s | %s |\n", r.names, r.sent, r.notSent)
	}
	return out.String()
}

// plurals lists the names of kinds in a sentence.
func plurals(all []kinds.Kind) string {
	var names []string
	for _, kind := range all {
		names = append(names, plural(kind.GroupVersionKind().Kind))
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// plural returns the plural of the name of a kind, by the rules of resource names.
func plural(kind string) string {
	switch {
	case strings.HasSuffix(kind, "s"):
		return kind + "es"
	case strings.HasSuffix(kind, "y"):
		return strings.TrimSuffix(kind, "y") + "ies"
	}
	return kind + "s"
}

// customGroup is the condition in CEL that a request is for a group of custom kinds.
var customGroup = fmt.Sprintf("request.resource.group.contains(\".\") &&\n    !(request.resource.group in [%s])", quoted(groups.NotCustom()))

var ofCustomKind = "- name: of-a-custom-kind\n  expression: >-\n    " + customGroup + "\n"

// notOfCustomKind also matches cluster-scoped objects.
var notOfCustomKind = "- name: not-of-a-custom-kind-with-namespaces\n  expression: >-\n    !(" + customGroup + ") ||\n    request.?namespace.orValue(\"\") == \"\"\n"

func quoted(list []string) string {
	out := make([]string, len(list))
	for i, text := range list {
		out[i] = strconv.Quote(text)
	}
	return strings.Join(out, ", ")
}
