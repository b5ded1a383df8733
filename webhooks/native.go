package webhooks

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/kinds"
	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/input"
	"github.com/portico-io/portico/policies/targetselection"
)

// validateNative validates a native object. For a remote object it also evaluates the
// policies, and tries the object on its target.
func validateNative(o Options) handler {
	return nativeHandler(func(ctx context.Context, q nativeRequest) (admission.Response, error) {
		cache := cacheLookup{ctx: ctx, reader: o.Reader, load: o.Load, namespace: q.Namespace}
		errs := policies.ValidateNative(policies.NativeReview{
			Kind:               q.kind,
			Object:             q.object,
			Old:                q.old,
			Namespace:          cache.namespaceMeta(),
			Application:        cache.application,
			TargetsUsingSecret: cache.targetsConnectedWith,
			HubIngressClass:    cache.hasIngressClass,
		})
		if cache.err != nil {
			return admission.Response{}, cache.err
		}
		// The policies and the target decide about the object that is sent.
		_, q.old = kinds.Sent(q.kind, q.old)
		q.kind, q.object = kinds.Sent(q.kind, q.object)
		if len(errs) == 0 {
			var err error
			if errs, err = o.missingRightsForNative(&cache, q); err != nil {
				return admission.Response{}, err
			}
		}
		if len(errs) > 0 || !kinds.IsRemote(q.object) {
			return validationResponse(q.Request, errs), nil
		}
		resp := admitNative(o, q, &cache)
		if resp.Allowed && q.UserInfo.Username != o.Identity && !unchanged(q.object, q.old) {
			resp = resp.WithWarnings(o.nativeWarnings(&cache, q)...)
		}
		return resp, cache.err
	})
}

// maxWarningReads is the limit on the objects that are read from the API server for one
// kind of warning, after the cache did not have them.
const maxWarningReads = 10

// nativeWarnings returns the warnings about a new or changed object. The object is accepted:
// the objects that it needs may be created or labelled next.
func (o Options) nativeWarnings(cache *cacheLookup, q nativeRequest) []string {
	return slices.Concat(enforcementWarnings(q), o.missingWarnings(cache, q), roleWarnings(cache, q), o.unsentWarnings(cache, q))
}

// enforcementWarnings returns a warning if the hub enforces an object, too, although it is
// sent.
func enforcementWarnings(q nativeRequest) []string {
	onHub := q.kind.Properties().EnforcedOnHub
	if onHub == "" {
		return nil
	}
	return []string{shorten(fmt.Sprintf("%s %s has an effect on the hub, too: %s", q.object.GetKind(), q.object.GetName(), onHub))}
}

// missingRightsForNative returns an error for each right that the author of a native object
// needs and does not have.
func (o Options) missingRightsForNative(cache *cacheLookup, q nativeRequest) (field.ErrorList, error) {
	rights := policies.RightsForNative(q.object, q.old, cache.namespace)
	if len(rights) == 0 {
		return nil, nil
	}
	return missingRights(cache.ctx, o.Hub, q.UserInfo, rights)
}

// admitNative returns the response to a valid remote object: the decision of the
// policies, and of the target, or a warning that no target matches. An object that is
// on a target may be changed, with a warning, although spec.allow or a policy excludes
// it now.
func admitNative(o Options, q nativeRequest, cache *cacheLookup) admission.Response {
	member, _ := policies.MembershipOf(q.object, cache.namespaceMeta())
	member = member.WithApplication(cache.application(member.Application))
	query, err := o.queryFor(q, member, cache)
	if err != nil {
		return admission.Allowed("") // validation denied it already
	}
	decision := noDecision
	if o.policiesApply(policyv1alpha1.Scheduling, q.Request) && !unchanged(q.object, q.old) {
		scheduling := cache.schedulingContext(input.Application{Name: member.Application, Target: member.Target}, query)
		decision = o.evaluateScheduling(cache.ctx, q.Request, scheduling, []sentObject{{object: q.object, old: q.old, isNew: !kinds.IsRemote(q.old)}})
	}
	var resp admission.Response
	switch {
	case !decision.Allowed():
		resp = deniedByPolicies(decision)
	case member.Target != "":
		target := cache.target(member.Target)
		resp = checkTarget(o, q, target)
		if resp.AuditAnnotations == nil {
			resp.AuditAnnotations = map[string]string{"target": member.Target}
		}
		if resp.Allowed && len(resp.Warnings) == 0 {
			resp = o.dryRunNative(cache, q, member.Application, target, resp)
		}
	default:
		var target *v1alpha1.KubernetesTarget
		resp, target = selectTarget(cache, decisions.Restrict(query, decision))
		resp = o.dryRunNative(cache, q, member.Application, target, resp)
	}
	return withDecision(resp, decision)
}

// checkTarget validates an object against the target of its application.
func checkTarget(o Options, q nativeRequest, target *v1alpha1.KubernetesTarget) admission.Response {
	if reason := policies.NewObjectsDeniedReason(target); reason != "" && !kinds.IsRemote(q.old) {
		return admission.Allowed("").WithWarnings(shorten(fmt.Sprintf(
			"accepted, and not sent: its target is %s, which %s; it is sent when the application has moved", target.Name, reason)))
	}
	errs := o.AllowDefaults.ValidateNative(q.object, target)
	switch {
	case len(errs) > 0 && !kinds.IsRemote(q.old) && q.UserInfo.Username != o.Identity:
		return validationResponse(q.Request, errs)
	case len(errs) > 0:
		return admission.Allowed("").WithWarnings(shorten("accepted, and not sent: " + errs[0].Detail))
	}
	return admission.Allowed("")
}

// queryFor returns the query for the target of a native object. The targets are read only
// if a target is to be selected, or if policies see them.
func (o Options) queryFor(q nativeRequest, member policies.Membership, cache *cacheLookup) (targetselection.Query, error) {
	candidates := targetselection.Candidates{AllowDefaults: o.AllowDefaults, Placed: map[string]int{}}
	if member.Target == "" || o.policiesApply(policyv1alpha1.Scheduling, q.Request) {
		candidates = cache.candidates(o.AllowDefaults)
	}
	if o.DryRunner != nil { // without a dry run it does not matter which matching target is selected
		candidates.Load = o.Load.ForTargets(candidates.Targets)
	}
	return candidates.ForMember(member, policies.AllowItemOfNative(q.object))
}

// selectTarget selects a target as the scheduler does. It warns when no target matches.
func selectTarget(cache *cacheLookup, query targetselection.Query) (admission.Response, *v1alpha1.KubernetesTarget) {
	selection := targetselection.Decide(query)
	if selection.Target != "" {
		return admission.Allowed(""), cache.target(selection.Target)
	}
	return withExclusions(admission.Allowed(""), cache.namespace, selection, query.Excluded), nil
}

// dryRunNative tries a native object on a target, unless the request does not change
// the object that Portico sends.
func (o Options) dryRunNative(cache *cacheLookup, q nativeRequest, application string, target *v1alpha1.KubernetesTarget, resp admission.Response) admission.Response {
	if o.DryRunner == nil || target == nil {
		return resp
	}
	resource, err := o.DryRunner.ResourceOf(q.kind, q.object, application)
	if err != nil {
		return resp // validation denied an object that cannot be projected
	}
	if kinds.IsRemote(q.old) {
		old, err := o.DryRunner.ResourceOf(q.kind, q.old, application)
		if err == nil && kinds.EqualExceptGeneration(old.Spec.Template.Raw, resource.Spec.Template.Raw) && equality.Semantic.DeepEqual(q.oldContent, q.content) {
			return resp
		}
	}
	if err := addContent(q.content, resource); err != nil {
		return resp
	}
	return o.dryRun(cache.ctx, q.Request, target, []dryRunItem{{resource: resource}}, nil, resp)
}

// unchanged tells whether an update leaves spec, labels and annotations as they are.
func unchanged(object, old *unstructured.Unstructured) bool {
	return old != nil && equality.Semantic.DeepEqual(object.Object["spec"], old.Object["spec"]) &&
		equality.Semantic.DeepEqual(object.GetLabels(), old.GetLabels()) &&
		equality.Semantic.DeepEqual(object.GetAnnotations(), old.GetAnnotations())
}
