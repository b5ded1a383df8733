// Package webhooks answers AdmissionReviews: it turns a request into a question for
// api/kinds or policies, and the decision into a response. It never writes to a
// cluster. There is one file for each kind that is admitted.
package webhooks
