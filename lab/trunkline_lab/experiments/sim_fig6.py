"""Fig. 6 of the NDN paper in simulated fat trees of up to 10,000 hosts."""

from __future__ import annotations

from typing import Any

from . import sim
from .ndn_fig6 import MOST, PAPER_SAVED
from .options import Options
from .plots import Line, Plot
from .result import Result, Row, mb, saved

NAME = "sim-fig6"
ABOUT = "Fig. 6 at scale: traffic of writes of 1 GB in all in simulated fat trees of 128, 1,024 and 10,000 hosts"
SIZE = 1 << 30
WRITERS = 32
# Headers, Interests and acknowledgements; an idle link's worth of a block would be far more.
MOST_ABOVE_TREE = 1.12


def measure(hosts: int, scale: float) -> dict[int, dict[str, dict[str, Any]]]:
    """By number of replicas and plane what `trunkline sim write` says: a block of each of 32 writers."""
    block = max(1, int(SIZE * scale) // WRITERS)
    words = ["--hosts", str(hosts), "--writers", str(WRITERS), "--blocks", str(WRITERS)]
    report = sim.run(["write", *words, "--block-size", str(block), "--replicas", f"1..{MOST}"])
    found: dict[int, dict[str, dict[str, Any]]] = {}
    for run in report["runs"]:
        found.setdefault(run["replicas"], {})[run["plane"]] = run
    return found


def rows(result: Result, hosts: int, runs: dict[int, dict[str, dict[str, Any]]]) -> None:
    """Adds what was put on the links, and says where that is too much."""
    for replicas, planes in runs.items():
        tcp, ours, what = planes["tcp"], planes["named"], f"{hosts} hosts, {replicas} replicas"
        for links, key in (("hosts' links", "hosts"), ("all links", "all_links")):
            values = mb(tcp[f"{key}_bytes"]), mb(ours[f"{key}_bytes"])
            limit = mb(ours[f"least_{key}_bytes"])
            result.rows.append(Row(f"{what}: {links}", "MB", None, *values, limit=limit))
            if values[1] > MOST_ABOVE_TREE * limit and replicas > 1:
                result.faults.append(f"{what}: {links}: {values[1]:.0f} MB, and the tree takes {limit:.0f}")
        if replicas > 1:
            less = saved(tcp["hosts_bytes"], ours["hosts_bytes"])
            result.rows.append(Row(f"{what}: against TCP", "%", PAPER_SAVED.get(replicas), 0.0, less))
            # With two replicas there is one transfer on either plane, and Interests come on top.
            if replicas > 2 and less > PAPER_SAVED.get(replicas, 0.0):
                result.faults.append(f"{what}: {less:.1f}% against TCP, above the paper's")


def run(options: Options) -> Result:
    """All sizes of network, one after the other."""
    sim.fat_trees(options)
    result = Result(NAME, ABOUT)
    lines = []
    for hosts in sim.HOSTS:
        runs = measure(hosts, options.scale)
        rows(result, hosts, runs)
        x = [float(replicas) for replicas in runs]
        tcp, ours = ([mb(planes[plane]["all_links_bytes"]) for planes in runs.values()] for plane in ("tcp", "named"))
        tree = [mb(planes["named"]["least_all_links_bytes"]) for planes in runs.values()]
        lines += [Line(f"TCP, {hosts} hosts", x, tcp), Line(f"Trunkline, {hosts}", x, ours)]
        lines.append(Line(f"multicast tree, {hosts}", x, tree, dashed=True))
        result.detail.setdefault("took_s_by_hosts", {})[hosts] = sum(
            run["took_s"] for planes in runs.values() for run in planes.values()
        )
    result.notes.append(f"{WRITERS} writers at once, a block each; the paper's percentages are of its 16 hosts")
    result.notes.append(
        "limit: each block once over every link of the tree from its writer to its replicas, no headers"
    )
    result.plots.append(Plot(NAME, "Traffic of writes over all links, simulated fat trees", "replicas", "MB", lines))
    return result
