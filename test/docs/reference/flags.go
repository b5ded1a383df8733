package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// flags returns the help of the manager, and of every command of the plugin.
func flags(root string) (string, error) {
	var page strings.Builder
	page.WriteString("# Flags and commands\n\n## portico\n\nThe manager. Every flag is also a key of the file that `--config` names.\n\n")
	text, err := help(root, "portico")
	if err != nil {
		return "", err
	}
	fence(&page, text)
	err = commands(&page, root, nil)
	return page.String(), err
}

// subcommand matches a line of the list of commands in a help text.
var subcommand = regexp.MustCompile(`(?m)^  ([a-z]+) {2,}\S`)

// commands writes the help of a command of the plugin, and of its subcommands.
func commands(page *strings.Builder, root string, path []string) error {
	text, err := help(root, "kubectl-portico", path...)
	if err != nil {
		return err
	}
	fmt.Fprintf(page, "\n## %s\n\n", strings.Join(append([]string{"kubectl portico"}, path...), " "))
	global := "\nGlobal Flags:"
	if len(path) == 0 {
		global = "\nFlags:"
	}
	text, _, _ = strings.Cut(text, global) // these flags are kubectl's own
	fence(page, text)
	_, list, found := strings.Cut(text, "Available Commands:")
	if !found {
		return nil
	}
	list, _, _ = strings.Cut(list, "\n\n")
	for _, m := range subcommand.FindAllStringSubmatch(list, -1) {
		if m[1] == "help" {
			continue
		}
		if err := commands(page, root, append(append([]string{}, path...), m[1])); err != nil {
			return err
		}
	}
	return nil
}

func help(root, command string, path ...string) (string, error) {
	run := exec.Command("go", append(append([]string{"run", "./cmd/" + command}, path...), "--help")...)
	run.Dir = root
	out, err := run.Output()
	if err != nil {
		return "", fmt.Errorf("asking %s for help: %w", filepath.Join("cmd", command), err)
	}
	return string(out), nil
}

func fence(page *strings.Builder, text string) {
	page.WriteString("```text\n" + strings.TrimSpace(text) + "\n```\n")
}
