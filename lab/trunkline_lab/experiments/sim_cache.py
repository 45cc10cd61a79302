"""Figs. 7 to 9 of the NDN paper in simulated fat trees of up to 10,000 hosts: content stores of a size, by policy."""

from __future__ import annotations

from typing import Any

from . import sim
from .options import Options
from .plots import Line, Plot
from .result import Result, Row, mb, saved

NAME = "sim-cache"
ABOUT = "Figs. 7 to 9 at scale: what content stores have of jobs' reads in simulated fat trees of up to 10,000 hosts"
BLOCK = 16 << 20
STORE_HOSTS, STORE_ROUTERS = 2 << 20, 64 << 20


def measure(hosts: int, scale: float) -> dict[str, Any]:
    """What `trunkline sim cache` says of its jobs, blocks and stores times `scale`."""
    words = ["--hosts", str(hosts), "--block-size", str(max(1, int(BLOCK * scale)))]
    words += ["--store-hosts", str(int(STORE_HOSTS * scale)), "--resources", str(int((1 << 20) * scale))]
    for level in ("racks", "core"):
        words += [f"--store-{level}", str(int(STORE_ROUTERS * scale))]
    return sim.run(["cache", *words])


def rows(result: Result, hosts: int, report: dict[str, Any]) -> None:
    """Adds what the reads were, and who gave them."""
    sums, tcp = report["potential"], report["tcp"]
    network = sums["network_bytes"]
    result.rows.append(Row(f"{hosts} hosts: block reads over the network", "MB", None, mb(network), None))
    for level, key in (
        ("caches without end at each host", "node_bytes"),
        ("caches without end at hosts and routers", "network_level_bytes"),
        ("one cache without end for all", "unified_bytes"),
    ):
        share = 100 * sums[key] / network if network else 0.0
        result.rows.append(Row(f"{hosts} hosts: of these, {level} had", "%", None, share, None))
    for run in report["runs"]:
        what = f"{hosts} hosts, {run['policy']}"
        both = mb(tcp["taken_bytes"]), mb(run["given_bytes"])
        result.rows.append(Row(f"{what}: given by DataNodes", "MB", None, *both))
        result.rows.append(Row(f"{what}: given, against TCP", "%", None, 0.0, saved(*both)))
        for level in run["levels"]:
            hits = mb(level["hit_bytes"])
            result.rows.append(Row(f"{what}: hits at {level['name']}", "MB", None, None, hits))
        for links in ("core", "all_links"):
            name = "links between routers" if links == "core" else "all links"
            values = mb(tcp[f"{links}_bytes"]), mb(run[f"{links}_bytes"])
            result.rows.append(Row(f"{what}: {name}", "MB", None, *values))
        if run["taken_bytes"] < tcp["taken_bytes"]:
            result.faults.append(f"{what}: {run['taken_bytes']} bytes were taken of {tcp['taken_bytes']}")
        if run["given_bytes"] >= run["taken_bytes"]:
            result.faults.append(f"{what}: content stores had nothing")


def run(options: Options) -> Result:
    """All sizes of network, each with both policies."""
    sim.fat_trees(options)
    result = Result(NAME, ABOUT)
    shares: dict[str, list[float]] = {}
    for hosts in sim.HOSTS:
        report = measure(hosts, options.scale)
        rows(result, hosts, report)
        result.detail.setdefault("sizes", {})[hosts] = report
        sums = report["potential"]
        for label, key in (("potential, with routers", "network_level_bytes"), ("potential, one", "unified_bytes")):
            shares.setdefault(label, []).append(100 * sums[key] / sums["network_bytes"])
        for run_ in report["runs"]:
            remote = run_["taken_bytes"] - run_["local_bytes"]
            had = run_["taken_bytes"] - run_["given_bytes"]
            shares.setdefault(f"{run_['policy']}, measured", []).append(100 * had / remote)
    result.notes.append(
        f"40 jobs of 50 tasks over 20 data sets of {50 * BLOCK * options.scale / 1e6:,.0f} MB, 7 of 10 tasks beside a "
        f"replica; content stores of {mb(STORE_ROUTERS * options.scale):,.0f} MB in each router and of "
        f"{mb(STORE_HOSTS * options.scale):,.1f} MB in each host"
    )
    result.notes.append("TCP's bytes are computed: each read from the nearest replica, over each link of the way")
    title = "What content stores saved DataNodes, of reads over the network"
    groups = [f"{hosts} hosts" for hosts in sim.HOSTS]
    bars = [Line(label, [], values) for label, values in shares.items()]
    result.plots.append(Plot(NAME, title, "", "% of bytes", bars, groups))
    return result
