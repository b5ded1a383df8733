package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	sample     = "config/samples/wordpress.yaml"
	deployment = "wordpress"
)

// show starts everything, applies the sample, waits for it with kubectl, and prints its
// objects on both clusters.
func (d *demo) show(ctx context.Context) error {
	if err := d.start(ctx); err != nil {
		return err
	}
	for _, command := range []string{
		"apply -f " + sample,
		"rollout status deployment/" + deployment + " --timeout=2m",
	} {
		if err := d.kubectl(ctx, "hub", command); err != nil {
			return err
		}
	}

	target, err := d.output(ctx, "hub", "get kubernetesapplicationresource "+deployment+"-deployment -o jsonpath={.spec.targetRef.name}")
	if err != nil {
		return err
	}
	for _, get := range []struct{ at, command string }{
		{"hub", "get deploy,rs,svc,pods"},
		{target, "get deploy,rs,svc,pods"},
		{"hub", "get kubernetesapplications,kubernetesapplicationresources,kubernetestargets"},
		{"hub", "events --for=deployment/" + deployment},
	} {
		if err := d.kubectl(ctx, get.at, get.command); err != nil {
			return err
		}
	}
	fmt.Printf(`
It all stays until you say `+"`make down`"+`. Now talk to the hub yourself:

  export PATH="%s:$PATH" KUBECONFIG=%s

  kubectl scale deployment/%[3]s --replicas=3 && kubectl rollout status deployment/%[3]s
  kubectl set image deployment/%[3]s %[3]s=%[3]s:does-not-exist && kubectl rollout status deployment/%[3]s --timeout=10s
  kubectl rollout undo deployment/%[3]s && kubectl --kubeconfig %[4]s get pods

The second of these shows a bad image for what it is, and the third mends it. README.md goes on from here.
`, filepath.Join(d.root, "bin"), d.kubeconfig("hub"), deployment, d.kubeconfig(target))
	return nil
}

// kubectl prints a kubectl command, and runs it for a cluster.
func (d *demo) kubectl(ctx context.Context, at, command string) error {
	fmt.Printf("\n%s $ kubectl %s\n", at, command)
	cmd := d.command(ctx, at, command)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("kubectl %s, on %s: %w", command, at, err)
	}
	return nil
}

// output returns the output of a kubectl command.
func (d *demo) output(ctx context.Context, at, command string) (string, error) {
	out, err := d.command(ctx, at, command).Output()
	if err != nil {
		return "", fmt.Errorf("kubectl %s, on %s: %w", command, at, err)
	}
	return string(out), nil
}

func (d *demo) command(ctx context.Context, at, command string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(d.root, "bin", "kubectl"), strings.Fields(command)...)
	cmd.Dir = d.root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+d.kubeconfig(at))
	return cmd
}
