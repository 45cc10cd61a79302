"""`make bench ONLY=hdfs.packets`: what a put costs by the size of HDFS's packets, and which size a plane should have.

Recommended is the smallest packet whose put takes no longer than the quickest of all, but for `NEAR`: larger ones only
cost memory, in the client's queue and in each DataNode. The paper on RDMA (SC 2012, Table I) has the same sweep.
"""

from __future__ import annotations

import csv
import statistics
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack

from . import paths, payload, planes, report, transfer
from .cluster import PACKET_SIZE, PACKETS_IN_FLIGHT, Properties
from .figures import Figure
from .say import say

SIZES_KIB = (64, 128, 256, 512, 1024)
NEAR = 0.05  # more than two medians of the same differ by
IN_FLIGHT_KIB = 8192  # of packets that wait for acknowledgement, whatever their size
REPLICATION = 3
DATANODES = 4
PAPER = {"tcp": ("paper's 1 and 10 Gbit/s Ethernet", 64.0), "ucx": ("paper's RDMA", 512.0)}


def recommended(wall_s: dict[int, float]) -> int:
    """The smallest size that is as quick as any."""
    least = min(wall_s.values())
    return min(size for size, wall in wall_s.items() if wall <= (1 + NEAR) * least)


def in_packets(kib: int) -> Properties:
    """A client's properties for packets of that size."""
    return {PACKET_SIZE: str(kib << 10), PACKETS_IN_FLIGHT: str(IN_FLIGHT_KIB // kib)}


def medians(costs: list[transfer.Cost], datanodes: list[str]) -> dict[str, float]:
    """Seconds of a put, CPU seconds of all processes and of the DataNodes alone."""
    return {
        "wall": statistics.median(cost.wall_s for cost in costs),
        "cpu": statistics.median(sum(cost.cpu_s.values()) for cost in costs),
        "datanode_cpu": statistics.median(cost.cpu_of(datanodes) for cost in costs),
    }


def planes_of(wanted: str) -> list[str]:
    """The planes whose figures begin with `wanted`, or could."""
    prefixes = {plane: f"hdfs.packets.{plane}." for plane in planes.NAMES}
    chosen = [plane for plane, prefix in prefixes.items() if prefix.startswith(wanted) or wanted.startswith(prefix)]
    if "ucx" in chosen and (lack := planes.ucx_missing()):
        say(f"hdfs.packets: not over UCX: {lack}")
        chosen.remove("ucx")
    return chosen


def measure(size: int, runs: int, wanted: str) -> Iterator[Figure]:
    """Puts of one file in packets of each size on each plane, by turns; leaves out/bench/packets.csv."""
    directory = paths.OUT / "bench"
    directory.mkdir(parents=True, exist_ok=True)
    source = directory / "input"
    payload.make(source, size)
    costs: dict[tuple[str, int], list[transfer.Cost]] = defaultdict(list)
    names = planes_of(wanted)
    with ExitStack() as stack:
        rigs = {
            name: stack.enter_context(
                transfer.rig(name, directory / f"packets-{name}", datanodes=DATANODES, cache_bytes=0)
            )
            for name in names
        }
        cases = [(name, kib) for kib in SIZES_KIB for name in names]
        for rig in rigs.values():
            for kib in (SIZES_KIB[-1], SIZES_KIB[0]):  # warms up
                rig.put(source, "/file", REPLICATION, properties=in_packets(kib), counts=False)
                rig.remove("/file")
        for number in range(runs):
            for name, kib in cases if number % 2 else cases[::-1]:
                say(f"hdfs.packets {name}: {kib} KiB, run {number + 1} of {runs}")
                cost = rigs[name].put(source, "/file", REPLICATION, properties=in_packets(kib))
                costs[name, kib].append(transfer.proven(name, cost, size, REPLICATION, rigs[name].hosts))
                rigs[name].remove("/file")
        values = {case: medians(costs[case], rigs[case[0]].datanodes) for case in cases}
    best = {name: recommended({kib: values[name, kib]["wall"] for kib in SIZES_KIB}) for name in names}
    titles = {"wall": "s", "cpu": "CPU-s", "datanode_cpu": "CPU-s of DataNodes"}
    rows = [["packet", *(f"{name}, {title}" for name in names for title in titles.values())]]
    for kib in SIZES_KIB:
        rows.append([f"{kib} KiB", *(f"{values[name, kib][what]:.2f}" for name in names for what in titles)])
    said = "; ".join(f"{name}: {best[name]} KiB recommended, {_configured(name)} configured" for name in names)
    print(f"\n{report.table(rows)}\n\n{said}\n", flush=True)
    with (directory / "packets.csv").open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["plane", "packet_bytes", "wall_s", "cpu_s", "datanode_cpu_s", "runs"])
        for name, kib in cases:
            writer.writerow([name, kib << 10, *(round(values[name, kib][what], 3) for what in titles), runs])
    for name, kib in cases:
        for what, unit in (("wall", "s"), ("cpu", "CPU-s")):
            yield Figure(f"hdfs.packets.{name}.{kib}k.{what}", values[name, kib][what], unit, "", None, runs)
    for name in names:
        peer, published = PAPER.get(name, ("", None))
        yield Figure(f"hdfs.packets.{name}.recommended", float(best[name]), "KiB", peer, published, runs)


def _configured(plane: str) -> str:
    """What `trunkline hadoop conf` prints for the plane."""
    if plane == "tcp":
        return "64 KiB by Hadoop itself"
    return f"{int(planes.pasted(plane)[PACKET_SIZE]) >> 10} KiB"
