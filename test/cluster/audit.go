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
	if err := seekEvents(file, since.Add(-disorder)); err != nil {
		return nil, err
	}

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

// disorder is the largest difference in time between a line of the log and an earlier line.
const disorder = 10 * time.Second

// seekEvents seeks to the beginning of a line before a time, near the first line after
// that time. The log of a long test is large.
func seekEvents(file *os.File, until time.Time) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	first, last := int64(0), info.Size()
	for last-first > 1<<16 {
		middle := first + (last-first)/2
		if _, err := file.Seek(middle, io.SeekStart); err != nil {
			return err
		}
		lines := bufio.NewReader(file)
		part, _ := lines.ReadBytes('\n') // the end of a line
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			last = middle
			continue
		}
		if err != nil {
			return err
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return err
		}
		if event.StageTimestamp.Time.Before(until) {
			first = middle + int64(len(part))
		} else {
			last = middle
		}
	}
	_, err = file.Seek(first, io.SeekStart)
	return err
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
