package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/cluster/install"
)

// down ends every process of the demo, and removes its directory.
func (d *demo) down(context.Context) error {
	if _, err := os.Stat(d.dir); errors.Is(err, fs.ErrNotExist) {
		fmt.Println("nothing is up")
		return nil
	}
	errs := []error{install.Shutdown(d.dir)}
	for _, m := range members {
		errs = append(errs, cluster.Shutdown(d.path(m.name)))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := os.RemoveAll(d.dir); err != nil {
		return err
	}
	fmt.Println("all is down")
	return nil
}
