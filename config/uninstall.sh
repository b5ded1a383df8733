#!/usr/bin/env bash
# uninstall.sh OVERLAY removes the objects of config/OVERLAY from the cluster of the
# current kubectl context. It refuses while Portico's resources exist, because
# deleting their definitions deletes the objects on the targets.
set -euo pipefail
cd "$(dirname "$0")/.."
overlay=${1:?usage: uninstall.sh OVERLAY}
read -ra kubectl <<<"${KUBECTL:-kubectl}"
claims=kubernetesclusters.compute.crossplane.io

manifests=$("${kubectl[@]}" kustomize "config/$overlay")

# left lists the remaining resources: a count and a kind on each line. The target of a
# claim does not count, because Portico creates it again while the claim is bound. A
# cluster that does not answer is a failure.
left() {
	local kind defined objects
	for kind in kubernetesapplicationresources kubernetesapplications kubernetestargets; do
		kind=$kind.workload.crossplane.io
		defined=$("${kubectl[@]}" get customresourcedefinition "$kind" --ignore-not-found -o name) || return 1
		[ -n "$defined" ] || continue
		objects=$("${kubectl[@]}" get "$kind" --all-namespaces \
			-o jsonpath='{range .items[*]}{.metadata.name} {.metadata.ownerReferences[?(@.controller==true)].kind}{"\n"}{end}') || return 1
		objects=$(grep -v ' KubernetesCluster$' <<<"$objects" | grep -c .) || continue
		echo "  $objects $kind"
	done
}

refuse() {
	cat >&2 <<END
Portico is not removed. These are left:
$1
Their deletion is the deletion of what runs on the targets. For each native object, remove the
label workload.crossplane.io/schedule to bring it home, or leave it on its target with
kubectl delete --cascade=orphan. Delete KubernetesApplications likewise. Then go on with:
  kubectl delete kubernetestargets --all --all-namespaces
  make uninstall
docs/operations.md, "Removing Portico", says more.
END
	exit 1
}

# without prints the documents of a YAML stream, except for definitions.
without() {
	awk -v name="  name: $1" '
		function flush() { if (!skip) printf "%s", document; document = ""; skip = 0 }
		$0 == "---" { flush() }
		$0 == name { skip = 1 }
		{ document = document $0 "\n" }
		END { flush() }'
}

# only prints the documents of a YAML stream with kinds that match an expression.
only() {
	awk -v kinds="^kind: ($1)$" '
		function flush() { if (take) printf "%s", document; document = ""; take = 0 }
		$0 == "---" { flush() }
		$0 ~ kinds { take = 1 }
		{ document = document $0 "\n" }
		END { flush() }'
}

delete() { "${kubectl[@]}" delete --ignore-not-found -f -; }

found=$(left)
[ -z "$found" ] || refuse "$found"

# Portico stops first. From here on its webhooks refuse objects that would become
# resources, so the count is final.
only Deployment <<<"$manifests" | delete
found=$(left)
[ -z "$found" ] || refuse "$found
Portico is stopped; make install starts it."

only '(Mutating|Validating)WebhookConfiguration|ValidatingAdmissionPolicy(Binding)?' <<<"$manifests" | delete
without "$claims" <<<"$manifests" | delete

if grep -q "^  name: $claims\$" <<<"$manifests"; then
	echo "KubernetesCluster stays defined, because its deletion deletes all claims. To remove it: kubectl delete customresourcedefinition $claims"
fi
