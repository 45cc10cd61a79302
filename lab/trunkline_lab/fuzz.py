"""`make test ONLY=fuzz`: every fuzz target for a while, from the inputs in the tree on.

They are cargo-fuzz's of the Rust rooms, and Jazzer's of the plug-in: its methods with `@FuzzTest`. `FUZZ_SECONDS=3600`
runs each for an hour.

Rust's targets run with the stable compiler, with debug assertions and overflow checks and without a sanitizer, which
needs a nightly one (docs/ndn-specs.md). What they find new stays in `fuzz/corpus/`, what broke one in
`fuzz/artifacts/`. What Java's find new stays in the plug-in's `.cifuzz-corpus/`, what broke one beside its seeds.
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from . import paths

CARGO_FUZZ = "0.13.1"
SECONDS = int(os.environ.get("FUZZ_SECONDS", "60"))
ROOMS = (
    "ndn/packet",
    "ndn/endpoint",
    "ndn/forwarder",
    "ndn/io",
    "ndn/repo",
    "ndn/door",
    "hadoop/native",
    "hadoop/store",
    "mirror/agent",
)
PLUGIN_TESTS = paths.ROOT / "hadoop" / "plugin" / "src" / "test"
TOOL_ROOT = paths.ROOT / ".cache" / "cargo-fuzz"
INSTALL = ["cargo", "install", "--quiet", "cargo-fuzz", "--version", CARGO_FUZZ, "--root", str(TOOL_ROOT)]
BUILDS = paths.ROOT / "target" / "fuzz"  # one for all projects, which have most crates in common
MOST_MEMORY_MIB = 1024
LONGEST_INPUT_S = 10


@dataclass(frozen=True)
class Target:
    """A fuzz target of a room."""

    room: str
    name: str

    @property
    def directory(self) -> Path:
        """The cargo-fuzz project it is in."""
        return paths.ROOT / self.room / "fuzz"

    @property
    def label(self) -> str:
        """As people name it."""
        return f"{self.room}: {self.name}"

    def command(self, seconds: int = SECONDS) -> list[str]:
        """Runs it for so long; makes the folder that what it finds goes to."""
        corpus = self.directory / "corpus" / self.name
        corpus.mkdir(parents=True, exist_ok=True)
        seeds = self.directory / "seeds" / self.name
        inputs = [str(corpus), *([str(seeds)] if seeds.exists() else [])]
        limits = [f"-rss_limit_mb={MOST_MEMORY_MIB}", f"-timeout={LONGEST_INPUT_S}", f"-max_total_time={seconds}"]
        words = ["run", "--fuzz-dir", str(self.directory), "--target-dir", str(BUILDS), "--sanitizer", "none"]
        return [str(TOOL_ROOT / "bin" / "cargo-fuzz"), *words, self.name, *inputs, "--", *limits]


@dataclass(frozen=True)
class JavaTarget:
    """A method of a class of the plug-in's tests."""

    class_name: str
    method: str

    @property
    def label(self) -> str:
        """As people name it."""
        return f"hadoop/plugin: {self.class_name.rpartition('.')[2]}.{self.method}"

    @property
    def seeds(self) -> Path:
        """The folder of its inputs, where Jazzer looks for them."""
        package, _, name = self.class_name.rpartition(".")
        return PLUGIN_TESTS / "resources" / package.replace(".", "/") / f"{name}Inputs" / self.method

    def command(self, maven: tuple[str, ...], seconds: int = SECONDS) -> list[str]:
        """Runs it for so long; `maven` with the plug-in's project. Its tests must be compiled."""
        switches = ["JAZZER_FUZZ=1", f"JAZZER_MAX_DURATION={seconds}s"]
        return ["env", *switches, *maven, "surefire:test@fuzz", f"-Dtest={self.class_name}#{self.method}"]


_PACKAGE = re.compile(r"^package ([\w.]+);", re.MULTILINE)
_FUZZ_TEST = re.compile(r"@FuzzTest\s+void (\w+)\(")


def java_targets() -> list[JavaTarget]:
    """All of the plug-in's."""
    found = []
    for path in sorted((PLUGIN_TESTS / "java").rglob("*Fuzz.java")):
        text = path.read_text()
        package = _PACKAGE.search(text)
        assert package, path
        found += [JavaTarget(f"{package[1]}.{path.stem}", method) for method in _FUZZ_TEST.findall(text)]
    return found


def targets() -> list[Target]:
    """All of Rust's, as their projects name them."""
    return [
        Target(room, binary["name"])
        for room in ROOMS
        for binary in tomllib.loads((paths.ROOT / room / "fuzz" / "Cargo.toml").read_text())["bin"]
    ]


def installed() -> bool:
    """Whether cargo-fuzz is there to be run."""
    return os.access(TOOL_ROOT / "bin" / "cargo-fuzz", os.X_OK)
