// Command kubectl is kubectl alone. Tests and the demo start it for each command, and it
// starts in half the time that all of Kubernetes in one binary takes.
package main

import (
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err) // prints the way kubectl prints, and exits
	}
}
