"""What the experiments of the NDNFS and repo-ng paper share: files put into our repository, by the command and through
its mount, and copied, by turns.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .. import payload, repo_bench
from ..repo_bench import Ran
from ..say import say
from .options import Options
from .result import DIRECTORY, Result

RUNS = 3
SEGMENT_BYTES = 8000  # as ndnputfile's in the paper, "in 8K"
MOST_RSS = 64 << 20
PAPER_RAM = 14e9
NDNFS_S = {700: 22.0, 1000: 39.8}
REPO_NG_S = {700: 1130.4, 1000: 2215.4}
HEADINGS = {
    "paper_tcp": "paper, repo-ng",
    "paper": "paper, NDNFS",
    "tcp": "ext4: cp and fsync",
    "ours": "trunkline repo put",
    "mount": "cp and fsync into trunkline mount",
}


@dataclass(frozen=True)
class Inserted:
    """Medians of one size: the repository's, the copy's, and where there is FUSE, the mount's."""

    mb: int
    put: Ran
    copy: Ran
    mount: Ran | None = None

    def ours(self) -> dict[str, Ran]:
        """Both ways into our repository, or the one there is."""
        ways = {"repo put": self.put, "mount": self.mount}
        return {way: ran for way, ran in ways.items() if ran}


def median(runs: list[Ran]) -> Ran:
    """Time and CPU as in the middle; memory as at its most."""
    return Ran(
        statistics.median(run.wall_s for run in runs),
        max(run.rss_bytes for run in runs),
        statistics.median(run.cpu_s for run in runs),
        "",
    )


def label(mb: int) -> str:
    """A size as the paper writes it."""
    return f"{mb} MB" if mb < 1000 else f"{mb // 1000} GB"


def insert(name: str, sizes_mb: list[int], options: Options, result: Result) -> list[Inserted]:
    """Each size by turns into a new repository and beside it; what was put is verified."""
    directory = DIRECTORY / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    found = []
    try:
        for mb in sizes_mb:
            source = directory / "input"
            payload.make(source, max(1, int(mb * 1e6 * options.scale)))
            found.append(_one(directory, source, mb, result))
            source.unlink()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    result.notes.append(
        f"medians of {RUNS} runs by turns after one that is not counted; the file lies in the page cache; segments of "
        f"{SEGMENT_BYTES} bytes; each put is durable when it ends, and was read again and verified"
    )
    result.notes.append(
        "mount: cp and fsync of the file into a folder that trunkline mount shows; CPU of both, memory of the mount"
        if repo_bench.can_mount()
        else "mount: not measured, no /dev/fuse here"
    )
    result.notes.append("paper: 8 cores of 3.4 GHz, 14 GB of memory; no number where it has a plot alone")
    if options.scale != 1:
        result.notes.append(f"files are {options.scale} times as large as they are called")
    result.headings = HEADINGS
    return found


def _one(directory: Path, source: Path, mb: int, result: Result) -> Inserted:
    puts, copies, mounts = [], [], []
    for number in range(RUNS + 1):
        say(f"{label(mb)}: {f'run {number} of {RUNS}' if number else 'warm-up'}")
        copied = repo_bench.copy_and_remove(source, directory)
        repository = repo_bench.Repository(directory / "repository", SEGMENT_BYTES)
        put = repository.put("/bench/file", source)
        if number == 0:
            _verify(repository, source, mb, result)
        _away(repository.directory)
        if number:
            copies.append(copied)
            puts.append(put)
        if repo_bench.can_mount():
            with repo_bench.Mounted(directory / "mounted") as mount:
                through = mount.put(source)
            if number == 0:
                _verify(mount.repository, source, mb, result)
            else:
                mounts.append(through)
            _away(mount.repository.directory)
    return Inserted(mb, median(puts), median(copies), median(mounts) if mounts else None)


def _away(directory: Path) -> None:
    """Removes a repository, and has the disk done with it before something else is measured."""
    shutil.rmtree(directory)
    subprocess.run(["sync", "-f", str(directory.parent)], check=True)


def _verify(repository: repo_bench.Repository, source: Path, mb: int, result: Result) -> None:
    command = repository.command("verify", "--json", "--quiet")
    told = json.loads(repo_bench.run(command, repository.directory / "verify.log").output)
    if told["damaged"] or told["bytes"] != source.stat().st_size:
        result.faults.append(f"{label(mb)}: {told['bytes']} bytes verified, damaged: {told['damaged']}")


def slower(inserted: Inserted, result: Result) -> None:
    """It is a fault not to beat the paper's quicker system."""
    theirs = NDNFS_S.get(inserted.mb)
    for way, ran in inserted.ours().items():
        if theirs is not None and ran.wall_s >= theirs:
            result.faults.append(f"{label(inserted.mb)}, {way}: {ran.wall_s:.1f} s, NDNFS had {theirs} s")


def larger(inserted: Inserted, result: Result) -> None:
    """It is a fault to need more memory than a repository may."""
    for way, ran in inserted.ours().items():
        if ran.rss_bytes >= MOST_RSS:
            mib = ran.rss_bytes / 2**20
            result.faults.append(f"{label(inserted.mb)}, {way}: {mib:.0f} MiB of memory, 64 are the most")
