"""`make demo`: a real file written and read on stock TCP and then on named data, host by host.

Status 0 only when all bytes were right and counters prove that named data carried them.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from . import paths, payload, report, transfer
from .say import say
from .transfer import PHASES, Transfer

REPLICATION = 3
DATANODES = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--size", default="256MiB", help="size of the file to make (default %(default)s)")
    parser.add_argument("--file", type=Path, help="a file of your own instead")
    parser.add_argument("--planes", default="tcp,ndn", help="which planes, in order (default %(default)s)")


def main(arguments: argparse.Namespace) -> int:
    names = arguments.planes.split(",")
    directory = paths.OUT / "demo"
    directory.mkdir(parents=True, exist_ok=True)
    source = arguments.file
    if source is None:
        source = directory / "input"
        size = payload.parse_size(arguments.size)
        say(f"making a file of {size} bytes, half text, half random")
        payload.make(source, size)
    done = [
        transfer.run(name, source.resolve(), directory / name, replication=REPLICATION, datanodes=DATANODES)
        for name in names
    ]
    print(render(done))
    result = paths.OUT / "demo.json"
    result.write_text(json.dumps(as_json(done), indent=2) + "\n")
    say(f"written: {result.relative_to(paths.ROOT)}")
    faults = [f"{t.plane}: the bytes read are not the bytes written" for t in done if not t.sha256_ok]
    faults += [f"{t.plane}: {reason}" for t in done for reason in t.unproven]
    for fault in faults:
        print(f"FAILED: {fault}")
    return 1 if faults else 0


def as_json(done: list[Transfer]) -> dict[str, Any]:
    """The document of out/demo.json."""
    planes: dict[str, Any] = {}
    for run in done:
        planes[run.plane] = {
            "write_s": round(run.phases["write"].wall_s, 3),
            "read_s": [round(run.phases[name].wall_s, 3) for name in PHASES[1:]],
            "host_bytes_out": run.bytes_out(),
            "host_bytes_in": run.bytes_into(),
            "sha256_ok": run.sha256_ok,
        }
        if run.plane == "ndn":
            planes[run.plane]["cache_hits"] = run.phases[PHASES[2]].cache_hits
    return {"file_bytes": done[0].file_bytes, "replication": REPLICATION, "planes": planes}


def render(done: list[Transfer]) -> str:
    """The table a person reads."""
    lines = [
        f"{done[0].file_bytes / (1 << 20):.0f} MiB, replication {REPLICATION}, {DATANODES} DataNodes, "
        f"stock Hadoop 3.5.0 on loopback; {report.machine()}",
        "",
    ]
    heads = [run.plane for run in done]
    both = len(done) == 2

    def versus(values: list[float]) -> list[str]:
        return [f"{1 - values[1] / values[0]:+.0%}" if values[0] else ""] if both else []

    rows = [["seconds (FsShell, JVM start included)", *heads, *(["saved"] if both else [])]]
    for name in PHASES:
        walls = [run.phases[name].wall_s for run in done]
        rows.append([f"  {name}", *(f"{w:.2f}" for w in walls), *versus(walls)])
    rows.append(["CPU seconds, all hosts"])
    for name in PHASES:
        cpus = [run.phases[name].cpu_total([*run.hosts, "router"]) for run in done]
        rows.append([f"  {name}", *(f"{c:.1f}" for c in cpus), *versus(cpus)])
    lines += [report.table(rows), ""]

    rows = [["MiB over each host's link", *(f"{run.plane} {way}" for run in done for way in ("out", "in"))]]
    for host in done[0].hosts:
        row = [f"  {host}"]
        for run in done:
            row += [report.human_bytes(run.bytes_out()[host]), report.human_bytes(run.bytes_into()[host])]
        rows.append(row)
    lines += [report.table(rows), ""]

    rows = [["MiB over host links, out and in", *heads, *(["saved"] if both else [])]]
    totals = [0.0] * len(done)
    for name in PHASES:
        values = [float(run.phases[name].bytes.total(run.hosts)) for run in done]
        totals = [a + b for a, b in zip(totals, values, strict=True)]
        rows.append([f"  {name}", *map(report.human_bytes, values), *versus(values)])
    rows.append(["  total", *map(report.human_bytes, totals), *versus(totals)])
    lines += [report.table(rows), ""]
    for run in done:
        unknown = sum(p.bytes.unknown for p in run.phases.values())
        lines.append(
            f"{run.plane}: sha256 {'ok' if run.sha256_ok else 'WRONG'}; {unknown} bytes on sockets of no known host"
        )
    return "\n".join(lines)
