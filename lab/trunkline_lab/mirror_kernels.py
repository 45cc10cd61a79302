"""Mirrored replication's eBPF program before other kernels' verifiers: its own tests, run in guests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from . import guest, paths
from .procs import Stage
from .say import say

SCRIPT = guest.SCRIPTS / "mirror.sh"
TIMEOUT_S = 900  # emulated, on a busy machine, 5.15 takes minutes

# The oldest kernel that is served, from Ubuntu 22.04, whose first packages stay in its archive; the newest that this
# Debian has; and between them Debian 12's own, which the verbs guest also runs on.
UBUNTU_22_04 = guest.Release(
    name="5.15",
    archive="http://archive.ubuntu.com/ubuntu jammy main",
    packages={
        "linux-image-5.15.0-25-generic": "ad56f8c442a54d4f5ff2dff010d00321d53e32b543f3a92f3ba4e042d20a71da",
        "linux-modules-5.15.0-25-generic": "d0ba4087d9e1d497925b3481d3531fba6c2a852855f8019d73b0b1385aa4da1f",
    },
)
KERNELS: dict[str, guest.Release | None] = {
    "5.15": UBUNTU_22_04,
    "6.1": None,
    "6.12": guest.Release(name="6.12", meta_package="linux-image-6.12-amd64"),
}

BUILD = ["cargo", "test", "-q", "-p", "trunkline-mirror", "--test", "program", "--no-run", "--message-format=json"]


def test_program(messages: Iterable[str]) -> Path:
    """The tests' executable, of what cargo says in JSON."""
    for line in messages:
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("executable") and message.get("target", {}).get("name") == "program":
            return Path(message["executable"])
    raise ValueError("cargo named no test program of trunkline-mirror")


def run(name: str, program: Path) -> list[str]:
    """The console of a guest on kernel `name` that ran the tests; raises guest.Unavailable where it can't be had."""
    kernel = guest.kernel({}, KERNELS[name])
    say(f"mirror: the eBPF program on kernel {name}")
    directory = paths.OUT / f"mirror-{name}"
    (directory / "guest.log").unlink(missing_ok=True)
    with Stage(directory) as stage:
        process = guest.start(stage, kernel, SCRIPT, [str(program)])
        process.wait(TIMEOUT_S)
    return process.log.read_text(errors="replace").splitlines()
