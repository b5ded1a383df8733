package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/portico-io/portico/api/kinds"
)

const root = "../../.."

// TestGenerated compares the generated files with the registry.
func TestGenerated(t *testing.T) {
	outputs, err := render(root, kinds.All)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range outputs {
		have, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(have)); diff != "" {
			t.Errorf("%s is not generated from the registry; run make manifests (-want +have):\n%s", path, diff)
		}
	}
}

// TestRegionsAreUsed finds regions that no file has.
func TestRegionsAreUsed(t *testing.T) {
	unused := regions(kinds.All)
	unused[diffRegion] = ""
	for _, path := range files {
		data, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		for name := range unused {
			if strings.Contains(string(data), begin+name+"\n") || strings.Contains(string(data), begin+name+" -->\n") {
				delete(unused, name)
			}
		}
	}
	for name := range unused {
		t.Errorf("no file has region %q", name)
	}
}

func TestReplaceRegions(t *testing.T) {
	regions := map[string]string{"list": "- a\n- b\n"}
	cases := map[string]struct {
		reason, text, want string
		fails              bool
	}{
		"Replaced": {
			reason: "The text between the markers is replaced, with the indentation of the marker.",
			text:   "a:\n  # BEGIN GENERATED list\n  old\n  # END GENERATED\nb: c\n",
			want:   "a:\n  # BEGIN GENERATED list\n  - a\n  - b\n  # END GENERATED\nb: c\n",
		},
		"Markdown": {
			reason: "A Markdown page has markers too.",
			text:   "<!-- BEGIN GENERATED list -->\n<!-- END GENERATED -->\n",
			want:   "<!-- BEGIN GENERATED list -->\n- a\n- b\n<!-- END GENERATED -->\n",
		},
		"None":    {reason: "Other text is not changed.", text: "a: b", want: "a: b"},
		"Unknown": {reason: "A misspelt name is an error.", text: "# BEGIN GENERATED lits\n# END GENERATED\n", fails: true},
		"Open":    {reason: "A region without an end is an error.", text: "# BEGIN GENERATED list\na: b\n", fails: true},
		"Nested":  {reason: "A region inside a region is an error.", text: "# BEGIN GENERATED list\n# BEGIN GENERATED list\n# END GENERATED\n", fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := replaceRegions(tc.text, regions)
			if (err != nil) != tc.fails {
				t.Fatalf("%s got error %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPlural(t *testing.T) {
	for kind, want := range map[string]string{"Deployment": "Deployments", "Ingress": "Ingresses", "NetworkPolicy": "NetworkPolicies"} {
		if got := plural(kind); got != want {
			t.Errorf("plural of %s: got %s, want %s", kind, got, want)
		}
	}
}
