// Command bench is behind `make bench`: it measures Portico against the same
// work done without it, on clusters of its own, and prints ratios.
//
// Ratios, because a number alone says more about the machine than about
// Portico. What is compared is measured in one run, in turns, so that whatever
// else the machine does hits all alike; the median counts.
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

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/portico-io/portico/test/cluster"
)

func main() {
	// What libraries have to say of a cluster that comes or goes is no news here.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt does not wait for the clusters to stop
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

// settings are what a run can be told.
type settings struct {
	pairs       int
	concurrency int
	rounds      int
	samples     int
	templates   int
	resources   int
	only        []string // all, when empty
	profile     bool

	root string // of the repository
	out  string // where reports go
}

// sections are what can be measured, in order.
var sections = []string{policiesSection, admissionSection, throughputSection, memorySection, latencySection, steadySection, rehearsalSection, applicationsSection, targetsSection}

const (
	policiesSection     = "policies"
	admissionSection    = "admission"
	throughputSection   = "throughput"
	memorySection       = "memory"
	latencySection      = "latency"
	steadySection       = "steady"
	rehearsalSection    = "dry-run"
	applicationsSection = "applications"
	targetsSection      = "targets"
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
	// What was measured before something failed, or somebody lost patience, is
	// not lost.
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
	if s.wants(throughputSection, memorySection, latencySection, steadySection, rehearsalSection, applicationsSection) {
		if err := measureSystem(ctx, s, r); err != nil {
			return err
		}
	}
	if s.wants(targetsSection) {
		if err := measureTargets(ctx, s, r); err != nil {
			return fmt.Errorf("measuring targets: %w", err)
		}
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
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unknown argument %q", flags.Arg(0))
	case s.pairs < 1, s.concurrency < 1, s.rounds < 1, s.samples < 1, s.templates < 1, s.resources < 1:
		return nil, errors.New("-pairs, -concurrency, -rounds, -samples, -templates and -resources must be at least 1")
	}
	var err error
	if s.root, err = cluster.RepoRoot(); err != nil {
		return nil, err
	}
	s.out = filepath.Join(s.root, ".portico", "bench")
	return s, nil
}

// manifests are what is installed: as a user would.
func (s *settings) manifests() string { return filepath.Join(s.root, "config", "default") }

func (s *settings) wants(anyOf ...string) bool {
	return len(s.only) == 0 || slices.ContainsFunc(anyOf, func(section string) bool { return slices.Contains(s.only, section) })
}
