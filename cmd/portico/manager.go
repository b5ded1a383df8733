package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/portico-io/portico/api/kinds"
	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/application"
	"github.com/portico-io/portico/controllers/claim"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/dependencies"
	"github.com/portico-io/portico/controllers/intake"
	"github.com/portico-io/portico/controllers/nativestatus"
	"github.com/portico-io/portico/controllers/optin"
	"github.com/portico-io/portico/controllers/policy"
	"github.com/portico-io/portico/controllers/propagation"
	"github.com/portico-io/portico/controllers/propagationkind"
	"github.com/portico-io/portico/controllers/scheduler"
	"github.com/portico-io/portico/controllers/target"
	"github.com/portico-io/portico/controllers/targetprotection"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/credentials"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/simulate"
	"github.com/portico-io/portico/policies/targetselection"
	"github.com/portico-io/portico/webhooks"
	"github.com/portico-io/portico/webhooks/serving"
)

// stopTimeout is the limit on the time in which open requests and reconciles end.
const stopTimeout = 30 * time.Second

// run sets up the manager, and runs it until the process gets a signal.
func run(_ context.Context, o *Options) error {
	ctx, stopping := gracefulContext(ctrl.SetupSignalHandler(), o.ShutdownDelay)
	flush, err := setUpTracing(ctx, o)
	if err != nil {
		return err
	}
	defer flush()
	hub, err := connectHub(ctx, o)
	if err != nil {
		return err
	}
	certificates, err := serving.New(hub.config, o.Serving())
	if err != nil {
		return fmt.Errorf("preparing the serving certificate: %w", err)
	}
	clients, err := clientCertificates(o)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(hub.config, managerOptions(o, tlsOptions(certificates, clients)))
	if err != nil {
		return fmt.Errorf("preparing the manager: %w", err)
	}
	ctrl.Log.Info("Starting Portico", "version", versionString(), "identity", hub.identity, "hub", hub.id)
	if err := addServing(mgr, certificates, clients); err != nil {
		return err
	}
	if err := addCaches(ctx, mgr); err != nil {
		return err
	}
	s, err := newShared(ctx, mgr, hub, o)
	if err != nil {
		return err
	}
	if err := addWebhooks(ctx, mgr, s, clients, o); err != nil {
		return err
	}
	if err := addControllers(ctx, mgr, s, o); err != nil {
		return err
	}
	if err := addChecks(mgr, certificates, s, stopping); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	return nil
}

// hub is the connection to the hub, with the identities of Portico and of the hub.
type hub struct {
	config *rest.Config
	client kubernetes.Interface
	// identity is the user name of Portico's requests, and id the identity of the hub.
	identity, id string
	// rules validate connection Secrets.
	rules credentials.Rules
}

func connectHub(ctx context.Context, o *Options) (*hub, error) {
	config, err := o.RESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("preparing access to the hub: %w", err)
	}
	out := &hub{config: config, client: client, identity: o.Identity, id: o.HubID}
	if out.identity == "" {
		if out.identity, err = clientUser(ctx, client); err != nil {
			return nil, err
		}
	}
	if out.id == "" {
		if out.id, err = clusterUID(ctx, client); err != nil {
			return nil, err
		}
	}
	addresses, err := hubAddresses(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("reading the hub's addresses: %w", err)
	}
	out.rules = rules(o, config, addresses)
	return out, nil
}

// clientCertificates returns the verification of the API servers' client certificates, or
// nil without --webhook-client-ca.
func clientCertificates(o *Options) (*serving.Clients, error) {
	if o.WebhookClientCA == "" {
		return nil, nil //nolint:nilnil // the option is off
	}
	return serving.NewClients(o.WebhookClientCA, o.WebhookClientNames)
}

func tlsOptions(certificates serving.Source, clients *serving.Clients) []func(*tls.Config) {
	options := []func(*tls.Config){func(c *tls.Config) { c.GetCertificate = certificates.GetCertificate }}
	if clients != nil {
		options = append(options, clients.Configure)
	}
	return options
}

func addServing(mgr ctrl.Manager, certificates serving.Source, clients *serving.Clients) error {
	if clients != nil {
		if err := mgr.Add(clients); err != nil {
			return fmt.Errorf("adding the certificate authority of the API servers: %w", err)
		}
	}
	if err := mgr.Add(certificates); err != nil {
		return fmt.Errorf("adding the serving certificate: %w", err)
	}
	return nil
}

// shared holds the parts that webhooks and controllers share.
type shared struct {
	*hub
	engine        *engine.Engine
	evaluator     *decisions.Evaluator
	loader        *policy.Loader
	load          *targetselection.Load
	loadSynced    *scheduler.LoadSynced
	kinds         *propagationkind.Registry
	allowDefaults policies.AllowDefaults
}

func newShared(ctx context.Context, mgr ctrl.Manager, hub *hub, o *Options) (*shared, error) {
	s := &shared{
		hub: hub, engine: engine.New(engine.Options{Print: policyOutput{}}), load: targetselection.NewLoad(),
		allowDefaults: policies.AllowDefaults{PorticoNamespace: o.Namespace},
	}
	s.evaluator = decisions.New(s.engine, o.Namespace)
	for _, collector := range []prometheus.Collector{s.evaluator, policy.NewMetrics(s.engine)} {
		if err := metrics.Registry.Register(collector); err != nil {
			return nil, fmt.Errorf("adding the metrics of policies: %w", err)
		}
	}
	var err error
	if s.loader, err = policy.NewLoader(mgr, s.engine, s.evaluator); err != nil {
		return nil, err
	}
	if s.loadSynced, err = scheduler.WatchLoad(ctx, mgr.GetCache(), s.load); err != nil {
		return nil, err
	}
	s.kinds, err = propagationkind.NewRegistry(mgr)
	return s, err
}

func addWebhooks(ctx context.Context, mgr ctrl.Manager, s *shared, clients *serving.Clients, o *Options) error {
	dryRunner, err := newDryRunner(ctx, mgr, s.id, s.rules, o)
	if err != nil {
		return err
	}
	options := webhooks.Options{
		Reader: mgr.GetClient(), Live: mgr.GetAPIReader(), Identity: s.identity, Scheme: mgr.GetScheme(),
		Hub:           hubAccess{reviews: s.client.AuthorizationV1().SubjectAccessReviews(), mapper: mgr.GetRESTMapper()},
		AllowDefaults: s.allowDefaults,
		Secrets:       secrets{mgr.GetAPIReader()},
		Rules:         s.rules,
		Policies:      s.evaluator,
		Engine:        s.engine,
		Snapshot: func(ctx context.Context) (*simulate.Snapshot, error) {
			return policy.Snapshot(ctx, mgr.GetCache(), s.allowDefaults)
		},
		Load:      s.load,
		DryRunner: dryRunner, DryRunTimeout: o.DryRunTimeout, ObjectsInNamespace: dryRunner.ObjectsInNamespace,
		Limits: o.Limits,
	}
	if clients != nil {
		options.Authenticate = clients.Authenticate
	}
	webhooks.Register(mgr.GetWebhookServer(), options)
	return nil
}

// clusterUID returns the hub's identity: the UID of its namespace kube-system.
//
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
func clusterUID(ctx context.Context, hub kubernetes.Interface) (string, error) {
	namespace, err := hub.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the hub's identity: %w", err)
	}
	return string(namespace.UID), nil
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, policyv1alpha1.AddToScheme, v1alpha1.AddToScheme, v1alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // this binary registers two types for one kind
		}
	}
	return scheme
}

func managerOptions(o *Options, tlsOptions []func(*tls.Config)) ctrl.Options {
	return ctrl.Options{
		Scheme:                        newScheme(),
		Metrics:                       metricsserver.Options{BindAddress: o.MetricsBindAddress},
		HealthProbeBindAddress:        o.HealthProbeBindAddress,
		PprofBindAddress:              o.ProfilingBindAddress,
		LeaderElection:                o.LeaderElect,
		LeaderElectionID:              o.LeaderElectionID,
		LeaderElectionNamespace:       o.Namespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       ptr.To(stopTimeout),
		Cache:                         cacheOptions(o.ResyncPeriod),
		Client:                        client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host:    o.WebhookHost,
			Port:    o.WebhookPort,
			TLSOpts: tlsOptions,
		}),
	}
}

// cacheOptions restricts the caches to the objects that Portico needs: labelled native
// objects. The ReplicaSets of Deployments have no Pod templates there.
func cacheOptions(resync time.Duration) cache.Options {
	labelled := labels.SelectorFromSet(labels.Set{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote})
	byObject := map[client.Object]cache.ByObject{
		nativestatus.ControllerRevision(): {Label: labelled, Transform: stripRevision},
		// Of ServiceAccounts, only the fields that are sent are kept.
		&corev1.ServiceAccount{}: {Transform: stripAccount},
	}
	for _, kind := range kinds.All {
		if !kinds.HasContent(kind.GroupVersionKind()) { // Pods refer to Secrets and ConfigMaps without the label
			byObject[kinds.New(kind)] = cache.ByObject{Label: labelled, Transform: stripTemplate}
		}
	}
	return cache.Options{SyncPeriod: &resync, DefaultTransform: stripMetadata, ByObject: byObject}
}

// stripRevision strips metadata, and keeps a hash of the template in a ControllerRevision.
func stripRevision(object any) (any, error) {
	if revision, ok := object.(*unstructured.Unstructured); ok {
		kinds.StripRevision(revision)
	}
	return stripMetadata(object)
}

// stripMetadata drops metadata that Portico does not read: managed fields, and the
// annotation of kubectl apply on objects without a type, which are namespaces and
// Secrets.
func stripMetadata(object any) (any, error) {
	if m, err := meta.Accessor(object); err == nil {
		m.SetManagedFields(nil)
	}
	if partial, ok := object.(*metav1.PartialObjectMetadata); ok {
		delete(partial.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	return object, nil
}

// stripTemplate strips metadata, and drops the Pod template of the ReplicaSets of
// Deployments, which are not sent.
func stripTemplate(object any) (any, error) {
	if native, ok := object.(*unstructured.Unstructured); ok && !kinds.IsRemote(native) {
		unstructured.RemoveNestedField(native.Object, "spec", "template")
	}
	return stripMetadata(object)
}

func stripAccount(object any) (any, error) {
	if account, ok := object.(*corev1.ServiceAccount); ok {
		account.ManagedFields, account.Secrets = nil, nil
		delete(account.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	return object, nil
}

// addCaches starts the informers and the indexes of the webhooks. Every replica needs
// them.
func addCaches(ctx context.Context, mgr ctrl.Manager) error {
	namespaces := &metav1.PartialObjectMetadata{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	objects := []client.Object{namespaces, &corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}, &v1alpha1.KubernetesTarget{}, &v1alpha1.PropagationKind{}, &v1alpha1.KubernetesApplicationResource{}, &v1alpha2.KubernetesApplication{}}
	for _, kind := range kinds.All {
		objects = append(objects, kinds.CachedObject(kind))
	}
	objects = append(objects, webhooks.IngressClass())
	for _, object := range objects {
		if _, err := mgr.GetCache().GetInformer(ctx, object); err != nil {
			return fmt.Errorf("preparing the caches: %w", err)
		}
	}
	for _, index := range []struct {
		object client.Object
		field  string
		value  client.IndexerFunc
	}{
		{&v1alpha1.KubernetesApplicationResource{}, propagation.TargetIndex, propagation.IndexTarget},
		{&v1alpha2.KubernetesApplication{}, policies.TargetIndex, targetprotection.IndexApplication},
		{&v1alpha1.KubernetesApplicationResource{}, policies.ApplicationIndex, func(o client.Object) []string { return policies.ApplicationKeys(o) }},
		{&v1alpha1.KubernetesApplicationResource{}, policies.PrerequisiteIndex, propagation.IndexPrerequisite},
		{&v1alpha1.KubernetesApplicationResource{}, policies.ScaleTargetIndex, func(o client.Object) []string { return policies.ScaleTargetKeys(o) }},
		{&v1alpha1.KubernetesApplicationResource{}, policies.UnscheduledIndex, scheduler.IndexUnscheduled},
		{&v1alpha2.KubernetesApplication{}, policies.UnscheduledIndex, scheduler.IndexUnscheduled},
		{&v1alpha1.KubernetesApplicationResource{}, application.OwnerIndex, application.IndexOwner},
		{&v1alpha1.KubernetesApplicationResource{}, policies.DependencyIndex, propagation.IndexDependencies},
		{&rbacv1.RoleBinding{}, policies.SubjectIndex, dependencies.IndexSubjects},
		{&v1alpha1.KubernetesTarget{}, policies.ConnectionSecretIndex, target.IndexSecret},
		{&v1alpha1.KubernetesTarget{}, policies.RelatedTargetIndex, func(o client.Object) []string { return policies.RelatedTargetKeys(o) }},
		{kinds.New(kinds.ReplicaSet{}), nativestatus.OwnerIndex, nativestatus.IndexOwner},
		{nativestatus.ControllerRevision(), nativestatus.OwnerIndex, nativestatus.IndexOwner},
		{kinds.New(kinds.HorizontalPodAutoscaler{}), nativestatus.ScaleTargetIndex, nativestatus.IndexScaleTarget},
	} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, index.object, index.field, index.value); err != nil {
			return fmt.Errorf("preparing index %s: %w", index.field, err)
		}
	}
	return nil
}

func addControllers(ctx context.Context, mgr ctrl.Manager, s *shared, o *Options) error {
	targets := clusters.New(clusters.Options{
		HubID:         s.id,
		Fence:         fencing(mgr.GetConfig(), o),
		Timeout:       o.TargetTimeout,
		ProbeInterval: o.TargetProbeInterval, FailureThreshold: o.FailureThreshold,
		QPS:    o.TargetQPS,
		Burst:  o.TargetBurst,
		Limits: o.TargetLimits(),
	})
	if err := metrics.Registry.Register(targets); err != nil {
		return fmt.Errorf("adding the metrics of targets: %w", err)
	}
	propagator := propagation.New(mgr, targets, propagation.Options{
		HubID:         s.id,
		AllowDefaults: s.allowDefaults,
		Workers:       o.TargetWorkers,
		Resync:        o.ResyncPeriod,
	})
	if err := metrics.Registry.Register(propagator); err != nil {
		return fmt.Errorf("adding the metrics of drift: %w", err)
	}
	if err := mgr.Add(propagator); err != nil {
		return fmt.Errorf("adding the propagation controller: %w", err)
	}
	for name, setup := range map[string]func() error{
		"target": func() error {
			return target.SetupWithManager(ctx, mgr, targets, target.Options{Rules: s.rules, Connections: o.Connections(), ExpiryWarning: o.ExpiryWarning})
		},
		"claim":  func() error { return claim.SetupWithManager(ctx, mgr, s.evaluator) },
		"intake": func() error { return intake.SetupWithManager(mgr, s.evaluator, s.load) },
		"scheduler": func() error {
			return scheduler.SetupWithManager(mgr, s.allowDefaults, s.evaluator, s.load, s.loadSynced)
		},
		"application":      func() error { return application.SetupWithManager(mgr) },
		"targetprotection": func() error { return targetprotection.SetupWithManager(mgr) },
		"policy":           func() error { return policy.SetupWithManager(mgr, s.loader, o.Namespace) },
		"opt-in": func() error {
			return optin.SetupWithManager(mgr, optin.Options{Portico: o.Namespace, Resync: o.ResyncPeriod})
		},
		"kind": func() error {
			return propagationkind.SetupWithManager(ctx, mgr, nativestatus.SetupKind, func(mgr ctrl.Manager, kind kinds.Kind) error {
				return intake.SetupKind(mgr, kind, s.evaluator, s.load)
			})
		},
		"dependencies": func() error { return dependencies.SetupWithManager(mgr) },
		"status":       func() error { return nativestatus.SetupWithManager(mgr) },
	} {
		if err := setup(); err != nil {
			return fmt.Errorf("adding the %s controller: %w", name, err)
		}
	}
	return nil
}
