package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
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
	"github.com/portico-io/portico/controllers/intake"
	"github.com/portico-io/portico/controllers/occupancy"
	"github.com/portico-io/portico/controllers/policy"
	"github.com/portico-io/portico/controllers/propagation"
	"github.com/portico-io/portico/controllers/scheduler"
	"github.com/portico-io/portico/controllers/status"
	"github.com/portico-io/portico/controllers/target"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/survey"
	"github.com/portico-io/portico/webhooks"
	"github.com/portico-io/portico/webhooks/serving"
)

// stopTimeout is how long open requests and reconciles have to end.
const stopTimeout = 30 * time.Second

// run wires the manager, and runs it until it is told to stop.
func run(_ context.Context, o *Options) error {
	ctx, drained := drain(ctrl.SetupSignalHandler(), o.ShutdownDelay)

	config, err := o.RESTConfig()
	if err != nil {
		return err
	}
	hub, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("preparing access to the hub: %w", err)
	}
	identity := o.Identity
	if identity == "" {
		if identity, err = whoAmI(ctx, hub); err != nil {
			return err
		}
	}
	hubID, err := whereAmI(ctx, hub)
	if err != nil {
		return err
	}
	certificates, err := serving.New(config, o.Serving())
	if err != nil {
		return fmt.Errorf("preparing the serving certificate: %w", err)
	}
	mgr, err := ctrl.NewManager(config, managerOptions(o, certificates))
	if err != nil {
		return fmt.Errorf("preparing the manager: %w", err)
	}
	ctrl.Log.Info("Starting Portico", "version", versionString(), "identity", identity, "hub", hubID)

	if err := mgr.Add(certificates); err != nil {
		return fmt.Errorf("adding the serving certificate: %w", err)
	}
	if err := addCaches(ctx, mgr); err != nil {
		return err
	}
	asked := engine.New(engine.Options{Print: printed{}})
	asker := decisions.New(asked, o.Namespace)
	feed, err := policy.NewFeed(mgr, asked, asker)
	if err != nil {
		return err
	}
	for _, collector := range []prometheus.Collector{asker, policy.NewMetrics(asked)} {
		if err := metrics.Registry.Register(collector); err != nil {
			return fmt.Errorf("adding the metrics of policies: %w", err)
		}
	}
	stage, err := newRehearsals(ctx, mgr, hubID, o)
	if err != nil {
		return err
	}
	webhooks.Register(mgr.GetWebhookServer(), webhooks.Options{
		Reader: mgr.GetClient(), Live: mgr.GetAPIReader(), Identity: identity, Scheme: mgr.GetScheme(),
		Hub:      hubAccess{reviews: hub.AuthorizationV1().SubjectAccessReviews(), mapper: mgr.GetRESTMapper()},
		Frontier: policies.Frontier{Portico: o.Namespace},
		Secrets:  secrets{mgr.GetAPIReader()},
		Rules:    rules(o, config),
		Policies: asker,
		Engine:   asked,
		World: func(ctx context.Context) (*survey.World, error) {
			return policy.World(ctx, mgr.GetCache(), o.Namespace)
		},
		Rehearsals: stage, RehearsalTimeout: o.DryRunTimeout,
	})
	if err := addControllers(ctx, mgr, hubID, feed, asker, o); err != nil {
		return err
	}
	if err := addChecks(mgr, certificates, feed, drained); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	return nil
}

// whereAmI returns the hub's identity: the UID of its namespace kube-system.
//
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
func whereAmI(ctx context.Context, hub kubernetes.Interface) (string, error) {
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
			panic(err) // two kinds of one name, in this binary
		}
	}
	return scheme
}

func managerOptions(o *Options, certificates serving.Source) ctrl.Options {
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
			TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.GetCertificate = certificates.GetCertificate }},
		}),
	}
}

// cacheOptions keep in memory only what Portico works on: of native objects,
// those that are labelled, and of ReplicaSets, not the Pod templates.
func cacheOptions(resync time.Duration) cache.Options {
	labelled := labels.SelectorFromSet(labels.Set{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote})
	return cache.Options{
		SyncPeriod:       &resync,
		DefaultTransform: lean,
		ByObject: map[client.Object]cache.ByObject{
			&appsv1.Deployment{}: {Label: labelled},
			&corev1.Service{}:    {Label: labelled},
			&appsv1.ReplicaSet{}: {Label: labelled, Transform: stripTemplate},
			// Of ServiceAccounts, the image pull secrets.
			&corev1.ServiceAccount{}: {Transform: stripAccount},
		},
	}
}

// lean drops what nobody here reads: managed fields, and of objects of which
// only the metadata is kept, which are namespaces and Secrets, the record that
// kubectl apply leaves of everything that was applied.
func lean(object any) (any, error) {
	if m, err := meta.Accessor(object); err == nil {
		m.SetManagedFields(nil)
	}
	if partial, ok := object.(*metav1.PartialObjectMetadata); ok {
		delete(partial.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	return object, nil
}

func stripTemplate(object any) (any, error) {
	if rs, ok := object.(*appsv1.ReplicaSet); ok {
		rs.ManagedFields = nil
		rs.Spec.Template = corev1.PodTemplateSpec{}
	}
	return object, nil
}

func stripAccount(object any) (any, error) {
	if account, ok := object.(*corev1.ServiceAccount); ok {
		account.ManagedFields, account.Annotations, account.Secrets = nil, nil, nil
	}
	return object, nil
}

// addCaches starts what the webhooks read on every replica, and the indexes.
func addCaches(ctx context.Context, mgr ctrl.Manager) error {
	namespaces := &metav1.PartialObjectMetadata{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	objects := []client.Object{namespaces, &v1alpha1.KubernetesTarget{}, &v1alpha1.KubernetesApplicationResource{}, &v1alpha2.KubernetesApplication{}}
	for _, kind := range kinds.All {
		objects = append(objects, kinds.Watched(kind))
	}
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
		{&v1alpha1.KubernetesApplicationResource{}, application.OwnerIndex, application.IndexOwner},
		{&v1alpha1.KubernetesApplicationResource{}, policies.DependencyIndex, propagation.IndexDependencies},
		{&v1alpha1.KubernetesTarget{}, target.SecretIndex, target.IndexSecret},
		{&appsv1.ReplicaSet{}, status.OwnerIndex, status.IndexOwner},
	} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, index.object, index.field, index.value); err != nil {
			return fmt.Errorf("preparing index %s: %w", index.field, err)
		}
	}
	return nil
}

func addControllers(ctx context.Context, mgr ctrl.Manager, hubID string, feed *policy.Feed, asker *decisions.Asker, o *Options) error {
	targets := clusters.New(clusters.Options{
		HubID:         hubID,
		Timeout:       o.TargetTimeout,
		ProbeInterval: o.TargetProbeInterval,
		QPS:           o.TargetQPS,
		Burst:         o.TargetBurst,
	})
	if err := metrics.Registry.Register(targets); err != nil {
		return fmt.Errorf("adding the metrics of targets: %w", err)
	}
	propagator := propagation.New(mgr, targets, propagation.Options{
		HubID:    hubID,
		Frontier: policies.Frontier{Portico: o.Namespace},
		Workers:  o.TargetWorkers,
		Resync:   o.ResyncPeriod,
	})
	if err := metrics.Registry.Register(propagator); err != nil {
		return fmt.Errorf("adding the metrics of drift: %w", err)
	}
	if err := mgr.Add(propagator); err != nil {
		return fmt.Errorf("adding the propagation controller: %w", err)
	}
	for name, setup := range map[string]func() error{
		"target": func() error {
			return target.SetupWithManager(ctx, mgr, targets, target.Options{Rules: rules(o, mgr.GetConfig()), ExpiryWarning: o.ExpiryWarning})
		},
		"claim":       func() error { return claim.SetupWithManager(ctx, mgr) },
		"intake":      func() error { return intake.SetupWithManager(mgr, asker) },
		"scheduler":   func() error { return scheduler.SetupWithManager(mgr, policies.Frontier{Portico: o.Namespace}, asker) },
		"application": func() error { return application.SetupWithManager(mgr) },
		"occupancy":   func() error { return occupancy.SetupWithManager(mgr) },
		"policy":      func() error { return policy.SetupWithManager(mgr, feed, o.Namespace) },
		"status":      func() error { return status.SetupWithManager(mgr) },
	} {
		if err := setup(); err != nil {
			return fmt.Errorf("adding the %s controller: %w", name, err)
		}
	}
	return nil
}
