package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/credentials"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/survey"
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
	InUsePath         = "/validate/in-use"
	InUseSecretPath   = "/validate/in-use-secret"
	PolicyPath        = "/validate/policy"
)

// Paths are all of them.
var Paths = []string{HoldPath, HoldNamespacePath, PinPath, ShieldPath, NativePath, WorkloadPath, ConnectionPath, InUsePath, InUseSecretPath, PolicyPath}

// Options of the webhooks.
type Options struct {
	// Reader answers from a cache: namespaces, applications and targets.
	Reader client.Reader
	// Live answers from the API server.
	Live client.Reader
	// Identity is the user name Portico's own requests carry.
	Identity string
	// Scheme knows Portico's kinds.
	Scheme *runtime.Scheme
	// Hub answers what no cache can.
	Hub Hub
	// Frontier is what targets let in by default.
	Frontier policies.Frontier
	// Secrets reads connection Secrets, and Rules judge them.
	Secrets Secrets
	Rules   credentials.Rules
	// Policies are asked about what is published, and about what runs where. By
	// default there are none, and everything is allowed.
	Policies *decisions.Asker
	// Engine checks policies that people write. By default everything passes.
	Engine *engine.Engine
	// World is what exists, as caches have it, to tell an author whom a policy
	// would hit. By default nobody is told.
	World func(ctx context.Context) (*survey.World, error)
	// Rehearsals ask targets, within RehearsalTimeout. By default none is asked.
	Rehearsals       Rehearsals
	RehearsalTimeout time.Duration
}

// onError is what a webhook answers when it cannot decide. It matches the
// webhook's failurePolicy, which itself only covers calls that fail: a recovered
// panic and admission.Errored are answers, and deny.
type onError bool

const (
	deny  onError = false
	allow onError = true
)

// Register serves every webhook.
func Register(server webhook.Server, o Options) {
	if o.Policies == nil {
		none := engine.New(engine.Options{})
		none.Replace(context.Background(), nil)
		o.Policies = decisions.New(none, o.Frontier.Portico)
	}
	connect := connections{reader: o.Reader, secrets: o.Secrets, rules: o.Rules, identity: o.Identity}
	for path, hook := range map[string]struct {
		handle  handler
		onError onError
	}{
		HoldPath:          {hold(o.Identity, false), deny},
		HoldNamespacePath: {hold(o.Identity, true), deny},
		PinPath:           {pin, deny},
		ShieldPath:        {shield(o.Identity), allow},
		NativePath:        {asking(o.Policies, native(o)), deny},
		WorkloadPath:      {asking(o.Policies, workload(o, connect)), deny},
		ConnectionPath:    {connect.secret, allow},
		InUsePath:         {inUse(o), deny},
		InUseSecretPath:   {inUse(o), allow},
		PolicyPath:        {asking(o.Policies, written(o)), deny},
	} {
		server.Register(path, budget(&admission.Webhook{Handler: guarded{path: path, handle: hook.handle, onError: hook.onError}}))
	}
	convert, err := converter(o.Scheme)
	if err != nil {
		panic(err) // a version of a kind without a way to convert it, in this binary
	}
	server.Register(ConvertPath, convert)
}

// handler answers one request, or says why it cannot.
type handler func(ctx context.Context, req admission.Request) (admission.Response, error)

// asking keeps a request, in its own time, until the policies are loaded. A
// replica that has just started is sent requests before it is ready.
func asking(policies interface{ Loaded() <-chan struct{} }, handle handler) handler {
	return func(ctx context.Context, req admission.Request) (admission.Response, error) {
		select {
		case <-policies.Loaded():
			return handle(ctx, req)
		case <-ctx.Done():
			return admission.Response{}, errors.New("the policies are not loaded yet; try again")
		}
	}
}

// guarded answers in the handler's stead when it cannot.
type guarded struct {
	path    string
	handle  handler
	onError onError
}

// Handle implements admission.Handler.
func (g guarded) Handle(ctx context.Context, req admission.Request) (resp admission.Response) {
	defer func() {
		if cause := recover(); cause != nil {
			logf.FromContext(ctx).Error(fmt.Errorf("panic: %v", cause), "Recovered from a panic in a webhook",
				"path", g.path, "stack", string(debug.Stack()))
			resp = g.undecided(fmt.Errorf("%s: internal error", g.path))
		}
	}()
	if req.UID == "" {
		return admission.Errored(http.StatusBadRequest, errors.New("nothing is asked: this is no API server's AdmissionReview"))
	}
	deletes := g.path == InUsePath || g.path == InUseSecretPath || g.path == PolicyPath
	if req.Operation == admissionv1.Delete && !deletes || req.Operation == admissionv1.Connect {
		return admission.Allowed("") // whatever a configuration sends us: nothing else stands in the way of deletion
	}
	resp, err := g.handle(ctx, req)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Webhook could not decide", "path", g.path)
		return g.undecided(err)
	}
	return resp
}

func (g guarded) undecided(err error) admission.Response {
	if g.onError == allow {
		return admission.Allowed("").WithWarnings(fmt.Sprintf("portico could not decide and let this pass: %v", err))
	}
	return admission.Errored(http.StatusInternalServerError, err)
}

// patched allows a request with changes, and notes them in the audit log.
func patched(ops []jsonPatchOperation, note string) admission.Response {
	resp := admission.Allowed("")
	if len(ops) == 0 {
		return resp
	}
	resp.Patches = ops
	resp.AuditAnnotations = map[string]string{"decision": note}
	return resp
}

func subresource(req admission.Request) bool { return req.SubResource != "" }
