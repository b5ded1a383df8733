// Package policies decides what is allowed. It sees objects, never a client.
package policies
