package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/portico-io/portico/api/kinds"
)

func TestPrintKinds(t *testing.T) {
	all := []kinds.Kind{kinds.Deployment{}, kinds.Job{}, kinds.Secret{}}
	for name, tc := range map[string]struct {
		reason string
		wide   bool
		want   string
	}{
		"Table": {reason: "A namespace opts in a Deployment and a Job. A Job does not move.", want: `
KIND         APIVERSION   NAMESPACE   MOVES
Deployment   apps/v1      true        true
Job          batch/v1     true        false
Secret       v1           false       true
`},
		"Wide": {reason: "The wide table has the columns of the docs.", wide: true, want: "SENT"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := printKinds(&out, all, tc.wide); err != nil {
				t.Fatal(err)
			}
			if tc.wide {
				if !strings.Contains(out.String(), tc.want) || !strings.Contains(out.String(), kinds.Secret{}.Properties().Sent) {
					t.Errorf("%s\n%s", tc.reason, &out)
				}
				return
			}
			if diff := cmp.Diff(strings.TrimPrefix(tc.want, "\n"), out.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
