package main

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Validate returns all errors in the options. Their paths are the names of flags.
func (o *Options) Validate() field.ErrorList {
	var p problems
	o.validateHub(&p)
	o.validateWebhooks(&p)
	o.validateTargets(&p)
	o.validateTargetLimits(&p)
	o.validateServing(&p)
	o.validateTelemetry(&p)
	return p.errs
}

// problems collects errors.
type problems struct{ errs field.ErrorList }

func (p *problems) invalid(flag string, value any, reasons ...string) {
	for _, reason := range reasons {
		p.errs = append(p.errs, field.Invalid(field.NewPath(flag), value, reason))
	}
}

func (p *problems) positive(flag string, value time.Duration) {
	if value <= 0 {
		p.invalid(flag, value.String(), "must be greater than 0s")
	}
}

func (p *problems) atLeastOne(flag string, value int) {
	if value < 1 {
		p.invalid(flag, value, "must be at least 1")
	}
}

func (p *problems) rate(qpsFlag string, qps float32, burstFlag string, burst int) {
	if qps <= 0 {
		p.invalid(qpsFlag, qps, "must be greater than 0")
	}
	p.atLeastOne(burstFlag, burst)
}

func (o *Options) validateHub(p *problems) {
	p.invalid("namespace", o.Namespace, validation.IsDNS1123Label(o.Namespace)...)
	if o.HubID != "" {
		p.invalid("hub-id", o.HubID, validation.IsDNS1123Label(o.HubID)...)
	}
	p.rate("hub-qps", o.HubQPS, "hub-burst", o.HubBurst)
	p.positive("resync-period", o.ResyncPeriod)
	if o.LeaderElect {
		p.invalid("leader-election-id", o.LeaderElectionID, validation.IsDNS1123Subdomain(o.LeaderElectionID)...)
	}
}

func (o *Options) validateWebhooks(p *problems) {
	if o.WebhookHost != "" && !isHost(o.WebhookHost) {
		p.invalid("webhook-host", o.WebhookHost, "must be an IP address or a host name")
	}
	p.invalid("webhook-port", o.WebhookPort, validation.IsValidPortNum(o.WebhookPort)...)
	p.errs = append(p.errs, o.validateCertificate()...)
	if len(o.WebhookClientNames) > 0 && o.WebhookClientCA == "" {
		p.invalid("webhook-client-name", o.WebhookClientNames, "needs --webhook-client-ca, with the certificate authorities")
	}
	for _, limit := range webhookLimits {
		value := limit.of(&o.Limits)
		p.rate(limit.flag+"-qps", value.QPS, limit.flag+"-burst", value.Burst)
	}
	p.positive("dry-run-timeout", o.DryRunTimeout)
}

func (o *Options) validateTargets(p *problems) {
	p.positive("target-probe-interval", o.TargetProbeInterval)
	p.positive("target-timeout", o.TargetTimeout)
	p.atLeastOne("target-failure-threshold", o.FailureThreshold)
	if o.TargetLeaseNamespace != "" {
		p.invalid("target-lease-namespace", o.TargetLeaseNamespace, validation.IsDNS1123Label(o.TargetLeaseNamespace)...)
	}
	p.atLeastOne("target-workers", o.TargetWorkers)
	p.rate("target-qps", o.TargetQPS, "target-burst", o.TargetBurst)
	p.positive("credential-expiry-warning", o.ExpiryWarning)
	if known := []string{string(v1alpha1.ConnectionCopy), string(v1alpha1.ConnectionPrivate)}; !slices.Contains(known, o.DefaultConnection) {
		p.errs = append(p.errs, field.NotSupported(field.NewPath("default-connection"), o.DefaultConnection, known))
	}
}

func (o *Options) validateTargetLimits(p *problems) {
	const largestObject = 8 << 20
	p.atLeastOne("target-max-objects", o.TargetMaxObjects)
	for flag, value := range map[string]int64{"target-max-cache-bytes": o.TargetMaxCacheBytes, "target-max-response-bytes": o.TargetMaxResponseBytes, "targets-max-cache-bytes": o.TargetsMaxCacheBytes} {
		if value != 0 && value < largestObject {
			p.invalid(flag, value, fmt.Sprintf("must be at least %d, which is room for one object", largestObject))
		}
	}
	p.atLeastOne("target-max-events-per-second", o.TargetMaxEventsPerSecond)
}

func (o *Options) validateServing(p *problems) {
	for flag, address := range map[string]string{
		"metrics-bind-address":      o.MetricsBindAddress,
		"health-probe-bind-address": o.HealthProbeBindAddress,
	} {
		if err := validBindAddress(address); err != nil {
			p.invalid(flag, address, err.Error())
		}
	}
	if err := validLoopbackAddress(o.ProfilingBindAddress); err != nil {
		p.invalid("profiling-bind-address", o.ProfilingBindAddress, err.Error())
	}
	if o.ShutdownDelay < 0 {
		p.invalid("shutdown-delay", o.ShutdownDelay.String(), "must not be negative")
	}
}

// validateTelemetry validates the options of traces and logs.
func (o *Options) validateTelemetry(p *problems) {
	if o.TracingEndpoint != "" {
		if _, _, err := net.SplitHostPort(o.TracingEndpoint); err != nil {
			p.invalid("tracing-endpoint", o.TracingEndpoint, "must be host:port")
		}
	}
	if rate := o.TracingSamplingRatePerMillion; rate < 0 || rate > 1_000_000 {
		p.invalid("tracing-sampling-rate-per-million", rate, "must be between 0 and 1000000")
	}
	if o.Logging.Format != logsapi.DefaultLogFormat && o.Logging.Format != logsapi.JSONLogFormat {
		p.errs = append(p.errs, field.NotSupported(field.NewPath("log-format"), o.Logging.Format,
			[]string{logsapi.JSONLogFormat, logsapi.DefaultLogFormat}))
	}
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
		return errs // the owner of the Secret sets the lifetime of the certificate
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

// validBindAddress accepts the addresses that controller-runtime accepts: host:port, or
// 0 to disable the server.
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

// validLoopbackAddress accepts loopback addresses only, because profiles are served
// without authentication.
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
