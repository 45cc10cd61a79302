"""Figs. 7 to 9 and Table 3 of the NDN paper: what caches could serve of jobs' block reads, and what real ones do serve.

The potential comes from the reads that DataNodes trace over stock TCP, through `trunkline cache-potential`; the hits
from routers' content stores of a given size, under the same jobs by name.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import paths, planes, workloads
from ..hostbytes import LinkBytes
from ..jobs import Jobs
from ..net import data_center, flows, topology_file
from ..net.data_center import LabRig
from ..net.meter import LabBytes
from ..say import say
from ..transfer import BLOCK_BYTES
from ..workloads import Workload
from . import sim
from .options import Options
from .plots import Line, Plot
from .result import DIRECTORY, Result, Row, mb, saved

NAME = "ndn-cache"
ABOUT = "Figs. 7 to 9, Table 3: jobs' block reads that caches could serve, and those that content stores of a size do"
SCALE = 0.004
TOPOLOGY = "jobs"
# Content stores: of each rack's router and the core's, and of each host's forwarder. At scale 0.004 TestDFSIO and
# TeraSort have 40 MB of data, which these can't keep.
STORES = 16 << 20, 2 << 20
POLICIES = {"lru": "LRU", "s3-fifo": "S3-FIFO"}
SEGMENT_BYTES = 64512
LEAST_BLOCK_BYTES = 8 << 20
DISK_COPIES = 10  # of a job's data at once: three replicas of what goes in and comes out, spills and merges of tasks
BIN_S = 5

# Table 3, its 16 nodes
PAPER_NETWORK_GB = {
    "TestDFSIO": 9.98,
    "TeraSort": 14.13,
    "WordCount": 58.02,
    "PageRank": 0.91,
    "MahoutBayes": 6.79,
    "K-Means": 4.33,
}


@dataclass
class Done:
    """One workload on a plane. Bytes by name: what readers took, what DataNodes gave, what each level's stores gave.

    `replay` is what the simulator makes of the workload's traced reads. `steps` has of each job what its bytes over all
    links were: payload by category, and with all headers under "all".
    """

    total_bytes: int
    taken: int = 0
    given: int = 0
    hits: dict[str, int] = field(default_factory=dict)
    potential: dict[str, Any] = field(default_factory=dict)
    replay: dict[str, Any] = field(default_factory=dict)
    steps: dict[str, dict[str, int]] = field(default_factory=dict)


def segments(directory: Path) -> tuple[int, int]:
    """Segments that readers have taken by name so far, and those that DataNodes have given of their replicas."""
    taken = given = 0
    for record in planes.stats(directory, "*"):
        taken += record.get("segments_read", 0)
        given += sum(node.get("block_source", {}).get("segments", 0) for node in record.get("nodes", []))
    return taken, given


def hits(rig: LabRig) -> dict[str, int]:
    """Interests answered by content stores so far, by the level of the tree."""
    topology = rig.topology
    racks = {topology.router_of(host) for host in topology.hosts}
    found = {"hosts": 0, "racks": 0, "core": 0}
    for router in rig.center.routers:
        level = "hosts" if router.host in topology.hosts else "racks" if router.host in racks else "core"
        found[level] += router.cache_hits()
    return found


def by_category(rig: LabRig, links: LinkBytes) -> dict[str, int]:
    """Bytes over all links; payload that crosses three links counts three times."""
    assert isinstance(links, LabBytes)
    total: dict[str, int] = {"all": links.links.total()}
    for kinds in flows.by_way(rig.topology, list(links.flows.values())).values():
        for kind, count in kinds.items():
            total[kind] = total.get(kind, 0) + count
    return total


@contextmanager
def traced(rig: LabRig, directory: Path) -> Iterator[list[Path]]:
    """The DataNodes' logs of the block alone, as files that are there after it."""
    logs = [datanode.process.log for datanode in rig.cluster.datanodes if datanode.process]
    begins = [log.stat().st_size for log in logs]
    directory.mkdir(parents=True, exist_ok=True)
    cuts: list[Path] = []
    yield cuts
    for log, begin in zip(logs, begins, strict=True):
        with log.open("rb") as source:
            source.seek(begin)
            cut = directory / log.name
            cut.write_bytes(source.read())
        cuts.append(cut)


def potential(rig: LabRig, jobs: Jobs, logs: list[Path]) -> dict[str, Any]:
    """What `trunkline cache-potential --json` says of the logs, by the phases of the jobs."""
    words = [str(paths.TRUNKLINE), "cache-potential", "--json", "--bin", f"{BIN_S}s"]
    words += ["--racks", str(data_center.rack_table(rig.topology, rig.cluster.directory))]
    words += [word for phase in jobs.phases for word in ("--phase", f"{phase.began}={phase.name}")]
    done = subprocess.run([*words, *map(str, logs)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"cache-potential: {done.stderr.strip()}")
    return dict(json.loads(done.stdout)["potential"])


def replay(rig: LabRig, source: str, logs: list[Path]) -> dict[str, Any]:
    """What `trunkline sim cache` makes of the logs' reads: the same for each policy, as no second run of a job is.

    `source` names the topology.
    """
    words = ["cache", "--topology", str(topology_file.path_of(source)), "--routing", "learned"]
    words += ["--racks", str(data_center.rack_table(rig.topology, rig.cluster.directory))]
    routers, hosts = map(str, STORES)
    words += ["--store-hosts", hosts, "--store-racks", routers, "--store-core", routers]
    return sim.run([*words, "--trace", *map(str, logs)])


def once(rig: LabRig, workload: Workload, size: int, result: Result, label: str) -> Done:
    """Runs a workload and counts."""
    say(f"{label}: {workload.name}, {size / 1e6:g} MB")
    jobs = Jobs(rig.cluster, rig.cluster.directory / "scratch", read_links=rig.meter.read)
    jobs.scratch.mkdir(parents=True, exist_ok=True)
    named = rig.plane == "ndn"
    taken, given = segments(rig.cluster.directory)
    before, hit = rig.meter.read(), hits(rig)
    with traced(rig, rig.cluster.directory / "traces" / workload.name) as logs:
        result.faults += [f"{label}: {fault}" for fault in workload.run(jobs, size)]
    links = rig.meter.read() - before
    assert isinstance(links, LabBytes)
    done = Done(links.links.total(), steps={step: by_category(rig, found) for step, found in jobs.links.items()})
    if named:
        taken_now, given_now = segments(rig.cluster.directory)
        done.taken, done.given = (taken_now - taken) * SEGMENT_BYTES, (given_now - given) * SEGMENT_BYTES
        done.hits = {level: (count - hit[level]) * SEGMENT_BYTES for level, count in hits(rig).items()}
    else:
        done.potential = potential(rig, jobs, logs)
    return done


def measure(options: Options, plane: str, result: Result, policy: str = "lru") -> dict[str, Done]:
    """All workloads, or those chosen, on a plane in one data centre; content stores begin each of them empty."""
    source = options.topology or TOPOLOGY
    topology = topology_file.named(source)
    block = min(BLOCK_BYTES, max(LEAST_BLOCK_BYTES, int(BLOCK_BYTES * options.scale) // (1 << 20) * (1 << 20)))
    found: dict[str, Done] = {}
    label = plane if plane == "tcp" else f"{plane}-{policy}"
    directory, extra = DIRECTORY / NAME / label, {"dfs.blocksize": str(block)}
    chosen = workloads.named(options.jobs)
    most = int(max(workload.paper_bytes for workload in chosen) * options.scale)
    with data_center.rig(
        topology,
        plane,
        directory,
        lab=options.lab,
        cache_policy=policy,
        extra=extra,
        disk_bytes=DISK_COPIES * most,
    ) as rig:
        for workload in chosen:
            for router in rig.center.routers:
                router.keep(STORES[router.host in topology.hosts])
            size = max(1, int(workload.paper_bytes * options.scale))
            found[workload.name] = once(rig, workload, size, result, label)
            if plane == "tcp":
                logs = sorted((rig.cluster.directory / "traces" / workload.name).iterdir())
                try:
                    found[workload.name].replay = replay(rig, source, logs)
                except RuntimeError as error:
                    result.faults.append(f"{label}: {workload.name}: {error}")
        if plane == "ndn" and (fallbacks := fallbacks_of(rig)):
            result.notes.append(f"{label}: went by TCP: {fallbacks}")
    return found


def fallbacks_of(rig: LabRig) -> planes.Counters:
    """Operations that went by stock TCP after all, over all JVMs."""
    total: planes.Counters = {}
    for record in planes.stats(rig.cluster.directory, "*"):
        for reason, count in record.get("fallbacks", {}).items():
            total[reason] = total.get(reason, 0) + count
    return {reason: count for reason, count in total.items() if count}


def run(options: Options) -> Result:
    """Stock TCP first, for the trace; then by name, once for each policy of content stores."""
    result = Result(NAME, ABOUT)
    tcp = measure(options, "tcp", result)
    ours = {policy: measure(options, "ndn", result, policy) for policy in POLICIES}
    for name, traced_ in tcp.items():
        sums = traced_.potential["all"]
        paper = 1000 * options.scale * PAPER_NETWORK_GB[name]
        result.rows.append(Row(f"{name}: block reads over the network", "MB", paper, mb(sums["network_bytes"]), None))
        for level, key in (("each host", "node_bytes"), ("hosts and routers", "network_level_bytes")):
            share = 100 * sums[key] / sums["network_bytes"] if sums["network_bytes"] else 0.0
            result.rows.append(Row(f"{name}: of these, caches without end at {level} had", "%", None, share, None))
        share = 100 * sums["unified_bytes"] / sums["network_bytes"] if sums["network_bytes"] else 0.0
        result.rows.append(Row(f"{name}: of these, one cache without end for all had", "%", None, share, None))
        local = mb(sums["local_bytes"] + sums["network_bytes"])
        for policy, by_name in ours.items():
            done, size = by_name[name], f"{STORES[0] >> 20} MiB {POLICIES[policy]}"
            result.rows.append(Row(f"{name}, {size}: all block reads", "MB", None, local, mb(done.taken)))
            result.rows.append(Row(f"{name}, {size}: given by DataNodes", "MB", None, local, mb(done.given)))
            change = saved(done.taken, done.given)
            result.rows.append(Row(f"{name}, {size}: given, against all reads", "%", None, 0.0, change))
            for level, count in done.hits.items():
                what = f"{name}, {size}: hits at {level}, of writes too"
                result.rows.append(Row(what, "MB", None, None, mb(count)))
            both = mb(traced_.total_bytes), mb(done.total_bytes)
            result.rows.append(Row(f"{name}, {size}: all links", "MB", None, *both))
            result.rows += _replayed(f"{name}, {size}", policy, traced_.replay)
            if done.taken == 0:
                result.faults.append(f"{name}, {size}: nothing was read by name")
    result.detail["steps"] = {
        "tcp": {name: done.steps for name, done in tcp.items()},
        **{policy: {name: done.steps for name, done in by_name.items()} for policy, by_name in ours.items()},
    }
    result.detail["jobs"] = options.jobs
    result.detail["potential"] = {name: done.potential for name, done in tcp.items()}
    result.notes.append(
        f"routers' content stores are of the size named, hosts' of {STORES[1] >> 20} MiB; "
        "what is local over TCP is read by name, too"
    )
    result.notes.append(
        "DataNodes may give more than readers take: segments asked for ahead that nobody took, "
        "or given by several replicas"
    )
    result.notes.append(
        "traced reads simulated: the reads of the run over TCP, the same for both policies, by `trunkline sim cache`"
    )
    result.plots += [_over_time(tcp), _levels(tcp)]
    return result


def _replayed(what: str, policy: str, replay_: dict[str, Any]) -> list[Row]:
    """What one policy made of the traced reads, as the simulator has it."""
    if not replay_:
        return []
    (run_,) = (run for run in replay_["runs"] if run["policy"] == policy)
    hits = sum(level["hit_bytes"] for level in run_["levels"])
    taken, given = mb(run_["taken_bytes"]), mb(run_["given_bytes"])
    return [
        Row(f"{what}, traced reads simulated: given by DataNodes", "MB", None, taken, given),
        Row(f"{what}, traced reads simulated: hits at all levels", "MB", None, None, mb(hits)),
    ]


def _over_time(tcp: dict[str, Done]) -> Plot:
    """Fig. 7: hits of one cache for all, as a share of what was read so far, phase by phase."""
    lines = []
    for name, done in tcp.items():
        steps = [step for step in done.potential["over_time"] if step["network_bytes"]]
        shares = [100 * step["unified_bytes"] / step["network_bytes"] for step in steps]
        if steps:
            lines.append(Line(name, [step["until_ms"] / 1000 for step in steps], shares))
    title = "Reads that one cache without end had, since each phase began"
    return Plot(f"{NAME}-over-time", title, "s since the first read", "% of bytes", lines)


def _levels(tcp: dict[str, Done]) -> Plot:
    """Fig. 9: the potential of caches at hosts, with routers, and of one for all."""
    lines = []
    for label, key in (("hosts", "node_bytes"), ("with routers", "network_level_bytes"), ("one", "unified_bytes")):
        sums = [done.potential["all"] for done in tcp.values()]
        lines.append(Line(label, [], [100 * s[key] / s["network_bytes"] if s["network_bytes"] else 0.0 for s in sums]))
    return Plot(f"{NAME}-levels", "Caching potential of block reads", "", "% of bytes", lines, list(tcp))
