"""Two hosts far apart in a data centre without Hadoop: transfers and round trips by name, beside a raw TCP socket's.

Nothing is cached on the way, so that each transfer goes all of it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import paths, rawtcp
from ..net import data_center, topology_file
from ..net.fabric import Fabric
from ..procs import Process, ProcessFailed, Stage, tail, wait_until
from . import writes
from .options import Options
from .result import DIRECTORY

TOPOLOGY = "paper-fig5"
SERVER, CLIENT = "h3", "h13"  # in racks of their own: three routers between them
PAPER_SEGMENT_BYTES = 8000
JUMBO_SEGMENT_BYTES = 64512  # what goes between our own forwarders, and what a block's segments have
MB = 10**6
TIMEOUT_S = 300


@dataclass
class Pair:
    """`server` has files and answers pings, `client` asks; both have a forwarder."""

    fabric: Fabric
    stage: Stage
    name: str
    server: str = SERVER
    client: str = CLIENT
    _port: int = 7000

    # By name

    def publish(self, size: int, segment_bytes: int) -> str:
        """Publishes a file of `size` bytes; returns its name when it can be asked for."""
        name = f"/hadoop/lab/{self.name}/{segment_bytes}/{size}"
        self._server(
            f"put-{segment_bytes}-{size}",
            [*self._trunkline("put", self.server), name, str(self._file(size)), "--segment-size", str(segment_bytes)],
        )
        return name

    def get(self, name: str, window: str, size: int) -> float:
        """Seconds of one transfer as `trunkline get` tells them, from connecting to its forwarder to the last byte."""
        words = [*self._trunkline("get", self.client), name, "--window", window, "--json"]
        facts = json.loads(self._client(words).stderr)
        return _seconds(f"{name} with the window {window}", facts, size)

    def pingserver(self, host: str) -> str:
        """Answers pings on a host under the name it returns."""
        name = f"/hadoop/lab/{self.name}/echo/{host}"
        self._server(f"pingserver-{host}", [*self._trunkline("pingserver", host), name], host)
        return name

    def ping(self, name: str, count: int, pause_ms: int) -> dict[str, float]:
        """Milliseconds of round trips from the client's host: mean, min, p50."""
        words = [*self._trunkline("ping", self.client), name, "-c", str(count), "-i", f"{pause_ms}ms", "-q", "--json"]
        facts = json.loads(self._client(words).stdout)
        if facts["received"] < count:
            raise RuntimeError(f"{name}: {facts['received']} of {count} pings came back")
        return dict(facts["rtt_ms"])

    # By TCP

    def serve_tcp(self, size: int) -> int:
        """Serves a file of `size` bytes; returns the port."""
        self._port += 1
        self._server(f"tcp-{size}", [*_RAW, "serve", str(self._port), str(self._file(size))])
        return self._port

    def get_tcp(self, port: int, size: int) -> float:
        """Seconds of one transfer over a fresh connection."""
        facts = json.loads(self._client([*_RAW, "fetch", self.server, str(port)]).stdout)
        return _seconds("the TCP socket", facts, size)

    def echo_tcp(self, host: str) -> int:
        """Answers a TCP peer on a host; returns the port."""
        self._port += 1
        self._server(f"tcp-echo-{host}", [*_RAW, "echo", str(self._port)], host)
        return self._port

    def ping_tcp(self, host: str, port: int, count: int, pause_ms: int) -> dict[str, float]:
        """The same as `ping` over a TCP connection that stands."""
        words = [*_RAW, "ping", host, str(port), str(count), str(pause_ms)]
        return dict(json.loads(self._client(words).stdout))

    # Processes

    def _trunkline(self, command: str, host: str) -> list[str]:
        return [str(paths.TRUNKLINE), command, "--face", f"unix://{self.fabric.directory / f'{host}.sock'}"]

    def _file(self, size: int) -> Path:
        return writes.source(self.name, size)

    def _server(self, label: str, words: list[str], host: str = "") -> Process:
        """Starts a server and returns when it has said its first line."""
        process = self.stage.start(label, host or self.server, words)
        wait_until(f"{label}'s first word", lambda: process.log.stat().st_size > 0, 60, process)
        return process

    def _client(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        """Runs a client to its end; what `get` fetches is read and thrown away."""
        into_void = "get" in words
        done = subprocess.run(
            self.fabric.command(self.client, words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if into_void else subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            logs = "\n".join(f"{p.name}: {tail(p.log, 3)}" for p in self.stage.processes if not p.running())
            raise ProcessFailed(f"{Path(words[0]).name} {' '.join(words[1:])}: {done.stderr.strip()}\n{logs}".strip())
        return done


_RAW = [sys.executable, rawtcp.__file__]


def _seconds(what: str, facts: dict[str, Any], size: int) -> float:
    if facts["bytes"] != size:
        raise RuntimeError(f"{what}: {facts['bytes']} bytes came, not {size}")
    return float(facts["seconds"])


@contextmanager
def standing(options: Options, name: str) -> Iterator[Pair]:
    """The data centre with its routers, for the length of the block."""
    topology = topology_file.named(options.topology or TOPOLOGY)
    server, client = (SERVER, CLIENT) if options.topology is None else (topology.hosts[0], topology.hosts[-1])
    directory = DIRECTORY / name
    with data_center.standing(topology, directory, options.lab) as (fabric, stage):
        data_center.launch(
            data_center.routers(fabric, topology, stage, directory, (server, client), cache_bytes=0, host_cache_bytes=0)
        )
        yield Pair(fabric, stage, name, server, client)
