# The targets need only Go and make. Tools are Go modules pinned in test/tools.
# `make help` prints the lines with two hashes.

TOOL := go tool -modfile=test/tools/go.mod

.DEFAULT_GOAL := help
.PHONY: help toolchain kube build up demo down test fuzz bench verify generate manifests fmt vet lint install uninstall clean

help:
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

toolchain:
	@go list -m >/dev/null 2>&1 || { \
		echo "Portico needs Go 1.26 or newer; here is: $$(GOTOOLCHAIN=local go version 2>&1)" >&2; exit 1; }

##@ Try it

up: kube build ## Start a hub and two targets, dev and prod, with Portico on the hub
	@go run ./test/demo up

demo: kube build ## The same, with WordPress applied on the hub and running on a target
	@go run ./test/demo demo

down: toolchain ## Stop all that up or demo started, and remove .portico
	@go run ./test/demo down

# make install installs and make uninstall removes a directory of config, with the
# manager's image.
OVERLAY = default
IMAGE = portico:latest
KUBECTL = $(or $(shell command -v kubectl),bin/kubectl)
KUBECTL_BUILD = $(if $(filter bin/kubectl,$(KUBECTL)),kube)

install: $(KUBECTL_BUILD) ## Install Portico on the cluster of your current kubectl context
	@! $(KUBECTL) kustomize config/$(OVERLAY) | grep -q '^  name: $(CLAIMS)$$' || case "$$($(KUBECTL) get customresourcedefinition $(CLAIMS) --ignore-not-found -o jsonpath='{.kind}{.metadata.labels.app\.kubernetes\.io/part-of}')" in \
		''|CustomResourceDefinitionportico) ;; \
		*) echo "KubernetesCluster is defined here already, and not by Portico, which reads that definition: install without OVERLAY=$(OVERLAY)" >&2; exit 1;; \
	esac
	$(KUBECTL) kustomize config/$(OVERLAY) | sed 's|image: portico:latest$$|image: $(IMAGE)|' | $(KUBECTL) apply --server-side -f -

CLAIMS = kubernetesclusters.compute.crossplane.io

uninstall: $(KUBECTL_BUILD) ## Remove Portico from there; fails while its resources exist
	@KUBECTL='$(KUBECTL)' config/uninstall.sh $(OVERLAY)

##@ Build

build: toolchain ## Build bin/portico and the other programs in cmd
	@mkdir -p bin
	go build -o bin/ ./cmd/...

kube: bin/kube ## Build Kubernetes for tests and the demo, if its sources changed

bin/kube: $(wildcard test/kube/*.go test/kube/kubectl/*.go test/kube/go.* test/kube/build.sh) | toolchain
	@test/kube/build.sh

clean: down ## Stop everything and remove bin
	rm -rf bin

##@ Check

test: kube build ## Run every test: unit, policy, integration, end to end
	@$(MAKE) --no-print-directory --jobs=3 e2e-front-door e2e-targets test-others
	@$(MAKE) --no-print-directory fuzz

# The specs mostly wait, so two suites run at a time, each with its own clusters.
# Each file of specs belongs to one suite.
TARGET_SPECS = /(adopt|allow|between_targets|claim|content|copies|credentials|drain|hub_target|in_use|jobs|orphan|pods|policy|provider|publish|rbac|restore|rights|serviceaccounts|workflows)[a-z_]*_test.go$$

.PHONY: e2e-front-door e2e-targets test-others

e2e-front-door:
	go test -timeout 40m ./test/e2e -ginkgo.skip-file '$(TARGET_SPECS)'

e2e-targets:
	go test -timeout 40m ./test/e2e -ginkgo.focus-file '$(TARGET_SPECS)'

test-others:
	go test -timeout 40m -p 2 $$(go list ./... | grep -v /test/e2e$$)
	@for module in $(TEST_MODULES); do echo "go test $$module"; (cd $$module && go test -timeout 40m ./...) || exit 1; done

# Each target runs a few seconds. A fuzz build instruments all imports, so the list
# has only packages with few imports.
FUZZ = api/kinds:FuzzProject api/kinds/references:FuzzRewrite api/kinds:FuzzIntent api/workload/conversion:FuzzConversion
INPUTS = 5000

fuzz: toolchain ## Run the fuzz tests
	@for it in $(FUZZ); do \
		echo "go test ./$${it%:*} -fuzz $${it#*:}"; \
		go test ./$${it%:*} -run '^$$' -fuzz "^$${it#*:}$$" -fuzztime $(INPUTS)x -fuzzminimizetime 5s || exit 1; \
	done

bench: kube build ## Run the benchmarks
	@go run ./test/bench

verify: toolchain ## Regenerate, format, vet and lint; fail if the tree changes
	@before=$$($(TREE)) && $(MAKE) --no-print-directory generate manifests fmt vet lint && \
	test "$$before" = "$$($(TREE))" || { git status --short; echo "commit what make verify changed" >&2; exit 1; }

##@ Develop

generate: toolchain ## Regenerate deep copies, the schemas of the policies' input, and docs/reference
	$(TOOL) controller-gen object paths=./api/...
	go generate ./policies/...
	$(TOOL) crd-ref-docs --source-path=api --config=test/docs/reference/api.yaml --renderer=markdown --output-path=docs/reference/api.md >/dev/null
	go run ./test/docs/reference

manifests: toolchain ## Regenerate CRDs, and the webhook rules, roles and docs of the registry of kinds
	go generate ./api/kinds
	$(TOOL) controller-gen crd paths="./api/workload/...;./api/policy/..." output:crd:dir=config/crd/bases
	$(TOOL) controller-gen crd paths=./api/compute/... output:crd:dir=config/crd/claims
	$(TOOL) controller-gen rbac:roleName=portico paths="./api/kinds;./controllers/...;./webhooks/...;./cmd/..." output:rbac:dir=config/rbac

fmt: toolchain ## Format
	gofmt -s -w .

vet: toolchain ## Run go vet
	go vet ./...
	@# Modules that build on the root's list its dependencies, too.
	@for module in $(TEST_MODULES); do (cd $$module && go list -deps -test ./... >/dev/null) || exit 1; done

lint: toolchain ## Run the linters, and check names and sizes
	$(TOOL) golangci-lint-kube-api-linter run --allow-parallel-runners
	go run ./test/words
	go run ./test/shape

# Modules other than the root that have tests.
TEST_MODULES = $(foreach module,$(dir $(wildcard test/*/go.mod)),$(if $(shell find $(module) -name '*_test.go'),$(module)))

# A checksum of all changes since the last commit.
TREE = { git diff HEAD; git ls-files --others --exclude-standard -z | xargs -0 cat; } | cksum
