package clusters

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies/credentials"
	"github.com/portico-io/portico/test/flaky"
	"github.com/portico-io/portico/test/hostile"
)

// TestTolerate tests the number of failed probes before an outage.
func TestTolerate(t *testing.T) {
	const interval = 10 * time.Second
	up := State{Reachable: metav1.ConditionTrue, Reason: v1alpha1.ReasonReachable, Message: "answers", Version: "v1.36.3"}
	down := State{Reachable: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnreachable, Message: "refuses connections"}
	unauthorized := State{Reachable: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnauthorized, Message: "does not accept the credentials"}
	connecting := State{Reachable: metav1.ConditionUnknown, Reason: v1alpha1.ReasonConnecting}
	type probe struct {
		after   time.Duration // since the previous probe
		outcome State
	}
	cases := map[string]struct {
		reason    string
		before    State
		threshold int
		probes    []probe
		want      []string
	}{
		"One": {
			reason: "One failed probe is no outage.", before: up, threshold: 3,
			probes: []probe{{0, down}, {time.Second, up}},
			want:   []string{"up, fails", "up"},
		},
		"Quick": {
			reason: "Many failed probes in a short time are no outage, because a restart takes a while.", before: up, threshold: 3,
			probes: []probe{{0, down}, {time.Second, down}, {2 * time.Second, down}, {3 * time.Second, up}},
			want:   []string{"up, fails", "up, fails", "up, fails", "up"},
		},
		"Lasts": {
			reason: "The threshold of failed probes over their usual time is an outage.", before: up, threshold: 3,
			probes: []probe{{0, down}, {10 * time.Second, down}, {10 * time.Second, down}, {time.Second, up}},
			want:   []string{"up, fails", "up, fails", "down", "up"},
		},
		"Slow": {
			reason: "A long time without the threshold of failed probes is no outage.", before: up, threshold: 3,
			probes: []probe{{0, down}, {time.Minute, down}, {time.Minute, down}},
			want:   []string{"up, fails", "up, fails", "down"},
		},
		"Flaps": {
			reason: "A successful probe resets the count.", before: up, threshold: 2,
			probes: []probe{{0, down}, {10 * time.Second, up}, {10 * time.Second, down}, {10 * time.Second, up}},
			want:   []string{"up, fails", "up", "up, fails", "up"},
		},
		"Strict":  {reason: "With threshold 1 the first failed probe is an outage.", before: up, threshold: 1, probes: []probe{{0, down}}, want: []string{"down"}},
		"First":   {reason: "A new target is unreachable after the first failed probe.", before: connecting, threshold: 3, probes: []probe{{0, down}}, want: []string{"down"}},
		"Refused": {reason: "A refused credential counts at once, because the target answered.", before: up, threshold: 3, probes: []probe{{0, unauthorized}}, want: []string{"down"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var failed probeFailures
			state, now := tc.before, time.Now()
			var got []string
			for _, p := range tc.probes {
				now = now.Add(p.after)
				state = failed.nextState(state, p.outcome, tc.threshold, interval, now)
				shown := "down"
				if state.IsReachable() {
					shown = "up"
				}
				if state.ProbeError != "" {
					shown += ", fails"
				}
				got = append(got, shown)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFlap interrupts all connections to a target several times. The number of events
// does not grow with the number of objects.
func TestFlap(t *testing.T) {
	for _, objects := range []int{10, 2000} {
		t.Run(fmt.Sprint(objects), func(t *testing.T) {
			server := hostile.Start()
			defer server.Close()
			server.Fill(objects, 100)
			proxy, err := flaky.Before(server.URL()[len("https://"):])
			if err != nil {
				t.Fatal(err)
			}
			defer proxy.Close()
			secret := server.Secret()
			secret[v1alpha1.SecretEndpoint] = []byte("https://" + proxy.Address())
			connectionConfig, problems := NewConnectionConfig(&v1alpha1.KubernetesTarget{}, secret, credentials.Rules{AllowLocal: true})
			if problems != nil {
				t.Fatal(problems.ToAggregate())
			}
			warned := &recordingListener{}
			c := New(Options{HubID: "hub", Timeout: 5 * time.Second, ProbeInterval: 100 * time.Millisecond, FailureThreshold: 1 << 20, QPS: 200, Burst: 400})
			c.AddListener(warned)
			key := types.NamespacedName{Namespace: "team-a", Name: "flaps"}
			if err := c.Connect(t.Context(), key, connectionConfig); err != nil {
				t.Fatal(err)
			}
			connection, err := c.Get(key)
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, "all to be there", func() (bool, any) {
				_, synced, err := connection.Informer(configMaps)
				return synced, err
			})
			eventually(t, "the end of the first news", func() (bool, any) {
				before := warned.targets.Load()
				time.Sleep(300 * time.Millisecond)
				return warned.targets.Load() == before, before
			})
			targets, objectChanges := warned.targets.Load(), warned.objects.Load()
			for range 3 {
				proxy.Turn(flaky.Refusing)
				eventually(t, "a probe to fail", func() (bool, any) {
					state := connection.State()
					return state.IsReachable() && state.ProbeError != "", state
				})
				if _, synced, err := connection.Informer(configMaps); !synced {
					t.Errorf("the cache is gone, because a probe failed: %v", err)
				}
				requests := server.Requests()
				proxy.Turn(flaky.Through)
				eventually(t, "a probe to succeed, and the watch to go on", func() (bool, any) {
					state := connection.State()
					return state.IsReachable() && state.ProbeError == "" && server.Requests() >= requests+2, state
				})
			}
			if got := warned.probes.Load(); got != 6 {
				t.Errorf("%d changes of probes were told, of 3 flaps", got)
			}
			if got := warned.targets.Load() - targets; got != 0 {
				t.Errorf("resources were woken %d times", got)
			}
			if got := warned.objects.Load() - objectChanges; got != 0 {
				t.Errorf("%d objects were told of, and none changed", got)
			}
		})
	}
}
