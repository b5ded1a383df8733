package webhooks

import (
	"context"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/credentials"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/simulate"
	"github.com/portico-io/portico/policies/targetselection"
)

// The paths of the webhooks, which config/webhook names.
const (
	HoldPath          = "/mutate/hold"
	HoldNamespacePath = "/mutate/hold-namespace"
	PinPath           = "/mutate/pin"
	ShieldPath        = "/mutate/shield"
	NativePath        = "/validate/native"
	WorkloadPath      = "/validate/workload"
	ConnectionPath    = "/validate/connection"
	ClaimPath         = "/validate/claim"
	InUsePath         = "/validate/in-use"
	InUseSecretPath   = "/validate/in-use-secret"
	NamespacePath     = "/validate/namespace-in-use"
	PolicyPath        = "/validate/policy"
	KindPath          = "/validate/kind"
)

// Paths are the paths of all admission webhooks.
var Paths = []string{HoldPath, HoldNamespacePath, PinPath, ShieldPath, NativePath, WorkloadPath, ConnectionPath, ClaimPath, InUsePath, InUseSecretPath, NamespacePath, PolicyPath, KindPath}

// Options of the webhooks.
type Options struct {
	// Reader reads from the cache.
	Reader client.Reader
	// Live reads from the API server.
	Live client.Reader
	// Identity is the user name of Portico's own requests.
	Identity string
	// Scheme contains Portico's kinds.
	Scheme *runtime.Scheme
	// Hub sends the requests for which there is no cache.
	Hub Hub
	// AllowDefaults applies to targets without spec.allow.
	AllowDefaults policies.AllowDefaults
	// Secrets reads connection Secrets, and Rules validates them.
	Secrets Secrets
	Rules   credentials.Rules
	// Policies evaluates the policies for targets and for the objects on them. By
	// default there are no policies, and everything is allowed.
	Policies *decisions.Evaluator
	// Engine validates Policies. By default every Policy is valid.
	Engine *engine.Engine
	// Snapshot returns the existing objects, from caches, for the warning with the
	// objects that a Policy would deny. By default there is no such warning.
	Snapshot func(ctx context.Context) (*simulate.Snapshot, error)
	// Load counts the resources on targets. By default it counts none.
	Load *targetselection.Load
	// DryRunner tries objects on targets, within DryRunTimeout. By default no object is
	// tried.
	DryRunner     DryRunner
	DryRunTimeout time.Duration
	// ObjectsInNamespace counts the objects of others in a Namespace that a resource
	// created on a target, within DryRunTimeout. By default they are not counted.
	ObjectsInNamespace func(ctx context.Context, target *v1alpha1.KubernetesTarget, resource *v1alpha1.KubernetesApplicationResource) (policies.ObjectCounts, error)
	// Limits are the limits on requests to the hub and to targets that follow from
	// admission requests. By default there are no limits.
	Limits Limits
	// Authenticate returns an error for a request that does not come from an API
	// server. It is not called for conversion, for which API servers have no
	// credentials. By default every client is taken for an API server.
	Authenticate func(*http.Request) error

	dryRuns dryRunLimits
}

// Register serves every webhook.
func Register(server webhook.Server, o Options) {
	if o.Policies == nil {
		none := engine.New(engine.Options{})
		none.Replace(context.Background(), nil)
		o.Policies = decisions.New(none, o.AllowDefaults.PorticoNamespace)
	}
	if o.Load == nil {
		o.Load = targetselection.NewLoad()
	}
	o.dryRuns = dryRunLimits{ofUser: newLimiter(o.Limits.DryRunsOfUser), onTarget: newLimiter(o.Limits.DryRunsOnTarget)}
	o.Hub = limitedHub{Hub: o.Hub, ofUser: newLimiter(o.Limits.AccessReviewsOfUser), ofAll: newLimiter(o.Limits.AccessReviews)}
	connections := connections{reader: o.Reader, secrets: o.Secrets, rules: o.Rules, identity: o.Identity}
	for path, hook := range map[string]struct {
		handle        handler
		failurePolicy failurePolicy
	}{
		HoldPath:          {hold(o.Identity, false), deny},
		HoldNamespacePath: {hold(o.Identity, true), deny},
		PinPath:           {pin, deny},
		ShieldPath:        {shield(o.Identity), allow},
		NativePath:        {waitForPolicies(o.Policies, warnOfLabel(validateNative(o))), deny},
		WorkloadPath:      {waitForPolicies(o.Policies, validateWorkload(o, connections)), deny},
		ConnectionPath:    {connections.validateSecret, allow},
		ClaimPath:         {waitForPolicies(o.Policies, validateClaim(o)), deny},
		InUsePath:         {inUse(o), deny},
		InUseSecretPath:   {inUse(o), allow},
		NamespacePath:     {namespaceInUse(o), allow},
		PolicyPath:        {waitForPolicies(o.Policies, validatePolicy(o)), deny},
		KindPath:          {validateKind(o), deny},
	} {
		served := withDeadline(&admission.Webhook{Handler: failureHandler{path: path, handle: hook.handle, failurePolicy: hook.failurePolicy}})
		server.Register(path, authenticated(o.Authenticate, traced(path, served)))
	}
	convert, err := converter()
	if err != nil {
		panic(err) // this binary has a version of a kind that it cannot convert
	}
	server.Register(ConvertPath, traced(ConvertPath, convert))
}

// authenticated serves the requests of API servers. It does not read any other request.
func authenticated(authenticate func(*http.Request) error, next http.Handler) http.Handler {
	if authenticate == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := authenticate(r); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
