package manifests

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Document is one YAML or JSON document of a file, or an item of a List in it.
type Document struct {
	// File is the file of the document, as the user named it; "-" is standard
	// input.
	File string
	// Line is the line of the file on which the document begins.
	Line int
	// Content is the decoded document.
	Content map[string]any

	text string // the text of the whole document
}

// Kind returns the apiVersion and the kind of the document.
func (d Document) Kind() (apiVersion, kind string) {
	apiVersion, _ = d.Content["apiVersion"].(string)
	kind, _ = d.Content["kind"].(string)
	return apiVersion, kind
}

// DecodeInto decodes the document into a type. A field that the type does not
// have is an error.
func (d Document) DecodeInto(object any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(d.Content, object, true); err != nil {
		return d.Errorf("%w", err)
	}
	return nil
}

// Errorf returns an error with the position of the document.
func (d Document) Errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", d.File, d.Line, fmt.Errorf(format, args...))
}

// Documents reads all documents of files, of the manifests in directories and
// their subdirectories, and of standard input for "-". It returns the problems of
// all files together.
func Documents(stdin io.Reader, paths ...string) ([]Document, error) {
	var out []Document
	var problems []error
	for _, path := range paths {
		files, err := filesAt(path, isManifest)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		for _, file := range files {
			text, err := readFile(stdin, file)
			if err != nil {
				problems = append(problems, err)
				continue
			}
			documents, err := parseDocuments(file, text)
			if err != nil {
				problems = append(problems, err)
			}
			out = append(out, documents...)
		}
	}
	return out, errors.Join(problems...)
}

func isManifest(file string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file))
}

// maxFile is the maximal size of a file.
const maxFile = 64 << 20

func readFile(stdin io.Reader, file string) (string, error) {
	if file == "-" {
		text, err := io.ReadAll(io.LimitReader(stdin, maxFile))
		return string(text), err
	}
	info, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	if info.Size() > maxFile {
		return "", fmt.Errorf("%s: is %d bytes; at most %d are read", file, info.Size(), maxFile)
	}
	text, err := os.ReadFile(file)
	return string(text), err
}

// filesAt returns the file at a path, or the matching files in a directory, in
// order. It skips hidden files.
func filesAt(path string, wanted func(string) bool) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var out []string
	err = filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := file != path && strings.HasPrefix(d.Name(), ".")
		switch {
		case hidden && d.IsDir():
			return filepath.SkipDir
		case hidden || d.IsDir() || !wanted(file):
			return nil
		}
		out = append(out, file)
		return nil
	})
	return out, err
}

// parseDocuments reads the documents of a file.
func parseDocuments(file, text string) ([]Document, error) {
	var out []Document
	var problems []error
	for _, part := range splitDocuments(text) {
		d := Document{File: file, Line: part.line, text: part.text}
		content, err := decode(part.text)
		if err != nil {
			problems = append(problems, d.locate(err))
			continue
		}
		if len(content) == 0 {
			continue
		}
		d.Content = content
		d.Line += d.firstLine()
		items, isList := content["items"].([]any)
		if _, kind := d.Kind(); !isList || !strings.HasSuffix(kind, "List") {
			out = append(out, d)
			continue
		}
		for _, item := range items {
			content, ok := item.(map[string]any)
			if !ok {
				problems = append(problems, d.Errorf("an item of the List is not an object"))
				continue
			}
			out = append(out, Document{File: file, Line: d.Line, Content: content})
		}
	}
	return out, errors.Join(problems...)
}

// documentText is the text of one document, and the line of the file it begins on.
type documentText struct {
	text string
	line int
}

func splitDocuments(text string) []documentText {
	current, number := documentText{line: 1}, 0
	var out []documentText
	for line := range strings.Lines(text) {
		number++
		if trimmed := strings.TrimRight(line, " \t\r\n"); trimmed == "---" || strings.HasPrefix(line, "--- ") {
			out = append(out, current)
			current = documentText{line: number + 1}
			continue
		}
		current.text += line
	}
	return append(out, current)
}

func decode(text string) (map[string]any, error) {
	encoded, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal(encoded, &value); err != nil {
		return nil, err
	}
	switch content := value.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return content, nil
	default:
		return nil, fmt.Errorf("holds %T and not an object", value)
	}
}

// firstLine counts the comments and empty lines before the content.
func (d Document) firstLine() int {
	count := 0
	for line := range strings.Lines(d.text) {
		if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "#") {
			return count
		}
		count++
	}
	return 0
}

var yamlLine = regexp.MustCompile(`(?:error converting YAML to JSON: )?yaml: (?:unmarshal errors:\s*)?line (\d+): `)

// locate replaces the line in an error of the YAML parser by the line of the
// file.
func (d Document) locate(err error) error {
	text := err.Error()
	if found := yamlLine.FindStringSubmatchIndex(text); found != nil {
		number, _ := strconv.Atoi(text[found[2]:found[3]])
		return fmt.Errorf("%s:%d: %s", d.File, d.Line+number-1, strings.TrimSpace(text[found[1]:]))
	}
	return d.Errorf("%s", strings.TrimPrefix(text, "error converting YAML to JSON: "))
}
