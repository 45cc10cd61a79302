"""The planes a transfer can run on: stock TCP, and named data through one router."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from . import paths
from .cluster import Plane, Properties
from .network import Loopback, Ports
from .procs import Process, Stage, wait_until

ROUTER_ADDRESS = 2  # last number of the router's address in the experiment's /24


def tcp() -> Plane:
    """Stock Hadoop as it is: no jar, no property of ours."""
    return Plane("tcp")


class Router:
    """One `trunkline fwd run`: the only hop between the hosts of the named-data plane."""

    def __init__(self, stage: Stage, directory: Path, loopback: Loopback, cache_bytes: int) -> None:
        self.stage = stage
        self.address = loopback.address(ROUTER_ADDRESS)
        self.face = f"tcp://{self.address}:{Ports().free(self.address)}"
        self.config = directory / "conf" / "router.toml"
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text(
            f'[[face]]\nlisten = "{self.face}"\n\n'
            f"[content_store]\ncapacity = {cache_bytes}\n\n"
            "[management]\nlocalhop = true\n"
        )
        self.process: Process | None = None

    def start(self) -> None:
        """Starts it (again after `kill`); returns when it answers."""
        command = [str(paths.built(paths.TRUNKLINE)), "fwd", "run", "--config", str(self.config)]
        self.process = self.stage.start("router", "router", command)
        wait_until("the router's answer", self._answers, 20, self.process)

    def kill(self) -> None:
        """SIGKILL, as a power cut would."""
        assert self.process is not None
        self.process.kill()

    def _answers(self) -> bool:
        return self._ask("status").returncode == 0

    def _ask(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(paths.TRUNKLINE), "fwd", *arguments, "--json", "--face", self.face],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )

    def status(self) -> dict[str, Any]:
        """`trunkline fwd status --json`."""
        answer = self._ask("status")
        if answer.returncode != 0:
            raise RuntimeError(f"the router at {self.face} did not answer: {answer.stderr.strip()}")
        return dict(json.loads(answer.stdout))


def ndn(router: Router, directory: Path, *, jar: bool = True) -> Plane:
    """Stock Hadoop with the plug-in's jar first on the class path and the properties an operator pastes."""

    def properties(host: str, address: str) -> Properties:
        return {
            **pasted(router.face),
            # Every socket leaves from its host's own address, so that the kernel's counters tell hosts apart.
            "trunkline.local.address": address,
            "trunkline.datanode.address": f"{address}:0",
            "trunkline.stats.file": str(stats_file(directory, host)),
        }

    return Plane("ndn", [paths.built(paths.PLUGIN_JAR)], properties)


def pasted(face: str) -> Properties:
    """What `trunkline hadoop conf ndn` tells an operator to paste; with no face ("") every JVM is on its own."""
    shown = subprocess.run(
        [str(paths.built(paths.TRUNKLINE)), "hadoop", "conf", "ndn", "--json", *(["--face", face] if face else [])],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    properties = {str(k): str(v) for k, v in json.loads(shown.stdout).items()}
    return properties if face else {**properties, "trunkline.ndn.face": ""}


def stats_file(directory: Path, host: str) -> Path:
    """Where the JVMs of a host append their counters as they end."""
    return directory / "stats" / f"{host}.json"


def read_stats(stats: Path) -> list[dict[str, Any]]:
    """The JSON objects that JVMs appended, one a line."""
    if not stats.exists():
        return []
    return [dict(json.loads(line)) for line in stats.read_text().splitlines() if line.strip()]
