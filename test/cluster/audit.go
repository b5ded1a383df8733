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

// AuditEvents returns the requests that the API server has finished since a time,
// oldest first, without those for Leases. A request is in the log before its client has
// the response.
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
			return events, nil // a line without an end is still being written
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

// IsWrite tells whether a request can change an object: it is no read and no dry run.
func IsWrite(event auditv1.Event) bool {
	switch event.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
	default:
		return false
	}
	uri, err := url.Parse(event.RequestURI)
	return err == nil && !uri.Query().Has("dryRun")
}
