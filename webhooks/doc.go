// Package webhooks turns an AdmissionReview into a question for api/kinds or
// policies, and the verdict into an answer. Nothing here writes.
package webhooks
