package packs

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/api/resourcepacks/v1alpha1"
)

// PackFile is the file of a folder with the ResourcePack, without spec.files.
const PackFile = "pack.yaml"

// Load reads a folder. The content of PackFile is the pack, and the other files are its
// spec.files. Files whose names begin with a dot are left out.
func Load(folder fs.FS) (*v1alpha1.ResourcePack, error) {
	files := map[string]string{}
	size := 0
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(path.Base(name), ".") && name != ".":
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		case !entry.Type().IsRegular():
			return Problems{{File: name, Message: "is no regular file"}}
		}
		content, err := readFile(folder, name, maxBytes-size)
		if err != nil {
			return err
		}
		size += len(content)
		files[name] = content
		return nil
	})
	if err != nil {
		return nil, err
	}
	content, found := files[PackFile]
	if !found {
		return nil, Problems{{File: PackFile, Message: "the folder has no such file; it contains the ResourcePack"}}
	}
	delete(files, PackFile)
	pack := &v1alpha1.ResourcePack{}
	if err := yaml.UnmarshalStrict([]byte(content), pack); err != nil {
		return nil, Problems{{File: PackFile, Line: yamlLine(err), Message: err.Error()}}
	}
	if pack.GroupVersionKind() != v1alpha1.GroupVersion.WithKind(v1alpha1.ResourcePackKind) {
		return nil, Problems{{File: PackFile, Message: fmt.Sprintf("must be of kind %s, %s", v1alpha1.ResourcePackKind, v1alpha1.GroupVersion)}}
	}
	if len(pack.Spec.Files) > 0 {
		return nil, Problems{{File: PackFile, Field: "spec.files", Message: "leave it out; the other files of the folder are added"}}
	}
	pack.Spec.Files = files
	return pack, nil
}

// readFile reads a file of at most limit bytes.
func readFile(folder fs.FS, name string, limit int) (string, error) {
	info, err := fs.Stat(folder, name)
	if err != nil {
		return "", err
	}
	if info.Size() > int64(limit) {
		return "", Problems{{File: name, Message: fmt.Sprintf("the folder has more than %d bytes", maxBytes)}}
	}
	content, err := fs.ReadFile(folder, name)
	return string(content), err
}
