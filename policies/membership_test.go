package policies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

func described(application, selector string) *metav1.ObjectMeta {
	out := &metav1.ObjectMeta{}
	if application != "" {
		out.Labels = map[string]string{v1alpha1.ApplicationLabel: application}
	}
	if selector != "" {
		out.Annotations = map[string]string{v1alpha1.TargetSelectorAnnotation: selector}
	}
	return out
}

func matching(labels map[string]string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: labels}
}

const (
	applicationField = "metadata.labels[workload.crossplane.io/application]"
	selectorField    = "metadata.annotations[workload.crossplane.io/target-selector]"
)

func TestMembershipOf(t *testing.T) {
	cases := map[string]struct {
		reason            string
		object, namespace *metav1.ObjectMeta
		want              Membership
		problems          []problem
	}{
		"SaysNothing": {
			reason:    "Objects without the label belong to application default.",
			object:    described("", ""),
			namespace: described("", ""),
			want:      Membership{Application: "default"},
		},
		"Namespace": {
			reason:    "The labels and annotations of a namespace apply to its objects.",
			object:    described("", ""),
			namespace: described("shop", "env=prod"),
			want:      Membership{Application: "shop", Selector: matching(map[string]string{"env": "prod"})},
		},
		"ObjectWins": {
			reason:    "The labels and annotations of the object override its namespace's.",
			object:    described("cart", "env=dev"),
			namespace: described("shop", "env=prod"),
			want:      Membership{Application: "cart", Selector: matching(map[string]string{"env": "dev"})},
		},
		"EachByItself": {
			reason:    "The application may come from the object and the selector from its namespace.",
			object:    described("cart", ""),
			namespace: described("", "env=prod"),
			want:      Membership{Application: "cart", Selector: matching(map[string]string{"env": "prod"})},
		},
		"SetBased": {
			reason:    "A selector has the syntax of kubectl.",
			object:    described("", "env!=dev,region in (eu-2,eu-1),!old,gpu"),
			namespace: described("", ""),
			want: Membership{Application: "default", Selector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "env", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"dev"}},
					{Key: "gpu", Operator: metav1.LabelSelectorOpExists},
					{Key: "old", Operator: metav1.LabelSelectorOpDoesNotExist},
					{Key: "region", Operator: metav1.LabelSelectorOpIn, Values: []string{"eu-1", "eu-2"}},
				},
			}},
		},
		"TwiceTheSameKey": {
			reason: "A selector with two values for a key matches nothing.",
			object: described("", "env=dev,env=prod"),
			want: Membership{Application: "default", Selector: &metav1.LabelSelector{
				MatchLabels:      map[string]string{"env": "dev"},
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: metav1.LabelSelectorOpIn, Values: []string{"prod"}}},
			}},
		},
		"Greater": {
			reason:   "A LabelSelector cannot compare numbers.",
			object:   described("", "cpus>4"),
			want:     Membership{Application: "default"},
			problems: []problem{{field.ErrorTypeInvalid, selectorField}},
		},
		"EmptySelector": {
			reason: "An empty annotation selects all targets. It differs from a missing annotation.",
			object: &metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.TargetSelectorAnnotation: ""}},
			want:   Membership{Application: "default", Selector: &metav1.LabelSelector{}},
		},
		"EmptyApplication": {
			reason:   "An empty name is invalid.",
			object:   &metav1.ObjectMeta{Labels: map[string]string{v1alpha1.ApplicationLabel: ""}},
			problems: []problem{{field.ErrorTypeInvalid, applicationField}},
		},
		"NotAName": {
			reason:   "A label's value may be invalid as the name of an object.",
			object:   described("Shop_1", ""),
			problems: []problem{{field.ErrorTypeInvalid, applicationField}},
			want:     Membership{Application: "Shop_1"},
		},
		"NotASelector": {
			reason:   "An invalid selector selects nothing.",
			object:   described("", "env in prod"),
			problems: []problem{{field.ErrorTypeInvalid, selectorField}},
			want:     Membership{Application: "default"},
		},
		"Both": {
			reason:    "All errors of the object and its namespace are returned together.",
			object:    described("Shop_1", ""),
			namespace: described("", "env in prod"),
			problems:  []problem{{field.ErrorTypeInvalid, applicationField}, {field.ErrorTypeInvalid, selectorField}},
			want:      Membership{Application: "Shop_1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.namespace == nil {
				tc.namespace = &metav1.ObjectMeta{}
			}
			got, errs := MembershipOf(tc.object, tc.namespace)
			if diff := cmp.Diff(tc.problems, problems(errs)); diff != "" {
				t.Errorf("%s Problems (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAgrees(t *testing.T) {
	prod := matching(map[string]string{"env": "prod"})
	cases := map[string]struct {
		reason      string
		member      *metav1.LabelSelector
		application *metav1.LabelSelector
		want        bool
	}{
		"AsksForNothing": {
			reason:      "An object without a selector agrees with its application.",
			application: prod,
			want:        true,
		},
		"Same": {
			reason:      "The order of keys does not matter.",
			member:      &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod", "tier": "1"}},
			application: matching(map[string]string{"tier": "1", "env": "prod"}),
			want:        true,
		},
		"Other": {
			reason:      "All objects of an application run on one target.",
			member:      matching(map[string]string{"env": "dev"}),
			application: prod,
		},
		"Everything": {
			reason:      "An empty selector differs from the selector of the application.",
			member:      &metav1.LabelSelector{},
			application: prod,
		},
		"EverythingAndNothing": {
			reason: "An application without a selector selects all targets.",
			member: &metav1.LabelSelector{},
			want:   true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			application := &v1alpha2.KubernetesApplication{Spec: v1alpha2.KubernetesApplicationSpec{TargetSelector: tc.application}}
			if got := (Membership{Selector: tc.member}).Agrees(application); got != tc.want {
				t.Errorf("Agrees = %t, want %t: %s", got, tc.want, tc.reason)
			}
		})
	}
}

func TestSelectorText(t *testing.T) {
	cases := map[string]struct {
		reason   string
		selector *metav1.LabelSelector
		want     string
	}{
		"None":  {reason: "A missing selector is an empty text."},
		"Empty": {reason: "An empty selector is an empty text.", selector: &metav1.LabelSelector{}},
		"Ordered": {
			reason: "The text does not depend on the order of keys and values.",
			selector: &metav1.LabelSelector{
				MatchLabels: map[string]string{"tier": "1", "env": "prod"},
				MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "region", Operator: metav1.LabelSelectorOpIn, Values: []string{"eu-2", "eu-1"}},
					{Key: "old", Operator: metav1.LabelSelectorOpDoesNotExist},
				},
			},
			want: "env=prod,!old,region in (eu-1,eu-2),tier=1",
		},
		"Malformed": {
			reason: "The text of an invalid selector is an error.",
			selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "env", Operator: "Like", Values: []string{"prod"}},
			}},
			want: "<error>",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := FormatSelector(tc.selector); got != tc.want {
				t.Errorf("SelectorText = %q, want %q: %s", got, tc.want, tc.reason)
			}
		})
	}
}

func TestSelector(t *testing.T) {
	malformed := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Like"}}}
	if _, err := AsSelector(malformed); err == nil {
		t.Error("a selector that cannot be matched was accepted")
	}
	cases := map[string]struct {
		reason   string
		selector *metav1.LabelSelector
		target   labels.Set
		want     bool
	}{
		"None":     {reason: "A missing selector matches all targets.", want: true},
		"Empty":    {reason: "An empty selector matches all targets.", selector: &metav1.LabelSelector{}, want: true},
		"Match":    {reason: "A target with the label matches.", selector: matching(map[string]string{"env": "prod"}), target: labels.Set{"env": "prod"}, want: true},
		"Mismatch": {reason: "A target without the label does not match.", selector: matching(map[string]string{"env": "prod"})},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			selector, err := AsSelector(tc.selector)
			if err != nil {
				t.Fatal(err)
			}
			if got := selector.Matches(tc.target); got != tc.want {
				t.Errorf("matches = %t, want %t: %s", got, tc.want, tc.reason)
			}
		})
	}
}
