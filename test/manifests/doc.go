// Package manifests tests what config installs.
package manifests
