"""Where things are in a checkout: inputs, built commands, caches, results."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAB = ROOT / "lab"
CONTROLLER = ROOT / "controller"
OUT = ROOT / "out"
CACHE = ROOT / ".cache"
DIST = ROOT / "dist"

TRUNKLINE = DIST / "bin" / "trunkline"
PLUGIN_JAR = DIST / "lib" / "trunkline-hadoop.jar"


def java(tool: str = "java") -> str:
    """The Java launcher to use, or another tool of its JDK: JAVA_HOME's, else the one on PATH."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / tool) if home else tool


class NotBuilt(RuntimeError):
    """A command or jar that an experiment needs has not been built yet."""


def built(path: Path) -> Path:
    """`path` if it exists; otherwise an error that says how to make it."""
    if not path.exists():
        raise NotBuilt(f"{path.relative_to(ROOT)} is missing; run `make build` first")
    return path
