package policies

import corev1 "k8s.io/api/core/v1"

// KeepsSecret says why Secrets of a type never leave the hub; empty when they may.
// What opens the hub itself is of no use to a workload elsewhere.
func KeepsSecret(kind corev1.SecretType) string {
	switch kind {
	case corev1.SecretTypeServiceAccountToken, corev1.SecretTypeBootstrapToken:
		return "is a credential for the hub, of type " + string(kind) + ", and is never sent"
	}
	return ""
}
