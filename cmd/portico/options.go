package main

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/portico-io/portico/webhooks/serving"
)

// webhookService is the Service in front of the webhooks, which config/webhook
// names.
const webhookService = "portico-webhook"

// Options are everything that can be said to the manager, on its command line
// or in a file. The zero value is not usable; start from NewOptions.
type Options struct {
	// Config is a file of further options.
	Config string

	// Hub: the cluster that people apply to, and where Portico runs.
	Kubeconfig   string
	Namespace    string
	Identity     string
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

	// Targets: the clusters that applications run on.
	TargetProbeInterval time.Duration
	TargetTimeout       time.Duration
	TargetWorkers       int
	TargetQPS           float32
	TargetBurst         int
	AllowLocalTargets   bool
	ExpiryWarning       time.Duration

	// Serving: probes, metrics and the way out.
	MetricsBindAddress     string
	HealthProbeBindAddress string
	ProfilingBindAddress   string
	ShutdownDelay          time.Duration

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

		TargetProbeInterval: 10 * time.Second,
		TargetTimeout:       10 * time.Second,
		TargetWorkers:       8,
		TargetQPS:           200,
		TargetBurst:         400,
		ExpiryWarning:       7 * 24 * time.Hour,

		MetricsBindAddress:     ":8080",
		HealthProbeBindAddress: ":8081",
		ProfilingBindAddress:   "0",
		ShutdownDelay:          10 * time.Second,

		Logging: logsapi.NewLoggingConfiguration(),
	}
}

// Flags returns a flag for every option, in the groups that --help shows.
func (o *Options) Flags() cliflag.NamedFlagSets {
	var groups cliflag.NamedFlagSets

	fs := groups.FlagSet("hub")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"Kubeconfig `file` of the hub. Without it the usual places are tried, then the Pod's service account.")
	fs.StringVar(&o.Namespace, "namespace", o.Namespace,
		"Namespace that Portico runs in: its Lease, its certificate and its Service live there.")
	fs.StringVar(&o.Identity, "identity", o.Identity,
		"User name of Portico's own requests to the hub, which its webhooks recognise. Empty asks the API server.")
	fs.Float32Var(&o.HubQPS, "hub-qps", o.HubQPS, "Requests per second that Portico makes to the hub.")
	fs.IntVar(&o.HubBurst, "hub-burst", o.HubBurst, "Requests that Portico may make to the hub at once, above --hub-qps.")
	fs.DurationVar(&o.ResyncPeriod, "resync-period", o.ResyncPeriod,
		"How often everything is looked at again although nothing changed, give or take a tenth.")

	fs = groups.FlagSet("leader election")
	fs.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect,
		"Let only one replica at a time reconcile. Every replica serves webhooks.")
	fs.StringVar(&o.LeaderElectionID, "leader-election-id", o.LeaderElectionID, "Name of the Lease the replicas compete for.")

	fs = groups.FlagSet("webhooks")
	fs.StringVar(&o.WebhookHost, "webhook-host", o.WebhookHost, "The `address` to serve webhooks on. Empty means all.")
	fs.IntVar(&o.WebhookPort, "webhook-port", o.WebhookPort, "Port to serve webhooks on.")
	fs.StringVar(&o.CertificateSecret, "certificate-secret", o.CertificateSecret,
		"Secret in --namespace with the serving certificate, as cert-manager writes it. Empty makes Portico its own authority.")
	fs.StringSliceVar(&o.CertificateDNSNames, "certificate-dns-name", o.CertificateDNSNames,
		"A `name` or IP address that the serving certificate must be valid for; repeatable. "+
			"Defaults to that of Service "+webhookService+" in --namespace.")
	fs.DurationVar(&o.CADuration, "ca-duration", o.CADuration, "How long Portico's own authority lives. It is replaced after two thirds of that.")
	fs.DurationVar(&o.LeafDuration, "leaf-duration", o.LeafDuration, "How long Portico's own certificate lives. It is replaced after two thirds of that.")
	fs.DurationVar(&o.DryRunTimeout, "dry-run-timeout", o.DryRunTimeout,
		"How long a target may take to say whether it would take what is applied, before that is accepted with a warning. "+
			"The API server's own patience with webhooks ends it sooner, if that is less.")

	fs = groups.FlagSet("targets")
	fs.DurationVar(&o.TargetProbeInterval, "target-probe-interval", o.TargetProbeInterval, "How often each target is asked whether it is there.")
	fs.DurationVar(&o.TargetTimeout, "target-timeout", o.TargetTimeout, "How long one request to a target may take.")
	fs.IntVar(&o.TargetWorkers, "target-workers", o.TargetWorkers, "Resources that are worked on at the same time, for each target.")
	fs.Float32Var(&o.TargetQPS, "target-qps", o.TargetQPS, "Requests per second that Portico makes to each target.")
	fs.IntVar(&o.TargetBurst, "target-burst", o.TargetBurst, "Requests that Portico may make to a target at once, above --target-qps.")

	fs.BoolVar(&o.AllowLocalTargets, "allow-local-targets", o.AllowLocalTargets,
		"Accept targets on Portico's own machine or link, such as localhost. For trying things out.")
	fs.DurationVar(&o.ExpiryWarning, "credential-expiry-warning", o.ExpiryWarning,
		"How long before the end of a target's credential, where that can be known, an event warns of it.")

	fs = groups.FlagSet("serving")
	fs.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress, "The `address` to serve metrics on; 0 turns them off.")
	fs.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", o.HealthProbeBindAddress,
		"The `address` to serve /healthz and /readyz on; 0 turns them off.")
	fs.StringVar(&o.ProfilingBindAddress, "profiling-bind-address", o.ProfilingBindAddress,
		"The `address` to serve /debug/pprof on, which must be on loopback; 0 turns it off.")
	fs.DurationVar(&o.ShutdownDelay, "shutdown-delay", o.ShutdownDelay,
		"How long to go on serving webhooks, unready, after being told to stop: API servers take a while to notice.")

	fs = groups.FlagSet("logging")
	fs.VarP(logsapi.VerbosityLevelPflag(&o.Logging.Verbosity), "v", "v",
		"How much to log: 0 what changed, 1 why, 4 how.")
	fs.StringVar(&o.Logging.Format, "log-format", o.Logging.Format, "How to log: text or json.")

	fs = groups.FlagSet("global")
	fs.StringVar(&o.Config, "config", o.Config,
		"YAML `file` of options. Its keys are the names of these flags; a flag given here wins.")
	fs.BoolP("help", "h", false, "Print this and exit.")
	fs.Bool("version", false, "Print the version and exit.")
	return groups
}

// AddFlags adds every flag to one set.
func (o *Options) AddFlags(to *pflag.FlagSet) cliflag.NamedFlagSets {
	groups := o.Flags()
	for _, fs := range groups.FlagSets {
		to.AddFlagSet(fs)
	}
	return groups
}

// Complete fills in what follows from other options.
func (o *Options) Complete() {
	if len(o.CertificateDNSNames) == 0 {
		o.CertificateDNSNames = []string{serving.ServiceName(webhookService, o.Namespace)}
	}
}

// Validate returns everything that is wrong. Paths are the names of flags.
func (o *Options) Validate() field.ErrorList {
	var errs field.ErrorList
	invalid := func(flag string, value any, reasons ...string) {
		for _, reason := range reasons {
			errs = append(errs, field.Invalid(field.NewPath(flag), value, reason))
		}
	}
	positive := func(flag string, value time.Duration) {
		if value <= 0 {
			invalid(flag, value.String(), "must be greater than 0s")
		}
	}
	rate := func(qpsFlag string, qps float32, burstFlag string, burst int) {
		if qps <= 0 {
			invalid(qpsFlag, qps, "must be greater than 0")
		}
		if burst < 1 {
			invalid(burstFlag, burst, "must be at least 1")
		}
	}

	invalid("namespace", o.Namespace, validation.IsDNS1123Label(o.Namespace)...)
	rate("hub-qps", o.HubQPS, "hub-burst", o.HubBurst)
	positive("resync-period", o.ResyncPeriod)

	if o.LeaderElect {
		invalid("leader-election-id", o.LeaderElectionID, validation.IsDNS1123Subdomain(o.LeaderElectionID)...)
	}

	if o.WebhookHost != "" && !isHost(o.WebhookHost) {
		invalid("webhook-host", o.WebhookHost, "must be an IP address or a host name")
	}
	invalid("webhook-port", o.WebhookPort, validation.IsValidPortNum(o.WebhookPort)...)
	errs = append(errs, o.validateCertificate()...)

	positive("dry-run-timeout", o.DryRunTimeout)
	positive("target-probe-interval", o.TargetProbeInterval)
	positive("target-timeout", o.TargetTimeout)
	if o.TargetWorkers < 1 {
		invalid("target-workers", o.TargetWorkers, "must be at least 1")
	}
	rate("target-qps", o.TargetQPS, "target-burst", o.TargetBurst)
	positive("credential-expiry-warning", o.ExpiryWarning)

	for flag, address := range map[string]string{
		"metrics-bind-address":      o.MetricsBindAddress,
		"health-probe-bind-address": o.HealthProbeBindAddress,
	} {
		if err := validBindAddress(address); err != nil {
			invalid(flag, address, err.Error())
		}
	}
	if err := validLoopbackAddress(o.ProfilingBindAddress); err != nil {
		invalid("profiling-bind-address", o.ProfilingBindAddress, err.Error())
	}
	if o.ShutdownDelay < 0 {
		invalid("shutdown-delay", o.ShutdownDelay.String(), "must not be negative")
	}
	if o.Logging.Format != logsapi.DefaultLogFormat && o.Logging.Format != logsapi.JSONLogFormat {
		errs = append(errs, field.NotSupported(field.NewPath("log-format"), o.Logging.Format,
			[]string{logsapi.JSONLogFormat, logsapi.DefaultLogFormat}))
	}
	return errs
}

func (o *Options) validateCertificate() field.ErrorList {
	var errs field.ErrorList
	for i, name := range o.CertificateDNSNames {
		if !isHost(name) {
			errs = append(errs, field.Invalid(field.NewPath("certificate-dns-name").Index(i), name, "must be a DNS name or an IP address"))
		}
	}
	if o.CertificateSecret != "" {
		for _, reason := range validation.IsDNS1123Subdomain(o.CertificateSecret) {
			errs = append(errs, field.Invalid(field.NewPath("certificate-secret"), o.CertificateSecret, reason))
		}
		return errs // whoever keeps the Secret decides how long certificates live
	}
	if o.LeafDuration < time.Second {
		errs = append(errs, field.Invalid(field.NewPath("leaf-duration"), o.LeafDuration.String(), "must be at least 1s"))
	}
	if o.CADuration <= o.LeafDuration {
		errs = append(errs, field.Invalid(field.NewPath("ca-duration"), o.CADuration.String(),
			fmt.Sprintf("must be greater than --leaf-duration, %s", o.LeafDuration)))
	}
	return errs
}

func isHost(name string) bool {
	return net.ParseIP(name) != nil || len(validation.IsDNS1123Subdomain(name)) == 0
}

// validBindAddress accepts what controller-runtime does: host:port, or 0 for off.
func validBindAddress(address string) error {
	if address == "0" {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("must be host:port, :port or 0: %w", err)
	}
	if host != "" && !isHost(host) {
		return fmt.Errorf("%q is neither an IP address nor a host name", host)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%q is not a port", port)
	}
	return nil
}

// validLoopbackAddress accepts addresses that only this machine reaches: a
// profile asks nobody who they are.
func validLoopbackAddress(address string) error {
	if err := validBindAddress(address); err != nil || address == "0" {
		return err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host != "localhost" && !ip.IsLoopback() {
		return fmt.Errorf("%q is not on loopback", host)
	}
	return nil
}

// RESTConfig returns access to the hub.
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
