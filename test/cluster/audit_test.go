package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAuditEvents(t *testing.T) {
	dir := t.TempDir()
	c := &Cluster{opts: Options{Dir: dir}}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const events = 10_000 // one a second
	var log strings.Builder
	for i := range events {
		at := begin.Add(time.Duration(i) * time.Second)
		if i%7 == 3 {
			at = at.Add(-disorder / 2)
		}
		fmt.Fprintf(&log, `{"auditID":"%d","requestURI":"%s","stageTimestamp":"%s"}`+"\n", i, strings.Repeat("x", i%200), at.Format(metav1.RFC3339Micro))
	}
	log.WriteString(`{"auditID":"cut sh`)
	if err := os.WriteFile(filepath.Join(dir, auditLog), []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, since := range []time.Duration{-time.Hour, 0, time.Second, 20 * time.Minute, 2 * time.Hour, (events - 1) * time.Second, 24 * time.Hour} {
		got, err := c.AuditEvents(begin.Add(since))
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		for line := range strings.Lines(log.String()) {
			_, at, _ := strings.Cut(line, `"stageTimestamp":"`)
			if at, err := time.Parse(metav1.RFC3339Micro, strings.TrimSuffix(at, "\"}\n")); err == nil && !at.Before(begin.Add(since)) {
				want++
			}
		}
		if len(got) != want {
			t.Errorf("since %s: %d events, want %d", since, len(got), want)
		}
	}
}
