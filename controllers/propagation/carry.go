package propagation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/policies"
)

// Of the hub's Secrets and ConfigMaps only the metadata is kept in memory. What
// is in one is read when it is to be sent.
//
// +kubebuilder:rbac:groups="",resources=secrets;configmaps,verbs=get;list;watch

// sources remembers, of what was read on the hub, which state it was of, so that
// it is not read again before it changes.
type sources struct {
	mu    sync.Mutex
	known map[origin]state
}

// origin is a Secret or ConfigMap on the hub.
type origin struct{ kind, namespace, name string }

// state is what is known of one.
type state struct {
	uid                           types.UID
	resourceVersion, digest, kept string
}

func (s *sources) recall(of origin) state {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[of]
}

func (s *sources) remember(of origin, is state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[origin]state{}
	}
	s.known[of] = is
}

func (s *sources) forget(of origin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, of)
}

// watchSources looks again at the resources that take along what changed.
func (c *Controller) watchSources(ctx context.Context) error {
	for _, gvk := range luggageKinds {
		tell := func(object any) *metav1.PartialObjectMetadata {
			if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			changed, ok := object.(*metav1.PartialObjectMetadata)
			if !ok {
				return nil
			}
			var list v1alpha1.KubernetesApplicationResourceList
			err := c.cache.List(context.Background(), &list, client.InNamespace(changed.Namespace), client.MatchingFields{policies.DependencyIndex: policies.DependencyKey(gvk.Kind, changed.Name)})
			if err != nil {
				return nil // the cache has stopped
			}
			for i := range list.Items {
				c.enqueue(&list.Items[i], true)
			}
			return changed
		}
		informer, err := c.cache.GetInformer(ctx, metadataOf(gvk))
		if err == nil {
			_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
				AddFunc: func(object any, initial bool) {
					if !initial { // every resource is looked at anyway
						tell(object)
					}
				},
				UpdateFunc: func(before, after any) {
					was, ok := before.(*metav1.PartialObjectMetadata)
					is, ok2 := after.(*metav1.PartialObjectMetadata)
					if !ok || !ok2 || was.ResourceVersion != is.ResourceVersion {
						tell(after)
					}
				},
				DeleteFunc: func(object any) {
					if gone := tell(object); gone != nil {
						c.sources.forget(origin{gvk.Kind, gone.Namespace, gone.Name})
					}
				},
			})
		}
		if err != nil {
			return fmt.Errorf("watching %ss: %w", gvk.Kind, err)
		}
	}
	return nil
}

func metadataOf(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{}
	out.SetGroupVersionKind(gvk)
	return out
}

// gather finds what the object needs next to it.
func (c *Controller) gather(ctx context.Context, j *journey) error {
	for _, need := range needs(j.resource) {
		l := luggageOf(j.resource, need)
		of := origin{l.Kind, j.resource.Namespace, l.Name}
		known := metadataOf(corev1.SchemeGroupVersion.WithKind(l.Kind))
		err := c.hub.Get(ctx, client.ObjectKey{Namespace: of.namespace, Name: of.name}, known)
		last := c.sources.recall(of)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("looking for %s %s: %w", l.Kind, l.Name, err)
		case need.Native: // what is in it is for its own resource to know
			l.found = true
			if err := c.revised(ctx, j, &l); err != nil {
				return err
			}
		case last.uid == known.UID && last.resourceVersion == known.ResourceVersion:
			l.found, l.digest, l.kept = true, last.digest, last.kept
		default:
			if err := c.read(ctx, of, &l); err != nil {
				return err
			}
		}
		if err := c.keepKeys(ctx, j.resource.Namespace, &l); err != nil {
			return err
		}
		j.luggage = append(j.luggage, l)
	}
	if stampEnvironment(j.desired, j.resource, j.luggage) {
		return sign(j.desired)
	}
	return nil
}

// read reads what travels.
func (c *Controller) read(ctx context.Context, of origin, l *luggage) error {
	var object client.Object = &corev1.Secret{}
	if of.kind == kinds.ConfigMapKind {
		object = &corev1.ConfigMap{}
	}
	err := c.live.Get(ctx, client.ObjectKey{Namespace: of.namespace, Name: of.name}, object)
	if apierrors.IsNotFound(err) {
		l.found, l.digest, l.content, l.source = false, "", nil, nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", of.kind, of.name, err)
	}
	l.source = &metav1.ObjectMeta{Name: of.name, Namespace: of.namespace, UID: object.GetUID(), Labels: object.GetLabels()}
	content, kept := contentOf(object)
	l.found, l.kept, l.digest = true, kept, fingerprint(object.GetUID(), content)
	if kept == "" {
		l.content = content
	}
	c.sources.remember(of, state{uid: object.GetUID(), resourceVersion: object.GetResourceVersion(), digest: l.digest, kept: kept})
	return nil
}

// burdened tells whether a resource takes anything along, or did before.
func (j *journey) burdened() bool {
	return len(needs(j.resource)) > 0 || meta.FindStatusCondition(j.resource.Status.Conditions, v1alpha1.SecretsReady) != nil
}

// carry brings what the object needs to the target, before the object, and finds
// what it needs no longer. An object that lacks something waits.
func (c *Controller) carry(ctx context.Context, j *journey) error {
	if !j.burdened() || j.standing == foreign || j.standing == itself {
		return nil
	}
	namespace := j.desired.GetNamespace()
	if namespace == "" && len(j.luggage) > 0 {
		return c.held(ctx, j, v1alpha1.ReasonNoNamespace, fmt.Sprintf("%s %s is in no namespace, so nothing can be sent next to it",
			j.desired.GetKind(), j.desired.GetName()), errWait)
	}
	if len(j.luggage) > 0 {
		if err := c.keepUntilGone(ctx, j); err != nil {
			return err
		}
	}
	copies, err := c.copies(ctx, j)
	if err != nil {
		return err
	}
	var wanted []luggage
	var problems []string
	var reason string
	next := errWait
	for i := range j.luggage {
		l := &j.luggage[i]
		why, problem := problemOf(*l, j.resource.Namespace)
		if problem == "" {
			put := c.place
			if l.Native {
				put = c.await
			}
			why, problem, err = put(ctx, j, l, copies)
			if err != nil && problem == "" {
				return err
			}
			wanted = append(wanted, *l)
		}
		if problem == "" || l.Optional && !l.found {
			continue
		}
		problems = append(problems, problem)
		if reason == "" {
			reason = why
		}
		if err != nil {
			next = err
		}
	}
	if len(problems) > 0 {
		return c.held(ctx, j, reason, strings.Join(problems, "; "), next)
	}
	j.excess = superfluous(copies, wanted, namespace)
	if len(j.luggage) == 0 {
		return nil
	}
	j.set(v1alpha1.SecretsReady, metav1.ConditionTrue, v1alpha1.ReasonApplied,
		fmt.Sprintf("what %s %s needs is next to it on target %s", j.desired.GetKind(), j.desired.GetName(), j.target.Name))
	return nil
}

// shed deletes the copies that the object, as it was applied, refers to no more.
func (c *Controller) shed(ctx context.Context, j *journey) error {
	for _, object := range j.excess {
		if err := c.discard(ctx, j, object); err != nil {
			return err
		}
	}
	if len(j.luggage) == 0 { // it says no more that there were any
		meta.RemoveStatusCondition(&j.resource.Status.Conditions, v1alpha1.SecretsReady)
	}
	return nil
}

// held says why the object waits, and ends the journey. What runs there already
// goes on as it is, and is still reported.
func (c *Controller) held(ctx context.Context, j *journey, reason, problem string, next error) error {
	message := fmt.Sprintf("%s; %s %s waits for that", problem, j.desired.GetKind(), j.desired.GetName())
	j.set(v1alpha1.SecretsReady, metav1.ConditionFalse, reason, message)
	switch {
	case j.standing.ours():
		if err := c.observe(ctx, j); err != nil {
			return err
		}
	case !j.moving():
		j.resource.Status.State = v1alpha1.StateScheduled
		j.set(v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonProgressing, message)
	}
	j.set(v1alpha1.Synced, metav1.ConditionFalse, reason, message)
	return next
}

// copies lists the copies of a resource that the target has, as the caches know
// them, and ends the journey while they do not.
func (c *Controller) copies(ctx context.Context, j *journey) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, gvk := range luggageKinds {
		if j.resource.DeletionTimestamp == nil && !slices.ContainsFunc(j.luggage, func(l luggage) bool { return l.Kind == gvk.Kind }) &&
			meta.FindStatusCondition(j.resource.Status.Conditions, v1alpha1.SecretsReady) == nil {
			continue
		}
		reader, synced, err := j.connection.Informer(gvk)
		switch {
		case apierrors.IsForbidden(err):
			return nil, c.refused(j, err)
		case err != nil:
			return nil, c.lost(j, err)
		case !synced:
			return nil, c.waiting(j)
		}
		list, err := reader.Of(ctx, gvk, client.ObjectKeyFromObject(j.resource))
		if err != nil {
			return nil, fmt.Errorf("listing the copies of resource %s: %w", client.ObjectKeyFromObject(j.resource), err)
		}
		out = append(out, list...)
	}
	return out, nil
}

// place makes one copy what it should be. A problem is for a person to read; an
// error without one is to be tried again.
func (c *Controller) place(ctx context.Context, j *journey, l *luggage, copies []*unstructured.Unstructured) (reason, problem string, err error) {
	target := &v1alpha1.KubernetesTarget{}
	if err := c.hub.Get(ctx, j.target, target); err != nil {
		return "", "", fmt.Errorf("reading target %s: %w", j.target, err)
	}
	gvk := corev1.SchemeGroupVersion.WithKind(l.Kind)
	namespace := j.desired.GetNamespace()
	if why := c.options.Frontier.Refuses(target, policies.Cargo{Kind: gvk, Namespace: namespace}); why != "" {
		return v1alpha1.ReasonNotAllowed, fmt.Sprintf("target %s %s", j.target.Name, why), nil
	}
	observed, err := c.copyOn(ctx, j, l, copies)
	if err != nil {
		return c.unplaced(j, l, err)
	}
	ours := observed == nil || belongs(observed, j.resource, c.options.HubID)
	if !ours && policies.AdoptionOf(j.resource) == v1alpha1.AdoptNever {
		return v1alpha1.ReasonOwnershipConflict, othersAre(j.target.Name, l.Kind, l.copy, observed, c.options.HubID), later(nowAndThen)
	}
	uid := c.sources.recall(origin{l.Kind, j.resource.Namespace, l.Name}).uid
	if observed != nil && ours && digestOf(observed) == l.digest && fingerprint(uid, travelling(observed)) == l.digest {
		return "", "", nil
	}
	if l.content == nil {
		if err := c.read(ctx, origin{l.Kind, j.resource.Namespace, l.Name}, l); err != nil {
			return "", "", err
		}
		if reason, problem := problemOf(*l, j.resource.Namespace); problem != "" {
			return reason, problem, nil
		}
	}
	desired := desireCopy(j.resource, *l, namespace, c.options.HubID)
	if !ours && !takesCopy(desired, observed, j.resource) {
		return v1alpha1.ReasonOwnershipConflict, othersAre(j.target.Name, l.Kind, l.copy, observed, c.options.HubID), later(nowAndThen)
	}
	if observed != nil && len(differences(desired.Object, observed.Object)) == 0 {
		return "", "", nil // somebody there added to it
	}
	if err := c.sendCopy(ctx, j, desired, observed); err != nil {
		return c.unplaced(j, l, err)
	}
	return "", "", nil
}

// unplaced tells what the target refused from a target that is away.
func (c *Controller) unplaced(j *journey, l *luggage, err error) (string, string, error) {
	var pause later
	if clusters.Lost(err) || errors.As(err, &pause) {
		return "", "", c.lost(j, err)
	}
	message := inItsWords(err)
	return v1alpha1.ReasonRefused, fmt.Sprintf("target %s refused %s %s: %s", j.target.Name, l.Kind, l.copy, message),
		fmt.Errorf("applying %s to target %s: %s", l.Kind, j.target.Name, message)
}

// copyOn finds a copy on the target, or what has its name.
func (c *Controller) copyOn(ctx context.Context, j *journey, l *luggage, copies []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	namespace := j.desired.GetNamespace()
	for _, object := range copies {
		if object.GetKind() == l.Kind && object.GetName() == l.copy && object.GetNamespace() == namespace {
			return object, nil
		}
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(l.Kind))
	err := c.call(ctx, j, func(ctx context.Context) error {
		return j.connection.Client().Get(ctx, client.ObjectKey{Namespace: namespace, Name: l.copy}, live)
	})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // nothing is there, and nothing went wrong
	}
	return live, err
}

// sendCopy applies a copy. The type of a Secret cannot change, so that one is
// made anew.
func (c *Controller) sendCopy(ctx context.Context, j *journey, desired, observed *unstructured.Unstructured) error {
	options := []client.ApplyOption{client.FieldOwner(v1alpha1.PropagationManager)}
	if observed != nil {
		if pause := c.memory.recall(observed.GetUID()).patience(time.Now()); pause > 0 {
			return later(pause)
		}
		if observed.Object["type"] != desired.Object["type"] {
			if err := c.discard(ctx, j, observed); err != nil {
				return err
			}
		} else {
			options = append(options, client.ForceOwnership)
			desired.SetUID(observed.GetUID()) // this one, and no other that has its name by now
			if digestOf(observed) == digestOf(desired) {
				c.memory.change(observed.GetUID(), func(a *applied) { a.revert(time.Now()) })
			}
		}
	}
	send := func(ctx context.Context) error {
		return j.connection.Client().Apply(ctx, client.ApplyConfigurationFromUnstructured(desired.DeepCopy()), options...)
	}
	err := c.call(ctx, j, send)
	if missingNamespace(err) {
		if err = c.makeNamespace(ctx, j); err == nil {
			err = c.call(ctx, j, send)
		}
	}
	if apierrors.IsConflict(err) {
		return later(shortly) // it was made, or replaced, since it was looked at
	}
	return err
}

// discard deletes a copy.
func (c *Controller) discard(ctx context.Context, j *journey, object *unstructured.Unstructured) error {
	err := c.call(ctx, j, func(ctx context.Context) error {
		return j.connection.Client().Delete(ctx, object, client.Preconditions{UID: ptr.To(object.GetUID())})
	})
	c.memory.forget(object.GetUID())
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return c.lost(j, fmt.Errorf("deleting %s %s on target %s: %w", object.GetKind(), object.GetName(), j.target.Name, err))
	}
	return nil
}

// retract ends what carry began: of each copy on the target, done is called.
// One that was sent a moment ago is not in the caches yet, and is asked for.
func (c *Controller) retract(ctx context.Context, j *journey, done func(context.Context, *journey, *unstructured.Unstructured) error) error {
	if !j.burdened() || j.connection == nil { // nothing was sent yet
		return nil
	}
	copies, err := c.copies(ctx, j)
	if err != nil {
		return err
	}
	copies = superfluous(copies, nil, "")
	for _, need := range needs(j.resource) {
		l := luggageOf(j.resource, need)
		if need.Native || j.desired.GetNamespace() == "" || slices.ContainsFunc(copies, func(o *unstructured.Unstructured) bool { return o.GetKind() == l.Kind && o.GetName() == l.copy }) {
			continue
		}
		object, err := c.copyOn(ctx, j, &l, nil)
		if err != nil {
			return c.lost(j, fmt.Errorf("reading %s on target %s: %w", l.Kind, j.target.Name, err))
		}
		if object != nil && belongs(object, j.resource, c.options.HubID) {
			copies = append(copies, object)
		}
	}
	for _, object := range copies {
		if err := done(ctx, j, object); err != nil {
			return err
		}
	}
	return nil
}
