package kinds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHoldPersistentVolumeClaim(t *testing.T) {
	const (
		head   = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, labels: {workload.crossplane.io/schedule: remote}`
		record = `, annotations: {workload.crossplane.io/intent: '{"hubStorageClass":true}'}`
		wrote  = `, managedFields: [{manager: kubectl, fieldsV1: {"f:spec": {"f:accessModes": {}}}}]`
		named  = `, managedFields: [{manager: kubectl, fieldsV1: {"f:spec": {"f:accessModes": {}, "f:storageClassName": {}}}}]`
		held   = `, volumeName: workload.crossplane.io/remote`
	)
	testHold(t, map[string]holdCase{
		"Create":      {reason: "A new claim has the name of no volume.", object: head + `}, spec: {}}`, want: head + `}, spec: {volumeName: workload.crossplane.io/remote}}`},
		"HubDefault":  {reason: "A class that no manager wrote is the default of the hub.", object: head + wrote + `}, spec: {storageClassName: hub}}`, want: head + wrote + record + `}, spec: {storageClassName: hub` + held + `}}`},
		"OwnClass":    {reason: "A class that a manager wrote is the user's.", object: head + named + `}, spec: {storageClassName: fast}}`, want: head + named + `}, spec: {storageClassName: fast` + held + `}}`},
		"Unknown":     {reason: "Without managed fields the class is the user's.", object: head + `}, spec: {storageClassName: fast}}`, want: head + `}, spec: {storageClassName: fast` + held + `}}`},
		"OwnVolume":   {reason: "The name of a volume is kept.", object: head + `}, spec: {volumeName: disk}}`},
		"Replace":     {reason: "kubectl replace drops the name and the record, and both stay.", old: head + record + `}, spec: {storageClassName: hub` + held + `}}`, object: head + `}, spec: {storageClassName: hub}}`, want: head + record + `}, spec: {storageClassName: hub` + held + `}}`},
		"Forge":       {reason: "A user cannot change the record.", old: head + `}, spec: {storageClassName: fast` + held + `}}`, object: head + record + `}, spec: {storageClassName: fast` + held + `}}`, want: head + `, annotations: {}}, spec: {storageClassName: fast` + held + `}}`},
		"CannotLabel": {reason: "A claim of the hub is not held. Validation refuses the label.", old: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {}}`, object: head + `}, spec: {}}`},
		"Broken":      {reason: "An invalid record of a new claim is an error.", object: head + `, annotations: {workload.crossplane.io/intent: '{'}}, spec: {}}`, refused: true},
	})
}

func TestProjectPersistentVolumeClaim(t *testing.T) {
	native := read(t, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: a, annotations: {team: blue, pv.kubernetes.io/bind-completed: "yes", volume.kubernetes.io/selected-node: n1, workload.crossplane.io/intent: '{"hubStorageClass":true}'}},
spec: {accessModes: [ReadWriteOnce], storageClassName: hub, volumeName: workload.crossplane.io/remote}}`)
	got, err := Project(PersistentVolumeClaim{}, native)
	if err != nil {
		t.Fatal(err)
	}
	want := read(t, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: a, annotations: {team: blue}}, spec: {accessModes: [ReadWriteOnce]}}`)
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("the target binds the claim by its own rules (-want +got):\n%s", diff)
	}
	own := read(t, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {storageClassName: "", volumeName: disk}}`)
	if got, err = Project(PersistentVolumeClaim{}, own); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(own.Object, got.Object); diff != "" {
		t.Errorf("a class and a volume of the user are sent (-want +got):\n%s", diff)
	}
}

func TestClaimNames(t *testing.T) {
	for name, tc := range map[string]struct {
		object string
		want   []string
	}{
		"Claim":       {`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}}`, []string{"PersistentVolumeClaim data"}},
		"StatefulSet": {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {volumeClaimTemplates: [{metadata: {name: data}}]}}`, []string{"PersistentVolumeClaims data-db-*"}},
		"Deployment":  {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ClaimNames(read(t, tc.object))); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
		})
	}
}
