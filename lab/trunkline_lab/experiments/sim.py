"""Networks of up to 10,000 hosts, by `trunkline sim`."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from .. import paths
from ..net.fabric import LabError
from ..say import say
from .options import Options

HOSTS = (128, 1024, 10_000)
TIMEOUT_S = 600


def fat_trees(options: Options) -> None:
    """Raises LabError when another topology is wanted than an experiment's fat trees."""
    if options.topology:
        raise LabError("--topology: these are fat trees; use `trunkline sim` for other networks")


def run(words: list[str]) -> dict[str, Any]:
    """`trunkline sim … --json`; raises RuntimeError with what it said when it fails."""
    say(f"trunkline sim {' '.join(words)}")
    command = [str(paths.built(paths.TRUNKLINE)), "sim", *words, "--quiet", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"trunkline sim {words[0]}: {done.stderr.strip()}")
    return dict(json.loads(done.stdout))
