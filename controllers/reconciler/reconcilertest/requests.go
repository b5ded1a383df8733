package reconcilertest

import (
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Requests are the requests to a fake hub: lists by an index, and writes. A request is
// written as "list <index>", "create <name>", "patch <name>", "patch status of <name>",
// or "delete <name>".
type Requests struct {
	// Sent are the requests, in order.
	Sent []string
	// Fail holds the errors of requests that fail.
	Fail map[string]error
}

// Funcs returns the functions that record the requests of a fake client.
func (r *Requests) Funcs() interceptor.Funcs {
	return Before(func(request Request) error {
		what := request.Verb + " " + request.Key.Name
		switch {
		case request.Verb == "get", request.Verb == "list" && request.Index == "":
			return nil
		case request.Verb == "list":
			what = "list " + request.Index
		case request.Subresource != "":
			what = request.Verb + " " + request.Subresource + " of " + request.Key.Name
		}
		r.Sent = append(r.Sent, what)
		return r.Fail[what]
	})
}
