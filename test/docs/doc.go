// Package docs holds the pages to what they say: their commands are run, their output
// is compared, and what they name must exist.
package docs
