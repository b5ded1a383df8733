package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is a process in a session of its own. Its record on disk is
// <dir>/<name>.json, by which another run finds it, and its log is <dir>/<name>.log.
type Process struct {
	name string
	path string // the path of the record
	log  string

	record record
	// exited is closed when the process has ended. It is nil if another run started the
	// process.
	exited chan struct{}
}

// record identifies a process. Its number alone does not, because it is used again
// after the end of the process.
type record struct {
	PID   int      `json:"pid"`
	Birth string   `json:"birth"`
	Args  []string `json:"args"` // for readers
}

// Command describes a process to start.
type Command struct {
	// Name is the name of the record and of the log.
	Name string
	// Path and Args are the program and its arguments.
	Path string
	Args []string
	// Env is additional to a minimal environment.
	Env []string
	// Dir is the working directory, with the record and the log.
	Dir string
	// Detach lets the process outlive this one.
	Detach bool
}

// Launch starts a process.
func Launch(c Command) (*Process, error) {
	p := &Process{
		name:   c.Name,
		path:   filepath.Join(c.Dir, c.Name+".json"),
		log:    filepath.Join(c.Dir, c.Name+".log"),
		exited: make(chan struct{}),
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()

	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir = c.Dir
	// The programs must not read the user's settings.
	cmd.Env = append([]string{"HOME=" + c.Dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}, c.Env...)
	// A pipe would end with this process.
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = processAttributes(c.Detach)
	if err := start(cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Name, err)
	}
	go func() {
		_ = cmd.Wait() // its log has the reason of its end
		close(p.exited)
	}()

	p.record = record{PID: cmd.Process.Pid, Birth: birth(cmd.Process.Pid), Args: append([]string{c.Path}, c.Args...)}
	data, err := json.MarshalIndent(p.record, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(p.path, data, 0o600); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}

// Attach returns the process that an earlier run started; nil if there is none, or if
// it has ended.
func Attach(dir, name string) (*Process, error) {
	p := &Process{name: name, path: filepath.Join(dir, name+".json"), log: filepath.Join(dir, name+".log")}
	data, err := os.ReadFile(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &p.record); err != nil || !p.Alive() {
		// The record is incomplete or out of date.
		return nil, os.Remove(p.path)
	}
	return p, nil
}

// PID returns the number of the process.
func (p *Process) PID() int { return p.record.PID }

// Alive tells whether the process exists, paused or not.
func (p *Process) Alive() bool {
	if p.exited != nil {
		select {
		case <-p.exited:
			return false
		default:
			return true
		}
	}
	return p.record.PID > 0 && p.record.Birth != "" && birth(p.record.PID) == p.record.Birth
}

// Stop sends SIGTERM, and SIGKILL after ten seconds.
func (p *Process) Stop() error { return p.end(syscall.SIGTERM, 10*time.Second) }

// Kill sends SIGKILL.
func (p *Process) Kill() error { return p.end(syscall.SIGKILL, 0) }

// Pause suspends the process until Resume. It returns when all its threads have
// stopped.
func (p *Process) Pause() error {
	if err := p.send(syscall.SIGSTOP); err != nil {
		return err
	}
	for !stopped(p.record.PID) && p.Alive() {
		time.Sleep(time.Millisecond)
	}
	return nil
}

// Resume undoes Pause.
func (p *Process) Resume() error { return p.send(syscall.SIGCONT) }

func (p *Process) send(signal syscall.Signal) error {
	if !p.Alive() {
		return fmt.Errorf("signalling %s: %w", p.name, os.ErrProcessDone)
	}
	return syscall.Kill(p.record.PID, signal)
}

func (p *Process) end(signal syscall.Signal, timeout time.Duration) error {
	if p.Alive() {
		if err := syscall.Kill(p.record.PID, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("ending %s: %w", p.name, err)
		}
		_ = syscall.Kill(p.record.PID, syscall.SIGCONT) // a paused process does not handle SIGTERM
		if signal != syscall.SIGKILL && !p.gone(timeout) {
			_ = syscall.Kill(p.record.PID, syscall.SIGKILL)
		}
		if !p.gone(10 * time.Second) {
			return fmt.Errorf("ending %s: process %d is still there", p.name, p.record.PID)
		}
	}
	if err := os.Remove(p.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (p *Process) gone(within time.Duration) bool {
	for deadline := time.Now().Add(within); p.Alive(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// LastWords returns the last lines of the log.
func (p *Process) LastWords() string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return ""
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-8):], []byte("\n")))
}

// start starts every process from one thread that never ends: on Linux, a child with a
// parent-death signal ends when the thread of its parent ends.
func start(cmd *exec.Cmd) error {
	startOnce.Do(func() {
		go func() {
			runtime.LockOSThread()
			for request := range starts {
				request.done <- request.cmd.Start()
			}
		}()
	})
	request := startRequest{cmd: cmd, done: make(chan error)}
	starts <- request
	return <-request.done
}

type startRequest struct {
	cmd  *exec.Cmd
	done chan error
}

var (
	startOnce sync.Once
	starts    = make(chan startRequest)
)

// birth returns the start time of a process in the format of the system; empty if it
// has ended.
func birth(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, fs.ErrNotExist) && runtime.GOOS != "linux" {
		out, _ := exec.Command("ps", "-o", "lstart=", "-p", strconv.Itoa(pid)).Output()
		return strings.TrimSpace(string(out))
	}
	if err != nil {
		return ""
	}
	// The name in parentheses may contain spaces. After the name, the first field is the
	// state (field 3 of the line). The start time is field 22.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fields[19]
}
