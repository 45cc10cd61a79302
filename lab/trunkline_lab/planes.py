"""The planes a transfer can run on: stock TCP, and named data through one router."""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
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
    """One `trunkline fwd run`: the only hop between the hosts of the named-data plane.

    Hosts connect over TCP; it is asked over a Unix socket, since `/localhost` names never cross a link.
    """

    def __init__(self, stage: Stage, directory: Path, loopback: Loopback, cache_bytes: int) -> None:
        self.stage = stage
        # Unix socket paths end at 107 bytes, so it can't lie in `directory`.
        self._runtime = tempfile.TemporaryDirectory(prefix="trunkline-")
        self.control = f"unix://{self._runtime.name}/router.sock"
        self.address = loopback.address(ROUTER_ADDRESS)
        self.face = f"tcp://{self.address}:{Ports().free(self.address)}"
        self.config = directory / "conf" / "router.toml"
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text(
            f'[[face]]\nlisten = "{self.face}"\nscope = "non-local"\n\n'
            f'[[face]]\nlisten = "{self.control}"\n\n'
            # No routes: the first Interest under a block's name goes to all hosts, the others where its Data came from.
            f'[[strategy]]\nprefix = "/hadoop"\nname = "self-learning"\n\n'
            f"[content_store]\ncapacity = {cache_bytes}\n"
        )
        self.process: Process | None = None

    def start(self) -> None:
        """Starts it (again after `kill`); returns when it takes connections."""
        command = [str(paths.built(paths.TRUNKLINE)), "fwd", "run", "--config", str(self.config)]
        self.process = self.stage.start("router", "router", command)
        wait_until("the router's listener", self._listens, 20, self.process)

    def kill(self) -> None:
        """SIGKILL, as a power cut would."""
        assert self.process is not None
        self.process.kill()

    def _listens(self) -> bool:
        host, _, port = self.face.removeprefix("tcp://").rpartition(":")
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) == 0

    def cache_hits(self) -> int:
        """Interests that its content store has answered so far."""
        return int(self.status()["content_store"]["hits"])

    def status(self) -> dict[str, Any]:
        """`trunkline fwd status --json`."""
        answer = subprocess.run(
            [str(paths.TRUNKLINE), "fwd", "status", "--json", "--face", self.control],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        if answer.returncode != 0:
            raise RuntimeError(f"the router at {self.control} did not answer: {answer.stderr.strip()}")
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
    """Where a JVM of a host writes its counters; {pid} is put in by the plug-in."""
    (directory / "stats").mkdir(parents=True, exist_ok=True)
    return directory / "stats" / f"{host}-{{pid}}.json"


Counters = dict[str, int]


def stats(directory: Path, host: str) -> list[dict[str, Any]]:
    """What the plug-in's JVMs of a host wrote down, one record each."""
    return [dict(json.loads(path.read_text())) for path in (directory / "stats").glob(f"{host}-*.json")]


def transport_counters(directory: Path, host: str) -> Counters:
    """The plug-in's counters of a host, summed over its JVMs; fallbacks are counted as `fallback.<reason>`."""
    total: Counters = {}
    for record in stats(directory, host):
        fallbacks = {f"fallback.{reason}": count for reason, count in record.get("fallbacks", {}).items()}
        for key, value in {**record, **fallbacks}.items():
            if isinstance(value, int) and key != "pid":
                total[key] = total.get(key, 0) + value
    return total
