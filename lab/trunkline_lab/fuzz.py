"""`make test ONLY=fuzz`: every cargo-fuzz target for a while, from the inputs in the tree on.

The targets run with the stable compiler, with debug assertions and overflow checks and without a sanitizer, which needs
a nightly one (docs/ndn-specs.md). What they find new stays in `fuzz/corpus/`, what broke one in `fuzz/artifacts/`.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

from . import paths

CARGO_FUZZ = "0.13.1"
SECONDS = 60
ROOMS = ("ndn/packet", "ndn/endpoint", "ndn/forwarder", "ndn/repo", "hadoop/native")
TOOL_ROOT = paths.ROOT / ".cache" / "cargo-fuzz"
INSTALL = ["cargo", "install", "--quiet", "cargo-fuzz", "--version", CARGO_FUZZ, "--root", str(TOOL_ROOT)]
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
        words = ["run", "--fuzz-dir", str(self.directory), "--sanitizer", "none", self.name, *inputs, "--", *limits]
        return [str(TOOL_ROOT / "bin" / "cargo-fuzz"), *words]


def targets() -> list[Target]:
    """All of them, as their projects name them."""
    return [
        Target(room, binary["name"])
        for room in ROOMS
        for binary in tomllib.loads((paths.ROOT / room / "fuzz" / "Cargo.toml").read_text())["bin"]
    ]


def installed() -> bool:
    """Whether cargo-fuzz is there to be run."""
    return os.access(TOOL_ROOT / "bin" / "cargo-fuzz", os.X_OK)
