package policies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

const (
	scheduleField = "metadata.labels[workload.crossplane.io/schedule]"
	intentField   = "metadata.annotations[workload.crossplane.io/intent]"
)

// The Deployments and Services of the cases.
const (
	local       = `{kind: Deployment, metadata: {name: web}}`
	remote      = `{kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}}`
	remoteProd  = `{kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/target-selector: env=prod}}}`
	remoteDev   = `{kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/target-selector: env=dev}}}`
	remoteShop  = `{kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote, workload.crossplane.io/application: shop}}}`
	shopDev     = `{kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote, workload.crossplane.io/application: shop}, annotations: {workload.crossplane.io/target-selector: env=dev}}}`
	misspelt    = `{kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: Remote}}}`
	badName     = `{kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote, workload.crossplane.io/application: Shop_1}}}`
	badSelector = `{kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/target-selector: env in prod}}}`
	remoteGPU   = `{kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/tolerations: gpu}}}`
	badTolerate = `{kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/tolerations: 'gpu:Never'}}}`
	badIntent   = `{kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/intent: '{'}}}`

	labelSelected = `{kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}, spec: {selector: {matchLabels: {workload.crossplane.io/schedule: remote}}}}`
	expressionUse = `{kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}, spec: {selector: {matchExpressions: [{key: app, operator: Exists}, {key: workload.crossplane.io/schedule, operator: Exists}]}}}`
	serviceUse    = `{kind: Service, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}, spec: {selector: {workload.crossplane.io/schedule: remote}}}`

	balancerHere   = `{kind: Service, metadata: {name: web}, spec: {type: LoadBalancer}}`
	balancerThere  = `{kind: Service, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}, spec: {type: LoadBalancer}}`
	clusterIPHere  = `{kind: Service, metadata: {name: web}, spec: {type: ClusterIP}}`
	clusterIPThere = `{kind: Service, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}, spec: {type: ClusterIP}}`
)

func TestValidateNative(t *testing.T) {
	placed := `{metadata: {name: default}, spec: {targetSelector: {matchLabels: {env: prod}}, targetRef: {name: eu-1}}}`
	waiting := `{metadata: {name: default}, spec: {targetSelector: {matchLabels: {env: prod}}}}`
	gpu := `{metadata: {name: default}, spec: {tolerations: [{key: gpu, operator: Exists}], targetRef: {name: eu-1}}}`
	shop := `{metadata: {name: shop}, spec: {targetSelector: {matchLabels: {env: prod}}, targetRef: {name: eu-1}}}`

	cases := map[string]struct {
		reason       string
		old, object  string
		namespace    *metav1.ObjectMeta
		applications []string
		want         []problem
	}{
		"NotOurs":          {reason: "An object without the schedule label is ignored.", object: local},
		"Remote":           {reason: "The schedule label alone is valid.", object: remote},
		"Misspelt":         {reason: "An object with a misspelt label would run on the hub.", object: misspelt, want: []problem{{field.ErrorTypeNotSupported, scheduleField}}},
		"MisspeltLater":    {reason: "An update must not misspell the label.", old: remote, object: misspelt, want: []problem{{field.ErrorTypeNotSupported, scheduleField}}},
		"MisspeltBefore":   {reason: "An object with an earlier misspelling may be scaled.", old: misspelt, object: misspelt},
		"PutRight":         {reason: "A misspelt label may be corrected.", old: misspelt, object: remote},
		"BadName":          {reason: "The application's label must be a valid name of an object.", object: badName, want: []problem{{field.ErrorTypeInvalid, applicationField}}},
		"BadNameBefore":    {reason: "An invalid name that was written without admission may stay.", old: badName, object: badName},
		"BadNamePutRight":  {reason: "An invalid name may be corrected.", old: badName, object: remoteShop},
		"BadNameLabelled":  {reason: "An object that gets the schedule label is checked like a new object.", old: `{kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/application: Shop_1}}}`, object: badName, want: []problem{{field.ErrorTypeInvalid, applicationField}}},
		"BadSelector":      {reason: "The selector is checked at admission.", object: badSelector, want: []problem{{field.ErrorTypeInvalid, selectorField}}},
		"BadTolerations":   {reason: "The tolerations are checked at admission.", object: badTolerate, want: []problem{{field.ErrorTypeInvalid, tolerationsField}}},
		"Tolerates":        {reason: "A new member must have the tolerations of its application.", object: remoteGPU, applications: []string{waiting}, want: []problem{{field.ErrorTypeInvalid, tolerationsField}}},
		"ToleratesAlike":   {reason: "A new member with the tolerations of its application is valid.", object: remoteGPU, applications: []string{gpu}},
		"ToleratesLater":   {reason: "The tolerations of a placed application do not change.", old: remote, object: remoteGPU, applications: []string{placed}, want: []problem{{field.ErrorTypeForbidden, tolerationsField}}},
		"ToleratesWaiting": {reason: "The only member of a waiting application may change the tolerations.", old: remote, object: remoteGPU, applications: []string{waiting}},
		"ToleratesFollows": {reason: "A member may change to the tolerations of its application.", old: remote, object: remoteGPU, applications: []string{gpu}},
		"BadIntent":        {reason: "An intent record that cannot be read would send the hub's values to the target.", object: badIntent, want: []problem{{field.ErrorTypeInvalid, intentField}}},
		"BadIntentBefore":  {reason: "An intent record that was damaged without admission may stay.", old: badIntent, object: badIntent},
		"BadIntentAtHome":  {reason: "The intent record of an object that runs on the hub is not checked.", object: `{kind: Deployment, metadata: {name: web, annotations: {workload.crossplane.io/intent: '{'}}}`},
		"ComesHome":        {reason: "The schedule label may be removed from an object with other errors.", old: badSelector, object: local, applications: []string{placed}},
		"SelectsOurLabel":  {reason: "Pods on the target do not have Portico's label.", object: labelSelected, want: []problem{{field.ErrorTypeForbidden, "spec.selector.matchLabels[workload.crossplane.io/schedule]"}}},
		"SelectsByPresent": {reason: "An expression cannot select Pods by Portico's label either.", object: expressionUse, want: []problem{{field.ErrorTypeForbidden, "spec.selector.matchExpressions[1].key"}}},
		"ServiceSelects":   {reason: "A Service cannot select Pods by Portico's label either.", object: serviceUse, want: []problem{{field.ErrorTypeForbidden, "spec.selector[workload.crossplane.io/schedule]"}}},
		"SelectedBefore":   {reason: "The selector of a Deployment is immutable, and its other fields may change.", old: labelSelected, object: labelSelected},

		"BadNamespace": {
			reason:    "An error in the namespace's annotation is an error of each object that uses it.",
			object:    remote,
			namespace: described("", "env in prod"),
			want:      []problem{{field.ErrorTypeInvalid, selectorField}},
		},
		"BadNamespaceLater": {
			reason:    "An update that cannot reach the target is refused.",
			old:       remote,
			object:    remote,
			namespace: described("", "env in prod"),
			want:      []problem{{field.ErrorTypeInvalid, selectorField}},
		},
		"BadNamespaceOverruled": {
			reason:    "An object with its own annotation does not use its namespace's.",
			object:    remoteProd,
			namespace: described("", "env in prod"),
		},

		"JoinsSilently":    {reason: "An object without a selector may join any application.", object: remote, applications: []string{placed}},
		"JoinsAgreeing":    {reason: "An object with the selector of the application may join it.", object: remoteProd, applications: []string{placed}},
		"JoinsDisagreeing": {reason: "All objects of an application run on one target.", object: remoteDev, applications: []string{placed}, want: []problem{{field.ErrorTypeInvalid, selectorField}}},
		"JoinsWaiting":     {reason: "The rule holds for a waiting application too.", object: remoteDev, applications: []string{waiting}, want: []problem{{field.ErrorTypeInvalid, selectorField}}},
		"JoinsByLabelling": {reason: "The rule holds for an object that ran on the hub too.", old: local, object: remoteDev, applications: []string{placed}, want: []problem{{field.ErrorTypeInvalid, selectorField}}},

		"LeavesPlaced":      {reason: "An object on a target does not change its application, because it might have to move.", old: remote, object: remoteShop, applications: []string{placed}, want: []problem{{field.ErrorTypeForbidden, applicationField}}},
		"LeavesWaiting":     {reason: "An object of a waiting application may change its application.", old: remote, object: remoteShop, applications: []string{waiting}},
		"LeavesNone":        {reason: "An object of an application that does not exist may change its application.", old: remote, object: remoteShop},
		"LeavesToDisagree":  {reason: "An object that changes its application must agree with the new one.", old: remote, object: shopDev, applications: []string{waiting, shop}, want: []problem{{field.ErrorTypeInvalid, selectorField}}},
		"ReselectsPlaced":   {reason: "The selector of an object on a target does not change.", old: remoteProd, object: remoteDev, applications: []string{placed}, want: []problem{{field.ErrorTypeForbidden, selectorField}}},
		"DropsSelector":     {reason: "An object may remove its selector.", old: remoteProd, object: remote, applications: []string{placed}},
		"AddsSelector":      {reason: "An object may add the selector of its application.", old: remote, object: remoteProd, applications: []string{placed}},
		"ReselectsWaiting":  {reason: "The only member of a waiting application may change the selector.", old: remoteProd, object: remoteDev, applications: []string{waiting}},
		"DisagreedBefore":   {reason: "An object that disagrees since admission was away may be scaled.", old: remoteDev, object: remoteDev, applications: []string{placed}},
		"UnreadablePutInto": {reason: "An invalid selector must be replaced by one that agrees.", old: badSelector, object: remoteDev, applications: []string{placed}, want: []problem{{field.ErrorTypeInvalid, selectorField}}},

		"BalancerMovesIn":   {reason: "The class of a load balancer is immutable, so the Service cannot move to a target.", old: balancerHere, object: balancerThere, want: []problem{{field.ErrorTypeForbidden, scheduleField}}},
		"BalancerMovesHome": {reason: "The class of a load balancer is immutable, so the Service cannot return to the hub.", old: balancerThere, object: balancerHere, want: []problem{{field.ErrorTypeForbidden, scheduleField}}},
		"BalancerCreated":   {reason: "A load balancer may be created on a target.", object: balancerThere},
		"BalancerStays":     {reason: "A load balancer on a target may change.", old: balancerThere, object: balancerThere},
		"BecomesClusterIP":  {reason: "A Service may move and become a ClusterIP in one update.", old: balancerThere, object: clusterIPHere},
		"BecomesBalancer":   {reason: "A Service may move and become a load balancer in one update.", old: clusterIPHere, object: balancerThere},
		"ServiceMoves":      {reason: "Other Services may move.", old: clusterIPHere, object: clusterIPThere},

		"Everything": {
			reason: "All errors are returned together.",
			object: `{kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote, workload.crossplane.io/application: Shop_1},
  annotations: {workload.crossplane.io/intent: '{', workload.crossplane.io/target-selector: env in prod}}, spec: {selector: {matchLabels: {workload.crossplane.io/schedule: remote}}}}`,
			want: []problem{
				{field.ErrorTypeInvalid, intentField},
				{field.ErrorTypeForbidden, "spec.selector.matchLabels[workload.crossplane.io/schedule]"},
				{field.ErrorTypeInvalid, applicationField},
				{field.ErrorTypeInvalid, selectorField},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			applications := map[string]*v1alpha2.KubernetesApplication{}
			for _, text := range tc.applications {
				app := read[v1alpha2.KubernetesApplication](t, text)
				applications[app.Name] = app
			}
			q := NativeReview{
				Kind: kinds.Deployment{}, Object: object(t, tc.object), Old: object(t, tc.old), Namespace: &metav1.ObjectMeta{},
				Application: func(name string) *v1alpha2.KubernetesApplication { return applications[name] },
			}
			if q.Object.GetKind() == "Service" {
				q.Kind = kinds.Service{}
			}
			if tc.namespace != nil {
				q.Namespace = tc.namespace
			}
			if diff := cmp.Diff(tc.want, problems(ValidateNative(q))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
