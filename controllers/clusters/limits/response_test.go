package limits

import (
	"net/http"
	"strings"
	"testing"
)

func TestAnswerTo(t *testing.T) {
	cases := map[string]struct {
		method, path, watch string
		want                responseKind
	}{
		"Version":          {path: "/version", want: responseObject},
		"Core":             {path: "/api", want: responseDiscovery},
		"Groups":           {path: "/apis", want: responseDiscovery},
		"Group":            {path: "/apis/apps", want: responseDiscovery},
		"Resources":        {path: "/apis/apps/v1", want: responseDiscovery},
		"List":             {path: "/apis/apps/v1/deployments", want: responseList},
		"ListIn":           {path: "/apis/apps/v1/namespaces/a/deployments", want: responseList},
		"ListNamespaces":   {path: "/api/v1/namespaces", want: responseList},
		"Watch":            {path: "/api/v1/configmaps", watch: "true", want: responseWatch},
		"WatchNot":         {path: "/api/v1/configmaps", watch: "false", want: responseList},
		"Get":              {path: "/apis/apps/v1/namespaces/a/deployments/web", want: responseObject},
		"GetNamespace":     {path: "/api/v1/namespaces/a", want: responseObject},
		"GetClusterScoped": {path: "/api/v1/nodes/a", want: responseObject},
		"Apply":            {method: http.MethodPatch, path: "/apis/apps/v1/namespaces/a/deployments/web", want: responseObject},
		"Create":           {method: http.MethodPost, path: "/api/v1/namespaces", want: responseObject},
	}
	for name, tc := range cases {
		if tc.method == "" {
			tc.method = http.MethodGet
		}
		if got := responseKindOf(tc.method, tc.path, tc.watch); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func TestMeasure(t *testing.T) {
	var m jsonCounter
	values, ended := m.add([]byte(`{"a":"{,[\"","b":[1,2`))
	if values != 4 || ended {
		t.Errorf("%d values and %t", values, ended)
	}
	if values, ended = m.add([]byte(`]}{`)); values != 1 || !ended {
		t.Errorf("%d values and %t", values, ended)
	}
}

func TestJudgeDiscovery(t *testing.T) {
	many := func(what string, n int) string { return strings.TrimSuffix(strings.Repeat(what+",", n), ",") }
	for name, tc := range map[string]struct {
		document string
		refused  bool
	}{
		"Ordinary":  {document: `{"groups":[{"name":"apps","versions":[{},{}]}]}`},
		"Large":     {document: `{"items":[` + many(`{"versions":[{"resources":[{},{},{},{}]}]}`, 2000) + `]}`},
		"Groups":    {document: `{"groups":[` + many(`{}`, 20_001) + `]}`, refused: true},
		"Versions":  {document: `{"groups":[{"versions":[` + many(`{}`, 101) + `]}]}`, refused: true},
		"Resources": {document: `{"resources":[` + many(`{}`, 20_001) + `]}`, refused: true},
		"Nonsense":  {document: `<html>`},
	} {
		if err := NewLimiter(Limits{}, NewBudget(Limits{})).checkDiscovery([]byte(tc.document)); (err != nil) != tc.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
