package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/portico-io/portico/test/cluster"
)

// shared is the cluster of the tests that do not damage it.
var shared *cluster.Cluster

func TestMain(m *testing.M) {
	os.Exit(func() int {
		started := time.Now()
		var err error
		if shared, err = cluster.Start(context.Background(), cluster.Options{Name: "shared"}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Printf("one cluster started in %s\n", time.Since(started).Round(100*time.Millisecond))
		code := m.Run()
		if err := shared.Shutdown(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	}())
}

func TestDeploymentRuns(t *testing.T) {
	client := clientFor(t, shared.Config())
	namespace := newNamespace(t, client)
	create(t, client, namespace, deployment("web", "nginx:1.29", 3))

	eventually(t, "three Pods run and are ready", func() error {
		got, err := client.AppsV1().Deployments(namespace).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got.Status.AvailableReplicas != 3 || got.Status.ObservedGeneration != got.Generation {
			return fmt.Errorf("status is %+v", got.Status)
		}
		return nil
	})
	pods := listPods(t, client, namespace)
	for _, pod := range pods {
		if pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP == "" || pod.Spec.NodeName == "" {
			t.Errorf("Pod %s: phase %q, address %q, node %q", pod.Name, pod.Status.Phase, pod.Status.PodIP, pod.Spec.NodeName)
		}
	}

	if err := client.AppsV1().Deployments(namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Pods are gone with their Deployment", func() error {
		if pods := listPods(t, client, namespace); len(pods) > 0 {
			return fmt.Errorf("%d Pods are left", len(pods))
		}
		return nil
	})
}

func TestImageThatDoesNotExist(t *testing.T) {
	client := clientFor(t, shared.Config())
	namespace := newNamespace(t, client)
	stuck := deployment("stuck", "nginx:does-not-exist", 1)
	stuck.Spec.ProgressDeadlineSeconds = new(int32(5))
	create(t, client, namespace, stuck)

	eventually(t, "the Deployment misses its progress deadline", func() error {
		got, err := client.AppsV1().Deployments(namespace).Get(t.Context(), "stuck", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range got.Status.Conditions {
			if condition.Type == appsv1.DeploymentProgressing && condition.Reason == "ProgressDeadlineExceeded" {
				return nil
			}
		}
		return fmt.Errorf("conditions are %+v", got.Status.Conditions)
	})
	waiting := listPods(t, client, namespace)[0].Status.ContainerStatuses[0].State.Waiting
	if waiting == nil || waiting.Reason != "ImagePullBackOff" {
		t.Errorf("the container waits for %+v, want ImagePullBackOff", waiting)
	}
}

func TestVolumeClaim(t *testing.T) {
	client := clientFor(t, shared.Config())
	namespace := newNamespace(t, client)
	claim, err := client.CoreV1().PersistentVolumeClaims(namespace).Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stateful := deployment("db", "mysql:9", 1)
	stateful.Spec.Template.Spec.Volumes = []corev1.Volume{{
		Name: "data",
		VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
		},
	}}
	create(t, client, namespace, stateful)

	eventually(t, "the Pod runs with its volume", func() error {
		pods := listPods(t, client, namespace)
		if len(pods) != 1 || pods[0].Status.Phase != corev1.PodRunning {
			return fmt.Errorf("there are %d Pods, or they do not run", len(pods))
		}
		return nil
	})
}

func TestLoadBalancer(t *testing.T) {
	client := clientFor(t, shared.Config())
	namespace := newNamespace(t, client)
	for _, service := range []*corev1.Service{
		loadBalancer("ours", nil),
		loadBalancer("theirs", new("example.com/somebody-else")),
	} {
		if _, err := client.CoreV1().Services(namespace).Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}

	eventually(t, "the Service has an address of the range", func() error {
		got, err := client.CoreV1().Services(namespace).Get(t.Context(), "ours", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !shared.ServiceCIDR().Contains(netip.MustParseAddr(got.Spec.ClusterIP)) {
			t.Errorf("cluster IP %s is not of %s", got.Spec.ClusterIP, shared.ServiceCIDR())
		}
		ingress := got.Status.LoadBalancer.Ingress
		if len(ingress) != 1 || !strings.HasPrefix(ingress[0].IP, "203.0.113.") {
			return fmt.Errorf("ingress is %+v", ingress)
		}
		return nil
	})
	theirs, err := client.CoreV1().Services(namespace).Get(t.Context(), "theirs", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(theirs.Status.LoadBalancer.Ingress) > 0 || len(theirs.Finalizers) > 0 {
		t.Errorf("a Service of another class was touched: finalizers %v, status %+v", theirs.Finalizers, theirs.Status)
	}
	if err := client.CoreV1().Services(namespace).Delete(t.Context(), "ours", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Service is gone with its load balancer", func() error {
		_, err := client.CoreV1().Services(namespace).Get(t.Context(), "ours", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is still there: %w", err)
	})
}

func TestUserAndAudit(t *testing.T) {
	admin := clientFor(t, shared.Config())
	user, err := shared.AddUser("jane", "readers")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(user.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	jane := clientFor(t, config)

	if _, err := jane.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("listing nodes without a role: %v, want Forbidden", err)
	}
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "readers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "readers"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the role is in force", func() error {
		_, err := jane.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		return err
	})

	before := time.Now()
	namespace := newNamespace(t, jane)
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	if _, err := jane.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "dry"}}, dry); err != nil {
		t.Fatal(err)
	}
	events, err := shared.AuditEvents(before)
	if err != nil {
		t.Fatal(err)
	}
	var writes []string
	for _, event := range events {
		if event.User.Username == "jane" && cluster.IsWrite(event) {
			writes = append(writes, event.Verb+" "+event.ObjectRef.Resource)
		}
	}
	if want := []string{"create namespaces"}; !slices.Equal(writes, want) {
		t.Errorf("the audit log says that jane wrote %q, want %q", writes, want)
	}
}

// TestTwoClustersAndChaos damages clusters of its own. It starts two at once to test
// that they are separate.
func TestTwoClustersAndChaos(t *testing.T) {
	var (
		clusters [2]*cluster.Cluster
		errs     [2]error
		wait     sync.WaitGroup
	)
	for i := range clusters {
		wait.Go(func() {
			clusters[i], errs[i] = cluster.Start(t.Context(), cluster.Options{
				Name: fmt.Sprintf("chaos%d", i), Dir: filepath.Join(t.TempDir(), "cluster"), Components: cluster.ControlPlane,
			})
		})
	}
	wait.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, c := range clusters {
			if err := c.Shutdown(); err != nil {
				t.Error(err)
			}
		}
	})
	if clusters[0].ServiceCIDR() == clusters[1].ServiceCIDR() {
		t.Errorf("both clusters have the Services %s", clusters[0].ServiceCIDR())
	}
	if a, b := identity(t, clusters[0]), identity(t, clusters[1]); a == b {
		t.Errorf("both clusters are %s", a)
	}

	c := clusters[0]
	id := identity(t, c)
	if err := c.Pause(cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	hung := c.Config()
	hung.Timeout = time.Second
	if _, err := clientFor(t, hung).Discovery().ServerVersion(); err == nil {
		t.Error("a paused API server answered")
	}
	if err := c.Resume(cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	if got := identity(t, c); got != id {
		t.Errorf("after a pause the cluster is %s, was %s", got, id)
	}

	for _, component := range cluster.ControlPlane {
		if err := c.Kill(component); err != nil {
			t.Fatal(err)
		}
		if c.Running(component) {
			t.Errorf("%s runs after it was killed", component)
		}
		if err := c.Restart(t.Context(), component); err != nil {
			t.Fatal(err)
		}
	}
	if got := identity(t, c); got != id {
		t.Errorf("after a restart the cluster is %s, was %s", got, id)
	}

	// A second Start in the same directory finds the running processes.
	second, err := cluster.Start(t.Context(), cluster.Options{Name: c.Name(), Dir: c.Dir(), Components: cluster.ControlPlane})
	if err != nil {
		t.Fatal(err)
	}
	if got := identity(t, second); got != id || second.Config().Host != c.Config().Host {
		t.Errorf("the second Start made cluster %s at %s, want %s at %s", got, second.Config().Host, id, c.Config().Host)
	}
}

func identity(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	namespace, err := clientFor(t, c.Config()).CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return string(namespace.UID)
}

func clientFor(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func newNamespace(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	made, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Name
}

func create(t *testing.T, client kubernetes.Interface, namespace string, deployment *appsv1.Deployment) {
	t.Helper()
	if _, err := client.AppsV1().Deployments(namespace).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func listPods(t *testing.T, client kubernetes.Interface, namespace string) []corev1.Pod {
	t.Helper()
	pods, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

func eventually(t *testing.T, what string, done func() error) {
	t.Helper()
	err := done()
	for deadline := time.Now().Add(2 * time.Minute); err != nil; err = done() {
		if time.Now().After(deadline) {
			t.Fatalf("waiting until %s: %v", what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func deployment(name, image string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
			},
		},
	}
}

func loadBalancer(name string, class *string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Type:              corev1.ServiceTypeLoadBalancer,
			LoadBalancerClass: class,
			Ports:             []corev1.ServicePort{{Port: 80}},
		},
	}
}
