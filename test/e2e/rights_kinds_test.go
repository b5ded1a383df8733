package e2e

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// kindAttempts returns the rows of the kinds whose objects are held in a namespace. It
// stores an object of each kind.
func kindAttempts(ctx context.Context, namespace string) []attempt {
	GinkgoHelper()
	const inTemplate = `{"spec": {"template": {"metadata": {"labels": {"workload.crossplane.io/schedule": null}}, "spec": {"nodeName": null}}}}`
	var out []attempt
	for _, k := range workloadKinds {
		out = append(out, heldAttempts(ctx, namespace, k.kind, k.manifest("web", strings.ToLower(k.kind)), inTemplate, "spec", "template", "metadata", "labels")...)
	}
	const inSelector = `{"spec": {"selector": {"matchLabels": {"workload.crossplane.io/schedule": null}}}}`
	out = append(out, heldAttempts(ctx, namespace, "PodDisruptionBudget", budget(), inSelector, "spec", "selector", "matchLabels")...)
	for _, manifest := range strings.Split(enforced, "---") {
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(manifest), &object.Object)).To(Succeed())
		object.SetNamespace(namespace)
		out = append(out, attempt{what: "send a " + object.GetKind() + " to a target", try: func(as client.Client) error {
			return as.Create(ctx, object.DeepCopy(), client.DryRunAll)
		}})
	}
	return out
}

func withArticle(kind string) string {
	if strings.HasPrefix(kind, "I") {
		return "an " + kind
	}
	return "a " + kind
}

// mixedAttempts returns the rows of claims, autoscalers, Ingresses, and CronJobs of a target.
// It stores an object of each kind.
func mixedAttempts(ctx context.Context, namespace string) []attempt {
	GinkgoHelper()
	create(hub, "", `{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: public-rights}, spec: {controller: example.org/hub}}`)
	DeferCleanup(func() { kubectl(hub, "delete", "ingressclass", "public-rights") })
	captured := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(ingress("name: web,", "name: new,", "  tls:", "  ingressClassName: public-rights\n  tls:")), &captured.Object)).To(Succeed())
	captured.SetNamespace(namespace)
	field := func(want any, path ...string) func(*unstructured.Unstructured) bool {
		return func(object *unstructured.Unstructured) bool {
			value, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
			return value == want
		}
	}
	const unlabel = `{"metadata": {"labels": {"workload.crossplane.io/schedule": null}}}`
	onTarget := cronJob("name: backup\n  labels", "name: nightly\n  annotations: {workload.crossplane.io/schedule-on: target}\n  labels", `"* * * * *"`, `"0 0 1 1 *"`)
	return slices.Concat(
		heldByField(ctx, namespace, "PersistentVolumeClaim", volumeClaim(), unlabel, field(nil)),
		heldByField(ctx, namespace, "HorizontalPodAutoscaler", remoteAutoscaler(), unlabel, field(nil))[:2], // the hub denies its controller
		heldByField(ctx, namespace, "Ingress", ingress(), `{"spec": {"ingressClassName": null}}`, field("remote.workload.crossplane.io", "spec", "ingressClassName")),
		[]attempt{{what: "send an Ingress of a class of the hub", try: func(as client.Client) error {
			return as.Create(ctx, captured.DeepCopy(), client.DryRunAll)
		}}},
		heldByField(ctx, namespace, "CronJob", onTarget, `{"spec": {"suspend": false}}`, field(true, "spec", "suspend")),
	)
}

// heldAttempts returns the rows of one kind. release is a patch that takes the hold off, and
// hold is the path of the labels that have it.
func heldAttempts(ctx context.Context, namespace, kind, manifest, release string, hold ...string) []attempt {
	GinkgoHelper()
	return heldByField(ctx, namespace, kind, manifest, release, func(object *unstructured.Unstructured) bool {
		labels, _, _ := unstructured.NestedStringMap(object.Object, hold...)
		return labels["workload.crossplane.io/schedule"] == "remote"
	})
}

// heldByField returns the rows of one kind. release is a patch that takes the hold off, and
// isHeld tells whether an object still has the hold.
func heldByField(ctx context.Context, namespace, kind, manifest, release string, isHeld func(*unstructured.Unstructured) bool) []attempt {
	GinkgoHelper()
	apply(namespace, manifest)
	stored := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(manifest), &stored.Object)).To(Succeed())
	stored.SetNamespace(namespace)
	other := stored.DeepCopy()
	other.SetName("new")

	released := stored.DeepCopy()
	return []attempt{
		{what: "send " + withArticle(kind) + " to a target", try: func(as client.Client) error {
			return as.Create(ctx, other.DeepCopy(), client.DryRunAll)
		}},
		{what: "write " + withArticle(kind) + "'s status", try: func(as client.Client) error {
			return as.Status().Patch(ctx, stored.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"status": {"observedGeneration": 9}}`)), client.DryRunAll)
		}},
		{what: "release a held " + kind, try: func(as client.Client) error {
			released = stored.DeepCopy()
			return as.Patch(ctx, released, client.RawPatch("application/merge-patch+json", []byte(release)), client.DryRunAll)
		}, kept: func() bool { return isHeld(released) }},
	}
}

// onceAttempts returns the rows of Jobs, CronJobs and Pods. It stores a Job and a Pod.
func onceAttempts(ctx context.Context, namespace string) []attempt {
	GinkgoHelper()
	apply(namespace, bare())
	apply(namespace, load("load:1", "load:does-not-exist"))
	object := func(manifest string) *unstructured.Unstructured {
		GinkgoHelper()
		out := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(manifest), &out.Object)).To(Succeed())
		out.SetNamespace(namespace)
		return out
	}
	create := func(what, manifest string) attempt {
		native := object(manifest)
		return attempt{what: what, try: func(as client.Client) error { return as.Create(ctx, native.DeepCopy(), client.DryRunAll) }}
	}
	merge := func(patch string) client.Patch { return client.RawPatch("application/merge-patch+json", []byte(patch)) }
	patch := func(what string, native *unstructured.Unstructured, patch string) attempt {
		return attempt{what: what, try: func(as client.Client) error { return as.Patch(ctx, native.DeepCopy(), merge(patch), client.DryRunAll) }}
	}
	status := func(what string, native *unstructured.Unstructured) attempt {
		return attempt{what: what, try: func(as client.Client) error {
			return as.Status().Patch(ctx, native.DeepCopy(), merge(`{"status": {"startTime": "2026-08-01T12:00:00Z"}}`), client.DryRunAll)
		}}
	}
	const owner = `{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": true}`
	job, newJob := object(load()), load("name: load\n  labels", "name: new\n  labels")
	pod, newPod := object(bare()), []string{"name: smoke\n  labels", "name: new\n  labels"}
	return []attempt{
		create("send a Job to a target", newJob),
		create("send a Job of another manager", strings.Replace(newJob, "backoffLimit: 0", "managedBy: example.org/other", 1)),
		patch("run a held Job here", job, `{"metadata": {"labels": {"workload.crossplane.io/schedule": null}}}`),
		status("write a Job's status", job),
		create("send the Jobs of a CronJob to a target", cronJob()),
		create("send a Pod to a target", bare(newPod...)),
		create("put a remote Pod on a node of the hub", bare(append(newPod, "containers:", "nodeName: hub\n  containers:")...)),
		create("feign a controller of a remote Pod", bare("name: smoke\n  labels", "name: new\n  ownerReferences: ["+owner+"]\n  labels")),
		patch("remove the gate of a Pod", pod, `{"spec": {"schedulingGates": null}}`),
		patch("remove the gate of a Pod and its label", pod, `{"metadata": {"labels": {"workload.crossplane.io/schedule": null}}, "spec": {"schedulingGates": null}}`),
		patch("remove the gate of a Pod and feign its controller", pod, `{"metadata": {"ownerReferences": [`+owner+`]}, "spec": {"schedulingGates": null}}`),
		{what: "bind a held Pod to a node of the hub", try: func(as client.Client) error {
			return as.SubResource("binding").Create(ctx, pod.DeepCopy(), object(`{apiVersion: v1, kind: Binding, target: {kind: Node, name: hub}}`), client.DryRunAll)
		}},
		{what: "put a container into a held Pod", try: func(as client.Client) error {
			const debugger = `{"spec": {"ephemeralContainers": [{"name": "debugger", "image": "debug"}]}}`
			return as.SubResource("ephemeralcontainers").Patch(ctx, pod.DeepCopy(), merge(debugger), client.DryRunAll)
		}},
		status("write a Pod's status", pod),
	}
}
