# Trunkline. `make` alone lists what there is; each target is a line or two, the work is in the rooms.
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
LAB    := PYTHONPATH=lab python3 -m trunkline_lab
MVN    := mvn -q -B -f hadoop/plugin/pom.xml -Dnative.dir=$(TARGET)/release

.DEFAULT_GOAL := help
.PHONY: help compile build demo test test-all bench lab hadoop-tests docs fmt dist clean

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

compile:
	cargo build --release -p trunkline -p trunkline-native -p trunkline-ucx

build: compile ## dist/bin/trunkline and dist/lib/trunkline-hadoop.jar
	$(MVN) package -DskipTests
	install -D -t dist/bin $(TARGET)/release/trunkline
	install -D -m 644 -t dist/lib hadoop/plugin/target/trunkline-hadoop.jar

demo: build ## Stock HDFS on TCP, on named data and over UCX, byte by byte [SIZE=256MiB] [FILE=path]
	@$(LAB) demo $(if $(SIZE),--size $(SIZE)) $(if $(FILE),--file $(FILE))

test: ## Everything that can be checked here in half an hour [ONLY=stage,stage]
	@$(LAB) test $(if $(ONLY),--only $(ONLY))

test-all: ## The same and the long matrices: older Hadoops in full, Hadoop's own tests on every plane
	@$(LAB) test --all

bench: build ## The figures of the README, beside their peers' [ONLY=prefix] [RUNS=5] [SIZE=1GiB] [MARKDOWN=1]
	@$(LAB) bench $(if $(ONLY),--only $(ONLY)) $(if $(RUNS),--runs $(RUNS)) $(if $(SIZE),--size $(SIZE)) $(if $(MARKDOWN),--markdown)

lab: build ## A paper's table or figure in an emulated data centre; needs root [RUN=experiment] [SCALE=0.5]
	@lab/lab $(if $(RUN),run $(RUN) $(if $(SCALE),--scale $(SCALE)),list)

hadoop-tests: build ## Hadoop's own HDFS tests over a plane [PLANE=ndn|ucx|mirror|tcp] [HADOOP=3.4.3] [CLASSES="TestA TestB"]
	@$(LAB) hadoop-tests $(if $(HADOOP),--hadoop $(HADOOP)) --plane $(or $(PLANE),ndn) $(if $(CLASSES),--classes $(CLASSES))

docs: build ## The settings pages, from the programs' own tables
	@$(LAB) docs

fmt: ## Format all code
	cargo fmt --all
	$(MVN) com.diffplug.spotless:spotless-maven-plugin:apply
	@$(LAB) fmt

dist: build ## dist/trunkline-<version>.tar.gz: command, jar, controller, sample configurations, docs
	tar --exclude=__pycache__ -czf dist/trunkline-$$(dist/bin/trunkline --version | cut -d' ' -f2).tar.gz -C dist bin lib -C .. README.md LICENSE docs cli/fwd.sample.toml cli/mirror.sample.toml cli/repo.sample.toml $(addprefix controller/,pyproject.toml requirements.txt controller.sample.toml policy.sample.yaml policy.paper.yaml trunkline_controller)

clean: ## Remove what was built and what experiments left; .cache/ stays
	cargo clean
	rm -rf dist out hadoop/plugin/target
