# The whole menu. `make demo` and `make test` need nothing but Debian, git, make and Rust.
.PHONY: help setup install wheel generate accept check build build-bench corpora test test-bench test-peers test-planes test-hdl test-ready test-clusters test-beside what-computes sim mutants fuzz soak-elections bench demo demo-network hdl hdl-check hdl-plane hdl-clusters differential deb install leveldb ci

help:
	@echo 'make demo      three replicas, a memcached client, kill -9: see it work (a few seconds once compiled)'
	@echo 'make demo-network   consensus as a network service, and a page to cut links and kill switches (root; docs/paxos.md)'
	@echo 'make hdl       modules in gates against the C that they must equal (dataplanes/fpga; half an hour): ARGS=MODULE, "lint prove", --full'
	@echo 'make hdl-plane the core in gates, simulated, as a data plane: it passes the suite that every plane does'
	@echo 'make hdl-clusters  clusters with this plane: leaders die, a tenth of all frames is lost'
	@echo 'make differential  the same frames to the engine, the plane in the kernel and the core in gates: FRAMES=n, SEED=n'
	@echo 'make build     target/release/quorumwire, the one binary (6 min from nothing on 2 cores)'
	@echo 'make test      everything that must hold (40 min on 2 cores, from nothing)'
	@echo 'make sim       seeded clusters full of faults: SEED=n for one, SEEDS=a..b, ARGS=--trace, ARGS=--roles'
	@echo 'make mutants   planted bugs: each must be noticed'
	@echo 'make fuzz      random bytes at every parser, FUZZ_SECONDS=300 for each target'
	@echo 'make corpora   rewrite the seeds of these: read the diff'
	@echo 'make test-peers   the Go programs of the benchmark: needs the Go that they name, compiles for minutes'
	@echo 'make soak-elections  MINUTES=60: busy processors and load, with and without planes: no election'
	@echo 'make check     formatting, lints, generated files, who may know whom'
	@echo 'make bench     side by side with what people would use instead, and data planes: bench/RESULTS.md; ARGS=--short or --full'
	@echo 'make deb       Debian packages in target/debian: the server, and libquorumwire (docs/installing.md)'
	@echo 'make install   PREFIX=DIR: libquorumwire for programs in C and C++ (docs/library.md)'
	@echo 'make wheel     target/wheel: the same for programs in Python'
	@echo 'make leveldb   PREFIX=DIR: replicated LevelDB, with that (docs/leveldb.md)'
	@echo 'make generate  the committed code that is made from the schemas in wire/'
	@echo 'make accept    rewrite the expected traces of tests/scenarios: read the diff'
	@echo 'make setup     install what the others need (they do it themselves)'

setup:
	@tools/setup

generate: setup
	cargo run --quiet --package quorumwire-wiregen
	cargo run --quiet --package quorumwire-cli -- config docs >docs/configuration.md
	cargo run --quiet --package quorumwire-cli -- config docs metrics >docs/metrics.md

accept: setup
	QUORUMWIRE_ACCEPT=1 cargo test --quiet --package quorumwire-control --test raft scenarios

# What a package alone asks of its dependencies differs from what the workspace does: they would be compiled twice.
IN_WORKSPACE := cargo build --quiet --locked --workspace

check: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	$(IN_WORKSPACE) --bin quorumwire-wiregen
	target/debug/quorumwire-wiregen --check
	tools/tidy

# The benchmark's own tests, as far as they take nothing but what tools/setup installs.
test-bench: setup
	python3 -m unittest discover --quiet --start-directory bench --pattern '*_test.py'
	cd bench/peers/resp && go test ./...

# All tests in Go. Some modules want a newer Go than Debian's, others compile for minutes.
GO_TESTS := $(sort $(dir $(wildcard bench/peers/*/*_test.go)))
test-peers: setup
	for folder in $(GO_TESTS); do (cd $$folder && go test ./...) || exit 1; done

# Debug information goes beside the binary, where debuggers and backtraces find it: nothing else needs it.
BINARY := target/release/quorumwire
build:
	@tools/setup build
	cargo build --release --locked --package quorumwire-cli
	@tools/split-debug $(BINARY)

# Tests of real clusters that are run once more with data planes: fast_terms.rs has pauses and cuts.
WITH_PLANES := amnesia backups disks expiry leader_kills membership power_cuts served_programs

# And those with planes in the kernel: of plane_keys.rs the tests that do not say which planes they want.
IN_KERNEL := fast_terms leader_kills losses membership partitions pauses plane_keys::under plane_keys::without power_cuts \
	served_histories served_programs

# Which once more with TLS between replicas: replicas that come in a new life, snapshots that stream in many
# records, members that come and go; and fast terms, whose keys replicas agree on then. tls.rs itself has kills and
# rotations under load, plane_keys.rs what is forged and recorded.
UNDER_TLS := amnesia fast_terms membership power_cuts

# What of the planes' suite does not depend on the headers around a packet, and is left to IPv4.
NOT_OVER_IPV6 := clients::a_request clients::foreign clients::one clients::requests common_case::a_ \
	common_case::commands common_case::heartbeats common_case::one common_case::the_quorum durability \
	faults::a_ faults::nothing faults::what fence forgery

# The cluster tests use network namespaces and real processes: as root, one at a time in a program. They mostly wait,
# so four programs run at once. Two at once run those that time packets and terms, or need a disk that syncs fast.
# Those that keep processors busy, or measure how busy they are, get the machine to themselves.
IN_PAIRS := fast_terms leveldb losses membership pauses standstill
ALONE := busy_machine busy_polls handshake_floods slow_followers
RUN_CLUSTERS := tools/run-tests --package cluster-tests --one-at-a-time --programs-at-once 4 \
	--in-pairs $(IN_PAIRS) --alone $(ALONE)

# What the suite finds in `clones::` it finds in `generic::`, too, where the same program makes copies; of that, what
# does not depend on how packets come and go is left to `driver::`, and fences there to hammered_copies.rs. All of it
# passes: `cargo test -p quorumwire-conformance-tests`. The checks of the programs in the kernel are left out one by one
# in `make mutants` only, for which they are compiled anew.
#
# Test programs are compiled once, with one set of features, by tools/run-tests, which also says what each program
# took. The planted bugs are compiled anew, before the clusters begin: nothing is compiled beside those.
# Both processors are busy all the time, so what counts is their work. At b40dd8a2, of seconds: lints and the benchmark's tests
# 250, test programs 450 to compile (880 of a processor) and 190 to run (300), the planes' suite 180 (260), clusters 1,100
# (1,600), and beside these the models (230), the simulator (280) and planted bugs.
# What only computes, and has no deadline, runs beside what also waits, where the processors are idle.
WHERE_IDLE := chrt --idle 0
PLANTED_CONTROL := cargo test --locked --package quorumwire-control --features mutants --test raft
PLANTED_FASTPATH := cargo test --locked --package quorumwire-fastpath --features mutants --lib \
	--test step --test paxos --test engine

# Nothing of what is compiled here is compiled again, so nothing is kept for that.
# The benchmark's tests, and the modules in gates, take less of a processor: they run while the lints compile, which seldom
# use both.
test: export CARGO_INCREMENTAL := 0
test:
	@$(MAKE) --no-print-directory --jobs=2 check test-bench test-hdl
	tools/run-tests --programs-at-once 2 --without cluster-tests --without conformance-tests \
		--without model --without paxos-model
	cargo test --quiet --locked --workspace --doc
	@$(MAKE) --no-print-directory --jobs=2 test-planes test-ready
	$(MAKE) --no-print-directory --jobs=2 test-clusters test-beside

# Lint, tests of small modules and the proofs that take seconds: all of them are `make hdl ARGS=--full`.
HDL_LOG := target/hdl.log
test-hdl: setup
	@tools/setup hdl
	@$(MAKE) --no-print-directory hdl-check ARGS=--short >$(HDL_LOG) 2>&1 || { cat $(HDL_LOG); exit 1; }
	@grep '^hdl:.*\(hold\|equal\)' $(HDL_LOG)

test-planes:
	tools/run-tests --package conformance-tests -- --skip clones:: \
		--skip generic::durability --skip generic::fence --skip generic::forgery --skip tagged::all:: \
		$(NOT_OVER_IPV6:%=--skip over_ipv6::%)

# What a cluster test installs is made before, and planted bugs are compiled, so that nothing is compiled beside clusters.
test-ready:
	$(WHERE_IDLE) $(PLANTED_CONTROL) --no-run
	$(WHERE_IDLE) $(PLANTED_FASTPATH) --no-run
	cargo build --quiet --locked --workspace --lib
	$(WHERE_IDLE) client/c/install PREFIX=target/tmp/leveldb PROFILE=dev
	$(WHERE_IDLE) apps/leveldb/build PREFIX=target/tmp/leveldb SANITIZE=address,undefined TESTS=yes

# Each commit repeats a third of these, which follows from its hash; `make test REPEATS=all` repeats all.
REPEATS ?= $(shell echo $$((0x$$(git rev-parse --short=7 HEAD 2>/dev/null || echo 0))))

test-clusters:
	@echo 'What is run again with other planes, or TLS: REPEATS=$(REPEATS) (make test REPEATS=all: all of it)'
	$(RUN_CLUSTERS) --repeats $(REPEATS) --again QUORUMWIRE_TEST_PLANE=socket $(WITH_PLANES) --again QUORUMWIRE_TEST_PLANE=xdp $(IN_KERNEL) \
		--again QUORUMWIRE_TEST_TLS=peers $(UNDER_TLS)

BESIDE := target/beside.log

test-beside:
	@echo 'Beside the clusters: the simulator, the model and planted bugs. What they say goes to $(BESIDE)'
	@echo "The simulator's seeds, to be run again: make sim SEEDS='$$(tools/seeds)'"
	@$(MAKE) --no-print-directory what-computes >$(BESIDE) 2>&1 || { cat $(BESIDE); exit 1; }
	@grep -E '^[0-9]+ seeds|^test result' $(BESIDE)

# Cargo is content if no test has the name that it is given: then nothing is looked for. The command, up to the name; and
# what else says which tests are meant.
some_are_called = $(1) -- $(2) --list | grep -q ': test$$' || { echo 'no test has this name: $(1) $(2)'; exit 1; }

define all_noticed
@$(call some_are_called,$(1) mutants)
$(WHERE_IDLE) $(1) mutants
endef

what-computes:
	$(WHERE_IDLE) tools/run-tests --package model --package paxos-model
	$(WHERE_IDLE) target/debug/quorumwire-sim --seeds $$(tools/seeds) --shrink
	$(WHERE_IDLE) target/debug/quorumwire-sim --roles --seeds $$(tools/seeds) --shrink
	$(call all_noticed,$(PLANTED_CONTROL))
	$(call all_noticed,$(PLANTED_FASTPATH))

SEEDS ?= 1..3001
sim: setup
	cargo run --quiet --profile simulation --locked --package quorumwire-sim -- \
		$(if $(SEED),--seed $(SEED),--seeds $(SEEDS)) --shrink $(ARGS)

# The tests of a crate that are run against each of its planted bugs, and what they noticed.
BY_TESTS = target/mutants
AGAINST_PLANTED = cargo test --quiet --locked --package quorumwire-$(1) --features mutants \
	$(if $(filter lib,$(2)),--lib,--test $(2))
define noticed_by
@mkdir -p $(BY_TESTS)
@$(call some_are_called,$(AGAINST_PLANTED) mutants)
$(AGAINST_PLANTED) mutants -- --nocapture > $(BY_TESTS)/$(1)-$(2) || { cat $(BY_TESTS)/$(1)-$(2); exit 1; }
endef
PLANTED_XDP := $(call AGAINST_PLANTED,conformance-tests,xdp) mutants::

mutants: setup
	$(call noticed_by,control,raft)
	$(call noticed_by,group,lib)
	$(call noticed_by,storage,storage)
	$(call noticed_by,replay,lib)
	$(call noticed_by,fastpath,step)
	$(call noticed_by,fastpath,paxos)
	$(call noticed_by,fastpath,engine)
	@$(call some_are_called,$(PLANTED_XDP))
	$(PLANTED_XDP) -- --nocapture
	cargo run --quiet --profile simulation --locked --package quorumwire-sim --features mutants -- \
		--mutants --noticed-by $(BY_TESTS)/* $(ARGS)

# One target after the other, each of which says every few seconds how far it is. One that fails does not keep the
# others from their turn: what failed is kept, see tests/fuzz/README.md.
FUZZ_SECONDS ?= 300
FOR_LONG := BOLERO_RANDOM_ITERATIONS=18446744073709551615 BOLERO_RANDOM_TEST_TIME_MS=$(FUZZ_SECONDS)000
FUZZ := cargo test --profile fuzzing --locked --no-fail-fast
FUZZ_INSIDE := $(FUZZ) --package quorumwire-node --package quorumwire-ops --package quorumwire-cli fuzz_test
ONE_BY_ONE := --nocapture --test-threads=1
fuzz: setup
	@$(call some_are_called,$(FUZZ_INSIDE))
	@failed=0; \
	$(FOR_LONG) $(FUZZ) --package quorumwire-fuzz-tests --test '*' -- $(ONE_BY_ONE) || failed=1; \
	$(FOR_LONG) $(FUZZ_INSIDE) -- $(ONE_BY_ONE) || failed=1; \
	exit $$failed

corpora: setup
	QUORUMWIRE_ACCEPT=1 cargo test --quiet --locked --package quorumwire-fuzz-tests --tests
	QUORUMWIRE_ACCEPT=1 cargo test --quiet --locked --package quorumwire-node --package quorumwire-ops --package quorumwire-cli fuzz_test

# Depends on the machine, so `make test` has a short run only, which may try again.
MINUTES ?= 1
SOAK := cargo test --locked --package quorumwire-cluster-tests --test clusters busy_machine::
soak-elections: setup build
	@$(call some_are_called,$(SOAK),--ignored)
	for plane in none socket; do \
		QUORUMWIRE_BIN=$(CURDIR)/target/release/quorumwire QUORUMWIRE_TEST_PLANE=$$plane \
		QUORUMWIRE_SOAK_MINUTES=$(MINUTES) \
		$(SOAK) -- --ignored --nocapture || exit 1; \
	done

build-bench: build
	cargo build --release --locked --package quorumwire-bench-planes

bench: build-bench
	@tools/setup bench
	bench/run $(ARGS)

demo: build
	@tools/setup demo
	$(BINARY) demo

demo-network: build
	@tools/setup demo
	$(BINARY) demo-network $(ARGS)

# What makes the package from what was built; its version is written here and nowhere else.
CARGO_DEB_VERSION := 3.8.0
CARGO_DEB := target/tools/bin/cargo-deb
MADE := target/packaging

# Modules in gates (dataplanes/fpga), each against the C that it must equal.
hdl:
	@tools/setup hdl
	$(MAKE) --no-print-directory hdl-check
hdl-check:
	dataplanes/fpga/check $(ARGS)

# Builds the core into a plane, and has it pass what every plane does.
hdl-plane:
	@tools/setup hdl
	cargo clippy --quiet --locked --package quorumwire-plane-fpga --package quorumwire-conformance-tests \
		--features quorumwire-plane-fpga/simulated,quorumwire-conformance-tests/fpga-sim --all-targets -- --deny warnings
	cargo test --locked --package quorumwire-conformance-tests --features fpga-sim --test fpga

# A few minutes each: what a card does in a second, its simulation does in many.
hdl-clusters:
	@tools/setup && tools/setup hdl
	cargo build --profile simulation --locked --package quorumwire-cli --features fpga-sim
	for test in leader_kills losses fast_terms; do \
		QUORUMWIRE_BIN=$(CURDIR)/target/simulation/quorumwire QUORUMWIRE_TEST_PLANE=fpga-sim \
		tools/run-tests --package cluster-tests --one-at-a-time --test $$test || exit 1; \
	done

# Half an hour for a million. The seed says which frames: both bring the same.
FRAMES ?= 1000000
DIFFERENTIAL := cargo test --profile simulation --locked --package quorumwire-conformance-tests
differential:
	@tools/setup && tools/setup hdl
	@export QUORUMWIRE_FRAMES=$(FRAMES) QUORUMWIRE_SEED=$(or $(SEED),$(shell date +%s)); \
	export QUORUMWIRE_SAME_FRAMES=$(CURDIR)/target/same-frames; rm -f $$QUORUMWIRE_SAME_FRAMES; \
	echo "$$QUORUMWIRE_FRAMES frames: make differential FRAMES=$$QUORUMWIRE_FRAMES SEED=$$QUORUMWIRE_SEED runs it again"; \
	$(DIFFERENTIAL) --test xdp -- --include-ignored --exact differential::the_kernels_plane_does_what_gates_do && \
	$(DIFFERENTIAL) --features fpga-sim --test fpga -- differential:: && echo 'both got the same frames'

deb: build
	@[ "$$($(CARGO_DEB) --version 2>/dev/null)" = "cargo-deb $(CARGO_DEB_VERSION)" ] || \
		cargo install cargo-deb --locked --version $(CARGO_DEB_VERSION) --no-default-features --root target/tools
	rm -rf $(MADE) && mkdir -p $(MADE)/completions
	target/release/quorumwire man --dir $(MADE)/man
	target/release/quorumwire completions bash >$(MADE)/completions/quorumwire
	target/release/quorumwire completions zsh >$(MADE)/completions/_quorumwire
	target/release/quorumwire completions fish >$(MADE)/completions/quorumwire.fish
	$(CARGO_DEB) --quiet --package quorumwire-cli --no-build --no-strip --locked
	packaging/library

# The library for programs in C and C++.
install: export CARGO_INCREMENTAL := 0
install:
	@tools/setup build
	client/c/install PREFIX=$(PREFIX) $(if $(DESTDIR),DESTDIR=$(DESTDIR)) $(if $(LIBDIR),LIBDIR=$(LIBDIR))

# And in Python.
wheel: export CARGO_INCREMENTAL := 0
wheel:
	@tools/setup wheel
	client/python/wheel

# Without PREFIX it is to be tried out.
leveldb: export CARGO_INCREMENTAL := 0
leveldb: LEVELDB_PREFIX := $(or $(PREFIX),$(CURDIR)/target/leveldb)
leveldb:
	@tools/setup leveldb
	client/c/install PREFIX=$(LEVELDB_PREFIX) $(if $(DESTDIR),DESTDIR=$(DESTDIR)) $(if $(LIBDIR),LIBDIR=$(LIBDIR))
	apps/leveldb/build PREFIX=$(LEVELDB_PREFIX) $(if $(DESTDIR),DESTDIR=$(DESTDIR)) $(if $(LIBDIR),LIBDIR=$(LIBDIR))
	@echo 'It is in $(DESTDIR)$(LEVELDB_PREFIX)/bin'

ci:
	.ci/run
