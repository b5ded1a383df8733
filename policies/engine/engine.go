package engine

import (
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/version"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies/reuse"
)

// Version of the engine, as the status of a Policy shows it.
var Version = "opa/" + version.Version

// DefaultTimeout is the limit on the time of one policy for one decision. Rego has no
// memory limit; this timeout and the number of concurrent evaluations bound the memory.
// The timeout is processor time where that can be measured: waiting for a busy machine
// does not count.
const DefaultTimeout = 250 * time.Millisecond

// Options of an Engine. The zero value has the defaults of the manager.
type Options struct {
	// Timeout of one policy in one decision, in processor time. Default: DefaultTimeout.
	Timeout time.Duration
	// MaxConcurrent is the number of concurrent evaluations. Default: GOMAXPROCS.
	MaxConcurrent int
	// Print receives the output of print calls in policies; nil drops it.
	Print io.Writer
	// Now is the clock that policies see. Default: time.Now.
	Now func() time.Time
}

// Engine holds the policies in force, and evaluates them. All methods may be called
// concurrently.
type Engine struct {
	options     Options
	workers     chan struct{}
	targetTerms *targetTerms
	cache       *reuse.Cache[*outputs]
	printing    sync.Mutex
	loaded      chan struct{}

	// mu is held while the next set is made. A set in current is not changed.
	mu          sync.Mutex
	current     atomic.Pointer[policySet]
	subscribers []chan struct{} // guarded by writing
}

// policySet is an immutable set of all policies.
type policySet struct {
	entries  map[string]*entry
	byType   map[policyv1alpha1.PolicyType][]*entry
	revision string
}

// entry is one policy: its spec, and the form in use. It is immutable.
type entry struct {
	desired *policyv1alpha1.Policy
	report  Report
	serving *compiled // nil if no form of the policy worked
}

// State is the state of a policy in force.
type State struct {
	// Report on the form in the spec.
	Report
	// Serving is the revision of the form in use. It is an earlier form if Report is not
	// OK. It is empty if there is no such form: then the failurePolicy applies to every
	// decision that the policy matches.
	Serving string
	// Type and Action of the form in use.
	Type   policyv1alpha1.PolicyType
	Action policyv1alpha1.Action
	// Libraries are the imported Libraries.
	Libraries []string
}

// New returns an engine without policies, which allows everything.
func New(options Options) *Engine {
	if options.Timeout == 0 {
		options.Timeout = DefaultTimeout
	}
	if options.MaxConcurrent == 0 {
		options.MaxConcurrent = runtime.GOMAXPROCS(0)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	e := &Engine{options: options, workers: make(chan struct{}, options.MaxConcurrent), targetTerms: newTargetTerms(maxTargetTerms), cache: reuse.NewCache[*outputs](reuse.MaxBytes), loaded: make(chan struct{})}
	e.current.Store((&policySet{}).clone())
	return e
}

// Check returns the report that Apply would return, and changes nothing. For a Library
// it also reports the policies that would break.
func (e *Engine) Check(ctx context.Context, policy *policyv1alpha1.Policy) Report {
	report, _ := e.Draft(ctx, policy)
	return report
}

// Draft does the same as Check, and returns the policy for evaluations; nil if it has
// problems.
func (e *Engine) Draft(ctx context.Context, policy *policyv1alpha1.Policy) (Report, *Draft) {
	s := e.current.Load()
	next := s.clone()
	next.add(ctx, policy)
	report := next.entries[policy.Name].report
	for _, name := range slices.Sorted(maps.Keys(next.entries)) {
		before, after := s.entries[name], next.entries[name]
		if name != policy.Name && before.report.OK() && !after.report.OK() {
			report.Problems = append(report.Problems, dependentProblem(name, after.report))
		}
	}
	serving := next.entries[policy.Name].serving
	if !report.OK() || serving == nil || serving.spec.Type == policyv1alpha1.Library {
		return report, nil
	}
	return report, &Draft{engine: e, policy: serving}
}

// CheckRemoval reports the policies that would break without a policy.
func (e *Engine) CheckRemoval(ctx context.Context, name string) Report {
	s := e.current.Load()
	next := s.clone()
	report := Report{Policy: name}
	if gone, ok := s.entries[name]; ok {
		report.Revision = gone.report.Revision
		next.remove(ctx, name)
	}
	for _, other := range slices.Sorted(maps.Keys(next.entries)) {
		if s.entries[other].report.OK() && !next.entries[other].report.OK() {
			report.Problems = append(report.Problems, dependentProblem(other, next.entries[other].report))
		}
	}
	return report
}

func dependentProblem(name string, report Report) Problem {
	return Problem{Code: "policy_dependent", Dependent: name, Message: fmt.Sprintf("policy %s would break: %v", name, report.Err())}
}

// Apply puts a policy in force. If the policy has problems, its last form that works
// remains in force. Other policies do not change, unless they import the policy, which
// is then a Library. A policy that is already in force is not compiled again.
func (e *Engine) Apply(ctx context.Context, policy *policyv1alpha1.Policy) Report {
	e.mu.Lock()
	defer e.mu.Unlock()
	next := e.current.Load().clone()
	next.add(ctx, policy)
	e.activate(next)
	return next.entries[policy.Name].report
}

// Replace replaces all policies in force at once.
func (e *Engine) Replace(ctx context.Context, policies []*policyv1alpha1.Policy) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.setLoaded()
	next := e.current.Load().clone()
	keep := map[string]bool{}
	for _, policy := range librariesFirst(policies) {
		keep[policy.Name] = true
		next.add(ctx, policy)
	}
	for name := range next.entries {
		if !keep[name] {
			next.remove(ctx, name)
		}
	}
	e.activate(next)
}

// Remove removes a policy.
func (e *Engine) Remove(ctx context.Context, name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	next := e.current.Load().clone()
	next.remove(ctx, name)
	e.activate(next)
}

// Policies returns the state of every policy, by name.
func (e *Engine) Policies() []State {
	s := e.current.Load()
	states := make([]State, 0, len(s.entries))
	for _, name := range slices.Sorted(maps.Keys(s.entries)) {
		states = append(states, s.entries[name].state())
	}
	return states
}

// Policy returns the state of one policy.
func (e *Engine) Policy(name string) (State, bool) {
	entry, ok := e.current.Load().entries[name]
	if !ok {
		return State{}, false
	}
	return entry.state(), true
}

// Revision identifies the set of policies in force.
func (e *Engine) Revision() string { return e.current.Load().revision }

// HasPolicies reports whether there is a policy of the type. Otherwise no input has to
// be built.
func (e *Engine) HasPolicies(t policyv1alpha1.PolicyType) bool {
	return len(e.current.Load().byType[t]) > 0
}

// Now returns the time that policies see.
func (e *Engine) Now() time.Time { return e.options.Now() }

// Changes returns a channel that receives a value when the policies in force have
// changed. Changes are combined until the value is received.
func (e *Engine) Changes() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	changes := make(chan struct{}, 1)
	e.subscribers = append(e.subscribers, changes)
	return changes
}

// activate puts the next set in force. The caller holds mu.
func (e *Engine) activate(next *policySet) {
	before := e.current.Swap(next.index())
	if before.revision == next.revision {
		return
	}
	for _, changes := range e.subscribers {
		select {
		case changes <- struct{}{}:
		default: // a value is already in the channel
		}
	}
}

func (e *entry) state() State {
	state := State{Report: e.report, Type: e.desired.Spec.Type, Action: e.desired.Spec.Action}
	if e.serving != nil {
		state.Serving, state.Libraries = e.serving.revision, e.serving.libraries
		state.Type, state.Action = e.serving.spec.Type, e.serving.spec.Action
	}
	return state
}

// clone returns a copy of the set, to be changed and then indexed.
func (s *policySet) clone() *policySet {
	next := &policySet{entries: make(map[string]*entry, len(s.entries)+1)}
	maps.Copy(next.entries, s.entries)
	return next.index()
}

// index computes the fields that are derived from the entries.
func (s *policySet) index() *policySet {
	s.byType = map[policyv1alpha1.PolicyType][]*entry{}
	var revisions strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.entries)) {
		entry := s.entries[name]
		t := entry.desired.Spec.Type
		serving := ""
		if entry.serving != nil {
			t, serving = entry.serving.spec.Type, entry.serving.revision
		}
		s.byType[t] = append(s.byType[t], entry)
		fmt.Fprintf(&revisions, "%s=%s\n", name, serving)
	}
	s.revision = contentHash([]byte(revisions.String()))
	return s
}

// libraries returns the Libraries that work.
func (s *policySet) libraries() map[string]*compiled {
	out := map[string]*compiled{}
	for name, entry := range s.entries {
		if entry.serving != nil && entry.serving.spec.Type == policyv1alpha1.Library {
			out[name] = entry.serving
		}
	}
	return out
}

// add compiles a policy into the set.
func (s *policySet) add(ctx context.Context, policy *policyv1alpha1.Policy) {
	before := s.entries[policy.Name]
	if before != nil && before.report.Revision == Revision(policy.Spec) && before.report.OK() {
		return
	}
	s.compile(ctx, policy)
	isLibrary := policy.Spec.Type == policyv1alpha1.Library || before != nil && before.desired.Spec.Type == policyv1alpha1.Library
	if after := s.entries[policy.Name]; isLibrary && after.report.OK() {
		s.recompile(ctx, policy.Name)
	}
}

// remove removes a policy from the set.
func (s *policySet) remove(ctx context.Context, name string) {
	gone, ok := s.entries[name]
	if !ok {
		return
	}
	delete(s.entries, name)
	if gone.desired.Spec.Type == policyv1alpha1.Library {
		s.recompile(ctx, name)
	}
}

// compile compiles a policy. If this fails, it keeps the last form that works.
func (s *policySet) compile(ctx context.Context, policy *policyv1alpha1.Policy) {
	fresh, report := compilePolicy(ctx, policy, s.libraries())
	now := &entry{desired: policy.DeepCopy(), report: report, serving: fresh}
	if before := s.entries[policy.Name]; fresh == nil && before != nil {
		now.serving = before.serving
	}
	s.entries[policy.Name] = now
}

// recompile compiles the policies that import a library, and those with problems that
// the library may correct. Libraries come before the policies that import them.
func (s *policySet) recompile(ctx context.Context, library string) {
	var others []*policyv1alpha1.Policy
	for name, entry := range s.entries {
		uses := entry.serving != nil && slices.Contains(entry.serving.libraries, library)
		if name != library && (uses || !entry.report.OK()) {
			others = append(others, entry.desired)
		}
	}
	for _, policy := range librariesFirst(others) {
		s.compile(ctx, policy)
	}
}

// librariesFirst orders policies so that a library is compiled before the policies that
// import it.
func librariesFirst(policies []*policyv1alpha1.Policy) []*policyv1alpha1.Policy {
	var libraries, rest []*policyv1alpha1.Policy
	for _, policy := range policies {
		if policy.Spec.Type == policyv1alpha1.Library {
			libraries = append(libraries, policy)
		} else {
			rest = append(rest, policy)
		}
	}
	byName := func(a, b *policyv1alpha1.Policy) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(libraries, byName)
	slices.SortFunc(rest, byName)
	return slices.Concat(libraries, rest)
}
