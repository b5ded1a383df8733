package clusters

import (
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// IsVersionNotServed tells whether an error means that the target does not serve the
// API version of a kind, as opposed to a missing object. The mapper of a connection
// keeps versions that are no longer served.
func IsVersionNotServed(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// droppedVersions are the versions of kinds that a cluster no longer serves.
type droppedVersions struct{ byKind sync.Map }

// MarkVersionDropped records that the target no longer serves a version of a kind, as
// IsVersionNotServed tells.
func (d *droppedVersions) MarkVersionDropped(gvk schema.GroupVersionKind) {
	d.byKind.Store(gvk, true)
}

// IsVersionDropped tells whether a version was marked by MarkVersionDropped, and was
// not found since.
func (d *droppedVersions) IsVersionDropped(gvk schema.GroupVersionKind) bool {
	_, dropped := d.byKind.Load(gvk)
	return dropped
}

// Served returns the version in which the target serves the group and kind of gvk now:
// the version of gvk, or else the version that the target prefers. It sends requests to
// the target. It fails with a NoKindMatch error only if the target responds that it
// serves no version of the kind. A group that does not respond is not a missing group.
func (c *Connection) Served(gvk schema.GroupVersionKind) (schema.GroupVersionKind, error) {
	doing := "asking the target for the versions of " + gvk.GroupKind().String()
	// Discovery takes no context, so the HTTP client has the timeout.
	bounded := &http.Client{Transport: c.http.Transport, Timeout: c.options.Timeout, CheckRedirect: refuseRedirects}
	client, err := discovery.NewDiscoveryClientForConfigAndClient(c.config, bounded)
	if err != nil {
		return gvk, fmt.Errorf("%s: %w", doing, err)
	}
	groups, err := client.ServerGroups()
	if err != nil {
		return gvk, fmt.Errorf("%s: %w", doing, err)
	}
	var versions []string
	for _, group := range groups.Groups {
		if group.Name != gvk.Group {
			continue
		}
		versions = append(versions, gvk.Version, group.PreferredVersion.Version)
		for _, version := range group.Versions {
			versions = append(versions, version.Version)
		}
	}
	checked := map[string]bool{"": true}
	for _, version := range versions {
		if checked[version] {
			continue
		}
		checked[version] = true
		served := gvk.GroupKind().WithVersion(version)
		resources, err := client.ServerResourcesForGroupVersion(served.GroupVersion().String())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return gvk, fmt.Errorf("%s: %w", doing, err)
		}
		for _, resource := range resources.APIResources {
			if resource.Kind == gvk.Kind {
				c.byKind.Delete(served)
				return served, nil
			}
		}
	}
	return gvk, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: versions}
}
