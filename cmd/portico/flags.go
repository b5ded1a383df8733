package main

import (
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/portico-io/portico/webhooks"
)

// webhookLimits are the limits of each replica, with their flags.
var webhookLimits = []struct {
	flag string
	of   func(*webhooks.Limits) *webhooks.Limit
	help string
}{
	{"dry-run-user", func(l *webhooks.Limits) *webhooks.Limit { return &l.DryRunsOfUser },
		"dry runs of one user on one target. A dry run above the limit is skipped with a warning."},
	{"dry-run-target", func(l *webhooks.Limits) *webhooks.Limit { return &l.DryRunsOnTarget },
		"dry runs of all users on one target. A dry run above the limit is skipped with a warning."},
	{"access-review-user", func(l *webhooks.Limits) *webhooks.Limit { return &l.AccessReviewsOfUser },
		"SubjectAccessReviews about one user. A request above the limit is refused with status 429."},
	{"access-review", func(l *webhooks.Limits) *webhooks.Limit { return &l.AccessReviews },
		"SubjectAccessReviews about all users. A request above the limit is refused with status 429."},
}

// Flags returns a flag for every option, in the groups that --help shows.
func (o *Options) Flags() cliflag.NamedFlagSets {
	var groups cliflag.NamedFlagSets
	o.addHubFlags(groups.FlagSet("hub"))
	o.addLeaderElectionFlags(groups.FlagSet("leader election"))
	o.addWebhookFlags(groups.FlagSet("webhooks"))
	o.addTargetFlags(groups.FlagSet("targets"))
	o.addServingFlags(groups.FlagSet("serving"))
	o.addTracingFlags(groups.FlagSet("tracing"))
	o.addLoggingFlags(groups.FlagSet("logging"))
	o.addGlobalFlags(groups.FlagSet("global"))
	return groups
}

func (o *Options) addHubFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"Kubeconfig `file` of the hub. Default: $KUBECONFIG, then ~/.kube/config, then the Pod's service account.")
	fs.StringVar(&o.Namespace, "namespace", o.Namespace,
		"Namespace in which Portico runs, with its Lease, its certificate and its Service.")
	fs.StringVar(&o.Identity, "identity", o.Identity,
		"User name of Portico's own requests to the hub. Default: the user name that the API server reports.")
	fs.StringVar(&o.HubID, "hub-id", o.HubID,
		"Identity of this hub on its targets. Default: the UID of the namespace kube-system. "+
			"Objects with another identity belong to another hub and must be adopted.")
	fs.Float32Var(&o.HubQPS, "hub-qps", o.HubQPS, "Maximum number of requests per second to the hub.")
	fs.IntVar(&o.HubBurst, "hub-burst", o.HubBurst, "Maximum number of requests to the hub in a burst above --hub-qps.")
	fs.DurationVar(&o.ResyncPeriod, "resync-period", o.ResyncPeriod,
		"Interval, plus or minus 10 %, after which an object without changes is reconciled.")
}

func (o *Options) addLeaderElectionFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect,
		"Reconcile in one replica at a time. Every replica serves webhooks.")
	fs.StringVar(&o.LeaderElectionID, "leader-election-id", o.LeaderElectionID, "Name of the Lease for leader election.")
}

func (o *Options) addWebhookFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.WebhookHost, "webhook-host", o.WebhookHost, "The `address` on which webhooks are served. Empty means all addresses.")
	fs.IntVar(&o.WebhookPort, "webhook-port", o.WebhookPort, "Port on which webhooks are served.")
	fs.StringVar(&o.CertificateSecret, "certificate-secret", o.CertificateSecret,
		"Secret in --namespace with the serving certificate, in the form that cert-manager writes. With an empty value, Portico issues its own certificate.")
	fs.StringSliceVar(&o.CertificateDNSNames, "certificate-dns-name", o.CertificateDNSNames,
		"A DNS `name` or IP address for which the serving certificate must be valid; repeatable. "+
			"Default: the name of Service "+webhookService+" in --namespace.")
	fs.DurationVar(&o.CADuration, "ca-duration", o.CADuration, "Lifetime of Portico's own certificate authority. Portico replaces it after two thirds of its lifetime.")
	fs.DurationVar(&o.LeafDuration, "leaf-duration", o.LeafDuration, "Lifetime of Portico's own serving certificate. Portico replaces it after two thirds of its lifetime.")
	fs.DurationVar(&o.DryRunTimeout, "dry-run-timeout", o.DryRunTimeout,
		"Timeout of the dry run on a target during admission. After it, the request is accepted with a warning. "+
			"The timeout of the API server applies if it is shorter.")

	fs.StringVar(&o.WebhookClientCA, "webhook-client-ca", o.WebhookClientCA,
		"A `file` with the certificate authorities of the API servers' client certificates. Portico then rejects admission requests "+
			"without such a certificate. Portico reads the file again when it changes.")
	fs.StringSliceVar(&o.WebhookClientNames, "webhook-client-name", o.WebhookClientNames,
		"A common `name` that a client certificate may have; repeatable. Default: every name.")
	for _, limit := range webhookLimits {
		at, help := limit.of(&o.Limits), limit.help
		fs.Float32Var(&at.QPS, limit.flag+"-qps", at.QPS, "Maximum number, per second, of "+help)
		fs.IntVar(&at.Burst, limit.flag+"-burst", at.Burst, "Maximum number, in a burst above --"+limit.flag+"-qps, of "+help)
	}
}

func (o *Options) addTargetFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.TargetProbeInterval, "target-probe-interval", o.TargetProbeInterval, "Interval between the probes of a target.")
	fs.IntVar(&o.FailureThreshold, "target-failure-threshold", o.FailureThreshold,
		"Number of consecutive probes that fail before a target is unreachable.")
	fs.StringVar(&o.TargetLeaseNamespace, "target-lease-namespace", o.TargetLeaseNamespace,
		"Namespace, on each target, of the Lease that prevents another Portico with the same --hub-id from writing to the target. "+
			"Portico does not create the namespace. Empty means no Lease.")
	fs.DurationVar(&o.TargetTimeout, "target-timeout", o.TargetTimeout, "Timeout of a request to a target.")
	fs.IntVar(&o.TargetWorkers, "target-workers", o.TargetWorkers, "Number of resources that are reconciled concurrently, for each target.")
	fs.Float32Var(&o.TargetQPS, "target-qps", o.TargetQPS, "Maximum number of requests per second to each target.")
	fs.IntVar(&o.TargetBurst, "target-burst", o.TargetBurst, "Maximum number of requests to a target in a burst above --target-qps.")
	const misbehaves = " Above the limit the target becomes TargetReachable=False with reason TargetMisbehaves, and Portico closes the connection for a backoff."
	fs.IntVar(&o.TargetMaxObjects, "target-max-objects", o.TargetMaxObjects, "Maximum number of this hub's objects on one target."+misbehaves)
	fs.Int64Var(&o.TargetMaxCacheBytes, "target-max-cache-bytes", o.TargetMaxCacheBytes,
		"Maximum memory, in bytes, for this hub's objects on one target. 0 means an eighth of GOMEMLIMIT: 32 MiB at least, 256 MiB at most."+misbehaves)
	fs.Int64Var(&o.TargetsMaxCacheBytes, "targets-max-cache-bytes", o.TargetsMaxCacheBytes,
		"Maximum memory, in bytes, for this hub's objects on all targets together. 0 means a quarter of GOMEMLIMIT: 64 MiB at least, 1 GiB at most. "+
			"Above the limit, the target with the most unexpected bytes becomes TargetReachable=False with reason TargetMisbehaves, and Portico closes the connection for a backoff.")
	fs.Int64Var(&o.TargetMaxResponseBytes, "target-max-response-bytes", o.TargetMaxResponseBytes,
		"Maximum size, in bytes, of one response of a target. A list is read in pages. 0 means a 32nd of GOMEMLIMIT: 8 MiB at least, 64 MiB at most."+misbehaves)
	fs.IntVar(&o.TargetMaxEventsPerSecond, "target-max-events-per-second", o.TargetMaxEventsPerSecond,
		"Maximum number of watch events per second from one target, after a burst of a hundred times as many."+misbehaves)

	fs.BoolVar(&o.AllowLocalTargets, "allow-local-targets", o.AllowLocalTargets,
		"Accept targets with loopback and link-local addresses, such as localhost. For tests only.")
	fs.StringVar(&o.DefaultConnection, "default-connection", o.DefaultConnection,
		"Default of spec.connection, which is the place of the copy of a managed cluster's connection Secret: "+
			"Copy, in the namespace of the target, or Private, in --namespace.")
	fs.DurationVar(&o.ExpiryWarning, "credential-expiry-warning", o.ExpiryWarning,
		"Time before a target's credential expires at which a warning event is emitted, if the expiry is known.")
}

func (o *Options) addServingFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress, "The `address` on which metrics are served; 0 turns them off.")
	fs.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", o.HealthProbeBindAddress,
		"The `address` on which /healthz and /readyz are served; 0 turns them off.")
	fs.StringVar(&o.ProfilingBindAddress, "profiling-bind-address", o.ProfilingBindAddress,
		"The loopback `address` on which /debug/pprof is served; 0 turns it off.")
	fs.DurationVar(&o.ShutdownDelay, "shutdown-delay", o.ShutdownDelay,
		"Time for which webhooks are served after the signal to stop, while the process is not ready: API servers take a while to notice.")
}

func (o *Options) addTracingFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.TracingEndpoint, "tracing-endpoint", o.TracingEndpoint,
		"The `address` (host:port) of an OpenTelemetry collector that accepts OTLP over gRPC without TLS. "+
			"Empty turns traces off.")
	fs.Int32Var(&o.TracingSamplingRatePerMillion, "tracing-sampling-rate-per-million", o.TracingSamplingRatePerMillion,
		"Number of traces, out of a million, that Portico starts itself. With 0, Portico only continues the traces that an API server samples.")
}

func (o *Options) addLoggingFlags(fs *pflag.FlagSet) {
	fs.VarP(logsapi.VerbosityLevelPflag(&o.Logging.Verbosity), "v", "v",
		"Log level: 0 state of the process and its connections, 1 writes to clusters, 2 decisions, 4 steps.")
	fs.StringVar(&o.Logging.Format, "log-format", o.Logging.Format, "Log format: text or json.")
}

func (o *Options) addGlobalFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Config, "config", o.Config,
		"YAML `file` of options. Its keys are the names of these flags. A flag on the command line overrides the file.")
	fs.BoolP("help", "h", false, "Print this help and exit.")
	fs.Bool("version", false, "Print the version and exit.")
}
