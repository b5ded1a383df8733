// Package docs tests the pages: it runs their commands, compares the output, and looks
// up the names in them.
package docs
