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
		"NotOurs":          {reason: "An object that says nothing is nobody's business.", object: local},
		"Remote":           {reason: "The plainest object there is.", object: remote},
		"Misspelt":         {reason: "A misspelt label would silently run the object on the hub.", object: misspelt, want: []problem{{field.ErrorTypeNotSupported, scheduleField}}},
		"MisspeltLater":    {reason: "It would be as silent later.", old: remote, object: misspelt, want: []problem{{field.ErrorTypeNotSupported, scheduleField}}},
		"MisspeltBefore":   {reason: "An object that was misspelt already can be scaled all the same.", old: misspelt, object: misspelt},
		"PutRight":         {reason: "A label can be spelt right.", old: misspelt, object: remote},
		"BadName":          {reason: "An application's name is an object's name.", object: badName, want: []problem{{field.ErrorTypeInvalid, applicationField}}},
		"BadNameBefore":    {reason: "A name that was wrong before, because admission was away, may stay.", old: badName, object: badName},
		"BadNamePutRight":  {reason: "And it may be put right.", old: badName, object: remoteShop},
		"BadNameLabelled":  {reason: "An object that is only now labelled is judged as if new.", old: `{kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/application: Shop_1}}}`, object: badName, want: []problem{{field.ErrorTypeInvalid, applicationField}}},
		"BadSelector":      {reason: "A selector is read at admission, while the user looks.", object: badSelector, want: []problem{{field.ErrorTypeInvalid, selectorField}}},
		"BadTolerations":   {reason: "So is what it tolerates.", object: badTolerate, want: []problem{{field.ErrorTypeInvalid, tolerationsField}}},
		"Tolerates":        {reason: "An application that exists and tolerates nothing is not made to.", object: remoteGPU, applications: []string{waiting}, want: []problem{{field.ErrorTypeInvalid, tolerationsField}}},
		"ToleratesAlike":   {reason: "One that tolerates the same is joined.", object: remoteGPU, applications: []string{gpu}},
		"ToleratesLater":   {reason: "A placed application tolerates what it was placed with.", old: remote, object: remoteGPU, applications: []string{placed}, want: []problem{{field.ErrorTypeForbidden, tolerationsField}}},
		"ToleratesWaiting": {reason: "While it runs nowhere, its only member may change its mind.", old: remote, object: remoteGPU, applications: []string{waiting}},
		"ToleratesFollows": {reason: "An object follows what was said of the application first.", old: remote, object: remoteGPU, applications: []string{gpu}},
		"BadIntent":        {reason: "An intent that cannot be read would send the hub's values to the target.", object: badIntent, want: []problem{{field.ErrorTypeInvalid, intentField}}},
		"BadIntentBefore":  {reason: "The record may have been damaged while admission was away.", old: badIntent, object: badIntent},
		"BadIntentAtHome":  {reason: "An object that stays here needs no record.", object: `{kind: Deployment, metadata: {name: web, annotations: {workload.crossplane.io/intent: '{'}}}`},
		"ComesHome":        {reason: "The label comes off whatever else is wrong.", old: badSelector, object: local, applications: []string{placed}},
		"SelectsOurLabel":  {reason: "The target's Pods do not carry Portico's label.", object: labelSelected, want: []problem{{field.ErrorTypeForbidden, "spec.selector.matchLabels[workload.crossplane.io/schedule]"}}},
		"SelectsByPresent": {reason: "Nor can an expression find it there.", object: expressionUse, want: []problem{{field.ErrorTypeForbidden, "spec.selector.matchExpressions[1].key"}}},
		"ServiceSelects":   {reason: "A Service that selects by it would select nothing.", object: serviceUse, want: []problem{{field.ErrorTypeForbidden, "spec.selector[workload.crossplane.io/schedule]"}}},
		"SelectedBefore":   {reason: "A Deployment's selector is immutable, and its other fields are not.", old: labelSelected, object: labelSelected},

		"BadNamespace": {
			reason:    "What the namespace says wrongly is wrong for every object that relies on it.",
			object:    remote,
			namespace: described("", "env in prod"),
			want:      []problem{{field.ErrorTypeInvalid, selectorField}},
		},
		"BadNamespaceLater": {
			reason:    "A change that could not reach a target is refused, and not silently kept.",
			old:       remote,
			object:    remote,
			namespace: described("", "env in prod"),
			want:      []problem{{field.ErrorTypeInvalid, selectorField}},
		},
		"BadNamespaceOverruled": {
			reason:    "An object that speaks for itself does not need its namespace.",
			object:    remoteProd,
			namespace: described("", "env in prod"),
		},

		"JoinsSilently":    {reason: "An object without a selector joins any application.", object: remote, applications: []string{placed}},
		"JoinsAgreeing":    {reason: "So does one that asks for the same.", object: remoteProd, applications: []string{placed}},
		"JoinsDisagreeing": {reason: "All objects of an application run on one target.", object: remoteDev, applications: []string{placed}, want: []problem{{field.ErrorTypeInvalid, selectorField}}},
		"JoinsWaiting":     {reason: "That holds before there is a target, too.", object: remoteDev, applications: []string{waiting}, want: []problem{{field.ErrorTypeInvalid, selectorField}}},
		"JoinsByLabelling": {reason: "And for an object that ran on the hub.", old: local, object: remoteDev, applications: []string{placed}, want: []problem{{field.ErrorTypeInvalid, selectorField}}},

		"LeavesPlaced":      {reason: "What runs on a target does not change its application: it might have to move.", old: remote, object: remoteShop, applications: []string{placed}, want: []problem{{field.ErrorTypeForbidden, applicationField}}},
		"LeavesWaiting":     {reason: "Before anything runs, an application is only a name.", old: remote, object: remoteShop, applications: []string{waiting}},
		"LeavesNone":        {reason: "An application that is not there has placed nothing.", old: remote, object: remoteShop},
		"LeavesToDisagree":  {reason: "To leave one application is to join another, with its selector.", old: remote, object: shopDev, applications: []string{waiting, shop}, want: []problem{{field.ErrorTypeInvalid, selectorField}}},
		"ReselectsPlaced":   {reason: "What runs on a target does not ask for another.", old: remoteProd, object: remoteDev, applications: []string{placed}, want: []problem{{field.ErrorTypeForbidden, selectorField}}},
		"DropsSelector":     {reason: "To ask for nothing is to agree.", old: remoteProd, object: remote, applications: []string{placed}},
		"AddsSelector":      {reason: "To ask for what one has is to agree, too.", old: remote, object: remoteProd, applications: []string{placed}},
		"ReselectsWaiting":  {reason: "A selector that matches no target can be put right.", old: remoteProd, object: remoteDev, applications: []string{waiting}},
		"DisagreedBefore":   {reason: "An object that disagreed before, because admission was away, can be scaled.", old: remoteDev, object: remoteDev, applications: []string{placed}},
		"UnreadablePutInto": {reason: "A selector that could not be read is put right to one that agrees.", old: badSelector, object: remoteDev, applications: []string{placed}, want: []problem{{field.ErrorTypeInvalid, selectorField}}},

		"BalancerMovesIn":   {reason: "A load balancer's class is immutable, and with it, whose it is.", old: balancerHere, object: balancerThere, want: []problem{{field.ErrorTypeForbidden, scheduleField}}},
		"BalancerMovesHome": {reason: "That holds on the way back.", old: balancerThere, object: balancerHere, want: []problem{{field.ErrorTypeForbidden, scheduleField}}},
		"BalancerCreated":   {reason: "A new one is born where it lives.", object: balancerThere},
		"BalancerStays":     {reason: "One that stays may change.", old: balancerThere, object: balancerThere},
		"BecomesClusterIP":  {reason: "A Service that stops being a load balancer in the same edit may move.", old: balancerThere, object: clusterIPHere},
		"BecomesBalancer":   {reason: "So may one that starts to be one.", old: clusterIPHere, object: balancerThere},
		"ServiceMoves":      {reason: "Other Services move freely.", old: clusterIPHere, object: clusterIPThere},

		"Everything": {
			reason: "Every problem is said at once.",
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
