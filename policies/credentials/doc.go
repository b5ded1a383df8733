// Package credentials reads connection Secrets, and judges them. What it finds
// wrong names keys and never values, because it ends up where many can read it:
// in conditions, events, logs and answers of webhooks.
package credentials
