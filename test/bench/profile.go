package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	"github.com/portico-io/portico/test/cluster"
)

// profiling makes the manager serve profiles, if the user requested them.
func (b *system) profiling() (args []string, err error) {
	if !b.profile {
		return nil, nil
	}
	port, err := cluster.FreePort()
	if err != nil {
		return nil, err
	}
	b.profiles = fmt.Sprintf("127.0.0.1:%d", port)
	return []string{"--profiling-bind-address=" + b.profiles}, nil
}

// profiled calls do, and takes CPU profiles of the manager and of the hub's API server
// in the meantime. It takes a profile of the manager's heap afterwards.
func (b *system) profiled(ctx context.Context, name string, do func() error) error {
	if !b.profile {
		return do()
	}
	const seconds = 15
	cpu := make(chan error, 2)
	go func() { cpu <- b.save(ctx, fmt.Sprintf("profile?seconds=%d", seconds), name+"-cpu.pprof") }()
	go func() { cpu <- b.saveHub(ctx, seconds, name+"-hub-cpu.pprof") }()
	return errors.Join(do(), <-cpu, <-cpu, b.save(ctx, "heap", name+"-heap.pprof"))
}

func (b *system) save(ctx context.Context, profile, file string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.profiles+"/debug/pprof/"+profile, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	out, err := os.Create(filepath.Join(b.out, file))
	if err != nil {
		return err
	}
	_, err = io.Copy(out, response.Body)
	return errors.Join(err, out.Close())
}

func (b *system) saveHub(ctx context.Context, seconds int, file string) error {
	data, err := b.onHub.Discovery().RESTClient().Get().AbsPath("/debug/pprof/profile").Param("seconds", strconv.Itoa(seconds)).DoRaw(ctx)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.out, file), data, 0o644)
}
