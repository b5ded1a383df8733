package manifests

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/bundle"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies/engine"
)

// Source is a policy with its files.
type Source struct {
	*policyv1alpha1.Policy
	// File is the file of the rules, or the manifest.
	File string

	positions map[string]position
}

// position is the position of a module in a file.
type position struct {
	file string
	// line and column are the numbers of lines and columns before the module.
	line, column int
}

// Locate returns a problem with the file, line and column of its source.
func (s Source) Locate(p engine.Problem) engine.Problem {
	at, known := s.positions[p.File]
	switch {
	case p.File == "":
		p.File = s.File
	case !known:
		p.File = s.File + ": " + p.File
	default:
		p.File = at.file
		if p.Line > 0 {
			p.Line += at.line
			p.Column += at.column
			p.Source = strings.Repeat(" ", at.column) + p.Source
		}
	}
	return p
}

// Position returns the file and line of a line of a module.
func (s Source) Position(module string, line int) string {
	p := s.Locate(engine.Problem{File: module, Line: line})
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Policies reads the policies at paths: Rego files and directories of them, which
// engine.Assemble makes into policies; Policy manifests; and bundles of OPA,
// whose names end in .tar.gz or .tgz. It sorts them by name. It skips a manifest
// without modules, which a simulation uses to change a policy.
func Policies(stdin io.Reader, paths ...string) ([]Source, error) {
	var out []Source
	var problems []error
	rego := map[string]string{}
	for _, at := range paths {
		found, err := readPath(stdin, at, rego)
		if err != nil {
			problems = append(problems, err)
		}
		out = append(out, found...)
	}
	assembled, err := engine.Assemble(rego)
	if err != nil {
		problems = append(problems, err)
	}
	for _, a := range assembled {
		out = append(out, newSource(a, func(file string) string { return file }))
	}
	slices.SortStableFunc(out, func(a, b Source) int { return strings.Compare(a.Name, b.Name) })
	for i := range out {
		if i > 0 && out[i].Name == out[i-1].Name && out[i].File != out[i-1].File {
			problems = append(problems, fmt.Errorf("%s and %s are both policy %s; leave one of them out", out[i-1].File, out[i].File, out[i].Name))
		}
	}
	out = slices.CompactFunc(out, func(a, b Source) bool { return a.Name == b.Name })
	if len(problems) == 0 && len(out) == 0 {
		problems = append(problems, fmt.Errorf("there is no policy in %s: neither a .rego file nor a manifest of kind Policy", strings.Join(paths, ", ")))
	}
	return out, errors.Join(problems...)
}

// Shipped returns the policies that are built into Portico.
func Shipped() ([]Source, error) {
	policies, err := engine.Shipped()
	out := make([]Source, 0, len(policies))
	for _, policy := range policies {
		out = append(out, FromPolicy(policy, "shipped"))
	}
	return out, err
}

// FromPolicy returns a policy that was not read from a file, such as one of a
// cluster.
func FromPolicy(policy *policyv1alpha1.Policy, from string) Source {
	s := Source{Policy: policy, File: from + " Policy " + policy.Name, positions: map[string]position{}}
	for module := range policy.Spec.Modules {
		s.positions[module] = position{file: s.File + ": " + module}
	}
	return s
}

// readPath reads one path. It adds Rego files to rego, by file name.
func readPath(stdin io.Reader, at string, rego map[string]string) ([]Source, error) {
	if strings.HasSuffix(at, ".tar.gz") || strings.HasSuffix(at, ".tgz") {
		return readBundle(at)
	}
	files, err := filesAt(at, func(file string) bool { return filepath.Ext(file) == ".rego" || isManifest(file) })
	if err != nil {
		return nil, err
	}
	var out []Source
	var problems []error
	for _, file := range files {
		text, err := readFile(stdin, file)
		switch {
		case err != nil:
			problems = append(problems, err)
		case filepath.Ext(file) == ".rego":
			rego[filepath.ToSlash(file)] = text
			if file == at {
				problems = append(problems, addTestPair(file, rego))
			}
		case file == at || strings.Contains(text, policyv1alpha1.Group):
			found, err := readPolicies(file, text)
			problems = append(problems, err)
			out = append(out, found...)
		}
	}
	return out, errors.Join(problems...)
}

const testSuffix = "_test.rego"

// addTestPair adds the tests of a file that the user named, or the rules of a
// test file.
func addTestPair(file string, rego map[string]string) error {
	other := strings.TrimSuffix(file, ".rego") + testSuffix
	if stem, isTest := strings.CutSuffix(file, testSuffix); isTest {
		other = stem + ".rego"
	}
	text, err := os.ReadFile(other)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	rego[filepath.ToSlash(other)] = string(text)
	return err
}

func newSource(a engine.Assembled, name func(string) string) Source {
	s := Source{Policy: a.Policy, positions: map[string]position{}}
	for module, file := range a.Files {
		s.positions[module] = position{file: name(file)}
		if !strings.HasSuffix(module, testSuffix) {
			s.File = name(file)
		}
	}
	return s
}

// readPolicies reads the Policy manifests of a file.
func readPolicies(file, text string) ([]Source, error) {
	documents, err := parseDocuments(file, text)
	problems := []error{err}
	var out []Source
	for _, d := range documents {
		if !IsPolicy(d) {
			continue
		}
		policy := &policyv1alpha1.Policy{}
		if err := d.DecodeInto(policy); err != nil {
			problems = append(problems, err)
			continue
		}
		if len(policy.Spec.Modules) == 0 {
			continue
		}
		policy.TypeMeta = metav1.TypeMeta{APIVersion: policyv1alpha1.GroupVersion.String(), Kind: "Policy"}
		out = append(out, Source{Policy: policy, File: file, positions: modulePositions(d, policy.Spec.Modules)})
	}
	return out, errors.Join(problems...)
}

// IsPolicy tells whether a document is a Policy.
func IsPolicy(d Document) bool {
	apiVersion, kind := d.Kind()
	return kind == "Policy" && apiVersion == policyv1alpha1.GroupVersion.String()
}

// maxBundle is the maximal unpacked size of a bundle.
const maxBundle = 16 << 20

// readBundle reads a bundle. It ignores the data of the bundle: policies decide
// by their input alone. It does not verify signatures; opa does.
func readBundle(file string) ([]Source, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := bundle.NewCustomReader(bundle.NewTarballLoaderWithBaseURL(f, "")).
		WithRegoVersion(ast.RegoV1).WithProcessAnnotations(true).WithSizeLimitBytes(maxBundle).
		WithLazyLoadingMode(true). // read modules with syntax errors, too
		Read()
	if err != nil {
		return nil, fmt.Errorf("%s: reading the bundle: %w", file, err)
	}
	modules := map[string]string{}
	for _, m := range b.Raw {
		if path.Ext(m.Path) == ".rego" {
			modules[strings.TrimPrefix(cmp.Or(m.Path, "/"), "/")] = string(m.Value)
		}
	}
	assembled, err := engine.Assemble(modules)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	out := make([]Source, 0, len(assembled))
	for _, a := range assembled {
		out = append(out, newSource(a, func(module string) string { return file + ":" + module }))
	}
	return out, nil
}
