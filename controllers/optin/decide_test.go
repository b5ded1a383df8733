package optin

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/utils/ptr"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

var optedIn = time.Unix(1e9, 0)

func TestDecide(t *testing.T) {
	object := func(kind, namespace, name string, created time.Time) *metav1.PartialObjectMetadata {
		out := &metav1.PartialObjectMetadata{}
		out.Kind, out.Namespace, out.Name, out.CreationTimestamp = kind, namespace, name, metav1.NewTime(created)
		return out
	}
	before, after := optedIn.Add(-time.Second), optedIn.Add(time.Second)
	going := object("Deployment", "shop", "web", after)
	going.DeletionTimestamp = &metav1.Time{Time: after}
	batch := func(kind string, created time.Time, owners ...metav1.OwnerReference) *metav1.PartialObjectMetadata {
		out := object(kind, "shop", "load", created)
		out.APIVersion, out.OwnerReferences = "batch/v1", owners
		return out
	}
	pod := object("Pod", "shop", "web-1", after)
	pod.APIVersion, pod.OwnerReferences = "v1", []metav1.OwnerReference{{Kind: "ReplicaSet", Controller: ptr.To(true)}}
	cases := map[string]struct {
		reason    string
		object    *metav1.PartialObjectMetadata
		immovable string
		adopt     bool
		want      decision
	}{
		"Before":           {reason: "An object from before the opt-in stays on the hub.", object: object("Deployment", "shop", "web", before)},
		"BeforeAdopted":    {reason: "An object from before the opt-in moves if the namespace asks for it.", object: object("Deployment", "shop", "web", before), adopt: true, want: decision{OptIn: true, Reason: v1alpha1.EventOptedIn}},
		"Missed":           {reason: "An object from after the opt-in without the label is reported.", object: object("Deployment", "shop", "web", after), want: decision{Reason: v1alpha1.EventRemainsOnHub, Warning: true}},
		"SameSecond":       {reason: "Times are in seconds. An object of the same second is reported.", object: object("Deployment", "shop", "web", optedIn), want: decision{Reason: v1alpha1.EventRemainsOnHub, Warning: true}},
		"MissedAdopted":    {reason: "An object from after the opt-in moves if the namespace asks for it.", object: object("Service", "shop", "web", after), adopt: true, want: decision{OptIn: true, Reason: v1alpha1.EventOptedIn}},
		"Balancer":         {reason: "A load balancer cannot move.", object: object("Service", "shop", "web", after), immovable: "it cannot move", adopt: true, want: decision{Reason: v1alpha1.ReasonCannotMove, Warning: true}},
		"BalancerBefore":   {reason: "A load balancer from before the opt-in is not reported.", object: object("Service", "shop", "web", before), immovable: "it cannot move"},
		"JobOfCronJob":     {reason: "The CronJob decides where its Jobs run.", object: batch("Job", after, metav1.OwnerReference{Kind: "CronJob", Controller: ptr.To(true)}), adopt: true},
		"CronJob":          {reason: "The next Jobs are sent.", object: batch("CronJob", before), adopt: true, want: decision{OptIn: true, Reason: v1alpha1.EventOptedIn}},
		"PodOfController":  {reason: "The controller decides where its Pods run.", object: pod, adopt: true},
		"Going":            {reason: "An object that is being deleted stays.", object: going, adopt: true},
		"APIServer":        {reason: "The Service of the hub's API server stays.", object: object("Service", "default", "kubernetes", after), adopt: true},
		"NamedLikeTheHubs": {reason: "A Service with the same name in another namespace moves.", object: object("Service", "shop", "kubernetes", after), adopt: true, want: decision{OptIn: true, Reason: v1alpha1.EventOptedIn}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := decide(tc.object, tc.immovable, optedIn, tc.adopt)
			if (got.Note == "") != (got.Reason == "") {
				t.Errorf("an event has a reason and a note, or is none: %+v", got)
			}
			got.Note = ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOptsIn(t *testing.T) {
	cases := map[string]struct {
		name, label string
		going, want bool
	}{
		"OptsIn":     {name: "shop", label: "remote", want: true},
		"Unlabelled": {name: "shop"},
		"Misspelt":   {name: "shop", label: "Remote"},
		"Going":      {name: "shop", label: "remote", going: true},
		"Hub":        {name: metav1.NamespaceSystem, label: "remote"},
		"Nodes":      {name: corev1.NamespaceNodeLease, label: "remote"},
		"Portico":    {name: "portico-system", label: "remote"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			namespace := namespaceMetadata()
			namespace.Name, namespace.Labels = tc.name, map[string]string{v1alpha1.ScheduleLabel: tc.label}
			if tc.going {
				namespace.DeletionTimestamp = &metav1.Time{}
			}
			if got := OptsIn(namespace, "portico-system"); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestOptedInAt(t *testing.T) {
	entry := func(fields string, at time.Time) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Time: &metav1.Time{Time: at}, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const label = `{"f:metadata":{"f:labels":{".":{},"f:workload.crossplane.io/schedule":{}}}}`
	created, later := optedIn.Add(-time.Hour), optedIn.Add(time.Hour)
	cases := map[string]struct {
		reason string
		fields []metav1.ManagedFieldsEntry
		want   time.Time
	}{
		"Label":   {reason: "The managed fields have the time of the label.", fields: []metav1.ManagedFieldsEntry{entry(`{"f:spec":{}}`, later), entry(label, optedIn)}, want: optedIn},
		"Several": {reason: "The last of several managers counts.", fields: []metav1.ManagedFieldsEntry{entry(label, created), entry(label, optedIn)}, want: optedIn},
		"Nobody":  {reason: "Without a manager the namespace has had the label since its creation.", fields: []metav1.ManagedFieldsEntry{entry(`{`, later), {}}, want: created},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			namespace := namespaceMetadata()
			namespace.CreationTimestamp, namespace.ManagedFields = metav1.NewTime(created), tc.fields
			if got := optedInAt(namespace); !got.Equal(tc.want) {
				t.Errorf("%s Got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}
