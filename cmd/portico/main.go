// Command portico is the manager: it serves the webhooks and runs the
// controllers.
package main

import (
	"os"

	"k8s.io/component-base/cli"
)

func main() {
	os.Exit(cli.Run(newCommand(run)))
}
