package policies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestRedact(t *testing.T) {
	cases := map[string]struct {
		reason       string
		object, want string
	}{
		"Secret": {
			reason: "The keys of a Secret are shown, and its values are not.",
			object: `{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"data":{"a":"eA=="}}'}}, type: Opaque, data: {a: eA==, b: ""}, stringData: {c: x}}`,
			want:   `{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: <redacted>}}, type: Opaque, data: {a: <redacted>, b: <redacted>}, stringData: {c: <redacted>}}`,
		},
		"ConfigMap": {
			reason: "Data of a ConfigMap is shown, except for probable secrets.",
			object: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {color: red, db.password: x, url: "postgres://me:hunter2@db/shop"}}`,
			want:   `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {color: red, db.password: <redacted>, url: "postgres://me:<redacted>@db/shop"}}`,
		},
		"Environment": {
			reason: "The name of a variable decides, and a reference to a Secret is shown.",
			object: `{apiVersion: v1, kind: Pod, spec: {containers: [{name: web, env: [{name: DB_PASSWORD, value: x}, {name: COLOR, value: red},
				{name: API_TOKEN, valueFrom: {secretKeyRef: {name: a, key: token}}}]}]}}`,
			want: `{apiVersion: v1, kind: Pod, spec: {containers: [{name: web, env: [{name: DB_PASSWORD, value: <redacted>}, {name: COLOR, value: red},
				{name: API_TOKEN, valueFrom: {secretKeyRef: {name: a, key: token}}}]}]}}`,
		},
		"Abbreviated": {
			reason: "Abbreviations of password are recognized. PWD is a directory.",
			object: `{spec: {containers: [{env: [{name: PGPASS, value: x}, {name: MYSQL_PWD, value: x}, {name: DB_PASS, value: x}, {name: PWD, value: /}, {name: OLDPWD, value: /}, {name: BYPASS, value: "no"}]}]}, data: {root.pwd: x}}`,
			want:   `{spec: {containers: [{env: [{name: PGPASS, value: <redacted>}, {name: MYSQL_PWD, value: <redacted>}, {name: DB_PASS, value: <redacted>}, {name: PWD, value: /}, {name: OLDPWD, value: /}, {name: BYPASS, value: "no"}]}]}, data: {root.pwd: <redacted>}}`,
		},
		"Flags": {
			reason: "The name of a flag decides.",
			object: `{spec: {containers: [{command: [web, --password=x, --db-password, x, -token=x, -Dspring.datasource.password=x, --color=red, --password-file=/p, --secret, --verbose],
				args: [-px, -p, x, -p, "8080", -p8080, -port=80, -path=/x, -p, /dir, --pass, x, serve]}]}}`,
			want: `{spec: {containers: [{command: [web, --password=<redacted>, --db-password, <redacted>, -token=<redacted>, -Dspring.datasource.password=<redacted>, --color=red, --password-file=/p, --secret, --verbose],
				args: [-p<redacted>, -p, <redacted>, -p, "8080", -p8080, -port=80, -path=/x, -p, /dir, --pass, <redacted>, serve]}]}}`,
		},
		"Shell": {
			reason: "A script has flags and variables.",
			object: `{spec: {containers: [{command: [sh, -c, "PGPASSWORD=x psql --color red; mysql -uroot -px --password 'a b' --host=db && curl 'https://h/?a=b&token=x'"]}]}, data: {dsn: "host=db password=x port=1"}}`,
			want:   `{spec: {containers: [{command: [sh, -c, "PGPASSWORD=<redacted> psql --color red; mysql -uroot -p<redacted> --password <redacted> --host=db && curl 'https://h/?a=b&token=<redacted>'"]}]}, data: {dsn: "host=db password=<redacted> port=1"}}`,
		},
		"References": {
			reason: "References to Secrets are shown.",
			object: `{spec: {automountServiceAccountToken: false, imagePullSecrets: [{name: pull}], volumes: [{name: token, secret: {secretName: a}}, {projected: {sources: [{serviceAccountToken: {path: token, expirationSeconds: 3600}}]}}], tls: [{secretName: a}]}}`,
			want:   `{spec: {automountServiceAccountToken: false, imagePullSecrets: [{name: pull}], volumes: [{name: token, secret: {secretName: a}}, {projected: {sources: [{serviceAccountToken: {path: token, expirationSeconds: 3600}}]}}], tls: [{secretName: a}]}}`,
		},
		"Custom": {
			reason: "Unknown kinds are redacted too.",
			object: `{apiVersion: db.example.org/v1, kind: Secret, data: {a: b}, spec: {adminPassword: x, size: 3, keys: ["-----BEGIN RSA PRIVATE KEY-----\nx"], clientSecret: ""}}`,
			want:   `{apiVersion: db.example.org/v1, kind: Secret, data: {a: b}, spec: {adminPassword: <redacted>, size: 3, keys: [<redacted>], clientSecret: ""}}`,
		},
	}
	read := func(text string) *unstructured.Unstructured {
		out := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &out.Object); err != nil {
			t.Fatal(err)
		}
		return out
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := read(tc.object)
			if diff := cmp.Diff(read(tc.want), Redact(object)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(read(tc.object), object); diff != "" {
				t.Errorf("the object itself was changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRedactField(t *testing.T) {
	cases := map[string]struct {
		path   string
		value  any
		secret bool
		want   any
	}{
		"Plain":       {path: ".spec.replicas", value: int64(3), want: int64(3)},
		"Secret":      {path: ".data.color", value: "cmVk", secret: true, want: Redacted},
		"SecretNone":  {path: ".data.color", secret: true},
		"Variable":    {path: ".spec.containers[name=web].env[name=DB_PASSWORD].value", value: "x", want: Redacted},
		"Other":       {path: ".spec.containers[name=web].env[name=COLOR].value", value: "red", want: "red"},
		"Key":         {path: ".data.db.password", value: "x", want: Redacted},
		"LastApplied": {path: ".metadata.annotations.kubectl.kubernetes.io/last-applied-configuration", value: "{}", want: Redacted},
		"Item":        {path: ".spec.keys[0]", value: "x", want: "x"},
		"Within":      {path: ".spec.containers[name=web].env[name=DB_PASSWORD]", value: map[string]any{"name": "DB_PASSWORD", "value": "x"}, want: map[string]any{"name": "DB_PASSWORD", "value": Redacted}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, RedactField(tc.path, tc.value, tc.secret)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.path, diff)
			}
		})
	}
}
