package propagation

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/policies"
)

// Where drift is only reported, what somebody changed or deleted on the target
// stays as they left it. It is written again, and as a whole, when what the user
// wants changes: an apply sends all of an object or nothing.
//
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// stance reads what is to become of drift. The resource's own word was judged by
// guard. While its namespace's cannot be read nothing is written, because there
// is no telling what that would undo.
func (c *Controller) stance(ctx context.Context, j *journey) error {
	namespace := metadataOf(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := c.hub.Get(ctx, client.ObjectKey{Name: j.resource.Namespace}, namespace); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading namespace %s: %w", j.resource.Namespace, err)
	}
	policy, malformed := policies.DriftOf(j.resource, namespace)
	if j.drift = policy; len(malformed) == 0 {
		return nil
	}
	if j.standing.ours() {
		if err := c.observe(ctx, j); err != nil {
			return err
		}
	}
	j.fail(v1alpha1.ReasonInvalidTemplate, fmt.Sprintf("namespace %s: %s", j.resource.Namespace, malformed.ToAggregate()))
	return errWait
}

// watchStances looks again at what is in a namespace that changed what it says.
func (c *Controller) watchStances(ctx context.Context) error {
	informer, err := c.cache.GetInformer(ctx, metadataOf(corev1.SchemeGroupVersion.WithKind("Namespace")))
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
			was, ok := before.(*metav1.PartialObjectMetadata)
			is, ok2 := after.(*metav1.PartialObjectMetadata)
			if !ok || !ok2 || said(was) == said(is) {
				return
			}
			var list v1alpha1.KubernetesApplicationResourceList
			if err := c.cache.List(context.Background(), &list, client.InNamespace(is.Name)); err != nil {
				return // the cache has stopped
			}
			for i := range list.Items {
				c.enqueue(&list.Items[i], true)
			}
		}})
	}
	if err != nil {
		return fmt.Errorf("watching namespaces: %w", err)
	}
	return nil
}

// said is what an object says of drift.
func said(object metav1.Object) string { return object.GetAnnotations()[v1alpha1.DriftAnnotation] }

// verdict is what was found out about one state of an object, but for since when.
type verdict struct {
	of    string
	found []v1alpha1.Drift
}

// assess finds what others changed of an object that is otherwise as it was
// applied. The target is asked once for each change.
func (c *Controller) assess(ctx context.Context, j *journey) ([]v1alpha1.Drift, error) {
	state := values(j.observed, differences(j.desired.Object, j.observed.Object))
	last := c.memory.recallOn(j.target, j.resource.UID)
	if state == last.settled {
		return nil, nil
	}
	found := last.judged.found
	if last.judged.of != state {
		var err error
		if found, err = c.inquire(ctx, j); err != nil {
			return nil, err
		}
		c.memory.change(j.resource.UID, func(a *applied) {
			if a.target != j.target.Name {
				*a = applied{reported: a.reported, target: j.target.Name}
			}
			a.judged = verdict{state, found}
		})
	}
	out := slices.Clone(found)
	now := metav1.Now().Rfc3339Copy()
	for i := range out {
		out[i].FirstSeenTime = since(j.resource.Status.Drift, out[i].Path, now)
	}
	return out, nil
}

// inquire asks the target what it would make of the object if it were applied
// now. What that would change has drifted. What the target itself makes of what
// it is sent is no drift, nor is what is left to an autoscaler.
func (c *Controller) inquire(ctx context.Context, j *journey) ([]v1alpha1.Drift, error) {
	live, err := c.now(ctx, j)
	if err != nil {
		return nil, err
	}
	if live.GetResourceVersion() != j.observed.GetResourceVersion() {
		return nil, later(shortly) // the change is on its way to the cache
	}
	with := insistence{force: forced(j.resource)}
	result, err := c.write(ctx, j, with, client.DryRunAll)
	var owners []claim
	if fields := contested(err); len(fields) > 0 {
		owners = claims(live, fields)
		with, _ = settle(owners)
		result, err = c.write(ctx, j, with, client.DryRunAll)
	}
	switch {
	case apierrors.IsConflict(err):
		return nil, later(shortly) // it was replaced since it was looked at
	case clusters.Lost(err):
		return nil, c.lost(j, err)
	case err != nil: // a target that would refuse it cannot tell more than it shows
		result = j.desired
	}
	if now, err := c.now(ctx, j); err != nil {
		return nil, err
	} else if now.GetResourceVersion() != live.GetResourceVersion() {
		return nil, later(shortly) // what controllers there wrote meanwhile would seem to have drifted
	}
	return drifts(differing(written(result), written(live)), owners, policies.IsSecret(j.desired)), nil
}

// written is the part of an object that an apply writes.
func written(object *unstructured.Unstructured) map[string]any {
	out := maps.Clone(object.Object)
	delete(out, "status")
	delete(out, "metadata")
	metadata := map[string]any{}
	for key, of := range map[string]map[string]string{"labels": object.GetLabels(), "annotations": object.GetAnnotations()} {
		values := map[string]any{}
		for name, value := range of {
			values[name] = value
		}
		metadata[key] = values
	}
	out["metadata"] = metadata
	return out
}

// managerOf is who owns a field, or what it is a part of.
func managerOf(path string, owners []claim) string {
	for _, c := range owners {
		owned := plain.Replace(c.path.String())
		if rest, ok := strings.CutPrefix(path, owned); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return policies.Shorten(c.manager, mostOfAName)
		}
	}
	return ""
}

// plain writes the paths of managed fields as differences have them.
var plain = strings.NewReplacer(`"`, "", `,protocol="TCP"`, "", `,protocol="UDP"`, "", `,protocol="SCTP"`, "")

// What a status lists, and how long each part of it may be.
const (
	mostDrifts  = 20
	mostOfAPath = 512
	mostOfAName = 128
	mostOfValue = 256
)

// drifts lists fields for a person.
func drifts(all []difference, owners []claim, secret bool) []v1alpha1.Drift {
	var out []v1alpha1.Drift
	for _, d := range all {
		path := policies.Shorten(d.path, mostOfAPath)
		if len(out) > 0 && out[len(out)-1].Path == path { // items that differ in what a path does not tell
			continue
		}
		out = append(out, v1alpha1.Drift{
			Path: path, Manager: managerOf(d.path, owners),
			Desired:  show(policies.RedactField(d.path, d.want, secret)),
			Observed: show(policies.RedactField(d.path, d.have, secret)),
		})
	}
	return out
}

// since is when a field was first seen to differ.
func since(before []v1alpha1.Drift, path string, now metav1.Time) metav1.Time {
	if i := slices.IndexFunc(before, func(d v1alpha1.Drift) bool { return d.Path == path }); i >= 0 {
		return before[i].FirstSeenTime
	}
	return now
}

// show writes a value; "" for none.
func show(value any) string {
	text, is := value.(string)
	if !is || text == "" {
		if value == nil {
			return ""
		}
		data, err := json.Marshal(value)
		if err != nil {
			return policies.Redacted // it is no JSON, which nothing on a target is
		}
		text = string(data)
	}
	return policies.Shorten(text, mostOfValue)
}

// tellDrift says what has drifted, in the status, and once in events.
func (c *Controller) tellDrift(j *journey, now []v1alpha1.Drift) {
	before := j.before.Status.Drift
	what := fmt.Sprintf("%s %s", j.desired.GetKind(), j.desired.GetName())
	switch {
	case j.drift != v1alpha1.DriftReport:
		j.resource.Status.Drift = nil
		meta.RemoveStatusCondition(&j.resource.Status.Conditions, v1alpha1.Drifted)
	case len(now) == 0:
		j.resource.Status.Drift = nil
		j.set(v1alpha1.Drifted, metav1.ConditionFalse, v1alpha1.ReasonUnchanged, fmt.Sprintf("%s is on target %s as it was applied", what, j.target.Name))
		if len(before) > 0 {
			j.story = append(j.story, narrate.Event{Reason: v1alpha1.EventDriftEnded,
				Note: fmt.Sprintf("%s is on target %s as it was applied again", what, j.target.Name)})
		}
	default:
		j.resource.Status.Drift = now[:min(len(now), mostDrifts)]
		j.set(v1alpha1.Drifted, metav1.ConditionTrue, v1alpha1.ReasonChangedOnTarget,
			fmt.Sprintf("%s was changed on target %s, and is left so: %s", what, j.target.Name, listDrifts(now)))
		news := slices.DeleteFunc(slices.Clone(j.resource.Status.Drift), func(d v1alpha1.Drift) bool {
			return slices.ContainsFunc(before, func(b v1alpha1.Drift) bool { return b.Path == d.Path && b.Observed == d.Observed })
		})
		if len(news) > 0 {
			j.story = append(j.story, narrate.Event{Warning: true, Reason: v1alpha1.EventDriftFound,
				Note: fmt.Sprintf("changed on target %s, and left so: %s", j.target.Name, listDrifts(news))})
		}
	}
}

// listDrifts names fields, and no values.
func listDrifts(all []v1alpha1.Drift) string {
	return enumerate(all, ", ", func(d v1alpha1.Drift) string {
		if d.Manager != "" {
			return fmt.Sprintf("%s by %q", d.Path, d.Manager)
		}
		return d.Path
	})
}

// deletedThere tells an object that somebody deleted on the target, where that is
// only reported, from one that was not sent yet as it is wanted now.
func (j *journey) deletedThere() bool {
	if j.drift != v1alpha1.DriftReport || j.resource.Status.Target != j.target.Name || j.moving() {
		return false
	}
	current := func(kind string) *metav1.Condition {
		condition := meta.FindStatusCondition(j.before.Status.Conditions, kind)
		if condition == nil || condition.Status != metav1.ConditionTrue || condition.ObservedGeneration != j.resource.Generation {
			return nil
		}
		return condition
	}
	told := current(v1alpha1.Drifted)
	return current(v1alpha1.Synced) != nil || told != nil && told.Reason == v1alpha1.ReasonDeletedOnTarget
}

// gone says that the object was deleted on the target.
func (c *Controller) gone(j *journey) error {
	message := fmt.Sprintf("%s %s was deleted on target %s, and is not made again, because drift is only reported", j.desired.GetKind(), j.desired.GetName(), j.target.Name)
	j.fail(v1alpha1.ReasonDeletedOnTarget, fmt.Sprintf("%s; to have it made again, change what is wanted, or set %s to %s", message, v1alpha1.DriftAnnotation, v1alpha1.DriftCorrect))
	j.set(v1alpha1.Drifted, metav1.ConditionTrue, v1alpha1.ReasonDeletedOnTarget, message)
	j.resource.Status.Drift = []v1alpha1.Drift{{Path: ".", FirstSeenTime: since(j.before.Status.Drift, ".", metav1.Now().Rfc3339Copy())}}
	j.nothingThere()
	return later(c.options.Resync)
}
