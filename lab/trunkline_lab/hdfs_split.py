"""`make bench ONLY=hdfs.split`: a put's time in communication, processing and I/O, as Table II of the paper on RDMA.

The paper put timers into HDFS's code; here HDFS is stock, and async-profiler tells by the stack what a thread is at.
Two measures, each held against a count that is not the profiler's:
- *wall*, as the paper: where the thread is by which a DataNode receives a block, waiting included, for each 64 MiB of
  each replica. Its sum must be what the DataNodes' own logs say that their blocks took.
- *cpu*: what the client and all DataNodes worked at. Its sum must be what the kernel charged these processes with.
  The router, where there is one, stands beside it by what the kernel says.

Stock TCP comes twice, as it is shipped and with packets and buffers as large as the planes of ours have.
"""

from __future__ import annotations

import csv
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from . import paths, payload, planes, replicas, report, transfer
from .cluster import Properties
from .figures import Figure
from .profiler import Profile, Stack
from .say import say

REPLICATION = 3
DATANODES = 4
WARM_UPS = 3
UNIT_BYTES = 64 << 20  # the paper's blocks
TOLERANCE = 0.15  # by which the samples' sum may miss the count beside it

COMMUNICATION, PROCESSING, IO = "communication", "processing", "io"
PARTS = (COMMUNICATION, PROCESSING, IO)
LIBRARY = "library"  # of named data, in Hadoop's threads: copies into and out of segments, checks, seals
FORWARDER = "forwarder"  # of the JVM, in its own thread
COMPILING, REST = "compiling", "rest"
CPU_PARTS = (*PARTS, LIBRARY, FORWARDER, COMPILING, REST)

# SC 2012, Table II: ms of a block of 64 MB, one replica on a hard disk, sockets on InfiniBand (IPoIB) and RDMA (UCR).
PAPER = {
    "tcp": ("paper's IPoIB", {COMMUNICATION: 77, PROCESSING: 139, IO: 131}),
    "ucx": ("paper's RDMA", {COMMUNICATION: 47, PROCESSING: 112, IO: 110}),
}

RECEIVING = "org/apache/hadoop/hdfs/server/datanode/BlockReceiver.receiveBlock"
# A thread that has one of these beneath it is moving the file.
DATA_PATH = (
    "org/apache/hadoop/hdfs/server/datanode/DataXceiver.run",
    "org/apache/hadoop/hdfs/server/datanode/BlockReceiver$PacketResponder.run",
    "org/apache/hadoop/hdfs/DataStreamer",
    "org/apache/hadoop/io/IOUtils.copyBytes",
    "io/trunkline/hadoop/",
)
# From the leaf down, the first frame that begins so tells the part; where none does, it is processing.
FRAMES = {
    "io/trunkline/hadoop/ndn/Native.": LIBRARY,
    "org/apache/hadoop/hdfs/server/datanode/FileIoProvider": IO,
    "org/apache/hadoop/hdfs/server/datanode/fsdataset/impl/": IO,
    "org/apache/hadoop/io/nativeio/": IO,
    "java/io/File": IO,
    "java/io/RandomAccessFile": IO,
    "java/io/UnixFileSystem": IO,
    "sun/nio/ch/FileChannelImpl": IO,
    "sun/nio/fs/": IO,
    "org/apache/hadoop/net/Socket": COMMUNICATION,
    "org/apache/hadoop/ipc/": COMMUNICATION,
    "sun/nio/ch/S": COMMUNICATION,  # sockets and selectors
    "java/net/": COMMUNICATION,
    "io/trunkline/hadoop/": COMMUNICATION,
    "org/openucx/": COMMUNICATION,
    # The end of a block waits for the acknowledgements of the DataNodes behind.
    "org/apache/hadoop/hdfs/server/datanode/BlockReceiver$PacketResponder.close": COMMUNICATION,
}

# Threads that are told by their names.
THREADS = {re.compile(r"\[C[12] Compiler"): COMPILING, re.compile(r"\[ndn-trunkline"): FORWARDER}

Split = dict[str, float]  # seconds of each part


def part(frames: list[str]) -> str:
    """What a thread that moves the file is at."""
    for frame in reversed(frames):
        for beginning, name in FRAMES.items():
            if frame.startswith(beginning):
                return name
    return PROCESSING


def of_receivers(stacks: Iterable[Stack]) -> Split:
    """Where a DataNode's receiving threads were, in seconds of their time."""
    split: Counter[str] = Counter()
    for stack in stacks:
        if any(frame.startswith(RECEIVING) for frame in stack.frames):
            found = part(stack.frames)
            split[COMMUNICATION if found == LIBRARY else found] += stack.seconds
    return split


def of_process(stacks: Iterable[Stack]) -> Split:
    """What a process did, in CPU seconds; the rest is the JVM's start and collector, heartbeats."""
    split: Counter[str] = Counter()
    for stack in stacks:
        own = next((what for pattern, what in THREADS.items() if pattern.match(stack.frames[0])), None)
        moving = any(frame.startswith(DATA_PATH) for frame in stack.frames)
        split[own or (part(stack.frames) if moving else REST)] += stack.seconds
    return split


def added(splits: Iterable[Split]) -> Split:
    """Their sum."""
    total: Counter[str] = Counter()
    for split in splits:
        total.update(split)
    return total


_WRITTEN = re.compile(r"op: HDFS_WRITE, .*blockid: [^:]+:(blk_\d+)_\d+, duration\(ns\): (\d+)")


def logged_s(rig: transfer.Rig, path: str) -> float:
    """How long the DataNodes took to receive the blocks of `path`, by their own logs, all replicas together."""
    wanted = {block.name for block in replicas.blocks(rig.cluster, path)}
    return sum(
        int(nanoseconds) / 1e9
        for datanode in rig.cluster.datanodes
        for block, nanoseconds in _WRITTEN.findall(datanode.process.log.read_text(errors="replace"))
        if block in wanted
    )


def check(what: str, sampled: float, counted: float) -> None:
    """Raises RuntimeError when the profiler did not see what there was."""
    if abs(sampled - counted) > TOLERANCE * counted:
        raise RuntimeError(f"{what}: the profiler saw {sampled:.2f} s of {counted:.2f} s; is the machine busy?")


@dataclass(frozen=True)
class Taken:
    """A put's split, what the sum of its parts should be, and CPU seconds of the router."""

    split: Split
    counted: float
    router_s: float


def profiled(rig: transfer.Rig, source: Path, properties: Properties, event: str, path: str) -> Taken:
    """Puts the file once, to a path that no other put of the cluster had: its blocks are looked up in the logs."""
    profile = Profile(rig.cluster.directory / "profile", event)
    daemons = [datanode.process for datanode in rig.cluster.datanodes]
    for daemon in daemons:
        profile.start(daemon)
    born = profile.from_birth("client") if event == "cpu" else []
    cost = rig.put(source, path, REPLICATION, properties=properties, jvm=born)
    for daemon in daemons:
        profile.stop(daemon)
    transfer.proven(rig.plane, cost, source.stat().st_size, REPLICATION, rig.hosts)
    if event == "wall":
        split = added(of_receivers(profile.stacks(host)) for host in rig.datanodes)
        counted = logged_s(rig, path)
    else:
        hosts = [*rig.datanodes, rig.cluster.client_host()]
        split = added(of_process(profile.stacks(name)) for name in [*rig.datanodes, "client"])
        counted = cost.cpu_of(hosts)
    rig.remove(path)
    check(f"{rig.plane}, {event}", sum(split.values()), counted)
    return Taken(split, counted, cost.cpu_s.get("router", 0.0))


@dataclass
class Measured:
    """Medians of one plane: ms of a DataNode's receiving thread for 64 MiB, CPU seconds of the whole put."""

    wall_ms: Split
    logged_ms: float
    cpu_s: Split
    counted_s: float
    router_s: float


def _medians(size: int, taken: dict[str, list[Taken]]) -> Measured:
    """Of what `profiled` gave, by event."""
    units = REPLICATION * size / UNIT_BYTES

    def median(event: str, what: str) -> float:
        return statistics.median(one.split.get(what, 0.0) for one in taken[event])

    return Measured(
        {what: 1000 * median("wall", what) / units for what in PARTS},
        1000 * statistics.median(one.counted for one in taken["wall"]) / units,
        {what: median("cpu", what) for what in CPU_PARTS},
        statistics.median(one.counted for one in taken["cpu"]),
        statistics.median(one.router_s for one in taken["cpu"]),
    )


def _take(size: int, runs: int, cases: dict[str, tuple[str, Properties]], source: Path) -> dict[str, Measured]:
    """Profiled puts of each case by turns."""
    taken: dict[str, dict[str, list[Taken]]] = {label: defaultdict(list) for label in cases}
    with ExitStack() as stack:
        rigs = {
            plane: stack.enter_context(
                transfer.rig(plane, source.parent / f"split-{plane}", datanodes=DATANODES, cache_bytes=0)
            )
            for plane in dict.fromkeys(plane for plane, _ in cases.values())
        }
        for rig in rigs.values():
            for _ in range(WARM_UPS):
                rig.put(source, "/warm", REPLICATION, counts=False)
                rig.remove("/warm")
        for number in range(runs):
            for event in ("wall", "cpu"):
                for label, (plane, properties) in list(cases.items())[:: 1 if number % 2 else -1]:
                    say(f"hdfs.split {label}: {event}, run {number + 1} of {runs}")
                    path = f"/{event}-{number}-{_word(label)}"
                    taken[label][event].append(profiled(rigs[plane], source, properties, event, path))
    return {label: _medians(size, by_event) for label, by_event in taken.items()}


def render(by_plane: dict[str, Measured]) -> str:
    """Both measures as a person reads them, the paper's beside the first."""
    planes_, names = list(by_plane.values()), list(by_plane)
    papers = [PAPER[name] for name in names if name in PAPER]
    rows = [["a DataNode's receiving thread, ms for 64 MiB", *names, *(paper for paper, _ in papers)]]
    for what in PARTS:
        rows.append([what, *(f"{p.wall_ms[what]:.0f}" for p in planes_), *(str(ms[what]) for _, ms in papers)])
    rows.append(
        ["sum", *(f"{sum(p.wall_ms.values()):.0f}" for p in planes_), *(str(sum(ms.values())) for _, ms in papers)]
    )
    rows.append(["by the DataNodes' logs", *(f"{p.logged_ms:.0f}" for p in planes_)])
    rows += [[], ["client and DataNodes, CPU-s of the put", *names]]
    rows += [[what, *(f"{p.cpu_s[what]:.2f}" for p in planes_)] for what in CPU_PARTS]
    rows.append(["sum", *(f"{sum(p.cpu_s.values()):.2f}" for p in planes_)])
    rows.append(["by the kernel", *(f"{p.counted_s:.2f}" for p in planes_)])
    rows.append(["and of the router", *(f"{p.router_s:.2f}" for p in planes_)])
    return report.table(rows)


def figures(by_plane: dict[str, Measured], runs: int) -> Iterator[Figure]:
    """The same for out/bench.json."""
    wall, cpu, same_run = "hdfs.split.wall", "hdfs.split.cpu", "stock TCP, same run"
    tcp = by_plane["tcp"]
    for name, measured in by_plane.items():
        peer, published = PAPER.get(name, ("", {}))
        for what in PARTS:
            ours, theirs = measured.wall_ms[what], published.get(what)
            yield Figure(f"{wall}.{_word(name)}.{what}", ours, "ms/64MiB", peer, theirs, runs)
        if name == "ucx":
            for what in PARTS:
                ratio, theirs = measured.wall_ms[what] / tcp.wall_ms[what], published[what] / PAPER["tcp"][1][what]
                yield Figure(f"{wall}.ucx_over_tcp.{what}", ratio, "ratio", "paper's RDMA over IPoIB", theirs, runs)
        if name != "tcp":
            for what in CPU_PARTS:
                ours, theirs = measured.cpu_s[what], tcp.cpu_s[what]
                yield Figure(f"{cpu}.{_word(name)}.{what}", ours, "CPU-s", same_run, theirs, runs)
            if measured.router_s:
                yield Figure(f"{cpu}.{_word(name)}.router", measured.router_s, "CPU-s", "", None, runs)


def _word(text: str) -> str:
    """As names of figures have it."""
    return text.replace(" ", "_")


def measure(size: int, runs: int) -> Iterator[Figure]:
    """The split of a put at three replicas on each plane; leaves out/bench/split.csv."""
    source = paths.OUT / "bench" / "input"
    source.parent.mkdir(parents=True, exist_ok=True)
    payload.make(source, size)
    cases: dict[str, tuple[str, Properties]] = {
        "tcp": ("tcp", {}),
        "tcp sized": ("tcp", planes.tuned_alike("ndn")),
        "ndn": ("ndn", {}),
    }
    if lack := planes.ucx_missing():
        say(f"hdfs.split: not over UCX: {lack}")
    else:
        cases["ucx"] = ("ucx", {})
    by_plane = _take(size, runs, cases, source)
    print(f"\n{render(by_plane)}\n", flush=True)
    with (source.parent / "split.csv").open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["measure", "part", *by_plane])
        writer.writerows(["ms_per_64MiB", what, *(p.wall_ms[what] for p in by_plane.values())] for what in PARTS)
        writer.writerows(["cpu_s", what, *(p.cpu_s[what] for p in by_plane.values())] for what in CPU_PARTS)
    yield from figures(by_plane, runs)
