package packs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/portico-io/portico/api/resourcepacks/v1alpha1"
)

const kustomizationFile = "resources/kustomization.yaml"

// deployment is a Deployment whose container has some fields.
func deployment(container string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n" +
		"    spec:\n      containers:\n      - name: web\n        image: nginx:1\n" + container
}

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason   string
		files    map[string]string
		edit     func(*v1alpha1.ResourcePack)
		problems []string
		warnings []string
	}{
		"Works": {reason: "The small pack has no problems."},
		"UnknownVariable": {
			reason:   "A field that still has a variable is never applied.",
			files:    withResource("apiVersion: example.org/v1\nkind: Thing\nmetadata:\n  name: other\nspec:\n  region: a-$(REGIO)\n"),
			problems: []string{`resources/other.yaml:6: spec.region: no variable of "a-$(REGIO)" has the name "REGIO"`},
		},
		"MissingVarReference": {
			reason:   "Kustomize replaces variables in declared fields alone.",
			files:    withResource("apiVersion: example.org/v1\nkind: Other\nmetadata:\n  name: other\nspec:\n  zones:\n  - $(REGION)-b\n"),
			problems: []string{`resources/other.yaml:7: spec.zones[0]: the variable in "$(REGION)-b" is not replaced: add a varReference with path spec/zones and kind Other to kustomizeconfig.yaml`},
		},
		"VariableInKey": {
			reason:   "The key of a field is a text, too.",
			files:    withResource("apiVersion: example.org/v1\nkind: Other\nmetadata:\n  name: other\nspec:\n  $(NO: 1\n"),
			problems: []string{`resources/other.yaml:6: spec.$(NO: no variable of "$(NO" has the name "NO"`},
		},
		"EscapedVariable": {
			reason: "After a second $ it is a text.",
			files:  withResource("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: other\ndata:\n  script: echo $$(date)\n"),
		},
		"ContainerVariable": {
			reason: "Kubernetes replaces the variables of a container.",
			files:  withResource(deployment("        env: [{name: PORT, value: \"80\"}, {name: URL, value: \"http://a:$(PORT)\"}]\n        args: [\"--port=$(PORT)\"]\n")),
		},
		"OtherContainerVariable": {
			reason:   "A container without the variable does not replace it.",
			files:    withResource(deployment("        args: [\"--port=$(PORT)\"]\n")),
			problems: []string{`resources/other.yaml:12: spec.template.spec.containers[0].args[0]: no variable of "--port=$(PORT)" has the name "PORT"`},
		},
		"VariableOfNothing": {
			reason:   "A variable resolves to a value of the instance.",
			files:    map[string]string{templateFile: "vars:\n- name: REGION\n  objref: {kind: Small, apiVersion: packs.example.org/v1, name: \"\"}\n  fieldref: {fieldPath: spec.regoin}\n"},
			problems: []string{"resources/kustomization.yaml.tmpl:2: vars[0] (REGION): the variable resolves to nothing: the instance has no spec.regoin"},
		},
		"VariableOfObject": {
			reason:   "A variable is no object.",
			files:    map[string]string{templateFile: "vars:\n- name: REGION\n  objref: {kind: Small, apiVersion: packs.example.org/v1, name: \"\"}\n  fieldref: {fieldPath: spec}\n"},
			problems: []string{"resources/kustomization.yaml.tmpl:2: vars[0] (REGION): spec is no single value"},
		},
		"VariableOfOtherResource": {
			reason:   "A variable of a resource that does not exist resolves to nothing.",
			files:    map[string]string{templateFile: "vars:\n- name: REGION\n  objref: {kind: Thing, apiVersion: example.org/v1, name: none}\n  fieldref: {fieldPath: spec.region}\n"},
			problems: []string{"resources/kustomization.yaml.tmpl:2: vars[0] (REGION): the variable resolves to nothing: no file has a Thing none"},
		},
		"OldName": {
			reason:   "Without a nameReference the field still has the name in the files.",
			files:    withResource("apiVersion: example.org/v1\nkind: Other\nmetadata:\n  name: other\nspec:\n  thingRef:\n    name: thing\n  description: thing\n"),
			warnings: []string{`resources/other.yaml:7: spec.thingRef.name: "thing" is the name of a Thing before it gets a prefix: add a nameReference for the kind Thing with path spec/thingRef/name and kind Other to kustomizeconfig.yaml`},
		},
		"OwnNames": {
			reason: "The labels and the container of a Deployment may have its name.",
			files:  withResource(deployment("")),
		},
		"NoPrefix": {
			reason:   "Kustomize adds no prefix to a Namespace.",
			files:    withResource("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shared\n"),
			warnings: []string{"resources/other.yaml:4: metadata.name: Namespace shared has no prefix, so that two instances have the same object; use a variable in the name"},
		},
		"UnusedFile": {
			reason:   "A file that no kustomization names is not applied.",
			files:    map[string]string{"resources/lost.yaml": "a: b\n"},
			warnings: []string{"resources/lost.yaml: no kustomization refers to the file"},
		},
		"UnusedVariable": {
			reason: "A variable that is not used may be misspelt.",
			edit: func(p *v1alpha1.ResourcePack) {
				p.Spec.Variables = []v1alpha1.Variable{{Name: "SIZE", FieldPath: "spec.size"}}
			},
			warnings: []string{"SIZE: no file uses the variable"},
		},
		"VariableTwice": {
			reason: "A name stands for one value.",
			edit: func(p *v1alpha1.ResourcePack) {
				p.Spec.Variables = []v1alpha1.Variable{{Name: "REGION", FieldPath: "spec.size"}}
			},
			problems: []string{"pack.yaml: spec.variables[0].name: REGION is defined twice"},
		},
		"UnknownField": {
			reason:   "A field that is not on the list is refused.",
			files:    map[string]string{kustomizationFile: "resources: [thing.yaml]\nHelmCharts: []\n"},
			problems: []string{"resources/kustomization.yaml:2: HelmCharts: the field is not allowed; the allowed fields are " + strings.Join(allowedFields, ", ")},
		},
		"TemplateWithFiles": {
			reason:   "The template is used in a folder of its own.",
			files:    map[string]string{templateFile: "configurations: [a.yaml]\n"},
			problems: []string{"resources/kustomization.yaml.tmpl: configurations: files are not allowed in the template; refer to them in resources/kustomization.yaml"},
		},
		"Missing": {
			reason:   "A reference to no file has a position.",
			files:    map[string]string{kustomizationFile: "resources:\n- thing.yaml\n- no.yaml\n"},
			problems: []string{"resources/kustomization.yaml:3: resources[1]: the pack has no resources/no.yaml"},
		},
		"NoKustomization": {
			reason:   "Each folder has a kustomization.",
			files:    map[string]string{kustomizationFile: "resources: [a]\n", "resources/a/thing.yaml": "a: b\n"},
			problems: []string{"resources/a: the folder has 0 kustomizations, and needs one: kustomization.yaml"},
		},
		"TwoKustomizations": {
			reason:   "Kustomize reads one file of a folder.",
			files:    map[string]string{"resources/kustomization.yml": "resources: [thing.yaml]\n"},
			problems: []string{"resources: the folder has 2 kustomizations, and needs one: kustomization.yaml"},
		},
		"Cycle": {
			reason:   "A folder that refers to itself has no end.",
			files:    map[string]string{kustomizationFile: "resources: [a]\n", "resources/a/kustomization.yaml": "resources:\n- ../../resources\n"},
			problems: []string{"resources/a/kustomization.yaml:2: resources refers to a folder that refers to it: resources → resources/a → resources"},
		},
		"NoResource": {
			reason:   "A document without a kind has a position.",
			files:    map[string]string{"resources/thing.yaml": "metadata:\n  name: thing\n"},
			problems: []string{"resources/thing.yaml:1: the document is no resource: it needs apiVersion and kind"},
		},
		"NoName": {
			reason:   "A resource without a name has a position.",
			files:    map[string]string{"resources/thing.yaml": "apiVersion: example.org/v1\nkind: Thing\nmetadata:\n  labels: {}\n"},
			problems: []string{"resources/thing.yaml:4: metadata.name: is required"},
		},
		"Itself": {
			reason:   "An instance that makes instances has no end.",
			files:    withResource("apiVersion: packs.example.org/v2\nkind: Small\nmetadata:\n  name: two\n"),
			problems: []string{"resources/other.yaml:2: kind: a pack cannot contain an instance of itself"},
		},
		"PatchedInstance": {
			reason:   "A patch in the template cannot remove the instance.",
			files:    map[string]string{templateFile: "patches:\n- patch: |\n    $patch: delete\n    apiVersion: packs.example.org/v1\n    kind: Small\n    metadata: {name: one}\n", "resources/thing.yaml": "apiVersion: example.org/v1\nkind: Thing\nmetadata:\n  name: thing\n"},
			problems: []string{"the result of kustomize has 0 instances; the pack must not change them"},
		},
		"Twice": {
			reason:   "The errors of kustomize are reported.",
			files:    map[string]string{kustomizationFile: "resources:\n- thing.yaml\n- thing.yaml\n"},
			problems: []string{"kustomize: accumulating resources"},
		},
		"Alias": {
			reason:   "A short file with aliases stands for a long one.",
			files:    withResource("apiVersion: example.org/v1\nkind: Other\nmetadata: &a\n  name: other\nspec: *a\n"),
			problems: []string{"resources/other.yaml:3: anchors and aliases are not allowed; repeat the value", "resources/other.yaml:5: anchors and aliases are not allowed; repeat the value"},
		},
		"Tag": {
			reason:   "A tag lets two parsers read different values.",
			files:    withResource("apiVersion: example.org/v1\nkind: Other\nmetadata:\n  name: !!binary b3RoZXI=\n"),
			problems: []string{"resources/other.yaml:4: the tag !!binary is not allowed; leave it out"},
		},
		"Merge": {
			reason:   "A merge key is no text.",
			files:    map[string]string{kustomizationFile: "<<: {helmCharts: []}\nresources: [thing.yaml]\n"},
			problems: []string{`resources/kustomization.yaml:1: the key "<<" is no text; quote it`},
		},
		"KeyTwice": {
			reason:   "Parsers differ in the value of a key that appears twice.",
			files:    map[string]string{kustomizationFile: "resources: [thing.yaml]\nresources: [https://example.org]\n"},
			problems: []string{`resources/kustomization.yaml:2: the key "resources" appears twice`},
		},
		"NoYAML": {
			reason:   "An error of the parser has a position.",
			files:    map[string]string{"resources/thing.yaml": "a: b\n  c: d\n"},
			problems: []string{"resources/thing.yaml:2: no YAML: yaml: line 2: mapping values are not allowed in this context"},
		},
		"Deep": {
			reason:   "A document has a limited number of levels.",
			files:    map[string]string{"resources/thing.yaml": strings.Repeat("[", 200) + strings.Repeat("]", 200)},
			problems: []string{"resources/thing.yaml:1: more than 100 levels"},
		},
		"Binary": {
			reason:   "A file is a text.",
			files:    map[string]string{"resources/thing.bin": "\xff"},
			problems: []string{"resources/thing.bin: the file is no text in UTF-8"},
		},
		"Path": {
			reason:   "A path stays in its folder.",
			files:    map[string]string{"../a": "a", "/b": "b", "c//d": "c", "d/../e": "e", "f g": "f", "github.com/a/b": "g"},
			problems: []string{"../a: ", "/b: ", "c//d: ", "d/../e: ", "f g: ", "github.com/a/b: "},
		},
		"Long": {
			reason:   "A pack has a limited size.",
			files:    map[string]string{"a": strings.Repeat("a", maxBytes)},
			problems: []string{"spec.files: the files have "},
		},
		"ManyLoads": {
			reason:   "Folders that refer to others twice load more files with each level.",
			files:    doubling(12),
			problems: []string{"the pack loads more than 512 files and folders"},
		},
		"LongVariables": {
			reason:   "A long value in many places would take much memory.",
			files:    withResource("apiVersion: example.org/v1\nkind: Thing\nmetadata:\n  name: other\nspec:\n  long: " + strings.Repeat("a", 20000) + "\n  region: " + strings.Repeat("$(REGION)", 20000) + "\n"),
			problems: []string{"spec.files: 20001 uses of variables with values of up to 180000 bytes are too many"},
		},
		"OtherKind": {
			reason:   "The example is an instance.",
			edit:     func(p *v1alpha1.ResourcePack) { p.Spec.CRD.Version = "v2" },
			problems: []string{"kind: must be Small, packs.example.org/v2, not Small, packs.example.org/v1"},
		},
		"NoExample": {
			reason:   "The example is required.",
			edit:     func(p *v1alpha1.ResourcePack) { p.Spec.Example = nil },
			problems: []string{"pack.yaml: spec.example: is required: an instance, which the check renders"},
		},
		"BrokenKind": {
			reason:   "The names of the kind are those of a definition.",
			edit:     func(p *v1alpha1.ResourcePack) { p.Spec.CRD.Group, p.Spec.CRD.Plural = "a_b", "Smalls" },
			problems: []string{"pack.yaml: spec.crd.group: ", "pack.yaml: spec.crd.plural: "},
		},
		"LongName": {
			reason:   "The name of an instance is the value of a label.",
			edit:     func(p *v1alpha1.ResourcePack) { setExample(p, "metadata: {name: "+strings.Repeat("a", 64)+"}") },
			problems: []string{"metadata.name: must be no more than 63 "},
		},
		"LongChildName": {
			reason:   "The name of a Service with its prefix has a limited length.",
			files:    withResource("apiVersion: v1\nkind: Service\nmetadata:\n  name: other\n"),
			edit:     func(p *v1alpha1.ResourcePack) { setExample(p, "metadata: {name: "+strings.Repeat("a", 60)+"}") },
			problems: []string{"resources/other.yaml:4: metadata.name: Service " + strings.Repeat("a", 60) + "-other: must be no more than 63 "},
		},
		"VariableInInstance": {
			reason:   "A value of an instance is no variable.",
			edit:     func(p *v1alpha1.ResourcePack) { setExample(p, "metadata: {name: one}\nspec: {region: $(REGION)}") },
			problems: []string{`spec.region: must not contain "$("`},
		},
		"Namespaced": {
			reason: "An instance in a namespace owns objects in it.",
			edit:   func(p *v1alpha1.ResourcePack) { namespaced(p) },
		},
		"ClusterScopedChild": {
			reason:   "An instance in a namespace cannot own an object without one.",
			files:    withResource("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: other\n"),
			edit:     namespaced,
			problems: []string{"ClusterRole one-other has no namespace, and an instance in team cannot own it; use the scope Cluster"},
		},
		"OtherNamespace": {
			reason:   "An instance in a namespace cannot own an object in another.",
			files:    withResource("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: other\n  namespace: default\n"),
			edit:     namespaced,
			problems: []string{"ConfigMap one-other is in the namespace default, and an instance in team cannot own it"},
		},
		"NoNamespace": {
			reason:   "The scope says whether an instance has a namespace.",
			edit:     func(p *v1alpha1.ResourcePack) { p.Spec.CRD.Scope = apiextensionsv1.NamespaceScoped },
			problems: []string{"metadata.namespace: is required: the scope of Small is Namespaced"},
		},
		"Tiers": {
			reason: "A tier has an expression and a folder.",
			edit: func(p *v1alpha1.ResourcePack) {
				p.Spec.Tiers = []v1alpha1.Tier{{When: "self.spec.size", Path: "resources"}, {When: "'a'", Path: "no"}, {When: "self.", Path: "resources"}}
			},
			problems: []string{"pack.yaml: spec.tiers[0].when: the expression gives dyn, and must give true or false", "pack.yaml: spec.tiers[1].when: the expression gives string", "pack.yaml: spec.tiers[1].path: the pack has no folder \"no\"", "pack.yaml: spec.tiers[2].when: ERROR"},
		},
		"TierOfMissingField": {
			reason: "An expression that fails is an error.",
			edit: func(p *v1alpha1.ResourcePack) {
				p.Spec.Tiers = []v1alpha1.Tier{{When: "self.spec.no == 1", Path: "resources"}}
			},
			problems: []string{"pack.yaml: spec.tiers[0].when: no such key: no"},
		},
		"OtherTier": {
			reason: "Each tier is checked, whichever the example has.",
			files:  map[string]string{"resources/large/kustomization.yaml": "resources: [no.yaml]\n"},
			edit: func(p *v1alpha1.ResourcePack) {
				p.Spec.Tiers = []v1alpha1.Tier{{When: "self.spec.size > 10", Path: "resources/large"}}
			},
			problems: []string{"resources/large/kustomization.yaml:1: resources[0]: the pack has no resources/large/no.yaml"},
		},
		"OverlayOfNothing": {
			reason: "An overlay names a resource.",
			edit: func(p *v1alpha1.ResourcePack) {
				p.Spec.Overlays = []v1alpha1.Overlay{{APIVersion: "example.org/v1", Kind: "Thing", Name: "no"}}
			},
			problems: []string{"pack.yaml: spec.overlays[0]: the pack has no Thing no, example.org/v1"},
		},
	}
	for field := range refusedFields {
		cases["Refused"+field] = struct {
			reason   string
			files    map[string]string
			edit     func(*v1alpha1.ResourcePack)
			problems []string
			warnings []string
		}{
			reason:   "A field that runs a program, or reaches out of the pack, is refused by name.",
			files:    map[string]string{kustomizationFile: "resources: [thing.yaml]\n" + field + ": []\n", templateFile: field + ": []\n"},
			problems: []string{fmt.Sprintf("resources/kustomization.yaml.tmpl:1: %s: the field is not allowed: %s", field, refusedFields[field])},
		}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pack := small(tc.files)
			if tc.edit != nil {
				tc.edit(pack)
			}
			report := Check(pack)
			for _, found := range []struct {
				what string
				want []string
				got  Problems
			}{{"problems", tc.problems, report.Problems}, {"warnings", tc.warnings, report.Warnings}} {
				if diff := cmp.Diff(found.want, begins(found.want, found.got)); diff != "" {
					t.Errorf("%s\n%s (-want +got):\n%s", tc.reason, found.what, diff)
				}
			}
		})
	}
}

// begins returns the problems as texts. A problem that contains the text that is wanted
// in its place is that text.
func begins(want []string, got Problems) []string {
	var out []string
	for i, problem := range got {
		text := problem.String()
		if i < len(want) && strings.Contains(text, want[i]) && !strings.HasPrefix(want[i], "warning") {
			text = want[i]
		}
		out = append(out, text)
	}
	return out
}

// setExample replaces fields of the example.
func setExample(p *v1alpha1.ResourcePack, fields string) {
	content := "apiVersion: packs.example.org/v1\nkind: Small\n" + fields + "\n"
	if !strings.Contains(fields, "spec:") {
		content += "spec: {region: eu}\n"
	}
	p.Spec.Example = &apiextensionsv1.JSON{Raw: toJSON(content)}
}

// namespaced gives the instances of a pack a namespace.
func namespaced(p *v1alpha1.ResourcePack) {
	p.Spec.CRD.Scope = apiextensionsv1.NamespaceScoped
	setExample(p, "metadata: {name: one, namespace: team}")
}

// doubling returns folders of which each refers to the next one twice.
func doubling(levels int) map[string]string {
	out := map[string]string{kustomizationFile: "resources: [thing.yaml, ../l0]\n"}
	for i := range levels {
		next := fmt.Sprintf("../l%d", i+1)
		out[fmt.Sprintf("l%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [%s, %s]\n", next, next)
	}
	out[fmt.Sprintf("l%d/kustomization.yaml", levels)] = "commonLabels: {a: b}\n"
	return out
}
