"""`make demo`: a real file written and read on stock TCP, on named data and over UCX, host by host.

Status 0 only when all bytes were right and counters prove that each plane carried them. A machine without UCX has one
line in place of its column.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import paths, payload, planes, report, stock, transfer
from .report import mib
from .say import say
from .transfer import Cost

Value = Callable[["Run", Cost], float]

REPLICATION = 3
DATANODES = 4
PHASES = ("write", "first read", "second read")


@dataclass
class Run:
    """A put and two gets on one plane; `faults` says what was wrong or can't be proved."""

    plane: str
    hosts: list[str]
    file_bytes: int
    costs: dict[str, Cost] = field(default_factory=dict)
    sha256_ok: bool = True
    faults: list[str] = field(default_factory=list)

    def bytes_out(self) -> dict[str, int]:
        """Bytes out of each host over put and gets."""
        return {h: sum(c.links.out.get(h, 0) for c in self.costs.values()) for h in self.hosts}

    def bytes_in(self) -> dict[str, int]:
        """Bytes into each host over put and gets."""
        return {h: sum(c.links.into.get(h, 0) for c in self.costs.values()) for h in self.hosts}

    def cache_hits(self) -> int:
        """Segments of the second read out of the router's cache (which answers for a few other names as well)."""
        second = self.costs[PHASES[2]]
        return min(second.cache_hits, second.client("segments_read"))

    def connects(self) -> int:
        """UCX connections that all hosts made; blocks beyond them came over one that was there."""
        return sum(counters.get("ucx_connects", 0) for c in self.costs.values() for counters in c.counters.values())


def run_plane(plane: str, source: Path, directory: Path) -> Run:
    """Puts `source`, gets it twice, compares."""
    size = source.stat().st_size
    wanted = payload.sha256(source)
    with transfer.rig(plane, directory, datanodes=DATANODES, cache_bytes=2 * size + (64 << 20)) as rig:
        run = Run(plane, rig.hosts, size)
        say(f"{plane}: put")
        run.costs[PHASES[0]] = rig.put(source, "/file", REPLICATION)
        for number, phase in enumerate(PHASES[1:], start=1):
            say(f"{plane}: get {number} of 2")
            copy = directory / f"copy-{number}"
            run.costs[phase] = rig.get("/file", copy)
            if payload.sha256(copy) != wanted:
                run.sha256_ok = False
                run.faults.append(f"{phase}: the bytes read are not the bytes written")
            copy.unlink()
    for phase, cost in run.costs.items():
        doubts = (
            transfer.doubts_of_write(plane, cost, size, REPLICATION)
            if phase == PHASES[0]
            else transfer.doubts_of_read(plane, cost, size)
        )
        run.faults += [f"{phase}: {doubt}" for doubt in doubts]
    return run


def as_json(runs: list[Run]) -> dict[str, Any]:
    """The document of out/demo.json."""
    by_plane: dict[str, Any] = {}
    for run in runs:
        by_plane[run.plane] = {
            "write_s": round(run.costs[PHASES[0]].wall_s, 3),
            "read_s": [round(run.costs[phase].wall_s, 3) for phase in PHASES[1:]],
            "host_bytes_out": run.bytes_out(),
            "host_bytes_in": run.bytes_in(),
            "sha256_ok": run.sha256_ok,
        }
        if run.plane == "ndn":
            by_plane[run.plane]["cache_hits"] = run.cache_hits()
        if run.plane == "ucx":
            by_plane[run.plane]["connects"] = run.connects()
    return {"file_bytes": runs[0].file_bytes, "replication": REPLICATION, "planes": by_plane}


def render(runs: list[Run]) -> str:
    """The tables a person reads."""
    names = [run.plane for run in runs]

    def saved(values: list[float]) -> list[str]:
        return [f"{1 - value / values[0]:.0%}" if values[0] else "" for value in values[1:]]

    def by_phase(title: str, value: Value, text: Callable[[float], str], *, total: bool = False) -> str:
        rows = [[title, *names, *(f"{plane} saved" for plane in names[1:])]]
        sums = [0.0] * len(runs)
        for phase in PHASES:
            values = [value(run, run.costs[phase]) for run in runs]
            sums = [a + b for a, b in zip(sums, values, strict=True)]
            rows.append([f"  {phase}", *map(text, values), *saved(values)])
        if total:
            rows.append(["  total", *map(text, sums), *saved(sums)])
        return report.table(rows)

    hosts = [["MiB by host, put and both gets", *(f"{plane} {way}" for plane in names for way in ("out", "in"))]]
    for host in runs[0].hosts:
        cells = [(run.bytes_out()[host], run.bytes_in()[host]) for run in runs]
        hosts.append([f"  {host}", *(mib(count) for pair in cells for count in pair)])
    parts = [
        f"{mib(runs[0].file_bytes)} MiB, replication {REPLICATION}, {DATANODES} DataNodes, "
        f"stock Hadoop {stock.NEWEST} on loopback addresses\n{report.machine()}",
        by_phase("seconds, from start to exit of FsShell", lambda run, cost: cost.wall_s, "{:.2f}".format),
        by_phase("CPU seconds, all hosts and the router", lambda run, cost: sum(cost.cpu_s.values()), "{:.1f}".format),
        report.table(hosts),
        by_phase(
            "MiB over the hosts' links, out and in", lambda run, cost: cost.links.total(run.hosts), mib, total=True
        ),
    ]
    notes = []
    for run in runs:
        unknown = sum(cost.links.unknown for cost in run.costs.values())
        notes.append(
            f"{run.plane}: sha256 {'right' if run.sha256_ok else 'WRONG'}"
            + (f"; {unknown} bytes could not be given to a host" if unknown else "")
        )
        if run.plane == "ndn":
            write, second = run.costs[PHASES[0]], run.costs[PHASES[2]]
            notes += [
                f"ndn: {write.client('named_writes')} blocks written by name in "
                f"{write.client('segments_published')} segments",
                f"ndn: {run.cache_hits()} of the second read's {second.client('segments_read')} segments came from "
                "the router's cache",
            ]
        if run.plane == "ucx":
            writes = run.costs[PHASES[0]].client("ucx_writes")
            notes += [
                f"ucx: {writes} blocks written and all replicas passed on over {run.connects()} UCX connections",
                "ucx: hosts of one machine share memory, which no socket counter sees; its bytes by host are the "
                "transport's own count, beside the sockets' of everything else",
            ]
        for phase, cost in run.costs.items():
            notes += [f"{run.plane}: {phase}: {host}: {reasons}" for host, reasons in cost.fallbacks().items()]
    return "\n\n".join([*parts, "\n".join(notes)])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--size", default="256MiB", help="size of the file to make (default %(default)s)")
    parser.add_argument("--file", type=Path, help="a file of your own instead")
    parser.add_argument("--planes", help="which planes, in order (default tcp,ndn, and ucx where UCX is)")


def main(arguments: argparse.Namespace) -> int:
    directory = paths.OUT / "demo"
    directory.mkdir(parents=True, exist_ok=True)
    source = arguments.file
    if source is None:
        source = directory / "input"
        size = payload.parse_size(arguments.size)
        say(f"making a file of {size} bytes, half text, half random")
        payload.make(source, size)
    lack = planes.ucx_missing()
    names = arguments.planes.split(",") if arguments.planes else [n for n in planes.NAMES if n != "ucx" or not lack]
    runs = [run_plane(plane, source.resolve(), directory / plane) for plane in names]
    print(render(runs))
    if "ucx" not in names and not arguments.planes:
        print(f"\nucx: left out: {lack}")
    result = paths.OUT / "demo.json"
    result.write_text(json.dumps(as_json(runs), indent=2) + "\n")
    say(f"written: {result.relative_to(paths.ROOT)}")
    faults = [f"{run.plane}: {fault}" for run in runs for fault in run.faults]
    for fault in faults:
        print(f"FAILED: {fault}")
    return 1 if faults else 0
