package cluster

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"os"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

const auditLog = "audit.log"

// AuditEvents are the requests that the API server finished since then, oldest
// first, leases left out. A request is in the log before its client has the
// answer.
func (c *Cluster) AuditEvents(since time.Time) ([]auditv1.Event, error) {
	file, err := os.Open(c.path(auditLog))
	if err != nil {
		return nil, err
	}
	defer file.Close()

	var events []auditv1.Event
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, nil // what has no end yet is still being written
		}
		if err != nil {
			return nil, err
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, err
		}
		if !event.StageTimestamp.Time.Before(since) {
			events = append(events, event)
		}
	}
}

// IsWrite tells whether a request was one that can change something: not a
// read, and not a dry run.
func IsWrite(event auditv1.Event) bool {
	switch event.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
	default:
		return false
	}
	uri, err := url.Parse(event.RequestURI)
	return err == nil && !uri.Query().Has("dryRun")
}
