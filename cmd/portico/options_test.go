package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/cluster/install"
)

func TestValidate(t *testing.T) {
	cases := map[string]struct {
		reason string
		set    func(*Options)
		want   []string // "<path>: <type>"
	}{
		"Defaults": {
			reason: "Portico starts without options.",
			set:    func(*Options) {},
		},
		"CertificateSecret": {
			reason: "The owner of the Secret decides the lifetime of its certificate.",
			set:    func(o *Options) { o.CertificateSecret, o.LeafDuration, o.CADuration = "portico-serving", 0, 0 },
		},
		"BadCertificateSecret": {
			reason: "A Secret of another namespace cannot be named.",
			set:    func(o *Options) { o.CertificateSecret = "other/portico-serving" },
			want:   []string{"certificate-secret: FieldValueInvalid"},
		},
		"Addresses": {
			reason: "A certificate may be for an IP address as well as for a name.",
			set:    func(o *Options) { o.CertificateDNSNames = []string{"127.0.0.1", "::1", "example.org"} },
		},
		"BadName": {
			reason: "A URL is not a name.",
			set:    func(o *Options) { o.CertificateDNSNames = []string{"example.org", "https://example.org"} },
			want:   []string{"certificate-dns-name[1]: FieldValueInvalid"},
		},
		"ShortAuthority": {
			reason: "Certificates must not outlive their CA.",
			set:    func(o *Options) { o.CADuration = o.LeafDuration },
			want:   []string{"ca-duration: FieldValueInvalid"},
		},
		"Off": {
			reason: "Metrics and probes can be turned off, and leader election can.",
			set: func(o *Options) {
				o.MetricsBindAddress, o.HealthProbeBindAddress = "0", "0"
				o.LeaderElect, o.LeaderElectionID = false, ""
			},
		},
		"ProfilingHere": {
			reason: "A profile must not be available to other machines.",
			set:    func(o *Options) { o.ProfilingBindAddress = "[::1]:6060" },
		},
		"ProfilingElsewhere": {
			reason: "Profiles are served without authentication.",
			set:    func(o *Options) { o.ProfilingBindAddress = ":6060" },
			want:   []string{"profiling-bind-address: FieldValueInvalid"},
		},
		"ClientCertificates": {
			reason: "API servers can be recognised by their certificates and their names.",
			set: func(o *Options) {
				o.WebhookClientCA, o.WebhookClientNames = "/etc/portico/clients/ca.crt", []string{"kube-apiserver"}
			},
		},
		"NamesOfNobody": {
			reason: "Names have no meaning without the verification of certificates.",
			set:    func(o *Options) { o.WebhookClientNames = []string{"kube-apiserver"} },
			want:   []string{"webhook-client-name: FieldValueInvalid"},
		},
		"NoLimit": {
			reason: "A limit of zero would refuse every request.",
			set: func(o *Options) {
				o.Limits.DryRunsOnTarget.QPS, o.Limits.AccessReviews.Burst = 0, 0
			},
			want: []string{"access-review-burst: FieldValueInvalid", "dry-run-target-qps: FieldValueInvalid"},
		},
		"EverythingAtOnce": {
			reason: "All errors are reported at once.",
			set: func(o *Options) {
				*o = *NewOptions()
				o.Namespace = "Portico"
				o.HubQPS, o.HubBurst = 0, 0
				o.ResyncPeriod = 0
				o.LeaderElectionID = ""
				o.WebhookHost, o.WebhookPort = "a b", 0
				o.TargetProbeInterval, o.TargetTimeout, o.TargetWorkers, o.FailureThreshold = 0, 0, 0, 0
				o.TargetQPS, o.TargetBurst = 0, 0
				o.MetricsBindAddress, o.HealthProbeBindAddress, o.ProfilingBindAddress = "8080", "a b:1", "6060"
				o.ShutdownDelay = -time.Second
				o.Logging.Format = "xml"
			},
			want: []string{
				"health-probe-bind-address: FieldValueInvalid",
				"hub-burst: FieldValueInvalid",
				"hub-qps: FieldValueInvalid",
				"leader-election-id: FieldValueInvalid",
				"log-format: FieldValueNotSupported",
				"metrics-bind-address: FieldValueInvalid",
				"namespace: FieldValueInvalid",
				"profiling-bind-address: FieldValueInvalid",
				"resync-period: FieldValueInvalid",
				"shutdown-delay: FieldValueInvalid",
				"target-burst: FieldValueInvalid",
				"target-failure-threshold: FieldValueInvalid",
				"target-probe-interval: FieldValueInvalid",
				"target-qps: FieldValueInvalid",
				"target-timeout: FieldValueInvalid",
				"target-workers: FieldValueInvalid",
				"webhook-host: FieldValueInvalid",
				"webhook-port: FieldValueInvalid",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := NewOptions()
			tc.set(o)
			var got []string
			for _, err := range o.Validate() {
				got = append(got, err.Field+": "+string(err.Type))
			}
			slices.Sort(got)
			got = slices.Compact(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nValidate(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestComplete(t *testing.T) {
	cases := map[string]struct {
		reason string
		set    func(*Options)
		want   []string
	}{
		"ServiceName": {
			reason: "The API server calls the Service by this name.",
			set:    func(o *Options) { o.Namespace = "front" },
			want:   []string{"portico-webhook.front.svc"},
		},
		"Given": {
			reason: "Given names replace the default.",
			set:    func(o *Options) { o.CertificateDNSNames = []string{"127.0.0.1"} },
			want:   []string{"127.0.0.1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := NewOptions()
			tc.set(o)
			o.Complete()
			if diff := cmp.Diff(tc.want, o.CertificateDNSNames); diff != "" {
				t.Errorf("\n%s\nComplete(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestApplyConfig(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		file   string
		want   func(*Options) // nil if there are errors
		errs   []string
	}{
		"Empty": {
			reason: "A file may be empty.",
			file:   "# nothing\n",
			want:   func(*Options) {},
		},
		"Values": {
			reason: "Every type of option can be given in a file, under the name of its flag.",
			file: `
webhook-port: 10250
leader-elect: false
resync-period: 1h
target-qps: 7.5
v: 4
certificate-dns-name:
- 127.0.0.1
- localhost
`,
			want: func(o *Options) {
				o.WebhookPort, o.LeaderElect, o.ResyncPeriod, o.TargetQPS = 10250, false, time.Hour, 7.5
				o.Logging.Verbosity = 4
				o.CertificateDNSNames = []string{"127.0.0.1", "localhost"}
			},
		},
		"CommandLineWins": {
			reason: "A flag on the command line takes precedence.",
			args:   []string{"--webhook-port=1", "--certificate-dns-name=a", "--certificate-dns-name=b"},
			file:   "webhook-port: 2\ncertificate-dns-name: [c]\nnamespace: front\n",
			want: func(o *Options) {
				o.WebhookPort, o.CertificateDNSNames, o.Namespace = 1, []string{"a", "b"}, "front"
			},
		},
		"Mistakes": {
			reason: "Each mistake is reported with its line, all of them at once.",
			file: `webhook-prot: 1
leaderElect: true
webhook-port: https
namespace: [a]
certificate-dns-name: {a: b}
identity:
config: other.yaml
hub-burst: 1
hub-burst: 2
`,
			errs: []string{
				`portico.yaml:1: "webhook-prot" is not an option; did you mean "webhook-port"?`,
				`portico.yaml:2: "leaderElect" is not an option; did you mean "leader-elect"?`,
				`portico.yaml:3: webhook-port: invalid argument "https" for "--webhook-port" flag: strconv.ParseInt: parsing "https": invalid syntax`,
				`portico.yaml:4: namespace: want a single value`,
				`portico.yaml:5: certificate-dns-name: want a value or a list of values`,
				`portico.yaml:6: identity: has no value`,
				`portico.yaml:7: "config" can only be given on the command line`,
				`portico.yaml:9: "hub-burst" was given before, on line 8`,
			},
		},
		"List": {
			reason: "The file must be a mapping.",
			file:   "- a\n",
			errs:   []string{"portico.yaml:1: want a mapping of option names to values"},
		},
		"TwoDocuments": {
			reason: "A second document would be ignored.",
			file:   "v: 1\n---\nv: 2\n",
			errs:   []string{"portico.yaml: want one YAML document, found more"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, want := NewOptions(), NewOptions()
			flags := pflag.NewFlagSet("portico", pflag.ContinueOnError)
			got.AddFlags(flags)
			if err := flags.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			var errs []string
			if err := applyConfig("portico.yaml", []byte(tc.file), flags); err != nil {
				errs = strings.Split(err.Error(), "\n")
			}
			if diff := cmp.Diff(tc.errs, errs); diff != "" {
				t.Errorf("\n%s\napplyConfig(...): -want errors, +got errors:\n%s", tc.reason, diff)
			}
			if tc.errs != nil {
				return
			}
			tc.want(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("\n%s\napplyConfig(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestHelpIsComplete(t *testing.T) {
	cmd := newCommand(func(context.Context, *Options) error { return nil })
	var out strings.Builder
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--help"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if !strings.Contains(out.String(), "--"+flag.Name) {
			t.Errorf("--help does not mention --%s", flag.Name)
		}
	})
	for _, group := range []string{"Hub flags:", "Webhooks flags:", "Targets flags:", "Global flags:"} {
		if !strings.Contains(out.String(), group) {
			t.Errorf("--help has no section %q", group)
		}
	}
}

func TestVersion(t *testing.T) {
	cmd := newCommand(func(context.Context, *Options) error {
		t.Error("--version must not run the manager")
		return nil
	})
	var out strings.Builder
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--version"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "portico ") {
		t.Errorf("want the program's name and version, got %q", out.String())
	}
}

// TestManifests compares the flags, ports and times in config with the options.
func TestManifests(t *testing.T) {
	root, err := cluster.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	for _, overlay := range []string{"default", "certmanager", "hardened"} {
		t.Run(overlay, func(t *testing.T) {
			objects, err := install.Render(filepath.Join(root, "config", overlay))
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
			var deployment appsv1.Deployment
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[at].Object, &deployment); err != nil {
				t.Fatal(err)
			}
			pod := deployment.Spec.Template.Spec
			container := pod.Containers[0]

			o := NewOptions()
			flags := pflag.NewFlagSet("portico", pflag.ContinueOnError)
			o.AddFlags(flags)
			args := strings.ReplaceAll(strings.Join(container.Args, "\n"), "$(POD_NAMESPACE)", deployment.Namespace)
			if err := flags.Parse(strings.Split(args, "\n")); err != nil {
				t.Fatal(err)
			}
			o.Complete()
			if errs := o.Validate(); len(errs) > 0 {
				t.Errorf("the manager refuses its arguments: %v", errs.ToAggregate())
			}
			if want := overlay == "certmanager"; (o.CertificateSecret != "") != want {
				t.Errorf("want cert-manager's certificate: %t, got Secret %q", want, o.CertificateSecret)
			}

			want := map[string]string{
				"webhook": fmt.Sprintf(":%d", o.WebhookPort),
				"metrics": o.MetricsBindAddress,
				"health":  o.HealthProbeBindAddress,
			}
			got := map[string]string{}
			for _, port := range container.Ports {
				got[port.Name] = fmt.Sprintf(":%d", port.ContainerPort)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("ports: -listened on, +declared:\n%s", diff)
			}

			grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second
			if least := o.ShutdownDelay + stopTimeout; grace <= least {
				t.Errorf("the manager takes up to %s to stop, but is killed after %s", least, grace)
			}
		})
	}
}

func TestTracingOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		endpoint string
		rate     int32
		want     string // the name of the flag with an error
	}{
		"Off":      {},
		"On":       {endpoint: "collector:4317", rate: 1_000_000},
		"NoPort":   {endpoint: "collector", want: "tracing-endpoint"},
		"TooOften": {rate: 1_000_001, want: "tracing-sampling-rate-per-million"},
		"Negative": {rate: -1, want: "tracing-sampling-rate-per-million"},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewOptions()
			o.Complete()
			o.TracingEndpoint, o.TracingSamplingRatePerMillion = tc.endpoint, tc.rate
			var got string
			for _, err := range o.Validate() {
				got += err.Field
			}
			if got != tc.want {
				t.Errorf("errors in %q, want %q", got, tc.want)
			}
		})
	}
}
