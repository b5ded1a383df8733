package packs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
)

func TestKustomizationPatchers(t *testing.T) {
	instance := decode(t, "apiVersion: packs.example.org/v1\nkind: Small\nmetadata: {name: one, namespace: team, uid: u}\n")
	variable := func(target types.Target) types.Var { return types.Var{Name: "A", ObjRef: target} }
	filled := types.Target{APIVersion: "packs.example.org/v1", Gvk: resid.Gvk{Kind: "Small"}, Name: "one", Namespace: "team"}
	other := types.Target{APIVersion: "other.example.org/v1", Gvk: resid.Gvk{Kind: "Small"}, Name: "two"}
	cases := map[string]struct {
		reason  string
		patcher KustomizationPatcherFunc
		in      types.Kustomization
		want    types.Kustomization
	}{
		"Prefix": {
			reason:  "The name of the instance is the first part of the prefix.",
			patcher: NamePrefixer, in: types.Kustomization{NamePrefix: "a-"}, want: types.Kustomization{NamePrefix: "one-a-"},
		},
		"Variant": {
			reason: "The objref of a var names the instance.", patcher: VariantFiller,
			in:   types.Kustomization{Vars: []types.Var{variable(types.Target{APIVersion: "packs.example.org/v1", Gvk: resid.Gvk{Kind: "Small"}})}},
			want: types.Kustomization{Vars: []types.Var{variable(filled)}},
		},
		"VariantWithoutVersion": {
			reason: "An objref without apiVersion names the instance.", patcher: VariantFiller,
			in:   types.Kustomization{Vars: []types.Var{variable(types.Target{Gvk: resid.Gvk{Kind: "Small"}})}},
			want: types.Kustomization{Vars: []types.Var{variable(filled)}},
		},
		"VariantOfOther": {
			reason: "An objref of another kind remains.", patcher: VariantFiller,
			in:   types.Kustomization{Vars: []types.Var{variable(other)}},
			want: types.Kustomization{Vars: []types.Var{variable(other)}},
		},
		"Labels": {
			reason: "The labels of the template are on the metadata alone.", patcher: Labeler,
			in: types.Kustomization{CommonLabels: map[string]string{"a": "b", "packs.example.org/uid": ""}, Labels: []types.Label{{Pairs: map[string]string{"c": "d"}, IncludeSelectors: true}}},
			want: types.Kustomization{Labels: []types.Label{
				{Pairs: map[string]string{"c": "d"}},
				{Pairs: map[string]string{"a": "b", "packs.example.org/name": "one", "packs.example.org/uid": "u"}},
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := tc.patcher.PatchKustomization(instance, &tc.in); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.in, cmpopts.IgnoreUnexported(resid.Gvk{})); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestChildResourcePatchers(t *testing.T) {
	const thing = "apiVersion: example.org/v1\nkind: Thing\n"
	const class = thing + "metadata:\n  annotations: {a: b, resourceclass.crossplane.io/is-default-class: \"true\"}\n"
	cases := map[string]struct {
		reason   string
		patcher  ChildResourcePatcherFunc
		metadata string // of the instance
		in       string
		want     string
	}{
		"Owner": {
			reason: "The instance is the only owner, and the controller.", patcher: OwnerReferencePatcher,
			metadata: "{name: one, uid: u}",
			in:       thing + "metadata:\n  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: b}]\n",
			want:     thing + "metadata:\n  ownerReferences: [{apiVersion: packs.example.org/v1, kind: Small, name: one, uid: u, controller: true, blockOwnerDeletion: true}]\n",
		},
		"Labels": {
			reason: "The labels of the instance replace those of the files.", patcher: LabelPatcher,
			metadata: "{name: one, labels: {a: b, c: d}}",
			in:       thing + "metadata:\n  labels: {a: z, e: f}\n",
			want:     thing + "metadata:\n  labels: {a: b, c: d, e: f}\n",
		},
		"ReservedLabels": {
			reason: "The labels with the name and the UID are not those of another instance.", patcher: LabelPatcher,
			metadata: "{name: one, labels: {packs.example.org/name: two, packs.example.org/uid: u2}}",
			in:       thing + "metadata:\n  labels: {packs.example.org/name: one}\n",
			want:     thing + "metadata:\n  labels: {packs.example.org/name: one}\n",
		},
		"ScheduleOfOther": {
			reason: "A kind that is not sent to targets has no schedule label.", patcher: LabelPatcher,
			metadata: "{name: one, labels: {a: b, workload.crossplane.io/schedule: remote}}",
			in:       thing + "metadata: {}\n",
			want:     thing + "metadata:\n  labels: {a: b}\n",
		},
		"Schedule": {
			reason: "A Deployment is sent to a target.", patcher: LabelPatcher,
			metadata: "{name: one, labels: {workload.crossplane.io/schedule: remote}}",
			in:       "apiVersion: apps/v1\nkind: Deployment\nmetadata: {}\n",
			want:     "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  labels: {workload.crossplane.io/schedule: remote}\n",
		},
		"DefaultClass": {
			reason: "The annotation of default classes is removed.", patcher: DefaultClassPatcher,
			metadata: "{name: one}", in: class, want: thing + "metadata:\n  annotations: {a: b}\n",
		},
		"DefaultClassFalse": {
			reason: "Only true keeps the annotation.", patcher: DefaultClassPatcher,
			metadata: "{name: one, annotations: {resourcepacks.crossplane.io/keep-defaulting-annotations: \"false\"}}", in: class, want: thing + "metadata:\n  annotations: {a: b}\n",
		},
		"DefaultClassKept": {
			reason: "The instance keeps the annotation.", patcher: DefaultClassPatcher,
			metadata: "{name: one, annotations: {resourcepacks.crossplane.io/keep-defaulting-annotations: \"true\"}}", in: class, want: class,
		},
		"OnlyAnnotation": {
			reason: "No empty map of annotations remains.", patcher: DefaultClassPatcher,
			metadata: "{name: one}", in: thing + "metadata:\n  name: a\n  annotations: {resourceclass.crossplane.io/is-default-class: \"true\"}\n", want: thing + "metadata:\n  name: a\n",
		},
		"Namespace": {
			reason: "A resource is in the namespace of the instance.", patcher: NamespacePatcher,
			metadata: "{name: one, namespace: team}", in: thing + "metadata: {name: a}\n", want: thing + "metadata: {name: a, namespace: team}\n",
		},
		"NoNamespace": {
			reason: "An instance without a namespace changes none.", patcher: NamespacePatcher,
			metadata: "{name: one}", in: thing + "metadata: {name: a, namespace: b}\n", want: thing + "metadata: {name: a, namespace: b}\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			instance := decode(t, "apiVersion: packs.example.org/v1\nkind: Small\nmetadata: "+tc.metadata+"\n")
			child := decode(t, tc.in)
			for range 2 { // running it twice equals running it once
				if err := tc.patcher.PatchChildResources(instance, []*unstructured.Unstructured{child}); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(decode(t, tc.want).Object, child.Object); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
