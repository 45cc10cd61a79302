"""The repository's figures: files in beside `cp` and fsync, out over a forwarder, many small ones; packets at scale.

Every run copies and puts the same file by turns; the file lies in the page cache. Repositories are made anew.
"""

from __future__ import annotations

import json
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from . import paths, payload, store_bench
from .figures import Figure
from .procs import Process, Stage, cpu_of, tail, wait_until
from .routers import Router
from .say import say

BYTES = 10**9
SMALL_FILES = 100_000
SMALL_BYTES = 4096
SEGMENTS = {"8000B": 8000, "jumbo": 60_000}


@dataclass
class Ran:
    """A command that ran to its end: wall time, the most memory it had resident at once, its CPU time."""

    wall_s: float
    rss_bytes: int
    cpu_s: float
    output: str


def run(command: list[str], log: Path) -> Ran:
    """Runs a command to a good end, no other process of ours beside it."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with log.open("wb") as errors, tempfile.TemporaryFile("w+") as said:  # more than a pipe takes of 100,000 files
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=errors)
        rss = 0
        while process.poll() is None:
            rss = max(rss, peak_rss(process.pid))
            time.sleep(0.005)
        wall = time.monotonic() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        said.seek(0)
        output = said.read()
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:4])} … ended with status {process.returncode}:\n{tail(log)}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Ran(wall, rss, cpu, output)


def peak_rss(pid: int) -> int:
    """The most memory a process has had resident since it began its program; 0 once it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:")), 0)


def copy(source: Path, target: Path, log: Path) -> Ran:
    """`cp` and fsync of a file."""
    return run(["sh", "-c", 'cp "$0" "$1" && sync "$1"', str(source), str(target)], log)


def copy_and_remove(source: Path, directory: Path) -> Ran:
    """`cp` and fsync of a file into a folder; the copy is removed."""
    target = directory / "copy"
    copied = copy(source, target, directory / "cp.log")
    target.unlink()
    return copied


class Repository:
    """A folder, a configuration and the commands to it."""

    def __init__(self, directory: Path, segment_bytes: int) -> None:
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        self.directory = directory
        self.config = directory / "repo.toml"
        self.config.write_text(
            f'[repo]\ndirectory = "store"\nkey = "digest"\nsegment_size = "{segment_bytes}"\n'
            '[[serve]]\nprefix = "/bench"\n'
        )

    def command(self, verb: str, *arguments: str) -> list[str]:
        return [str(paths.built(paths.TRUNKLINE)), "repo", verb, "--config", str(self.config), *arguments]

    def put(self, name: str, source: Path) -> Ran:
        return run(self.command("put", "--json", "--quiet", name, str(source)), self.directory / "put.log")

    def status(self) -> dict[str, Any]:
        return json.loads(run(self.command("status", "--json"), self.directory / "status.log").output)


def measure(runs: int, wanted: str) -> Iterator[Figure]:
    """Those of the groups in which a figure may begin with `wanted`."""
    directory = paths.OUT / "bench" / "repo"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    source = directory / "input"
    payload.make(source, BYTES)
    groups: dict[tuple[str, ...], Callable[[], Iterator[Figure]]] = {
        ("repo.put.1gb", "repo.put.rss"): lambda: puts(directory, source, runs),
        ("repo.mount.",): lambda: mounted(directory, source, runs),
        ("repo.serve.",): lambda: serving(directory, source, runs),
        ("repo.store.",): lambda: store_bench.measure(directory / "hdfs", runs),
        ("repo.remote.",): lambda: remote(directory, source, runs),
        ("repo.put.100k_files", "repo.index.per_file"): lambda: small_files(directory),
        ("repo.index.1", "repo.insert.", "repo.start."): lambda: scale(directory),
    }
    try:
        for prefixes, group in groups.items():
            if any(prefix.startswith(wanted) or wanted.startswith(prefix) for prefix in prefixes):
                yield from group()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def puts(directory: Path, source: Path, runs: int) -> Iterator[Figure]:
    """One GB by `cp` and fsync, and by `repo put`, each into a place where nothing is yet."""
    copies, ours = [], []
    for number in range(runs + 1):  # the first warms up and is not counted
        say(f"repo: put 1 GB, {f'run {number} of {runs}' if number else 'warm-up'}")
        copied = copy_and_remove(source, directory)
        repository = Repository(directory / "put", SEGMENTS["8000B"])
        put = repository.put("/bench/file", source)
        shutil.rmtree(repository.directory)
        subprocess.run(["sync", "-f", str(directory)], check=True)
        if number:
            copies.append(copied.wall_s)
            ours.append(put)
    cp_s, put_s = statistics.median(copies), statistics.median(p.wall_s for p in ours)
    yield Figure("repo.put.1gb_over_cp", put_s / cp_s, "ratio", "cp and fsync, same run", 1.0, runs)
    yield Figure("repo.put.1gb_s", put_s, "s", "cp and fsync, same run", cp_s, runs)
    yield Figure("repo.put.rss_mib", max(p.rss_bytes for p in ours) / 2**20, "MiB", "", None, runs)


class Mount:
    """`trunkline mount` at a folder while the block lasts."""

    def __init__(self, point: Path, *arguments: str) -> None:
        self.point = point
        self.point.mkdir(exist_ok=True)
        self.command = [str(paths.TRUNKLINE), "mount", str(point), *arguments]

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        wait_until("the mount", self.point.is_mount, 20)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(timeout=60)

    def peak_rss(self) -> int:
        return peak_rss(self.process.pid)


class Mounted(Mount):
    """A new repository that is mounted while the block lasts."""

    def __init__(self, directory: Path) -> None:
        self.repository = Repository(directory, SEGMENTS["8000B"])
        super().__init__(directory / "mnt", "--config", str(self.repository.config))

    def put(self, source: Path) -> Ran:
        """`cp` and fsync of a file into it: the copy's time, the mount's memory, the CPU time of both."""
        before = cpu_of(self.process.pid)
        copied = copy(source, self.point / "file", self.repository.directory / "cp.log")
        cpu = copied.cpu_s + cpu_of(self.process.pid) - before
        return Ran(copied.wall_s, self.peak_rss(), cpu, "")


def can_mount() -> bool:
    """Whether the kernel has FUSE for us."""
    return Path("/dev/fuse").exists()


def mounted(directory: Path, source: Path, runs: int) -> Iterator[Figure]:
    """One GB by `cp` and fsync, onto the disk and through the mount; and many small files through it."""
    if not can_mount():
        say("repo: mount: skipped, no /dev/fuse here")
        return
    copies, ours = [], []
    for number in range(runs + 1):  # the first warms up and is not counted
        say(f"repo: cp 1 GB through the mount, {f'run {number} of {runs}' if number else 'warm-up'}")
        copied = copy_and_remove(source, directory)
        with Mounted(directory / "mounted") as mount:
            through = mount.put(source)
        shutil.rmtree(mount.repository.directory)
        subprocess.run(["sync", "-f", str(directory)], check=True)
        if number:
            copies.append(copied.wall_s)
            ours.append(through)
    cp_s, through_s = statistics.median(copies), statistics.median(t.wall_s for t in ours)
    yield Figure("repo.mount.1gb_over_cp", through_s / cp_s, "ratio", "cp and fsync, same run", 1.0, runs)
    yield Figure("repo.mount.1gb_s", through_s, "s", "cp and fsync, same run", cp_s, runs)
    yield Figure("repo.mount.rss_mib", max(t.rss_bytes for t in ours) / 2**20, "MiB", "", None, runs)
    say(f"repo: {SMALL_FILES} files of {SMALL_BYTES} bytes onto the disk, and through the mount")
    tree = small_tree(directory)
    beside = directory / "copy"
    copied = run(["sh", "-c", 'cp -r "$0" "$1" && sync -f "$1"', str(tree), str(beside)], directory / "cp.log")
    # The copy stays until the end: ext4 without a journal goes past all inodes freed lately for each new file.
    with Mounted(directory / "mounted") as mount:
        target = str(mount.point / "small")
        # To sync one folder of a mount is to sync all of it.
        through = run(["sh", "-c", 'cp -r "$0" "$1" && sync "$1"', str(tree), target], directory / "cp.log")
        rss = mount.peak_rss()
    for folder in (beside, mount.repository.directory, tree):
        shutil.rmtree(folder)
    yield Figure("repo.mount.100k_files_s", through.wall_s, "s", "cp and sync, same run", copied.wall_s, 1)
    yield Figure("repo.mount.100k_files_rss_mib", rss / 2**20, "MiB", "", None, 1)


@contextmanager
def served(repository: Repository) -> Iterator[tuple[str, Process]]:
    """`repo run` behind a forwarder without a content store while the block lasts: that one's address, the server."""
    with Stage(repository.directory / "logs") as stage:
        socket = repository.directory / "fwd.sock"
        Router(stage, "router", repository.directory / "fwd.toml", socket).start()
        face = f"unix://{socket}"
        server = stage.start("repo", "repo", repository.command("run"), env={"TRUNKLINE_FACE": face})
        wait_until("the repository", lambda: "serving" in server.log.read_text(), 20, server)
        yield face, server


def remote(directory: Path, source: Path, runs: int) -> Iterator[Figure]:
    """One GB out of `repo run` by `trunkline get`, and by `cat` through a mount of it over the network, to nowhere.

    Each is mounted anew, so that nothing of it is in the system's page cache.
    """
    if not can_mount():
        say("repo: remote: skipped, no /dev/fuse here")
        return
    repository = Repository(directory / "remote", SEGMENTS["8000B"])
    repository.put("/bench/file", source)
    gets, reads, resident = [], [], []
    with served(repository) as (face, _):
        for number in range(runs + 1):  # the first warms up and is not counted
            say(f"repo: 1 GB through a mount over the network, {f'run {number} of {runs}' if number else 'warm-up'}")
            get = [str(paths.TRUNKLINE), "get", "/bench/file", "--face", face, "--quiet", "-o", "/dev/null"]
            got = run(get, directory / "get.log")
            with Mount(repository.directory / "mnt", "--remote", "/bench", "--face", face) as mount:
                path = mount.point / "file"
                read = run(["sh", "-c", 'cat "$0" > /dev/null', str(path)], directory / "cat.log")
                rss = mount.peak_rss()
                if not number and payload.sha256(path) != payload.sha256(source):
                    raise RuntimeError("repo: remote: the bytes read are not the bytes put")
            if number:
                gets.append(got.wall_s)
                reads.append(read.wall_s)
                resident.append(rss)
    shutil.rmtree(repository.directory)
    get_s, read_s = statistics.median(gets), statistics.median(reads)
    yield Figure("repo.remote.1gb_over_get", read_s / get_s, "ratio", "trunkline get, same run", 1.0, runs)
    yield Figure("repo.remote.1gb_s", read_s, "s", "trunkline get, same run", get_s, runs)
    yield Figure("repo.remote.rss_mib", max(resident) / 2**20, "MiB", "", None, runs)


def serving(directory: Path, source: Path, runs: int) -> Iterator[Figure]:
    """`trunkline get` of one GB out of `repo run`, over a forwarder without a content store."""
    for label, segment_bytes in SEGMENTS.items():
        repository = Repository(directory / label, segment_bytes)
        repository.put("/bench/file", source)
        with served(repository) as (face, server):
            rates = []
            for number in range(runs + 1):
                say(f"repo: serve {label}, {f'run {number} of {runs}' if number else 'warm-up'}")
                target = repository.directory / "copy"
                get = [str(paths.TRUNKLINE), "get", "/bench/file", "--face", face]
                got = run([*get, "-o", "/dev/null", "--json"], repository.directory / "get.log")
                if number:
                    rates.append(json.loads(got.output)["mbit_s"] / 1000)
                else:
                    run([*get, "-o", str(target)], repository.directory / "get.log")
                    if payload.sha256(target) != payload.sha256(source):
                        raise RuntimeError(f"repo: serve {label}: the bytes read are not the bytes put")
                    target.unlink()
            rss = peak_rss(server.pid) / 2**20
        shutil.rmtree(repository.directory)
        yield Figure(f"repo.serve.{label}.gbit_s", statistics.median(rates), "Gbit/s", "", None, runs)
        yield Figure(f"repo.serve.{label}.rss_mib", rss, "MiB", "", None, runs)


def small_tree(directory: Path) -> Path:
    """A folder of small files, a thousand in each of its folders."""
    tree = directory / "small"
    for number in range(SMALL_FILES):
        path = tree / f"{number // 1000:03}" / f"{number:06}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(number.to_bytes(8, "big") * (SMALL_BYTES // 8))
    return tree


def small_files(directory: Path) -> Iterator[Figure]:
    """A folder of small files, put by one command; and what the index takes for each."""
    say(f"repo: put {SMALL_FILES} files of {SMALL_BYTES} bytes")
    tree = small_tree(directory)
    repository = Repository(directory / "many", SEGMENTS["8000B"])
    put = repository.put("/bench", tree)
    status = repository.status()
    if status["files"] != SMALL_FILES:
        raise RuntimeError(f"repo: {status['files']} files of {SMALL_FILES} are there")
    yield Figure("repo.put.100k_files_s", put.wall_s, "s", "", None, 1)
    yield Figure("repo.put.100k_files_rss_mib", put.rss_bytes / 2**20, "MiB", "", None, 1)
    yield Figure("repo.index.per_file_bytes", status["index_bytes"] / SMALL_FILES, "bytes", "", None, 1)


def scale(directory: Path) -> Iterator[Figure]:
    """`ndn/repo`'s scale example: the index of a series of a million packets, and a start with ten million."""
    say("repo: 10,000,000 packets")
    command = ["cargo", "run", "-q", "--release", "-p", "ndn-repo", "--example", "scale", "--", str(directory)]
    done = subprocess.run(command, cwd=paths.ROOT, stdout=subprocess.PIPE, text=True, check=True)
    for line in done.stdout.splitlines():
        told = json.loads(line)
        yield Figure(told["name"], told["value"], told["unit"], "", None, 1)
