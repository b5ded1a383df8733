package targetselection

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

func loadTarget(namespace, name, cluster string) *v1alpha1.KubernetesTarget {
	out := &v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	out.Status.ClusterID = cluster
	out.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TargetReachable, Status: metav1.ConditionTrue}}
	return out
}

func loadApplication(name, version, target string, templates int) *v1alpha2.KubernetesApplication {
	out := &v1alpha2.KubernetesApplication{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, ResourceVersion: version}}
	out.Spec.ResourceTemplates = make([]v1alpha2.ResourceTemplate, templates)
	if target != "" {
		out.Spec.TargetRef = &v1alpha1.TargetReference{Name: target}
	}
	return out
}

func loadResource(namespace, name, application, target, leaving string) *v1alpha1.KubernetesApplicationResource {
	out := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: "1"}}
	if application != "" {
		out.Labels = map[string]string{v1alpha1.ApplicationLabel: application}
	}
	if target != "" {
		out.Spec.TargetRef = &v1alpha1.TargetReference{Name: target}
	}
	if leaving != "" {
		out.Spec.LeavingTargetRef = &v1alpha1.TargetReference{Name: leaving}
	}
	return out
}

// choose selects a target for a unit.
func choose(l *Load, unit Unit, target string) {
	l.Choose(unit, Query{Selector: labels.Everything(), Targets: []v1alpha1.KubernetesTarget{*loadTarget(unit.Namespace, target, "")}})
}

func TestLoad(t *testing.T) {
	shop := ApplicationUnit("a", "shop")
	alone := Unit{NamespacedName: shop.NamespacedName}
	alone.Name = "alone"
	cases := map[string]struct {
		reason string
		do     func(l *Load)
		load   map[string]int // by target of namespace a
		placed map[string]int
	}{
		"Nothing": {reason: "An unused target has load 0.", do: func(*Load) {}, load: map[string]int{"eu": 0, "us": 0}},
		"Resources": {
			reason: "A resource counts for its target.",
			do: func(l *Load) {
				l.SetResource(loadResource("a", "1", "", "eu", ""))
				l.SetResource(loadResource("a", "2", "", "us", "eu"))
				l.SetResource(loadResource("a", "3", "", "", ""))
			},
			load: map[string]int{"eu": 1, "us": 1}, placed: map[string]int{"eu": 1, "us": 1},
		},
		"Again": {
			reason: "The same event twice counts once.",
			do: func(l *Load) {
				l.SetResource(loadResource("a", "1", "", "eu", ""))
				l.SetResource(loadResource("a", "1", "", "eu", ""))
			},
			load: map[string]int{"eu": 1, "us": 0}, placed: map[string]int{"eu": 1},
		},
		"Moves": {
			reason: "A resource that moved counts for its new target.",
			do: func(l *Load) {
				l.SetResource(loadResource("a", "1", "", "eu", ""))
				l.SetResource(loadResource("a", "1", "", "us", ""))
			},
			load: map[string]int{"eu": 0, "us": 1}, placed: map[string]int{"us": 1},
		},
		"Deleted": {
			reason: "A deleted resource or application does not count.",
			do: func(l *Load) {
				l.SetApplication(loadApplication("shop", "1", "eu", 2))
				l.SetResource(loadResource("a", "1", "shop", "eu", ""))
				l.DeleteResource("a", "1")
				l.DeleteApplication("a", "shop")
			},
			load: map[string]int{"eu": 0, "us": 0},
		},
		"Members": {
			reason: "All resources of an application count for the application's target, including those without a target.",
			do: func(l *Load) {
				l.SetResource(loadResource("a", "1", "shop", "eu", ""))
				l.SetResource(loadResource("a", "2", "shop", "", ""))
				l.SetApplication(loadApplication("shop", "1", "us", 0))
			},
			load: map[string]int{"eu": 0, "us": 2}, placed: map[string]int{"eu": 1},
		},
		"Templates": {
			reason: "The templates of an application count before their resources exist.",
			do:     func(l *Load) { l.SetApplication(loadApplication("shop", "1", "us", 7)) },
			load:   map[string]int{"eu": 0, "us": 7},
		},
		"OneCluster": {
			reason: "The load of a cluster is the sum over all namespaces with a target for it.",
			do: func(l *Load) {
				l.SetTarget(loadTarget("a", "eu", "cluster-1"))
				l.SetTarget(loadTarget("b", "other-name", "cluster-1"))
				l.SetResource(loadResource("a", "1", "", "eu", ""))
				l.SetResource(loadResource("b", "1", "", "other-name", ""))
			},
			load: map[string]int{"eu": 2, "us": 0}, placed: map[string]int{"eu": 1},
		},
		"ClusterKnownLater": {
			reason: "A target's cluster may become known later, and may change.",
			do: func(l *Load) {
				l.SetResource(loadResource("b", "1", "", "b", ""))
				l.SetResource(loadResource("c", "1", "", "c", ""))
				l.SetTarget(loadTarget("b", "b", "cluster-1"))
				l.SetTarget(loadTarget("c", "c", "cluster-1"))
				l.SetTarget(loadTarget("a", "eu", "cluster-1"))
				l.SetTarget(loadTarget("b", "b", "cluster-2"))
				l.SetTarget(loadTarget("a", "us", "cluster-2"))
				l.DeleteTarget("c", "c")
			},
			load: map[string]int{"eu": 0, "us": 1},
		},
		"Assumed": {
			reason: "A decision counts before an event confirms it.",
			do:     func(l *Load) { choose(l, shop, "eu") },
			load:   map[string]int{"eu": 1, "us": 0},
		},
		"Forgotten": {
			reason: "A decision that was not written does not count.",
			do: func(l *Load) {
				choose(l, shop, "eu")
				l.ForgetAssumed(shop)
			},
			load: map[string]int{"eu": 0, "us": 0},
		},
		"OldEvent": {
			reason: "An event older than the write does not end an assumption.",
			do: func(l *Load) {
				choose(l, shop, "eu")
				l.RecordWrite(shop, "10")
				l.SetApplication(loadApplication("shop", "9", "", 3))
			},
			load: map[string]int{"eu": 3, "us": 0},
		},
		"Confirmed": {
			reason: "An event newer than the write ends an assumption, and its content counts.",
			do: func(l *Load) {
				choose(l, shop, "eu")
				l.RecordWrite(shop, "10")
				l.SetApplication(loadApplication("shop", "11", "us", 3))
			},
			load: map[string]int{"eu": 0, "us": 3},
		},
		"ConfirmedFirst": {
			reason: "The event may arrive before the answer to the write.",
			do: func(l *Load) {
				choose(l, shop, "eu")
				l.SetApplication(loadApplication("shop", "10", "eu", 3))
				l.RecordWrite(shop, "10")
				l.SetApplication(loadApplication("shop", "12", "us", 3))
			},
			load: map[string]int{"eu": 0, "us": 3},
		},
		"DeletedFirst": {
			reason: "Nothing is assumed of a deleted application.",
			do: func(l *Load) {
				choose(l, shop, "eu")
				l.DeleteApplication("a", "shop")
				l.RecordWrite(shop, "10")
			},
			load: map[string]int{"eu": 0, "us": 0},
		},
		"Alone": {
			reason: "A resource without an application is assumed and confirmed in the same way.",
			do: func(l *Load) {
				l.SetResource(loadResource("a", "alone", "", "", ""))
				choose(l, alone, "us")
				l.RecordWrite(alone, "1")
				l.SetResource(loadResource("a", "alone", "", "us", ""))
				l.SetResource(loadResource("a", "alone", "", "eu", ""))
			},
			load: map[string]int{"eu": 1, "us": 0}, placed: map[string]int{"eu": 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := NewLoad()
			eu, us := loadTarget("a", "eu", ""), loadTarget("a", "us", "")
			l.SetTarget(eu)
			l.SetTarget(us)
			tc.do(l)
			got := l.ForTargets([]v1alpha1.KubernetesTarget{*eu, *us})
			if diff := cmp.Diff(tc.load, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			placed := l.PlacedByTarget("a")
			if len(placed) == 0 {
				placed = nil
			}
			if diff := cmp.Diff(tc.placed, placed); diff != "" {
				t.Errorf("placed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPending(t *testing.T) {
	l, shop := NewLoad(), ApplicationUnit("a", "shop")
	l.SetApplication(loadApplication("shop", "9", "", 1))
	if l.Pending(shop, "9") {
		t.Error("nothing was decided")
	}
	choose(l, shop, "eu")
	l.RecordWrite(shop, "10")
	if !l.Pending(shop, "9") || l.Pending(shop, "10") {
		t.Error("an object from before the write is outdated, and an object from after it is not")
	}
	l.SetApplication(loadApplication("shop", "10", "eu", 1))
	if l.Pending(shop, "9") {
		t.Error("the event has come")
	}
}

// TestLoadForgets: deleted objects leave no counts behind.
func TestLoadForgets(t *testing.T) {
	l := NewLoad()
	for i := range 100 {
		name := strconv.Itoa(i)
		l.SetTarget(loadTarget("a", name, "c"+name))
		l.SetApplication(loadApplication(name, "1", name, 2))
		l.SetResource(loadResource("a", name, name, name, ""))
		choose(l, ApplicationUnit("a", name), name)
	}
	for i := range 100 {
		name := strconv.Itoa(i)
		l.DeleteTarget("a", name)
		l.DeleteResource("a", name)
		l.DeleteApplication("a", name)
	}
	if len(l.targets)+len(l.clusters)+len(l.resources)+len(l.units) != 0 {
		t.Errorf("left: %d targets, %d clusters, %d resources, %d units", len(l.targets), len(l.clusters), len(l.resources), len(l.units))
	}
}

// TestBurst makes many concurrent decisions before the first event.
func TestBurst(t *testing.T) {
	l := NewLoad()
	var targets []v1alpha1.KubernetesTarget
	for i := range 5 {
		target := loadTarget("a", fmt.Sprintf("t%d", i), "")
		l.SetTarget(target)
		targets = append(targets, *target)
	}
	var all sync.WaitGroup
	for i := range 500 {
		all.Go(func() {
			l.Choose(ApplicationUnit("a", strconv.Itoa(i)), Query{Selector: labels.Everything(), Targets: targets})
		})
	}
	all.Wait()
	if diff := cmp.Diff(map[string]int{"t0": 100, "t1": 100, "t2": 100, "t3": 100, "t4": 100}, l.ForTargets(targets)); diff != "" {
		t.Error(diff)
	}
}
