package load

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

// Source is a policy, and the files it was read from.
type Source struct {
	*policyv1alpha1.Policy
	// File that the policy is in: its rules, or its manifest.
	File string

	places map[string]place
}

// place is where a module is.
type place struct {
	file string
	// line and column are how many there are before the module's first.
	line, column int
}

// Locate gives a problem of the policy the file, line and column that its author
// sees.
func (s Source) Locate(p engine.Problem) engine.Problem {
	at, known := s.places[p.File]
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

// At is the file and line of a line of a module.
func (s Source) At(module string, line int) string {
	p := s.Locate(engine.Problem{File: module, Line: line})
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Policies reads the policies at paths: Rego files and those in directories, of
// which engine.Assemble makes policies; Policy manifests; and bundles of OPA,
// whose name ends in .tar.gz or .tgz. They are sorted by name. A manifest without
// modules is no policy: it may be what a rehearsal changes in one.
func Policies(stdin io.Reader, paths ...string) ([]Source, error) {
	var out []Source
	var problems []error
	rego := map[string]string{}
	for _, at := range paths {
		found, err := read(stdin, at, rego)
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
		out = append(out, sourceOf(a, func(file string) string { return file }))
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

// Shipped returns the policies that Portico brings.
func Shipped() ([]Source, error) {
	policies, err := engine.Shipped()
	out := make([]Source, 0, len(policies))
	for _, policy := range policies {
		out = append(out, Of(policy, "shipped"))
	}
	return out, err
}

// Of is a policy that comes from somewhere else than files, such as a cluster.
func Of(policy *policyv1alpha1.Policy, from string) Source {
	s := Source{Policy: policy, File: from + " Policy " + policy.Name, places: map[string]place{}}
	for module := range policy.Spec.Modules {
		s.places[module] = place{file: s.File + ": " + module}
	}
	return s
}

// read reads one path. Rego goes to rego, by file, to be assembled.
func read(stdin io.Reader, at string, rego map[string]string) ([]Source, error) {
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
				problems = append(problems, pair(file, rego))
			}
		case file == at || strings.Contains(text, policyv1alpha1.Group):
			found, err := manifests(file, text)
			problems = append(problems, err)
			out = append(out, found...)
		}
	}
	return out, errors.Join(problems...)
}

const testSuffix = "_test.rego"

// pair adds, to a file named by itself, the file next to it that it belongs to:
// its tests, or what it tests.
func pair(file string, rego map[string]string) error {
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

func sourceOf(a engine.Assembled, name func(string) string) Source {
	s := Source{Policy: a.Policy, places: map[string]place{}}
	for module, file := range a.Files {
		s.places[module] = place{file: name(file)}
		if !strings.HasSuffix(module, testSuffix) {
			s.File = name(file)
		}
	}
	return s
}

// manifests reads the Policy manifests of a file.
func manifests(file, text string) ([]Source, error) {
	documents, err := split(file, text)
	problems := []error{err}
	var out []Source
	for _, d := range documents {
		if !IsPolicy(d) {
			continue
		}
		policy := &policyv1alpha1.Policy{}
		if err := d.Into(policy); err != nil {
			problems = append(problems, err)
			continue
		}
		if len(policy.Spec.Modules) == 0 {
			continue
		}
		policy.TypeMeta = metav1.TypeMeta{APIVersion: policyv1alpha1.GroupVersion.String(), Kind: "Policy"}
		out = append(out, Source{Policy: policy, File: file, places: placesIn(d, policy.Spec.Modules)})
	}
	return out, errors.Join(problems...)
}

// IsPolicy tells a Policy.
func IsPolicy(d Document) bool {
	apiVersion, kind := d.Kind()
	return kind == "Policy" && apiVersion == policyv1alpha1.GroupVersion.String()
}

// maxBundle bounds what is unpacked of a bundle.
const maxBundle = 16 << 20

// readBundle reads a bundle. Its data is not for policies, which decide by their
// input alone; one with a signature has to be verified first, by opa.
func readBundle(file string) ([]Source, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := bundle.NewCustomReader(bundle.NewTarballLoaderWithBaseURL(f, "")).
		WithRegoVersion(ast.RegoV1).WithProcessAnnotations(true).WithSizeLimitBytes(maxBundle).
		WithLazyLoadingMode(true). // modules that do not parse are read as well
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
		out = append(out, sourceOf(a, func(module string) string { return file + ":" + module }))
	}
	return out, nil
}
