// Command kube contains every Kubernetes program of the tests and the demo in one
// binary: a control plane (etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler), a cloud-controller-manager with a cloud of its own, and kwok, which
// simulates the nodes. kubectl is a binary of its own.
//
// The name of the binary, which may be a symbolic link, selects the program; otherwise
// the first argument does: "kube etcd --version". One binary is linked once, while
// six would link the same libraries five times. It is a module of its own so that
// Portico's go.mod does not contain k8s.io/kubernetes.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// programs maps the name of a program to a function that runs it and returns its exit
// code.
var programs = map[string]func() int{
	"cloud-controller-manager": runCloudControllerManager,
	"etcd":                     func() int { etcdmain.Main(os.Args); return 0 },
	"kube-apiserver":           func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager":  func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) },
	"kube-scheduler":           func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
	"kwok":                     runKwok,
}

func main() {
	name := filepath.Base(os.Args[0])
	if _, ok := programs[name]; !ok && len(os.Args) > 1 {
		name, os.Args = os.Args[1], os.Args[1:]
	}
	run, ok := programs[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "kube: call me as, or with, one of: %s\n", strings.Join(slices.Sorted(maps.Keys(programs)), ", "))
		os.Exit(2)
	}
	os.Exit(run())
}

func fail(doing string, err error) int {
	fmt.Fprintf(os.Stderr, "%s: %v\n", doing, err)
	return 1
}
