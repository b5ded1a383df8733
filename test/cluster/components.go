package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// args returns the arguments of a component.
func (c *Cluster) args(component Component) []string {
	kubeconfig := "--kubeconfig=" + c.path(string(component)+".kubeconfig")
	etcd := fmt.Sprintf("http://127.0.0.1:%d", c.state.EtcdPort)
	switch component {
	case Etcd:
		return []string{
			"--data-dir=" + c.path("etcd"),
			"--listen-client-urls=" + etcd,
			"--advertise-client-urls=" + etcd,
			"--listen-peer-urls=http://127.0.0.1:0",
			"--unsafe-no-fsync",
			"--log-level=warn",
		}
	case APIServer:
		return append([]string{
			"--etcd-servers=" + etcd,
			"--bind-address=127.0.0.1",
			"--advertise-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", c.state.ServerPort),
			// Endpoints must not be on loopback, and no Pod needs them.
			"--endpoint-reconciler-type=none",
			"--tls-cert-file=" + c.path("apiserver.crt"),
			"--tls-private-key-file=" + c.path("apiserver.key"),
			"--client-ca-file=" + c.path("ca.crt"),
			"--authorization-mode=RBAC",
			"--allow-privileged",
			"--service-cluster-ip-range=" + c.state.ServiceCIDR,
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + c.path("service-accounts.key"),
			"--service-account-signing-key-file=" + c.path("service-accounts.key"),
			"--requestheader-client-ca-file=" + c.path("front-proxy-ca.crt"),
			"--requestheader-allowed-names=front-proxy-client",
			"--requestheader-username-headers=X-Remote-User",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--proxy-client-cert-file=" + c.path("front-proxy.crt"),
			"--proxy-client-key-file=" + c.path("front-proxy.key"),
			"--enable-aggregator-routing",
			"--audit-policy-file=" + c.path("audit-policy.yaml"),
			"--audit-log-path=" + c.path(auditLog),
			"--audit-log-maxsize=1024",
			"--profiling=false",
		}, c.opts.ExtraAPIServerArgs...)
	case ControllerManager:
		return []string{
			kubeconfig,
			"--leader-elect=false",
			"--secure-port=0",
			"--use-service-account-credentials",
			"--service-account-private-key-file=" + c.path("service-accounts.key"),
			"--root-ca-file=" + c.path("ca.crt"),
			"--cluster-signing-cert-file=" + c.path("ca.crt"),
			"--cluster-signing-key-file=" + c.path("ca.key"),
			"--service-cluster-ip-range=" + c.state.ServiceCIDR,
			// The Pods keep their nodes while the API server is paused.
			"--node-monitor-grace-period=10m",
			"--kube-api-qps=100", "--kube-api-burst=200",
			// Tests wait for autoscalers.
			"--horizontal-pod-autoscaler-sync-period=1s",
		}
	case Scheduler:
		return []string{kubeconfig, "--leader-elect=false", "--secure-port=0"}
	case CloudControllerManager:
		return []string{
			kubeconfig,
			"--leader-elect=false",
			"--secure-port=0",
			"--load-balancer-range=" + c.opts.LoadBalancerRange,
		}
	case Kwok:
		return []string{
			kubeconfig,
			"--config=" + c.path("kwok.yaml"),
			"--manage-all-nodes",
			"--node-ip=127.0.0.1",
			"--node-port=0",
			"--cidr=10.244.0.0/16",
			"--node-lease-duration-seconds=120",
		}
	}
	panic("unknown component " + string(component))
}

// ensure starts a component that does not run.
func (c *Cluster) ensure(component Component) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if process := c.processes[component]; process != nil && process.Alive() {
		return nil
	}
	process, err := Launch(Command{
		Name:   string(component),
		Path:   filepath.Join(c.opts.Bin, string(component)),
		Args:   c.args(component),
		Dir:    c.opts.Dir,
		Detach: c.opts.Detach,
	})
	if err != nil {
		return err
	}
	c.processes[component] = process
	return nil
}

// startControlPlane starts etcd and the API server. Another program may take a free
// port before they listen on it, so there are three attempts for a new cluster.
func (c *Cluster) startControlPlane(ctx context.Context) error {
	fresh := c.state.ServerPort == 0
	for try := 1; ; try++ {
		if fresh {
			if err := c.choosePorts(); err != nil {
				return err
			}
		}
		if err := c.writeKubeconfigs(); err != nil {
			return err
		}
		for _, component := range []Component{Etcd, APIServer} {
			if err := c.ensure(component); err != nil {
				return err
			}
		}
		err := c.waitReady(ctx)
		if !errors.Is(err, ErrPortTaken) || !fresh || try == 3 {
			return err
		}
		if err := c.killAll(); err != nil {
			return err
		}
	}
}

// ErrPortTaken means that the address of an existing cluster is in use.
var ErrPortTaken = errors.New("another program listens on its port; end that, or start the cluster anew")

// waitReady waits until the API server is ready.
func (c *Cluster) waitReady(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	return Poll(ctx, 2*time.Minute, "the API server", func(ctx context.Context) error {
		for _, component := range []Component{Etcd, APIServer} {
			if c.Running(component) {
				continue
			}
			words := c.process(component).LastWords()
			if strings.Contains(words, "address already in use") {
				return Permanent(fmt.Errorf("starting %s: %w", component, ErrPortTaken))
			}
			return Permanent(fmt.Errorf("%s ended; see %s:\n%s", component, c.LogFile(component), words))
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		var code int
		err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&code).Error()
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("not ready: %d", code)
		}
		return err
	})
}

// settle waits for the service account of the default namespace, and for ready nodes.
// The controllers and kwok create them.
func (c *Cluster) settle(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	if c.has(Kwok) {
		for i := range c.opts.Nodes {
			if err := addNode(ctx, client, fmt.Sprintf("%s-%d", c.opts.Name, i)); err != nil {
				return err
			}
		}
	}
	if err := addStorageClass(ctx, client); err != nil {
		return err
	}
	return Poll(ctx, time.Minute, "the controllers", func(ctx context.Context) error {
		for _, component := range c.opts.Components {
			if !c.Running(component) {
				return Permanent(fmt.Errorf("%s ended; see %s:\n%s",
					component, c.LogFile(component), c.process(component).LastWords()))
			}
		}
		if c.has(ControllerManager) {
			if _, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{}); err != nil {
				return err
			}
		}
		if !c.has(Kwok) || !c.has(ControllerManager) {
			return nil
		}
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, node := range nodes.Items {
			if len(node.Spec.Taints) > 0 {
				return fmt.Errorf("node %s is not ready", node.Name)
			}
		}
		return nil
	})
}

func (c *Cluster) has(component Component) bool { return slices.Contains(c.opts.Components, component) }

// addNode adds a node, which kwok simulates.
func addNode(ctx context.Context, client kubernetes.Interface, name string) error {
	_, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:            name,
				corev1.LabelOSStable:            "linux",
				corev1.LabelArchStable:          "amd64",
				"node-role.kubernetes.io/agent": "",
				corev1.LabelTopologyZone:        "zone-" + name[len(name)-1:],
				corev1.LabelTopologyRegion:      "loopback",
				"kwok.x-k8s.io/node":            "fake",
			},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// addStorageClass adds the default class. kwok simulates its volumes.
func addStorageClass(ctx context.Context, client kubernetes.Interface) error {
	_, err := client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "standard",
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner: "kwok.x-k8s.io/volume",
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
