package install

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/portico-io/portico/test/cluster"
)

const (
	processName    = "portico"
	serviceAccount = "portico"
)

// Manager is a process of Portico's manager.
type Manager struct {
	hub       *cluster.Cluster
	opts      Options
	namespace string
	state     state
	process   *cluster.Process
}

// Kubeconfig returns the path of the manager's kubeconfig.
func (m *Manager) Kubeconfig() string { return m.path("portico.kubeconfig") }

// LogFile returns the path of the manager's log.
func (m *Manager) LogFile() string { return m.path(processName + ".log") }

// MetricsURL returns the URL of the manager's metrics.
func (m *Manager) MetricsURL() string {
	return fmt.Sprintf("http://127.0.0.1:%d/metrics", m.state.MetricsPort)
}

// WebhookURL returns the URL of the webhooks, without a path.
func (m *Manager) WebhookURL() string {
	return fmt.Sprintf("https://127.0.0.1:%d", m.state.WebhookPort)
}

// PID returns the number of the manager's process.
func (m *Manager) PID() int { return m.process.PID() }

// Running tells whether the manager's process exists.
func (m *Manager) Running() bool { return m.process != nil && m.process.Alive() }

// Stop ends the manager with SIGTERM, as a kubelet does.
func (m *Manager) Stop() error { return m.process.Stop() }

// Kill9 ends the manager with SIGKILL.
func (m *Manager) Kill9() error { return m.process.Kill() }

// Restart starts the manager again, and returns when it is ready. It stops the manager
// first if it runs.
func (m *Manager) Restart(ctx context.Context) error { return m.RestartWith(ctx) }

// RestartWith does the same as Restart, with additional arguments until the next
// restart.
func (m *Manager) RestartWith(ctx context.Context, args ...string) error {
	if m.Running() {
		if err := m.Stop(); err != nil {
			return err
		}
	}
	if err := m.start(args...); err != nil {
		return err
	}
	return m.waitReady(ctx)
}

// login gives the manager a token of its service account, as in a Pod.
func (m *Manager) login(ctx context.Context) error {
	hub, err := kubernetes.NewForConfig(m.hub.Config())
	if err != nil {
		return err
	}
	year := int64((365 * 24 * time.Hour).Seconds())
	var token *authenticationv1.TokenRequest
	// The controllers may not have observed the service account yet.
	err = cluster.Poll(ctx, timeout, "a token of Portico's service account", func(ctx context.Context) (err error) {
		token, err = hub.CoreV1().ServiceAccounts(m.namespace).CreateToken(ctx, serviceAccount, &authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &year},
		}, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	user, err := m.hub.WithToken("system:serviceaccount:"+m.namespace+":"+serviceAccount, token.Status.Token)
	if err != nil {
		return err
	}
	return os.WriteFile(m.Kubeconfig(), user.Kubeconfig, 0o600)
}

func (m *Manager) start(args ...string) (err error) {
	m.process, err = cluster.Launch(cluster.Command{
		Name: processName,
		Path: m.opts.Binary,
		Args: append([]string{
			"--kubeconfig=" + m.Kubeconfig(),
			"--namespace=" + m.namespace,
			"--webhook-host=127.0.0.1",
			fmt.Sprintf("--webhook-port=%d", m.state.WebhookPort),
			"--certificate-dns-name=127.0.0.1",
			fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", m.state.MetricsPort),
			fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", m.state.HealthPort),
			fmt.Sprintf("--leader-elect=%t", m.opts.LeaderElect),
			// The targets of tests and of the demo are on this machine.
			"--allow-local-targets",
			// No API server has to observe the end of the endpoint.
			"--shutdown-delay=0s",
		}, slices.Concat(m.opts.Args, args)...),
		Env:    m.opts.Env,
		Dir:    m.opts.Dir,
		Detach: m.opts.Detach,
	})
	return err
}

func (m *Manager) waitReady(ctx context.Context) error {
	ready := fmt.Sprintf("http://127.0.0.1:%d/readyz", m.state.HealthPort)
	return cluster.Poll(ctx, timeout, "Portico's manager (its log is "+m.LogFile()+")", func(ctx context.Context) error {
		if !m.Running() {
			return cluster.Permanent(fmt.Errorf("starting Portico's manager: it ended; see %s:\n%s", m.LogFile(), m.process.LastWords()))
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, ready, nil)
		if err != nil {
			return cluster.Permanent(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return errors.New("it is not ready: " + response.Status)
		}
		return nil
	})
}

// Shutdown ends the manager in a directory, also that of another program.
func Shutdown(dir string) error {
	process, err := cluster.Attach(dir, processName)
	if err != nil || process == nil {
		return err
	}
	return process.Kill()
}
