package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters/limits"
	"github.com/portico-io/portico/policies/connectionsecret"
	"github.com/portico-io/portico/webhooks"
	"github.com/portico-io/portico/webhooks/serving"
)

// webhookService is the Service in front of the webhooks, which config/webhook
// names.
const webhookService = "portico-webhook"

// Options are the options of the manager, from its command line or from a file.
// NewOptions returns the defaults.
type Options struct {
	// Config is a file of further options.
	Config string

	// Hub: the cluster that users apply to, and that Portico runs on.
	Kubeconfig   string
	Namespace    string
	Identity     string
	HubID        string
	HubQPS       float32
	HubBurst     int
	ResyncPeriod time.Duration

	// Leader election.
	LeaderElect      bool
	LeaderElectionID string

	// Webhooks and their certificate.
	WebhookHost         string
	WebhookPort         int
	CertificateSecret   string
	CertificateDNSNames []string
	CADuration          time.Duration
	LeafDuration        time.Duration
	DryRunTimeout       time.Duration
	WebhookClientCA     string
	WebhookClientNames  []string
	Limits              webhooks.Limits

	// Targets: the clusters that applications run on.
	TargetLeaseNamespace string
	TargetProbeInterval  time.Duration
	FailureThreshold     int
	TargetTimeout        time.Duration
	TargetWorkers        int
	TargetQPS            float32
	TargetBurst          int

	TargetMaxObjects         int
	TargetMaxCacheBytes      int64
	TargetsMaxCacheBytes     int64
	TargetMaxResponseBytes   int64
	TargetMaxEventsPerSecond int

	AllowLocalTargets bool
	ExpiryWarning     time.Duration
	DefaultConnection string

	// Serving: probes, metrics, profiles and shutdown.
	MetricsBindAddress     string
	HealthProbeBindAddress string
	ProfilingBindAddress   string
	ShutdownDelay          time.Duration

	// Tracing: spans are exported if there is an endpoint.
	TracingEndpoint               string
	TracingSamplingRatePerMillion int32

	// Logging.
	Logging *logsapi.LoggingConfiguration
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		Namespace:    "portico-system",
		HubQPS:       300,
		HubBurst:     600,
		ResyncPeriod: 10 * time.Minute,

		LeaderElect:      true,
		LeaderElectionID: "portico",

		WebhookPort:  9443,
		CADuration:   365 * 24 * time.Hour,
		LeafDuration: 7 * 24 * time.Hour,

		DryRunTimeout: 2 * time.Second,
		Limits: webhooks.Limits{
			DryRunsOfUser:       webhooks.Limit{QPS: 100, Burst: 1000},
			DryRunsOnTarget:     webhooks.Limit{QPS: 200, Burst: 2000},
			AccessReviewsOfUser: webhooks.Limit{QPS: 50, Burst: 500},
			AccessReviews:       webhooks.Limit{QPS: 200, Burst: 1000},
		},

		TargetLeaseNamespace: "portico",
		TargetProbeInterval:  10 * time.Second,
		FailureThreshold:     3,
		TargetTimeout:        10 * time.Second,
		TargetWorkers:        8,
		TargetQPS:            200,
		TargetBurst:          400,

		TargetMaxObjects:         50_000,
		TargetMaxEventsPerSecond: 500,

		ExpiryWarning:     7 * 24 * time.Hour,
		DefaultConnection: string(v1alpha1.ConnectionCopy),

		MetricsBindAddress:     ":8080",
		HealthProbeBindAddress: ":8081",
		ProfilingBindAddress:   "0",
		ShutdownDelay:          10 * time.Second,

		Logging: logsapi.NewLoggingConfiguration(),
	}
}

// AddFlags adds every flag to one set.
func (o *Options) AddFlags(to *pflag.FlagSet) cliflag.NamedFlagSets {
	groups := o.Flags()
	for _, fs := range groups.FlagSets {
		to.AddFlagSet(fs)
	}
	return groups
}

// Complete sets the options that follow from other options.
func (o *Options) Complete() {
	if len(o.CertificateDNSNames) == 0 {
		o.CertificateDNSNames = []string{serving.ServiceName(webhookService, o.Namespace)}
	}
}

// RESTConfig returns the connection to the hub.
func (o *Options) RESTConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding access to the hub: %w", err)
	}
	cfg.QPS, cfg.Burst = o.HubQPS, o.HubBurst
	cfg.UserAgent = rest.DefaultKubernetesUserAgent()
	return cfg, nil
}

// Connections returns the location of the copies of managed clusters' connections.
func (o *Options) Connections() connectionsecret.Options {
	return connectionsecret.Options{Namespace: o.Namespace, Connection: v1alpha1.ConnectionPolicy(o.DefaultConnection)}
}

// TargetLimits returns the limits on the responses of one target.
func (o *Options) TargetLimits() limits.Limits {
	return limits.Limits{
		Objects: o.TargetMaxObjects, CacheBytes: o.TargetMaxCacheBytes, TotalCacheBytes: o.TargetsMaxCacheBytes,
		ResponseBytes: o.TargetMaxResponseBytes, EventsPerSecond: o.TargetMaxEventsPerSecond,
	}
}

// Serving returns the options of the serving certificate.
func (o *Options) Serving() serving.Options {
	return serving.Options{
		Namespace:         o.Namespace,
		CertificateSecret: o.CertificateSecret,
		Names:             o.CertificateDNSNames,
		CADuration:        o.CADuration,
		LeafDuration:      o.LeafDuration,
	}
}
