package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/test/cluster"
)

// A reader reads objects of a cluster by the arguments of kubectl get. Specs read ten times
// a second while they wait, and a process of kubectl takes a tenth of a second of a core.
type reader struct {
	objects dynamic.Interface
	kinds   *restmapper.DeferredDiscoveryRESTMapper
	mapper  meta.RESTMapper // which knows the short names of kinds, too
}

var readers sync.Map // by *cluster.Cluster

// allNamespaces stands for a namespace.
const allNamespaces = "*"

func readerOf(c *cluster.Cluster) *reader {
	GinkgoHelper()
	if known, ok := readers.Load(c); ok {
		return known.(*reader)
	}
	config := c.Config()
	config.QPS, config.Timeout = -1, 30*time.Second
	objects, err := dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	direct, err := discovery.NewDiscoveryClientForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	cached := memory.NewMemCacheClient(direct)
	kinds := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	made := &reader{objects: objects, kinds: kinds, mapper: restmapper.NewShortcutExpander(kinds, cached, func(string) {})}
	known, _ := readers.LoadOrStore(c, made)
	return known.(*reader)
}

// mapping finds a kind by its name, plural or short name, with or without its group. The
// kind may be defined since another was looked for.
func (r *reader) mapping(kind string) (*meta.RESTMapping, error) {
	known, err := r.knownMapping(kind)
	if meta.IsNoMatchError(err) {
		r.kinds.Reset()
		return r.knownMapping(kind)
	}
	return known, err
}

func (r *reader) knownMapping(kind string) (*meta.RESTMapping, error) {
	gvk := schema.GroupVersionKind{}
	full, partial := schema.ParseResourceArg(kind)
	if full != nil {
		gvk, _ = r.mapper.KindFor(*full) // or the version is the beginning of the group
	}
	if gvk.Empty() {
		var err error
		if gvk, err = r.mapper.KindFor(partial.WithVersion("")); err != nil {
			return nil, err
		}
	}
	return r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

// read reads a kind, or a kind/name, of a namespace. An object that does not exist is
// not among the results.
func (r *reader) read(namespace, name string, options metav1.ListOptions) ([]unstructured.Unstructured, error) {
	kind, name, isOne := strings.Cut(name, "/")
	mapping, err := r.mapping(kind)
	if err != nil {
		return nil, err
	}
	of := r.in(namespace, mapping)
	if !isOne {
		list, err := of.List(context.Background(), options)
		if err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		return list.Items, nil
	}
	object, err := of.Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return []unstructured.Unstructured{*object}, nil
}

// in returns the objects of a kind in a namespace, if the kind has namespaces.
func (r *reader) in(namespace string, mapping *meta.RESTMapping) dynamic.ResourceInterface {
	switch {
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace || namespace == allNamespaces:
		return r.objects.Resource(mapping.Resource)
	case namespace == "":
		namespace = metav1.NamespaceDefault
	}
	return r.objects.Resource(mapping.Resource).Namespace(namespace)
}

func (r *reader) create(namespace, manifest string) error {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		return err
	}
	gvk := object.GroupVersionKind()
	mapping, err := r.mapping(strings.Join([]string{gvk.Kind, gvk.Version, gvk.Group}, "."))
	if err != nil {
		return err
	}
	_, err = r.in(namespace, mapping).Create(context.Background(), object, metav1.CreateOptions{})
	return err
}

// get returns a field of an object, by JSON path, or "" when there is none. Several
// objects, or kinds, are separated by commas; a path into them begins with .items.
func get(c *cluster.Cluster, namespace, objects, path string) string {
	GinkgoHelper()
	template := jsonpath.New("").AllowMissingKeys(true)
	Expect(template.Parse("{" + path + "}")).To(Succeed())
	all := strings.Split(objects, ",")
	items := []any{}
	for _, name := range all {
		found, err := readerOf(c).read(namespace, name, metav1.ListOptions{})
		if err != nil {
			GinkgoWriter.Printf("reading %s of namespace %q on %s: %v\n", name, namespace, c.Name(), err)
			return ""
		}
		for i := range found {
			items = append(items, found[i].Object)
		}
	}
	var content any = map[string]any{"items": items}
	if len(all) == 1 && strings.Contains(objects, "/") {
		if len(items) == 0 {
			return ""
		}
		content = items[0]
	}
	var out strings.Builder
	Expect(template.Execute(&out, content)).To(Succeed())
	return out.String()
}

// names lists objects, or kinds, separated by commas, as kubectl get -o name prints
// them. Of the flags of kubectl get, those that select are understood.
func names(c *cluster.Cluster, namespace, objects string, flags ...string) []string {
	GinkgoHelper()
	options := metav1.ListOptions{}
	for i := 0; i < len(flags); i++ {
		flag, value, hasValue := strings.Cut(flags[i], "=")
		if !hasValue && flag != "--ignore-not-found" {
			i++
			value = flags[i]
		}
		switch flag {
		case "-l", "--selector":
			options.LabelSelector = value
		case "--field-selector":
			options.FieldSelector = value
		case "--ignore-not-found":
		default:
			Fail("names knows no flag " + flag)
		}
	}
	var out []string
	for _, name := range strings.Split(objects, ",") {
		found, err := readerOf(c).read(namespace, name, options)
		Expect(err).NotTo(HaveOccurred(), "reading %s of namespace %q on %s", name, namespace, c.Name())
		for _, object := range found {
			kind := strings.ToLower(object.GetKind())
			if group := object.GroupVersionKind().Group; group != "" {
				kind += "." + group
			}
			out = append(out, kind+"/"+object.GetName())
		}
	}
	return out
}

// events returns the events of an object on the hub, one a line, oldest first: type,
// reason, reporter and message, separated by two spaces.
func events(namespace, object string) string {
	GinkgoHelper()
	found, err := readerOf(hub).read(namespace, object, metav1.ListOptions{})
	if err == nil && len(found) == 0 {
		err = errors.New("it does not exist")
	}
	Expect(err).NotTo(HaveOccurred(), "reading %s of namespace %q", object, namespace)
	list, err := readerOf(hub).read(namespace, "events.v1.", metav1.ListOptions{FieldSelector: fields.Set{
		"involvedObject.kind": found[0].GetKind(), "involvedObject.name": found[0].GetName(), "involvedObject.uid": string(found[0].GetUID()),
	}.AsSelector().String()})
	Expect(err).NotTo(HaveOccurred(), "reading the events of %s of namespace %q", object, namespace)
	slices.SortStableFunc(list, func(a, b unstructured.Unstructured) int {
		return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
	})
	var out strings.Builder
	for _, event := range list {
		field := func(path ...string) string {
			text, _, _ := unstructured.NestedString(event.Object, path...)
			return text
		}
		fmt.Fprintf(&out, "  %s  %s  %s  %s\n", field("type"), field("reason"), field("reportingComponent"), field("message"))
	}
	return out.String()
}
