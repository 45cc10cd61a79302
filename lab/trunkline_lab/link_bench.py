"""A router between two hosts, on links slower than its processor: bytes by name beside TCP over the same links.

Three network namespaces in a row, the links shaped and without super-segments, as a NIC's are: packets come in parts.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import paths
from .figures import Figure
from .procs import Process, ProcessFailed, Stage, wait_until
from .say import say

PREFIX = "forwarder.link."
RATE = "300mbit"
BURST = "32kb"  # less than a super-segment has, so that shaping cuts them
BYTES = 250_000_000
CASES = {"8000B": (8000, 256), "jumbo": (64512, 64)}  # content of a segment, and the consumer's window
PORT = 7777
LOW_WATER = 64 << 10  # a TCP receiver is woken as seldom as ours (SO_RCVLOWAT), which anybody can have
LIMIT_S = 120
BUILD = ["cargo", "build", "-q", "--release", "-p", "ndn-io", "--example", "throughput"]
PROGRAM = Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "release" / "examples" / "throughput"
RAW_TCP = paths.LAB / "trunkline_lab" / "rawtcp.py"
RESULT = re.compile(r"^\{.*\}$", re.MULTILINE)


def missing() -> str:
    """Why it can't be measured here; empty where it can."""
    if os.geteuid() != 0:
        return "not root"
    lack = [tool for tool in ("ip", "tc") if not shutil.which(tool)]
    return f"no {', '.join(lack)}" if lack else ""


@dataclass(frozen=True)
class Row:
    """Producer, router and consumer, as namespaces of these names; the router's address towards either."""

    producer: str
    router: str
    consumer: str

    def address(self, host: str) -> str:
        return "10.77.1.1" if host == self.producer else "10.77.2.1"


@contextlib.contextmanager
def row() -> Iterator[Row]:
    """The namespaces, joined and shaped; gone afterwards."""
    row = Row(*(f"trunkline-{os.getpid()}-{role}" for role in ("p", "f", "c")))
    try:
        for name in (row.producer, row.router, row.consumer):
            _run("ip", "netns", "add", name)
            _run("ip", "-n", name, "link", "set", "lo", "up")
        for number, name in ((1, row.producer), (2, row.consumer)):
            near = f"to{number}"
            _run("ip", "link", "add", near, "netns", row.router, "type", "veth", "peer", "name", "e0", "netns", name)
            for end, interface, last in ((row.router, near, 1), (name, "e0", 2)):
                _run("ip", "-n", end, "address", "add", f"10.77.{number}.{last}/24", "dev", interface)
                _run("ip", "-n", end, "link", "set", interface, "up")
                shape = ("root", "tbf", "rate", RATE, "burst", BURST, "latency", "50ms")
                _run("tc", "-n", end, "qdisc", "add", "dev", interface, *shape)
            _run("ip", "-n", name, "route", "add", "default", "via", f"10.77.{number}.1")
        _run("ip", "netns", "exec", row.router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        yield row
    finally:
        for name in (row.producer, row.router, row.consumer):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")


@dataclass(frozen=True)
class Took:
    """Of one transfer: Gbit/s of content, and CPU seconds per GB of it in each process."""

    gbit_s: float
    cpu_s_per_gb: dict[str, float]


def measure(runs: int) -> Iterator[Figure]:
    """By name in segments of either size and by TCP, by turns; medians."""
    if why := missing():
        say(f"{PREFIX}: not measured: {why}")
        return
    subprocess.run(BUILD, cwd=paths.ROOT, check=True)
    found: dict[str, list[Took]] = defaultdict(list)
    with row() as hosts:
        for number in range(1, runs + 1):
            say(f"forwarder.link: run {number} of {runs}")
            found["tcp"].append(by_tcp(hosts))
            for case, (segment, window) in CASES.items():
                found[case].append(by_name(hosts, segment, window))
    yield from figures_of(found)


def figures_of(found: dict[str, list[Took]]) -> Iterator[Figure]:
    """The medians of all cases beside those of `tcp`."""

    def median(case: str, process: str) -> float:
        return statistics.median(took.cpu_s_per_gb[process] for took in found[case])

    peer, runs = "TCP over the same links, woken as seldom", len(found["tcp"])
    for case in CASES:
        name, ours = f"{PREFIX}{case}", statistics.median(took.gbit_s for took in found[case])
        theirs = statistics.median(took.gbit_s for took in found["tcp"])
        yield Figure(f"{name}.gbit_s", ours, "Gbit/s", peer, theirs, runs)
        yield Figure(f"{name}.cpu_s_per_gb", median(case, "forwarder"), "CPU-s/GB", "", None, runs)
        for process in ("producer", "consumer"):
            theirs = median("tcp", process)
            yield Figure(f"{name}.{process}_cpu_s_per_gb", median(case, process), "CPU-s/GB", peer, theirs, runs)


def by_name(hosts: Row, segment: int, window: int) -> Took:
    """One transfer through a forwarder on the router."""
    with _stage() as stage:
        program = str(paths.ROOT / PROGRAM)
        start = _Starter(stage)
        forwarder = start("forwarder", hosts.router, [program, "forwarder", f"tcp4://0.0.0.0:{PORT}", "socket", "1"])
        _said(forwarder, re.compile("tcp4://"))
        to = {host: f"tcp4://{hosts.address(host)}:{PORT}" for host in (hosts.producer, hosts.consumer)}
        words = [program, "producer", "0", to[hosts.producer], "socket", str(segment)]
        producer = start("producer", hosts.producer, words)
        _said(producer, re.compile("ready"))
        before = {process.name: process.cpu_s() for process in (forwarder, producer)}
        words = [program, "consumer", "0", to[hosts.consumer], "socket", str(segment), str(BYTES), str(window)]
        consumer = start("consumer", hosts.consumer, words)
        result = _result(consumer)
        cpu = {process.name: process.cpu_s() - before.get(process.name, 0) for process in stage.processes}
        return Took(result["gbit_s"], {name: seconds / (result["bytes"] / 1e9) for name, seconds in cpu.items()})


def by_tcp(hosts: Row) -> Took:
    """The same bytes by one connection through the kernel's routing."""
    source = paths.OUT / "bench" / "link"
    source.parent.mkdir(parents=True, exist_ok=True)
    with source.open("wb") as file:
        file.truncate(BYTES)
    with _stage() as stage:
        start = _Starter(stage)
        python = [sys.executable, str(RAW_TCP)]
        producer = start("producer", hosts.producer, [*python, "serve", str(PORT), str(source)])
        _said(producer, re.compile("listening"))
        before = producer.cpu_s()
        consumer = start("consumer", hosts.consumer, [*python, "fetch", "10.77.1.2", str(PORT), str(LOW_WATER)])
        result = _result(consumer)
        gigabytes = result["bytes"] / 1e9
        cpu = {"producer": producer.cpu_s() - before, "consumer": result["cpu_s"]}
        return Took(8 * gigabytes / result["seconds"], {name: seconds / gigabytes for name, seconds in cpu.items()})


def _stage() -> Stage:
    return Stage(paths.OUT / "bench" / "link-logs", on_host=lambda host, words: ["ip", "netns", "exec", host, *words])


@dataclass(frozen=True)
class _Starter:
    """Starts processes that end with their input; each has a log of its own."""

    stage: Stage

    def __call__(self, name: str, host: str, words: list[str]) -> Process:
        (self.stage.logs / f"{name}.log").unlink(missing_ok=True)
        return self.stage.start(name, host, words, stdin=subprocess.PIPE)


def _said(process: Process, what: re.Pattern[str]) -> str:
    """What a process's log has of `what`, once it is there."""
    found: list[str] = []

    def has() -> bool:
        found.extend(match[0] for match in what.finditer(process.log.read_text()))
        if not found and not process.running():
            raise ProcessFailed(f"{process.name} ended early: {process.log.read_text().strip()}")
        return bool(found)

    wait_until(f"{process.name} to say {what.pattern}", has, LIMIT_S, pause_s=0.02)
    return found[0]


def _result(process: Process) -> dict[str, Any]:
    return dict(json.loads(_said(process, RESULT)))
