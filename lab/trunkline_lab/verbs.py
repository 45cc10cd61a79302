"""Real RDMA verbs in the suite: a guest with a Soft-RoCE NIC runs checks and reports each on its console."""

from __future__ import annotations

import os

from . import guest, paths
from .procs import Stage
from .say import say

SCRIPT = guest.SCRIPTS / "verbs.sh"
TIMEOUT_S = 240
TOOLS = {"rping": "rdmacm-utils", "rdma": "iproute2"}


def run(plugin_jars: list[str]) -> list[tuple[str, str]]:
    """(check, what was wrong) for each check; "" where nothing was. Raises guest.Unavailable where none can run.

    The plug-in's own test is among them where `plugin_jars`, its class path, is not empty.
    """
    kernel = guest.kernel(TOOLS)
    say("verbs: a guest with a Soft-RoCE NIC")
    directory = paths.OUT / "verbs"
    (directory / "guest.log").unlink(missing_ok=True)
    with Stage(directory) as stage:
        process = guest.start(stage, kernel, SCRIPT, [os.pathsep.join(plugin_jars)])
        process.wait(TIMEOUT_S)
    console = process.log.read_text(errors="replace")
    found = results(console)
    if "script ended with status 0" not in console:
        found.append(("the guest's script", "did not end well; its console ends: " + console[-1500:]))
    return found


def results(console: str) -> list[tuple[str, str]]:
    """The checks that a guest's console tells of."""
    found = []
    for line in console.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "ok":
            found.append((rest, ""))
        elif word == "FAILED":
            name, _, why = rest.partition(": ")
            found.append((name, why))
    return found
