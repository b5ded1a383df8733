// Command bench is behind `make bench`: it compares Portico with the same work without
// Portico, on clusters of its own, and prints ratios.
//
// A ratio depends less on the machine than a time. Both sides of a ratio are measured
// in one run, in turns, so that other load on the machine affects both equally. The
// result is the median.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/portico-io/portico/test/cluster"
)

func main() {
	// The messages of libraries about clusters that come or go are not needed.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // after a second interrupt the clusters are not stopped
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

// settings are the options of a run.
type settings struct {
	pairs       int
	concurrency int
	rounds      int
	samples     int
	templates   int
	resources   int
	large       int
	small       int
	namespaces  int
	members     int
	burst       int
	flapping    int
	flaps       int
	only        []string // all sections if empty
	profile     bool

	root string // the root of the repository
	out  string // the directory of reports
}

// sections are the names of all measurements, in order.
var sections = []string{policiesSection, admissionSection, throughputSection, memorySection, latencySection, steadySection, dryRunSection, applicationsSection, targetsSection,
	placementSection, namespacesSection, membersSection, burstSection, hostileSection, flappingSection}

const (
	policiesSection     = "policies"
	admissionSection    = "admission"
	throughputSection   = "throughput"
	memorySection       = "memory"
	latencySection      = "latency"
	steadySection       = "steady"
	dryRunSection       = "dry-run"
	applicationsSection = "applications"
	targetsSection      = "targets"
	placementSection    = "placement"
	namespacesSection   = "namespaces"
	membersSection      = "members"
	burstSection        = "burst"
	hostileSection      = "hostile"
	flappingSection     = "flapping"
)

func run(ctx context.Context, args []string) error {
	if len(args) == 2 && args[0] == "-noop" {
		return serveNoop(args[1])
	}
	s, err := parse(args)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return err
	}
	r := newReport(s)
	failed := measure(ctx, s, r)
	if len(r.Rows) == 0 {
		return failed
	}
	// The results before an error or an interrupt are printed.
	fmt.Printf("\n%s", r.markdown())
	if err := r.write(s.out); err != nil {
		return errors.Join(failed, err)
	}
	fmt.Printf("\nwritten to %s/report.md and report.json\n", s.out)
	return failed
}

func measure(ctx context.Context, s *settings, r *report) error {
	if s.wants(policiesSection) {
		if err := measurePolicies(ctx, s, r); err != nil {
			return fmt.Errorf("measuring policies: %w", err)
		}
	}
	if s.wants(admissionSection) {
		if err := measureAdmission(ctx, s, r); err != nil {
			return fmt.Errorf("measuring admission: %w", err)
		}
	}
	if s.wants(throughputSection, memorySection, latencySection, steadySection, dryRunSection, applicationsSection) {
		if err := measureSystem(ctx, s, r); err != nil {
			return err
		}
	}
	for _, part := range []struct {
		sections []string
		measure  func(context.Context, *settings, *report) error
	}{
		{[]string{targetsSection}, measureTargets},
		{[]string{placementSection, namespacesSection}, measureNamespaces},
		{[]string{membersSection}, measureMembers},
		{[]string{burstSection}, measureBurst},
		{[]string{hostileSection}, measureHostile},
		{[]string{flappingSection}, measureFlapping},
	} {
		if !s.wants(part.sections...) {
			continue
		}
		started, what := time.Now(), strings.Join(part.sections, " and ")
		if err := part.measure(ctx, s, r); err != nil {
			return fmt.Errorf("measuring %s: %w", what, err)
		}
		printProgress("%s: measured in %s", what, time.Since(started).Round(time.Second))
	}
	return nil
}

func parse(args []string) (*settings, error) {
	s := &settings{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&s.pairs, "pairs", 500, "how many Deployments, each with a Service, to apply")
	flags.IntVar(&s.concurrency, "concurrency", 16, "how many requests a client has under way at the same time")
	flags.IntVar(&s.rounds, "rounds", 3, "how often to measure each thing in its turn")
	flags.IntVar(&s.samples, "samples", 200, "how many status changes to follow from target to hub")
	flags.IntVar(&s.templates, "templates", 200, "how many templates an application has")
	flags.IntVar(&s.resources, "resources", 1000, "how many resources with Secrets all applications have together")
	flags.IntVar(&s.large, "large", 10000, "how many resources are in a namespace that has many")
	flags.IntVar(&s.small, "small", 100, "how many resources are in a namespace that has few")
	flags.IntVar(&s.namespaces, "namespaces", 50, "over how many namespaces as many are spread that one has")
	flags.IntVar(&s.members, "members", 2000, "how many members a large application has")
	flags.IntVar(&s.burst, "burst", 500, "how many applications are created at once")
	flags.IntVar(&s.flapping, "flapping", 1000, "how many resources are on the larger of two targets that come and go")
	flags.IntVar(&s.flaps, "flaps", 5, "how often those come and go")
	flags.Func("only", "measure a `section` alone, of "+strings.Join(sections, ", ")+"; repeatable", func(section string) error {
		if !slices.Contains(sections, section) {
			return errors.New("no such section")
		}
		s.only = append(s.only, section)
		return nil
	})
	flags.BoolVar(&s.profile, "profile", false, "write CPU and heap profiles of the manager next to the report")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	var errs []error
	flags.VisitAll(func(f *flag.Flag) {
		getter, ok := f.Value.(flag.Getter)
		if !ok {
			return // excluded by -only
		}
		if n, ok := getter.Get().(int); ok && n < 1 {
			errs = append(errs, fmt.Errorf("-%s must be at least 1", f.Name))
		}
	})
	if s.namespaces > s.large {
		errs = append(errs, errors.New("-namespaces must not be more than -large"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var err error
	if s.root, err = cluster.RepoRoot(); err != nil {
		return nil, err
	}
	s.out = filepath.Join(s.root, ".portico", "bench")
	return s, nil
}

// manifests is the installed kustomization.
func (s *settings) manifests() string { return filepath.Join(s.root, "config", "default") }

func (s *settings) wants(anyOf ...string) bool {
	return len(s.only) == 0 || slices.ContainsFunc(anyOf, func(section string) bool { return slices.Contains(s.only, section) })
}
