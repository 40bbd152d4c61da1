# Everything here needs Go, gcc, make and git; tools are built from pinned sources into .cache/. The tests need emulators of AWS too,
# which scripts/emulators installs there.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
TELEMETRY := github.com/remuda-ci/remuda/internal/telemetry
LDFLAGS := -X $(TELEMETRY).Version=$(VERSION) -X $(TELEMETRY).Commit=$(COMMIT)

# The daemons and the command for people; internal/githubsim/cmd/standin-runner is what the stand-in's hosts run.
PROGRAMS := ./controld ./agentd ./remuda ./internal/githubsim/cmd/standin-runner

# The tools of internal/tools/go.mod, built once for each set of versions: another go.sum is another directory.
TOOLS_KEY := $(shell { cat internal/tools/go.mod internal/tools/go.sum; go env GOVERSION; } | sha256sum | cut -c1-12)
TOOLS := $(CURDIR)/.cache/tools/$(TOOLS_KEY)
export PATH := $(TOOLS):$(PATH)

tool_buf := github.com/bufbuild/buf/cmd/buf
tool_protoc-gen-go := google.golang.org/protobuf/cmd/protoc-gen-go
tool_protoc-gen-go-grpc := google.golang.org/grpc/cmd/protoc-gen-go-grpc
tool_staticcheck := honnef.co/go/tools/cmd/staticcheck
tool_deadcode := golang.org/x/tools/cmd/deadcode
tool_grpcurl := github.com/fullstorydev/grpcurl/cmd/grpcurl
tool_benchstat := golang.org/x/perf/cmd/benchstat
tool_cyclonedx-gomod := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
tool_ociimage := ./ociimage
tool_nfpm := github.com/goreleaser/nfpm/v2/cmd/nfpm
PROTO_TOOLS := $(addprefix $(TOOLS)/,buf protoc-gen-go protoc-gen-go-grpc)
RELEASE_TOOLS := $(addprefix $(TOOLS)/,nfpm cyclonedx-gomod ociimage)
LINT_TOOLS := $(PROTO_TOOLS) $(addprefix $(TOOLS)/,staticcheck deadcode)

.PHONY: help build man site links packages action release release-tools proto lint test test-host test-upgrade demo demo-cache run sim soak bench bench-report peers benchstat months mutation clean

help: ## say what the targets do
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/controld, bin/agentd, bin/remuda and bin/standin-runner
	@mkdir -p bin
	@echo 'building controld, agentd, remuda and standin-runner into bin/ (some minutes the first time)'
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ $(PROGRAMS)

man: ## the man pages of remuda, in bin/man
	@mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./remuda
	@rm -rf bin/man
	@bin/remuda man --dir bin/man

# Its theme announces its end of life (May 2027) in each build: see internal/site/requirements.txt.
site: PYTHON = "$$(scripts/site-tools)/mkdocs/bin/python"
site: ## the documents as a site that needs no server, in bin/site, with its links checked
	@scripts/site-tools >/dev/null
	@$(PYTHON) internal/site/hooks_test.py --quiet
	@NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --clean
	@CGO_ENABLED=0 go run -trimpath ./internal/site/cmd/checksite bin/site

# CI has no internet but the package registries, so it checks the form of these addresses alone.
links: site ## ask other servers for all that the documents link to; a release does so (needs the internet, takes some minutes)
	@CGO_ENABLED=0 go run -trimpath ./internal/site/cmd/checklinks bin/site

action: $(TOOLS)/buf ## what the Action has of others: the bundle, the license list, the generated JavaScript
	@scripts/action build

packages: $(TOOLS)/nfpm ## deb and rpm of both daemons and remuda, for amd64 and arm64, in bin/packages
	@LDFLAGS='$(LDFLAGS)' systemd/packages/build bin/packages

# The version is that of the tag v1.0.0 on the commit, or VERSION=1.0.0. KEY=none makes a release without a signature.
release: $(RELEASE_TOOLS) ## images, packages and archives with SBOM, sums and signature, in bin/release (VERSION=1.0.0 KEY=release.pem OUT=)
	@VERSION='$(if $(filter file,$(origin VERSION)),,$(VERSION))' COMMIT='$(COMMIT)' KEY='$(KEY)' scripts/release '$(or $(OUT),bin/release)'

release-tools: $(RELEASE_TOOLS)

proto: $(PROTO_TOOLS) ## format the protos and generate their Go again
	buf format -w --path proto/remuda
	buf generate

lint: $(LINT_TOOLS) ## formatting, vet, staticcheck, protos, dead code, import arrows, modules
	@scripts/lint

# What is run how: internal/testrun. Results of packages that nothing has changed for come from go's cache, but with FRESH=1.
test: $(RELEASE_TOOLS) ## everything that proves the project without root (PACKAGES= FRESH=1 FLAGS=)
	@scripts/host-tools systemd-analyze openssl jq
	@CGO_ENABLED=0 go run -trimpath ./internal/testrun/cmd/testrun $(if $(FRESH),-fresh) $(if $(PACKAGES),-packages '$(PACKAGES)') -- $(FLAGS)

test-host: ## what needs root on Debian: agentd under a real systemd, the image scripts, the packages (FLAGS="-run TestLife" SYSTEM=ubuntu-24.04)
	@[[ $$(id -u) != 0 ]] || $(MAKE) --silent --no-print-directory $(TOOLS)/nfpm
	@$(if $(SYSTEM),SYSTEM=$(SYSTEM)) scripts/test-host $(FLAGS)

test-upgrade: ## an upgrade and a rollback on one store, SQLite and DynamoDB Local, against an older version that is built from git
	CGO_ENABLED=0 go test -trimpath -vet=off -count=1 -tags upgrade -run '^TestUpgrade' ./internal/e2e ./internal/e2e/aws

demo: build ## a workflow on this machine, cold, warm and hot, with tables of what happened (ARGS=)
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./internal/demo
	bin/demo $(ARGS)

demo-cache: build ## a Go and an npm project on this machine, with and without the caches of hosts; needs npm and the registries (ARGS=)
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/demo-cache ./internal/demo/cache
	bin/demo-cache $(ARGS)

run: build $(TOOLS)/grpcurl ## the whole system on this machine, staying up, with commands to try (ARGS=--boot-time=1m)
	@ln -sf $(TOOLS)/grpcurl bin/grpcurl
	@exec scripts/run $(ARGS)

sim: ## the deterministic fleet simulation (SEED= SEEDS= NEW=1 HOSTS= HOURS=)
	CGO_ENABLED=0 go run -trimpath ./internal/sim/cmd/sim $(if $(SEED),-seed=$(SEED)) $(if $(SEEDS),-seeds=$(SEEDS)) $(if $(NEW),-new) $(if $(HOSTS),-hosts=$(HOSTS)) $(if $(HOURS),-hours=$(HOURS))

soak: ## the long ones: controld under fire, an hour of 200 hosts, property tests, races repeated, fuzzing (SOAK_MINUTES= COUNT= CHECKS= FUZZTIME=)
	@SOAK_MINUTES='$(SOAK_MINUTES)' COUNT='$(COUNT)' CHECKS='$(CHECKS)' FUZZTIME='$(FUZZTIME)' scripts/soak

bench: ## the benchmarks, in the format benchstat reads (COUNT= FLAGS=)
	go test -run '^$$' -bench . -benchmem -timeout 30m $(if $(COUNT),-count=$(COUNT)) $(FLAGS) ./internal/bench/...

bench-report: ## measure the second half of docs/performance.md again (PARTS=callers,webhooks)
	go run ./internal/bench/report $(if $(PARTS),-parts $(PARTS))

peers: ## measure Remuda beside other tools, whose code it fetches; needs node 20, npm and github.com (PEER_DIR= COUNT= ONLY=Warm|Cold|ScaleDown)
	@$(if $(PEER_DIR),PEER_DIR='$(PEER_DIR)') $(if $(COUNT),COUNT='$(COUNT)') $(if $(ONLY),ONLY='$(ONLY)') scripts/peers

benchstat: $(TOOLS)/benchstat ## compare outputs of make bench (FILES="old.txt new.txt")
	@benchstat $(FILES)

# The records stay where they are published, and what is made of them is not in this repository.
months: ## recorded months of jobs of public projects, as CSV for remuda plan --history; needs the internet (ONLY=openstates-month FROM=DIR)
	@CGO_ENABLED=0 go run -trimpath ./internal/history/published/cmd/months $(if $(FROM),-from '$(FROM)') $(ONLY)
	@$(if $(ONLY),:,CGO_ENABLED=0 go test -tags months -count=1 -run 'TestThePublished' ./internal/forecast)

MUTATED := ./internal/lifecycle/... ./internal/policy/...
mutation: ## how much of a small change of the code the tests notice (PACKAGES= TESTS= SAMPLE= SEED= MATCH= SKIP= OUTPUT=json)
	@CGO_ENABLED=0 nice -n 10 go run -trimpath ./internal/mutation/cmd/mutation -equivalents internal/mutation/equivalents.txt \
		$(if $(TESTS),-tests '$(TESTS)') $(if $(SAMPLE),-sample $(SAMPLE)) $(if $(SEED),-seed $(SEED)) $(if $(SKIP),-skip '$(SKIP)') $(if $(MATCH),-match '$(MATCH)') $(if $(OUTPUT),-output $(OUTPUT)) $(or $(PACKAGES),$(MUTATED))

clean: ## remove what was built, the pinned tools too
	rm -rf bin .cache

# It is ours: its code changes without a change of the pinned versions.
$(TOOLS)/ociimage: internal/tools/ociimage/main.go

$(TOOLS)/%:
	@echo 'building $* (once for each set of pinned tools)'
	@mkdir -p $(TOOLS)
	@CGO_ENABLED=0 GOFLAGS=-mod=readonly go build -C internal/tools -trimpath -o $@ $(tool_$*)
