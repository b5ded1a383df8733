package clusters

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters/limits"
	"github.com/portico-io/portico/policies/credentials"
	"github.com/portico-io/portico/test/hostile"
)

var configMaps = corev1.SchemeGroupVersion.WithKind("ConfigMap")

// waitTimeout is the limit on every wait, because the machine is shared.
const waitTimeout = 2 * time.Minute

// recordingListener counts the calls of its methods.
type recordingListener struct{ targets, probes, objects atomic.Int64 }

func (l *recordingListener) TargetChanged(types.NamespacedName)      { l.targets.Add(1) }
func (l *recordingListener) ProbesChanged(types.NamespacedName)      { l.probes.Add(1) }
func (l *recordingListener) ObjectChanged(_, _ types.NamespacedName) { l.objects.Add(1) }

func eventually(t *testing.T, what string, holds func() (bool, any)) {
	t.Helper()
	var last any
	for end := time.Now().Add(waitTimeout); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var ok bool
		if ok, last = holds(); ok {
			return
		}
	}
	t.Fatalf("waiting for %s: %v", what, last)
}

func connectionConfigTo(t *testing.T, server *hostile.Server) ConnectionConfig {
	t.Helper()
	connectionConfig, problems := NewConnectionConfig(&v1alpha1.KubernetesTarget{}, server.Secret(), credentials.Rules{AllowLocal: true})
	if problems != nil {
		t.Fatal(problems.ToAggregate())
	}
	return connectionConfig
}

// connectTo connects a target, and watches its ConfigMaps when it is reachable.
func connectTo(t *testing.T, c *Clusters, called string, server *hostile.Server) *TargetConnection {
	t.Helper()
	key := types.NamespacedName{Namespace: "team-a", Name: called}
	if err := c.Connect(t.Context(), key, connectionConfigTo(t, server)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(key) })
	connection, err := c.Get(key)
	if err != nil {
		t.Fatal(err)
	}
	return connection
}

// testLimits returns the defaults with a backoff that does not end during a test.
func testLimits() limits.Limits { return limits.Limits{Backoff: time.Hour} }

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestHostile runs every attack. Each attack ends with a reason and the name of the
// limit, and causes no more requests. After each attack, the process has at most a
// tenth more memory than with the same connections to honest targets. Another target of
// ordinary size, more than 20 MiB in memory, remains reachable.
func TestHostile(t *testing.T) {
	limit := map[string]string{ // empty: the attack only has the effect of an outage or a refusal
		"gigabytes of everything": "bytes of one response",
		"endless redirects":       "",
		"gigabytes of version":    "bytes of one response",
		"gigabytes of discovery":  "bytes of one response",
		"gigabytes of objects":    "bytes of one response",
		"gigabytes of an event":   "bytes of one watch event",
		"a million groups":        "bytes of one response",
		"a million objects":       "pages of objects",
		"a million in one page":   "bytes of one response",
		"a million events":        "objects of this hub",
		"a storm of events":       "watch events per second",
		"growing objects":         "bytes of",
		"a list of nothing":       "bytes of one response",
		"slow drips":              "time of one response",
		"slow drips of version":   "time of one response",
		"broken UTF-8":            "",
	}
	other := hostile.Start()
	defer other.Close()
	other.Fill(5000, 4000)
	for name, attack := range hostile.Attacks() {
		t.Run(name, func(t *testing.T) {
			want, known := limit[name]
			if !known {
				t.Fatal("the test has no expectation for the attack")
			}
			bounds := limits.Limits{Backoff: time.Hour, Objects: 10_000, CacheBytes: 64 << 20, ResponseBytes: 16 << 20}
			if strings.HasPrefix(want, "time") {
				bounds.ResponseTime = 2 * time.Second
			}
			c := New(Options{HubID: "hub", Timeout: 5 * time.Second, ProbeInterval: 100 * time.Millisecond, QPS: 200, Burst: 400, Limits: bounds})
			c.AddListener(&recordingListener{})
			beside := connectTo(t, c, "beside", other)
			eventually(t, "the other target to be watched", func() (bool, any) {
				_, synced, err := beside.Informer(configMaps)
				return synced, err
			})
			server := hostile.Start()
			defer server.Close()
			honest := connectTo(t, c, "attacked", server)
			eventually(t, "the honest target to be watched", func() (bool, any) {
				_, synced, err := honest.Informer(configMaps)
				return synced, err
			})
			before := heap()
			c.Close(types.NamespacedName{Namespace: "team-a", Name: "attacked"})
			server.Attack(attack)
			attacked := connectTo(t, c, "attacked", server)
			eventually(t, "the attack to end", func() (bool, any) {
				reader, synced, err := attacked.Informer(configMaps)
				_ = reader
				state := attacked.State()
				switch {
				case want != "":
					return state.Reason == v1alpha1.ReasonTargetMisbehaves && strings.Contains(state.Message, want), state
				case name == "broken UTF-8":
					return state.IsReachable() && err != nil && !synced, err
				}
				return state.Reachable == metav1.ConditionFalse, state
			})
			state := attacked.State()
			for _, text := range []string{state.Message, state.Version} {
				if !utf8.ValidString(text) || len(text) > maxMessage {
					t.Errorf("%d bytes of %q", len(text), text[:min(len(text), 40)])
				}
			}
			if want != "" {
				time.Sleep(200 * time.Millisecond) // responses in progress arrive
				requests := server.Requests()
				for range 20 { // every call of Portico
					attacked.RequestProbe()
					_, _, _ = attacked.Informer(configMaps)
					if made := attacked.Client(); made != nil {
						_ = made.Get(t.Context(), client.ObjectKey{Name: "x", Namespace: "y"}, objectOfKind(configMaps))
					}
					time.Sleep(20 * time.Millisecond)
				}
				if after := server.Requests(); after != requests {
					t.Errorf("%d requests during the backoff", after-requests)
				}
			}
			if state := beside.State(); !state.IsReachable() {
				t.Errorf("the other target suffers: %+v", state)
			}
			var grown int64
			for range 50 { // the connections end by themselves
				if grown = heap() - before; grown < before/10 {
					t.Logf("the heap grew by %d KiB, from %d KiB", grown>>10, before>>10)
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
			t.Errorf("%d KiB are not freed, of %d KiB without the attack", grown>>10, before>>10)
		})
	}
}

// TestLegitimate connects to a large target within the limits.
func TestLegitimate(t *testing.T) {
	for name, tc := range map[string]struct{ count, size int }{
		"ten thousand objects":  {10_000, 5_000},
		"objects of one MiB":    {100, 1 << 20},
		"more than half of all": {30_000, 100}, // a second list must not count the objects twice
	} {
		t.Run(name, func(t *testing.T) {
			server := hostile.Start()
			defer server.Close()
			server.Fill(tc.count, tc.size)
			c := New(Options{HubID: "hub", Timeout: 5 * time.Second, ProbeInterval: time.Second, QPS: 200, Burst: 400, Limits: limits.Limits{Backoff: time.Hour}})
			for _, paged := range []bool{false, true} {
				if paged {
					server.Attack(hostile.OldServer())
				}
				connection := connectTo(t, c, fmt.Sprintf("eu-%t", paged), server)
				eventually(t, "all to be there", func() (bool, any) {
					reader, synced, err := connection.Informer(configMaps)
					if !synced {
						return false, fmt.Sprint(connection.State(), err)
					}
					last := objectOfKind(configMaps)
					err = reader.Get(t.Context(), client.ObjectKey{Namespace: "hostile", Name: fmt.Sprintf("object-%d", tc.count-1)}, last)
					return err == nil && connection.State().IsReachable(), err
				})
			}
		})
	}
}

// TestBackoffAfterLimit: another credential does not end the backoff.
func TestBackoffAfterLimit(t *testing.T) {
	server := hostile.Start()
	defer server.Close()
	server.Attack(hostile.Attack{Version: hostile.Gigabytes})
	c := New(Options{ProbeInterval: 50 * time.Millisecond, Limits: testLimits()})
	misbehaves := func() {
		t.Helper()
		eventually(t, "the target to misbehave", func() (bool, any) {
			connection, err := c.Get(types.NamespacedName{Namespace: "team-a", Name: "eu-1"})
			return err == nil && connection.State().Reason == v1alpha1.ReasonTargetMisbehaves, err
		})
	}
	connectTo(t, c, "eu-1", server)
	misbehaves()
	requests := server.Requests()
	rotated := connectionConfigTo(t, server)
	rotated.Digest = "another"
	if err := c.Connect(t.Context(), types.NamespacedName{Namespace: "team-a", Name: "eu-1"}, rotated); err != nil {
		t.Fatal(err)
	}
	misbehaves()
	if after := server.Requests(); after != requests {
		t.Errorf("%d requests after another credential", after-requests)
	}
}

// TestBackoffEnds: a target that keeps the limits is reachable again after the backoff.
func TestBackoffEnds(t *testing.T) {
	server := hostile.Start()
	defer server.Close()
	server.Attack(hostile.Attack{Version: hostile.Gigabytes})
	c := New(Options{ProbeInterval: 50 * time.Millisecond, Limits: limits.Limits{Backoff: 300 * time.Millisecond}})
	connection := connectTo(t, c, "eu-1", server)
	eventually(t, "the target to misbehave", func() (bool, any) {
		return connection.State().Reason == v1alpha1.ReasonTargetMisbehaves, connection.State()
	})
	server.Attack(hostile.Attack{})
	eventually(t, "the target to be asked again", func() (bool, any) { return connection.State().IsReachable(), connection.State() })
}

// TestHostileDryRun: the limits also apply to the requests of webhooks.
func TestHostileDryRun(t *testing.T) {
	server := hostile.Start()
	defer server.Close()
	direct := NewDirectClients(5*time.Second, testLimits())
	directClient, err := direct.ClientFor(types.NamespacedName{Name: "eu-1"}, connectionConfigTo(t, server))
	if err != nil {
		t.Fatal(err)
	}
	server.Attack(hostile.Attack{Object: hostile.Gigabytes})
	get := func() error {
		return directClient.Get(t.Context(), client.ObjectKey{Namespace: "x", Name: "y"}, objectOfKind(configMaps))
	}
	if !errors.As(get(), new(*limits.Exceeded)) {
		t.Fatal("an object may have gigabytes")
	}
	requests := server.Requests()
	for range 10 {
		if !errors.As(get(), new(*limits.Exceeded)) {
			t.Fatal("the target is called again")
		}
	}
	if after := server.Requests(); after != requests {
		t.Errorf("%d requests during the backoff", after-requests)
	}
	if !IsUnreachable(get()) {
		t.Error("a target that is left alone is not taken for one that does not answer")
	}
}

func TestBounded(t *testing.T) {
	for _, text := range []string{"plain", strings.Repeat("é", 1000), strings.Repeat("\xff", 1000), "a\xffb"} {
		if got := boundText(text, 64); len(got) > 64 || !utf8.ValidString(got) {
			t.Errorf("%q becomes %q", text[:2], got)
		}
	}
}

func name(target string) types.NamespacedName {
	return types.NamespacedName{Namespace: "team-a", Name: target}
}
