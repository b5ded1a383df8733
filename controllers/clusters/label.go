package clusters

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters/limits"
)

// labelPage is the number of objects in a page of a list.
const labelPage = 500

// labelAndWatch labels the objects without HubNamespaceLabel, which an earlier version
// of Portico applied, and then watches the kind. The watch does not report objects
// without the label: objects that are being deleted, and copies that are no longer
// needed.
func (c *Connection) labelAndWatch(w *namespaceCache, gvk schema.GroupVersionKind, mapping *meta.RESTMapping) {
	none, err := false, error(nil)
	for backoff := c.options.probeBackoff(); ; {
		none, err = c.labelObjects(w.ctx, w.namespace, gvk, mapping)
		if err == nil || apierrors.IsForbidden(err) || w.ctx.Err() != nil {
			break // the watch is denied too, and reports it
		}
		if IsUnreachable(err) {
			c.RequestProbe()
		}
		select {
		case <-w.ctx.Done():
		case <-time.After(backoff.Step()):
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.ctx.Err() != nil {
		return
	}
	if none {
		c.labelled[gvk] = true
	}
	if _, err := c.startInformer(w, gvk); err != nil {
		w.kinds[gvk].refusal = err
		go c.notifyTargetsIn(w.namespace)
	}
}

// labelObjects labels the objects of a kind that belong to resources of a namespace.
// It tells whether every object of this hub has the label, in all namespaces.
func (c *Connection) labelObjects(ctx context.Context, namespace string, gvk schema.GroupVersionKind, mapping *meta.RESTMapping) (none bool, err error) {
	api, err := metadata.NewForConfigAndClient(metadata.ConfigFor(c.config), c.http)
	if err != nil {
		return false, fmt.Errorf("preparing to label %s: %w", gvk.Kind, err)
	}
	unlabelled, err := labels.NewRequirement(v1alpha1.HubNamespaceLabel, selection.DoesNotExist, nil)
	if err != nil {
		return false, fmt.Errorf("preparing to label %s: %w", gvk.Kind, err)
	}
	ours := labels.SelectorFromSet(labels.Set{v1alpha1.ManagedByLabel: c.options.HubID}).Add(*unlabelled)
	options := metav1.ListOptions{LabelSelector: ours.String(), Limit: labelPage}
	none = true
	for range maxLabelPages(c.limiter.Limits()) {
		page, err := listPage(ctx, c, api.Resource(mapping.Resource), options)
		if err != nil {
			return false, err
		}
		for i := range page.Items {
			none = false
			if err := c.labelObject(ctx, api, namespace, mapping, &page.Items[i]); err != nil {
				return false, err
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return none, nil
		}
	}
	return false, c.limiter.Exceed("pages of objects without label %s: %d", v1alpha1.HubNamespaceLabel, maxLabelPages(c.limiter.Limits()))
}

// maxLabelPages limits the pages of a list. A target may return fewer objects in a page
// than requested, but not without end.
func maxLabelPages(l limits.Limits) int { return 2*l.Objects/labelPage + 2 }

func listPage(ctx context.Context, c *Connection, api metadata.Getter, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	ctx, cancel := c.WithTimeout(ctx)
	defer cancel()
	return api.List(ctx, options)
}

// isAppliedByPortico tells whether Portico applied an object. The label and the
// annotations are no proof: any user of the target may have written them on another
// object.
func isAppliedByPortico(object metav1.Object) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == v1alpha1.PropagationManager
	})
}

// labelObject labels an object, if it belongs to a resource of the namespace. An object
// that is deleted, or that the target does not allow to change, is skipped: its
// resource reports the problem.
func (c *Connection) labelObject(ctx context.Context, api metadata.Interface, namespace string, mapping *meta.RESTMapping, object *metav1.PartialObjectMetadata) error {
	if ResourceOf(object).Namespace != namespace || !isAppliedByPortico(object) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": object.UID, "labels": map[string]string{v1alpha1.HubNamespaceLabel: namespace},
	}})
	if err != nil {
		return fmt.Errorf("labelling %s: %w", object.Kind, err)
	}
	if err := c.checkFence(); err != nil {
		return err
	}
	ctx, cancel := c.WithTimeout(ctx)
	defer cancel()
	_, err = api.Resource(mapping.Resource).Namespace(object.Namespace).Patch(ctx, object.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: v1alpha1.PropagationManager})
	switch {
	case err == nil:
		ctrl.Log.WithName("clusters").V(1).Info("Labelled an object of an earlier version", "cluster", c.host, "kind", object.Kind,
			"object", object.Namespace+"/"+object.Name, "hubNamespace", namespace)
	case apierrors.IsNotFound(err), apierrors.IsConflict(err), apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return nil
	}
	return err
}
