#!/usr/bin/env bash
# Builds bin/kube and the names it is called by, and bin/kubectl. Built without -trimpath, so
# that the packages compiled here and for Portico itself are the same ones.
set -euo pipefail
cd "$(dirname "$0")"

bin=$(cd ../.. && pwd)/bin
programs="cloud-controller-manager etcd kube-apiserver kube-controller-manager kube-scheduler kwok"
version=$(GOFLAGS=-mod=mod go list -m -f '{{.Version}}' k8s.io/kubernetes)

ldflags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	ldflags+=" -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=$(cut -d. -f2 <<<"$version")"
	ldflags+=" -X $package.gitTreeState=clean"
done

echo "building Kubernetes ${version#v} from source; about seven minutes the first time, then kept in bin/"
started=$SECONDS
heartbeat() {
	while sleep 20; do echo "  still building Kubernetes: $((SECONDS - started)) s"; done
}
heartbeat &
trap 'kill $! 2>/dev/null || true' EXIT

mkdir -p "$bin"
rm -f "$bin/kubectl" # which was a link to kube
go build -ldflags "$ldflags" -o "$bin/" . ./kubectl
touch "$bin/kube"
for program in $programs; do ln -sf kube "$bin/$program"; done
echo "built bin/kube in $((SECONDS - started)) s"
