// Package docs holds README.md to what it says: its commands are run, its output
// is compared, and what it names must exist.
package docs
