package packs

import (
	"fmt"
	"path"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"
)

// kustomizeMutex lets one run of kustomize happen at a time: kustomize keeps its schema
// in a global map without a lock.
var kustomizeMutex sync.Mutex

// The folders of the file system in memory.
const (
	packFolder    = "/pack"
	overlayFolder = "/overlay"
	instanceFile  = "instance.yaml"
)

// originAnnotation is the annotation of kustomize with the file of a resource.
const originAnnotation = "config.kubernetes.io/origin"

// child is a rendered resource, and the file in the pack that it comes from.
type child struct {
	*unstructured.Unstructured
	file string
}

// runKustomize runs kustomize on a file system in memory. The Kustomization and the
// files have been checked: nothing in them is remote, or runs a program.
func runKustomize(files map[string]string, k types.Kustomization, instance *unstructured.Unstructured) (children []child, err error) {
	kustomizeMutex.Lock()
	defer kustomizeMutex.Unlock()
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("kustomize panicked: %v", cause)
		}
	}()
	memory := filesys.MakeFsInMemory()
	for name, content := range files {
		if err := memory.WriteFile(path.Join(packFolder, name), []byte(content)); err != nil {
			return nil, err
		}
	}
	k.BuildMetadata = []string{types.OriginAnnotations}
	for name, value := range map[string]any{konfig.DefaultKustomizationFileName(): k, instanceFile: instance.Object} {
		content, err := yaml.Marshal(value)
		if err != nil {
			return nil, err
		}
		if err := memory.WriteFile(path.Join(overlayFolder, name), content); err != nil {
			return nil, err
		}
	}
	result, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, overlayFolder)
	if err != nil {
		return nil, err
	}
	return toChildren(result)
}

func toChildren(result resmap.ResMap) ([]child, error) {
	out := make([]child, 0, result.Size())
	for _, r := range result.Resources() {
		// Only decoded JSON has the types of numbers that unstructured objects need.
		data, err := r.MarshalJSON()
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(data); err != nil {
			return nil, err
		}
		var origin struct {
			Path string `json:"path"`
		}
		if err := yaml.Unmarshal([]byte(object.GetAnnotations()[originAnnotation]), &origin); err != nil {
			return nil, err
		}
		removeAnnotation(object, originAnnotation)
		file, _ := strings.CutPrefix(path.Join(overlayFolder, origin.Path), packFolder+"/")
		out = append(out, child{object, file})
	}
	return out, nil
}

// isClusterScoped tells whether Kubernetes has the kind, without a namespace. The scope
// of other kinds is unknown here.
func isClusterScoped(object *unstructured.Unstructured) bool {
	kustomizeMutex.Lock()
	defer kustomizeMutex.Unlock()
	return openapi.IsCertainlyClusterScoped(kyaml.TypeMeta{APIVersion: object.GetAPIVersion(), Kind: object.GetKind()})
}
