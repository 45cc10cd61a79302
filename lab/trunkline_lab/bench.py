"""`make bench`: our figures beside their peers', medians of several runs, as a table and in out/bench.json.

HDFS is measured on its planes side by side, by turns. Peers of the forwarder (NFD, NDNd) are quoted from their own
measurement on a machine like this one: lab/peers.json says what, how and from which version.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from . import (
    controller_bench,
    figures,
    hbase,
    hdfs_split,
    link_bench,
    mirror_bench,
    packet_sweep,
    paths,
    payload,
    planes,
    repo_bench,
    report,
    secure_bench,
    small_bench,
    transfer,
)
from .cluster import LOG4J, Properties
from .figures import Figure
from .say import say

REPLICATION = 3
DATANODES = 4
CHANNEL_BYTES = 8 << 30  # 1 GiB takes a tenth of a second, which says more of the machine's other work
WARM_UPS = 10  # not counted; in rounds 5 to 7 DataNodes still compile, 0.3 CPU-s a put over TCP and 0.6 over UCX
HBASE_WARM_UPS = 4  # the same of HBase's servers; the load's own JVM is young in each


def hdfs(size: int, runs: int) -> Iterator[Figure]:
    """Puts and gets of one file on each plane by turns; all clusters stand at once, only one works.

    Named data comes twice: by TCP, as between hosts, and by the Unix socket of this host's router, where packets are
    lent; UCX shares memory here as well. Stock TCP's clients come twice, too, as they are and with the packets and
    buffers of the properties for UCX: larger ones are cheaper on any plane, and a user may have them without us.
    """
    directory = paths.OUT / "bench"
    directory.mkdir(parents=True, exist_ok=True)
    source = directory / "input"
    payload.make(source, size)
    costs: dict[str, list[transfer.Cost]] = defaultdict(list)
    sizes = planes.tuned_alike("ucx")
    cases: list[tuple[str, str, Properties]] = [("tcp", "tcp", {}), ("tcp", "tcp sized", sizes)]
    cases += [(plane, plane, {}) for plane in ("ndn", planes.NDN_LOCAL)]
    if lack := planes.ucx_missing():
        say(f"hdfs: not over UCX: {lack}")
    else:
        cases.append(("ucx", "ucx", {}))
    with ExitStack() as stack:
        rigs = {
            plane: stack.enter_context(
                transfer.rig(plane, directory / plane, datanodes=DATANODES, cache_bytes=256 << 20)
            )
            for plane in dict.fromkeys(plane for plane, _, _ in cases)
        }
        for number in range(1 - WARM_UPS, runs + 1):
            for turn in range(len(cases)):  # each is first as often as last
                plane, label, properties = cases[(turn + number) % len(cases)]
                say(f"hdfs {label}: put and get, {'warm-up' if number < 1 else f'run {number} of {runs}'}")
                rig, copy = rigs[plane], directory / "copy"
                copy.unlink(missing_ok=True)
                put = rig.put(source, "/file", REPLICATION, properties=properties, counts=number > 0)
                get = rig.get("/file", copy, properties=properties, counts=number > 0)
                if payload.sha256(copy) != payload.sha256(source):
                    raise RuntimeError(f"{label}: the bytes read are not the bytes written")
                transfer.proven(rig.plane, put, size, REPLICATION, rig.hosts)
                if doubts := transfer.doubts_of_read(rig.plane, get, size):
                    raise RuntimeError(f"{plane} did not carry it all: {'; '.join(doubts)}")
                rig.remove("/file")
                if number > 0:
                    costs[f"{label} put"].append(put)
                    costs[f"{label} get"].append(get)
        hosts = rigs["tcp"].hosts

    def cpu(cost: transfer.Cost) -> float:
        return sum(cost.cpu_s.values())

    def median(what: str, value: Callable[[transfer.Cost], float]) -> float:
        return statistics.median(value(cost) for cost in costs[what])

    def passes_sockets_by(plane: str, what: str) -> bool:
        # They share memory here, and no link carries them.
        return plane in ("ucx", planes.NDN_LOCAL) and what == "bytes"

    def datanode_cpu(cost: transfer.Cost) -> float:
        return cost.cpu_of(rigs["tcp"].datanodes) / (size / 1e9)

    measures: list[tuple[str, str, str, str, Callable[[transfer.Cost], float]]] = [
        ("hdfs.put.r3", "wall", "s", "put", lambda c: c.wall_s),
        ("hdfs.put.r3", "cpu", "CPU-s", "put", cpu),
        ("hdfs.put.r3", "datanode_cpu", "CPU-s/GB", "put", datanode_cpu),
        ("hdfs.put.r3", "bytes", "bytes", "put", lambda c: c.links.total(hosts)),
        ("hdfs.get", "wall", "s", "get", lambda c: c.wall_s),
        ("hdfs.get", "cpu", "CPU-s", "get", cpu),
    ]
    for plane in [plane for plane in rigs if plane != "tcp"]:
        for prefix, what, unit, phase, value in measures:
            if passes_sockets_by(plane, what):
                continue
            ours, theirs = median(f"{plane} {phase}", value), median(f"tcp {phase}", value)
            name = plane.replace("-", "_")
            yield Figure(f"{prefix}.{name}_over_tcp.{what}", ours / theirs, "ratio", "stock TCP, same run", 1.0, runs)
            yield Figure(f"{prefix}.{name}.{what}", ours, unit, "stock TCP, same run", theirs, runs)
        for prefix, what, unit, phase, value in measures:
            if passes_sockets_by(plane, what):
                continue
            ours, theirs = median(f"{plane} {phase}", value), median(f"tcp sized {phase}", value)
            peer = "stock TCP, packets and buffers as large"
            yield Figure(f"{prefix}.same_sizes.{plane.replace('-', '_')}.{what}", ours, unit, peer, theirs, runs)


def hbase_puts(runs: int) -> Iterator[Figure]:
    """1 KB Puts on a stock HBase on HDFS by turns: over stock TCP, by name and, where it can be used, over UCX."""
    names = ["tcp", "ndn", "ucx"]
    if lack := planes.ucx_missing():
        say(f"hbase: not over UCX: {lack}")
        names.remove("ucx")
    results: dict[str, list[hbase.Puts]] = {name: [] for name in names}
    rigs: dict[str, transfer.Rig] = {}
    with ExitStack() as stack:
        servers = {}
        for name in names:
            directory = paths.OUT / "bench" / f"hbase-{name}"
            rig = stack.enter_context(transfer.rig(name, directory, datanodes=REPLICATION, cache_bytes=0))
            rigs[name] = rig
            servers[name] = hbase.HBase(rig.cluster)
            servers[name].start()
        for number in range(1 - HBASE_WARM_UPS, runs + 1):
            for name in names if number % 2 else names[::-1]:
                say(f"hbase {name}: puts, {'warm-up' if number < 1 else f'run {number} of {runs}'}")
                before = rigs[name].carried()
                puts = servers[name].load(threads=8, warm_s=3, seconds=12, records=100_000)
                hbase.prove(name, puts, rigs[name].carried() - before, REPLICATION)
                if number > 0:
                    results[name].append(puts)

    def median(name: str, value: Callable[[hbase.Puts], float]) -> float:
        return statistics.median(value(puts) for puts in results[name])

    measures: list[tuple[str, str, Callable[[hbase.Puts], float]]] = [
        ("p50", "us", lambda p: p.p50_us),
        ("p95", "us", lambda p: p.p95_us),
        ("p99", "us", lambda p: p.p99_us),
        ("mean", "us", lambda p: p.mean_us),
        ("ops", "Puts/s", lambda p: p.per_second),
    ]
    for what, unit, value in measures:
        theirs = median("tcp", value)
        for plane in names[1:]:
            ours = median(plane, value)
            yield Figure(f"hbase.put.{plane}_over_tcp.{what}", ours / theirs, "ratio", "stock TCP, same run", 1.0, runs)
            yield Figure(f"hbase.put.{plane}.{what}", ours, unit, "stock TCP, same run", theirs, runs)


def channel(runs: int) -> Iterator[Figure]:
    """A byte stream through the plug-in's UCX channel and through NIO's over the loopback, two processes, by turns."""
    if lack := planes.ucx_missing():
        say(f"channel: not over UCX: {lack}")
        return
    say(f"channel: {runs} runs of {CHANNEL_BYTES >> 20} MiB each way of sending")
    conf = paths.OUT / "bench" / "channel"
    conf.mkdir(parents=True, exist_ok=True)
    (conf / "log4j.properties").write_text(LOG4J.replace("INFO", "WARN"))
    path = os.pathsep.join([str(conf), *planes.plugin_jars()])
    bench = [paths.java(), "-cp", path, "io.trunkline.hadoop.ucx.ChannelBench"]
    for line in _json_lines([*bench, "run", str(runs), str(CHANNEL_BYTES)], {}):
        name, ours, theirs = f"channel.shm.{line['size']}", line["ucx_gb_s"], line["nio_gb_s"]
        yield Figure(f"{name}.ucx_over_nio", ours / theirs, "ratio", "NIO over loopback, same run", 1.0, runs)
        yield Figure(f"{name}.ucx.gb_s", ours, "GB/s", "NIO over loopback, same run", theirs, runs)
        ours, theirs = line["ucx_cpu_s_per_gb"], line["nio_cpu_s_per_gb"]
        yield Figure(f"{name}.ucx.cpu_s_per_gb", ours, "CPU-s/GB", "NIO over loopback, same run", theirs, runs)


def forwarder(runs: int) -> Iterator[Figure]:
    """`ndn/io`'s throughput example: forwarder, producer and consumer as three processes; digests made and verified."""
    quoted = figures.peers()

    def figure(name: str, value: float, unit: str, peer_of: str | None = None) -> Figure:
        peer = quoted.get(peer_of or name)
        return Figure(name, value, unit, peer.peer if peer else "", peer.value if peer else None, runs)

    env = {"THROUGHPUT_RUNS": str(runs)}
    for case in _example("ndn-io", "throughput", ["unix.8000B", "unix.8000B.socket", "unix.jumbo", "unix.rtt"], env):
        name = f"forwarder.{case['case']}"
        if "p50_us" in case:
            yield figure("forwarder.rtt.p50_us", case["p50_us"], "us")
            yield figure("forwarder.rtt.p99_us", case["p99_us"], "us")
            continue
        like = "forwarder.unix.8000B"
        yield figure(f"{name}.gbit_s", case["gbit_s"], "Gbit/s", f"{like}.gbit_s")
        for process, cost in case["cpu_s_per_gb"].items():
            suffix = "cpu_s_per_gb" if process == "forwarder" else f"{process}_cpu_s_per_gb"
            yield figure(f"{name}.{suffix}", cost, "CPU-s/GB", f"{like}.{suffix}")


WORKERS = (2, 4, 8)
"""Workers that the forwarder is measured with beside one."""


def forwarder_workers(runs: int) -> Iterator[Figure]:
    """The same example with as many pairs of producer and consumer as the forwarder has workers, beside one worker.

    Digests are neither made nor verified: pairs that do take three times the CPU of the worker between them.
    """
    for workers in WORKERS:
        needed = max(4, workers)
        if len(os.sched_getaffinity(0)) < needed:
            say(f"forwarder.workers{workers}: not measured: needs {needed} cores")
            continue
        for case in ["unix.8000B", "unix.jumbo"]:
            one, several = (
                next(
                    _example(
                        "ndn-io",
                        "throughput",
                        [case],
                        {
                            "THROUGHPUT_RUNS": str(runs),
                            "THROUGHPUT_DIGESTS": "0",
                            "THROUGHPUT_PAIRS": str(workers),
                            "THROUGHPUT_WORKERS": str(count),
                        },
                    )
                )
                for count in (1, workers)
            )
            name, peer = f"forwarder.workers{workers}.{case}", "one worker, same run"
            yield Figure(f"{name}.gbit_s", several["gbit_s"], "Gbit/s", peer, one["gbit_s"], runs)
            ours, theirs = (run["cpu_s_per_gb"]["forwarder"] for run in (several, one))
            yield Figure(f"{name}.cpu_s_per_gb", ours, "CPU-s/GB", peer, theirs, runs)


def tables() -> Iterator[Figure]:
    """`ndn/forwarder`'s table_scale example: look-ups with 1,000 and 1,000,000 entries, and what an entry takes."""
    for line in _example("ndn-forwarder", "table_scale", [], {}):
        yield Figure(line["name"], line["value"], line["unit"], "", None, 1)


def _example(package: str, example: str, arguments: list[str], env: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Builds and runs a Rust example that prints JSON lines."""
    say(f"{package}: {example} {' '.join(arguments)}")
    command = ["cargo", "run", "-q", "--release", "-p", package, "--example", example, "--", *arguments]
    yield from _json_lines(command, env)


def _json_lines(command: list[str], env: dict[str, str]) -> Iterator[dict[str, Any]]:
    """What a program prints, a JSON object a line."""
    done = subprocess.run(
        command,
        cwd=paths.ROOT,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with status {done.returncode}")
    for line in done.stdout.splitlines():
        yield json.loads(line)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", default="", help="prefix of the figures wanted")
    parser.add_argument("--runs", type=int, default=5, help="runs per figure (default %(default)s)")
    parser.add_argument("--size", default="1GiB", help="file of the HDFS benches (default %(default)s)")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")


Group = Callable[[], Iterator[Figure]]


def measured(groups: dict[tuple[str, ...], Group], wanted: str) -> tuple[list[Figure], list[str]]:
    """What groups measure, as far as it is wanted, and which failed: an hour's figures outlive one that does."""
    found, failed = [], []
    for prefixes, measure in groups.items():
        try:
            found += [figure for figure in measure() if figure.name.startswith(wanted)]
        except (RuntimeError, OSError) as error:
            say(f"{prefixes[0]}: {error}")
            failed.append(f"{', '.join(prefixes)}: {error}")
    return found, failed


def main(arguments: argparse.Namespace) -> int:
    wanted, runs, size = arguments.only, arguments.runs, payload.parse_size(arguments.size)
    groups: dict[tuple[str, ...], Group] = {
        ("forwarder.unix.", "forwarder.rtt."): lambda: forwarder(runs),
        ("forwarder.workers",): lambda: forwarder_workers(runs),
        (link_bench.PREFIX,): lambda: link_bench.measure(runs),
        ("forwarder.fib.", "forwarder.cs.", "forwarder.caching.", "forwarder.interest", "forwarder.data"): tables,
        ("hdfs.put.", "hdfs.get."): lambda: hdfs(size, runs),
        ("hdfs.split.",): lambda: hdfs_split.measure(size, runs),
        (small_bench.PREFIX,): lambda: small_bench.measure(runs),
        (secure_bench.PREFIX,): lambda: secure_bench.measure(size, runs),
        ("channel.",): lambda: channel(runs),
        ("hbase.put.",): lambda: hbase_puts(runs),
        ("repo.",): lambda: repo_bench.measure(runs, wanted),
        ("controller.",): lambda: controller_bench.measure(runs, wanted),
        (controller_bench.ARMED_PREFIX,): lambda: controller_bench.arming(runs),
        mirror_bench.SETUP_PREFIXES: mirror_bench.setup,
        (mirror_bench.PREFIX,): lambda: mirror_bench.measure(runs),
    }
    # What takes its time and explains a property, or is another set-up: only when it is asked for by name.
    if wanted.startswith(secure_bench.HOSTS_PREFIX.removesuffix(".")):
        groups = {(secure_bench.HOSTS_PREFIX,): lambda: secure_bench.measure_hosts(size, runs)}
    if wanted.startswith("hdfs.packets"):
        groups = {("hdfs.packets.",): lambda: packet_sweep.measure(size, runs, wanted)}
    chosen = {
        prefixes: measure
        for prefixes, measure in groups.items()
        if any(prefix.startswith(wanted) or wanted.startswith(prefix) for prefix in prefixes)
    }
    if not chosen:
        known = ", ".join(
            [prefix for prefixes in groups for prefix in prefixes] + ["hdfs.packets.", secure_bench.HOSTS_PREFIX]
        )
        raise ValueError(f"ONLY={wanted}: no figure begins so; they begin with {known}")
    found, failed = measured(chosen, wanted)
    if not found and not failed:
        raise ValueError(f"ONLY={wanted}: no figure begins so, or none could be measured here: see above")
    print(figures.render(found, report.markdown if arguments.markdown else report.table))
    result = paths.OUT / "bench.json"
    result.parent.mkdir(parents=True, exist_ok=True)
    result.write_text(json.dumps([figure.as_json() for figure in found], indent=2) + "\n")
    say(f"written: {result.relative_to(paths.ROOT)}")
    for failure in failed:
        print(f"FAILED: {failure}", file=sys.stderr)
    return 1 if failed else 0
