package clusters

import (
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/version"
)

// parseVersion parses an API server's response to /version.
func parseVersion(body []byte) (version.Info, error) {
	var info version.Info
	if err := json.Unmarshal(body, &info); err != nil || info.GitVersion == "" {
		return version.Info{}, errors.New("the answer is not a Kubernetes API server's")
	}
	info.GitVersion = boundText(info.GitVersion, maxVersion)
	return info, nil
}
