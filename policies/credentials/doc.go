// Package credentials reads and validates connection Secrets. Its errors name keys
// and never values, because many users can read conditions, events, logs and
// responses of webhooks.
package credentials
