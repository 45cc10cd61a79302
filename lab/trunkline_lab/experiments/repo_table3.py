"""Table III of the NDNFS and repo-ng paper: CPU and memory while 200 MB, 700 MB and 1 GB are inserted."""

from __future__ import annotations

from ..repo_bench import Ran
from . import repo_insert
from .options import Options
from .repo_insert import NDNFS_S, PAPER_RAM, REPO_NG_S, Inserted, label
from .result import Result, Row

NAME = "repo-table3"
ABOUT = "Table III: CPU and memory of an insertion of 200 MB, 700 MB and 1 GB"
CPU_PERCENT = {200: (60.0, 100.0), 700: (59.3, 100.0), 1000: (63.0, 100.0)}  # NDNFS, repo-ng
MEMORY_PERCENT = {200: (0.1, 16.3), 700: (0.1, 55.3), 1000: (0.1, 77.0)}


def rows(found: Inserted) -> list[Row]:
    """Of one size. Memory in MB, of the paper's from its percent; its CPU time from percent and seconds."""
    mb, put, copy, mount = found.mb, found.put, found.copy, found.mount
    (ndnfs, repo_ng), (ndnfs_memory, repo_ng_memory) = CPU_PERCENT[mb], MEMORY_PERCENT[mb]
    made = [
        Row(
            f"{label(mb)}: CPU",
            "% of a core",
            ndnfs,
            cpu_percent(copy),
            cpu_percent(put),
            repo_ng,
            mount=cpu_percent(mount) if mount else None,
        )
    ]
    theirs = [
        seconds[mb] * percent / 100 if mb in seconds else None
        for seconds, percent in ((NDNFS_S, ndnfs), (REPO_NG_S, repo_ng))
    ]
    cpu_s = mount.cpu_s if mount else None
    made.append(Row(f"{label(mb)}: CPU time", "CPU-s", theirs[0], copy.cpu_s, put.cpu_s, theirs[1], mount=cpu_s))
    theirs = [percent / 100 * PAPER_RAM / 1e6 for percent in (ndnfs_memory, repo_ng_memory)]
    memory = mount.rss_bytes / 1e6 if mount else None
    made.append(Row(f"{label(mb)}: memory", "MB", theirs[0], None, put.rss_bytes / 1e6, theirs[1], mount=memory))
    return made


def cpu_percent(ran: Ran) -> float:
    """CPU time over wall time, in percent of a core."""
    return 100 * ran.cpu_s / ran.wall_s


def run(options: Options) -> Result:
    """All three sizes."""
    result = Result(NAME, ABOUT)
    for found in repo_insert.insert(NAME, list(CPU_PERCENT), options, result):
        result.rows += rows(found)
        repo_insert.larger(found, result)
    result.notes.append(
        "CPU: the command's own time over its seconds, which more than one core makes more than 100%; the paper's CPU "
        "time is its percent times its seconds, its memory its percent of 14 GB; ours are the most resident at once"
    )
    return result
