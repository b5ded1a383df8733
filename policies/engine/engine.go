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
)

// Version of what evaluates policies, as status shows it.
var Version = "opa/" + version.Version

// DefaultTimeout is how long one policy may take for one decision. Rego has no
// memory limit; this, and the number of evaluations at a time, are the bound.
// It is time of the processor, where that can be measured: a policy that is kept
// waiting, because the machine is busy, has taken nothing.
const DefaultTimeout = 250 * time.Millisecond

// Options of an Engine. The zero value is what a manager wants.
type Options struct {
	// Timeout of one policy in one decision, in time of the processor;
	// DefaultTimeout when 0.
	Timeout time.Duration
	// Slots is how many policies are evaluated at a time; GOMAXPROCS when 0.
	Slots int
	// Print receives what policies print; nil drops it.
	Print io.Writer
	// Now is the clock that policies see; time.Now when nil.
	Now func() time.Time
}

// Engine holds the policies in force and asks them. All its methods may be
// called at any time from anywhere.
type Engine struct {
	options    Options
	slots      chan struct{}
	candidates *candidates
	printing   sync.Mutex
	loaded     chan struct{}

	// writing is held while the next set is made; current is never changed.
	writing     sync.Mutex
	current     atomic.Pointer[set]
	subscribers []chan struct{} // guarded by writing
}

// set is all policies at one moment.
type set struct {
	entries  map[string]*entry
	asked    map[policyv1alpha1.PolicyType][]*entry
	revision string
}

// entry is one policy: as it shall be, and as it is. It is never changed.
type entry struct {
	want    *policyv1alpha1.Policy
	report  Report
	serving *compiled // nil when no form of it ever worked
}

// State is what there is to say of a policy in force.
type State struct {
	// Report on the form it shall have.
	Report
	// Serving is the revision that decides: an earlier one when Report is not
	// OK, and empty when there is none, so that every decision the policy
	// matches follows its failurePolicy.
	Serving string
	// Type and Action of the form that decides.
	Type   policyv1alpha1.PolicyType
	Action policyv1alpha1.Action
	// Libraries it is compiled with.
	Libraries []string
}

// New returns an engine without policies, which allows everything.
func New(options Options) *Engine {
	if options.Timeout == 0 {
		options.Timeout = DefaultTimeout
	}
	if options.Slots == 0 {
		options.Slots = runtime.GOMAXPROCS(0)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	e := &Engine{options: options, slots: make(chan struct{}, options.Slots), candidates: newCandidates(), loaded: make(chan struct{})}
	e.current.Store((&set{}).next())
	return e
}

// Check says what Apply would, and changes nothing. For a Library it says as
// well which policies would break.
func (e *Engine) Check(ctx context.Context, policy *policyv1alpha1.Policy) Report {
	report, _ := e.Try(ctx, policy)
	return report
}

// Try is Check, and returns the policy to be asked what it would do; nil when it
// can be asked nothing.
func (e *Engine) Try(ctx context.Context, policy *policyv1alpha1.Policy) (Report, *Trial) {
	s := e.current.Load()
	next := s.next()
	next.put(ctx, policy)
	report := next.entries[policy.Name].report
	for _, name := range slices.Sorted(maps.Keys(next.entries)) {
		before, after := s.entries[name], next.entries[name]
		if name != policy.Name && before.report.OK() && !after.report.OK() {
			report.Problems = append(report.Problems, breaks(name, after.report))
		}
	}
	serving := next.entries[policy.Name].serving
	if !report.OK() || serving == nil || serving.spec.Type == policyv1alpha1.Library {
		return report, nil
	}
	return report, &Trial{engine: e, policy: serving}
}

// CheckRemoval says which policies would break without this one.
func (e *Engine) CheckRemoval(ctx context.Context, name string) Report {
	s := e.current.Load()
	trial := s.next()
	report := Report{Policy: name}
	if gone, ok := s.entries[name]; ok {
		report.Revision = gone.report.Revision
		trial.drop(ctx, name)
	}
	for _, other := range slices.Sorted(maps.Keys(trial.entries)) {
		if s.entries[other].report.OK() && !trial.entries[other].report.OK() {
			report.Problems = append(report.Problems, breaks(other, trial.entries[other].report))
		}
	}
	return report
}

func breaks(name string, report Report) Problem {
	return Problem{Code: "policy_dependent", Dependent: name, Message: fmt.Sprintf("policy %s would break: %v", name, report.Err())}
}

// Apply puts a policy in force, or keeps its last good form when there are
// problems. Other policies are not touched, except those that import it when
// it is a Library. Applying what is in force already costs nothing.
func (e *Engine) Apply(ctx context.Context, policy *policyv1alpha1.Policy) Report {
	e.writing.Lock()
	defer e.writing.Unlock()
	next := e.current.Load().next()
	next.put(ctx, policy)
	e.use(next)
	return next.entries[policy.Name].report
}

// Replace puts exactly these policies in force, all at once.
func (e *Engine) Replace(ctx context.Context, policies []*policyv1alpha1.Policy) {
	e.writing.Lock()
	defer e.writing.Unlock()
	defer e.setLoaded()
	next := e.current.Load().next()
	keep := map[string]bool{}
	for _, policy := range librariesFirst(policies) {
		keep[policy.Name] = true
		next.put(ctx, policy)
	}
	for name := range next.entries {
		if !keep[name] {
			next.drop(ctx, name)
		}
	}
	e.use(next)
}

// Remove takes a policy out of force.
func (e *Engine) Remove(ctx context.Context, name string) {
	e.writing.Lock()
	defer e.writing.Unlock()
	next := e.current.Load().next()
	next.drop(ctx, name)
	e.use(next)
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

// Revision names the set of policies in force.
func (e *Engine) Revision() string { return e.current.Load().revision }

// Asks says whether there is any policy of the type. When there is none, nobody
// needs to gather what it would see.
func (e *Engine) Asks(t policyv1alpha1.PolicyType) bool { return len(e.current.Load().asked[t]) > 0 }

// Changes returns a channel that says when what decides has changed. Changes
// that nobody has looked at yet are one.
func (e *Engine) Changes() <-chan struct{} {
	e.writing.Lock()
	defer e.writing.Unlock()
	changes := make(chan struct{}, 1)
	e.subscribers = append(e.subscribers, changes)
	return changes
}

// use puts the next set in force. Whoever calls it is writing.
func (e *Engine) use(next *set) {
	before := e.current.Swap(next.seal())
	if before.revision == next.revision {
		return
	}
	for _, changes := range e.subscribers {
		select {
		case changes <- struct{}{}:
		default: // it is to look already
		}
	}
}

func (e *entry) state() State {
	state := State{Report: e.report, Type: e.want.Spec.Type, Action: e.want.Spec.Action}
	if e.serving != nil {
		state.Serving, state.Libraries = e.serving.revision, e.serving.uses
		state.Type, state.Action = e.serving.spec.Type, e.serving.spec.Action
	}
	return state
}

// next returns a set to change and then seal.
func (s *set) next() *set {
	next := &set{entries: make(map[string]*entry, len(s.entries)+1)}
	maps.Copy(next.entries, s.entries)
	return next.seal()
}

// seal makes what is derived from the entries.
func (s *set) seal() *set {
	s.asked = map[policyv1alpha1.PolicyType][]*entry{}
	var revisions strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.entries)) {
		entry := s.entries[name]
		t := entry.want.Spec.Type
		serving := ""
		if entry.serving != nil {
			t, serving = entry.serving.spec.Type, entry.serving.revision
		}
		s.asked[t] = append(s.asked[t], entry)
		fmt.Fprintf(&revisions, "%s=%s\n", name, serving)
	}
	s.revision = shorten([]byte(revisions.String()))
	return s
}

// libraries are those that work.
func (s *set) libraries() map[string]*compiled {
	out := map[string]*compiled{}
	for name, entry := range s.entries {
		if entry.serving != nil && entry.serving.spec.Type == policyv1alpha1.Library {
			out[name] = entry.serving
		}
	}
	return out
}

// put compiles a policy into the set.
func (s *set) put(ctx context.Context, policy *policyv1alpha1.Policy) {
	before := s.entries[policy.Name]
	if before != nil && before.report.Revision == Revision(policy.Spec) && before.report.OK() {
		return
	}
	s.compile(ctx, policy)
	isLibrary := policy.Spec.Type == policyv1alpha1.Library || before != nil && before.want.Spec.Type == policyv1alpha1.Library
	if after := s.entries[policy.Name]; isLibrary && after.report.OK() {
		s.recompile(ctx, policy.Name)
	}
}

// drop takes a policy out of the set.
func (s *set) drop(ctx context.Context, name string) {
	gone, ok := s.entries[name]
	if !ok {
		return
	}
	delete(s.entries, name)
	if gone.want.Spec.Type == policyv1alpha1.Library {
		s.recompile(ctx, name)
	}
}

// compile checks a policy and keeps the last good form of one that fails.
func (s *set) compile(ctx context.Context, policy *policyv1alpha1.Policy) {
	fresh, report := check(ctx, policy, s.libraries())
	now := &entry{want: policy.DeepCopy(), report: report, serving: fresh}
	if before := s.entries[policy.Name]; fresh == nil && before != nil {
		now.serving = before.serving
	}
	s.entries[policy.Name] = now
}

// recompile compiles what a library was compiled into, or might mend: libraries
// before those that import them.
func (s *set) recompile(ctx context.Context, library string) {
	var others []*policyv1alpha1.Policy
	for name, entry := range s.entries {
		uses := entry.serving != nil && slices.Contains(entry.serving.uses, library)
		if name != library && (uses || !entry.report.OK()) {
			others = append(others, entry.want)
		}
	}
	for _, policy := range librariesFirst(others) {
		s.compile(ctx, policy)
	}
}

// librariesFirst orders policies so that what is imported is compiled before
// what imports it. Libraries that import one another are tried again.
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
