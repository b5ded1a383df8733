// Package manifests tests the manifests in config.
package manifests
