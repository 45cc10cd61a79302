"""Real daemons for each test: NameNode, DataNodes, a router, and clients whose pace the test sets.

A test runs on the planes of its mark `planes`, on named data when it has none, and in the newest Hadoop.
"""

from __future__ import annotations

import random
import re
import select
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from trunkline_lab import class_data, paths, planes, replicas, stock
from trunkline_lab.cluster import FSSHELL, QUICK_TO_NOTICE, QUICK_TO_START, Cluster, Plane, Properties
from trunkline_lab.network import pick_loopback
from trunkline_lab.procs import Process, Stage, wait_until
from trunkline_lab.routers import Router

MIB = 1 << 20


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--plane", choices=planes.NAMES, help="this one alone; tcp: try the tests themselves on stock HDFS"
    )
    parser.addoption(
        "--hadoop", choices=stock.VERSIONS, default=stock.NEWEST, help="in this version of it (default: %(default)s)"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The planes of a test: those of its mark, or the one of the command line."""
    if "plane" in metafunc.fixturenames:
        mark = metafunc.definition.get_closest_marker("planes")
        chosen = metafunc.config.getoption("plane")
        names = [chosen] if chosen else list(mark.args) if mark else ["ndn"]
        metafunc.parametrize("plane", names, indirect=True, scope="module")


@pytest.fixture(scope="module")
def plane(request: pytest.FixtureRequest) -> str:
    """The plane that a test runs on; skips it where that is UCX and the plug-in finds none, with its own words."""
    if request.param == "ucx" and (lack := planes.ucx_missing()):
        pytest.skip(f"no UCX here: {lack}")
    return str(request.param)


@dataclass
class Bed:
    """A running cluster and what tests do with it."""

    stage: Stage
    cluster: Cluster
    router: Router | None
    plane: Plane

    def fsck(self, path: str = "/") -> str:
        """What `hdfs fsck path -files -blocks` has the NameNode say, asked without a JVM."""
        asked = urllib.parse.urlencode({"ugi": Path("/proc/self").owner(), "path": path, "files": 1, "blocks": 1})
        url = f"http://{self.cluster.http}/fsck?{asked}"
        with self.cluster.site.near(), urllib.request.urlopen(url, timeout=30) as answer:
            return str(answer.read().decode())

    def read(self, path: str, tmp_path: Path) -> bytes:
        """What `FsShell -get` reads."""
        copy = tmp_path / "copy"
        copy.unlink(missing_ok=True)
        self.cluster.get(path, copy)
        return copy.read_bytes()

    def pipeline(self, path: str) -> list[object]:
        """The DataNodes of the newest block of `path`, first to last."""
        return replicas.blocks(self.cluster, path)[-1].pipeline

    def assert_whole(self, path: str, source: bytes, tmp_path: Path, replication: int = 3) -> None:
        """It reads as `source`, fsck is content, and replicas are alike on `replication` running DataNodes or more."""
        assert self.read(path, tmp_path) == source
        report = self.fsck(path)
        assert "Status: HEALTHY" in report
        # What was allocated is more than what the file consists of: a block whose pipeline fails at once is abandoned.
        blocks = re.findall(r"(blk_\d+)_\d+ len=", report)
        assert blocks or not source
        for block in blocks:
            # A pipeline may go on with two DataNodes; the NameNode has the third copied from them afterwards.
            wait_until(
                f"{replication} replicas of {block}",
                lambda name=block: len(replicas.of_block(self.cluster, name)) >= replication,
                60,
                pause_s=0.5,
            )
            found = replicas.of_block(self.cluster, block)
            assert len({(r.length, r.sha256) for r in found}) == 1, found

    def log_of(self, host: str) -> str:
        """All that the processes of a host logged."""
        logs = {p.log for p in self.stage.processes if p.host == host}
        return "\n".join(log.read_text(errors="replace") for log in sorted(logs))

    def transport(self, host: str) -> planes.Counters:
        """The plug-in's transport counters of a host, summed over its JVMs."""
        return planes.transport_counters(self.cluster.directory, host)

    def of_process(self, process: Process) -> planes.Counters:
        """The plug-in's transport counters of one JVM."""
        (record,) = [r for r in planes.stats(self.cluster.directory, process.host) if r["pid"] == process.pid]
        return record

    def total(self, counter: str) -> int:
        """A transport counter summed over all hosts; "fallback" sums all its reasons."""
        hosts = [self.transport(host) for host in self.cluster.hosts.values()]
        return sum(n for host in hosts for k, n in host.items() if k == counter or k.startswith(f"{counter}."))

    def pulls(self, counter: str) -> int:
        """A counter of the segment streams pulled, summed over all hosts."""
        return sum(
            node["pulls"].get(counter, 0)
            for host in self.cluster.hosts.values()
            for record in planes.stats(self.cluster.directory, host)
            for node in record["nodes"]
        )

    def assert_carried(self) -> None:
        """Blocks were written and taken by the plane."""
        if kind := {"ndn": "named", "ucx": "ucx"}.get(self.plane.name):
            counters = (f"{kind}_writes", f"{kind}_receives")
            wait_until("counters", lambda: all(self.total(counter) > 0 for counter in counters), 5)

    def assert_fell_back(self) -> None:
        """Something went by stock TCP instead: one clear line in a log, and a counter."""
        if self.plane.name != "tcp":
            wait_until("the fallback counter", lambda: self.total("fallback") > 0, 5)
            assert any("by stock TCP" in self.log_of(host) for host in self.cluster.hosts.values())

    def assert_all_alive(self) -> None:
        """No DataNode has ended, and the NameNode hears all of them."""
        assert all(datanode.process.running() for datanode in self.cluster.datanodes)
        self.cluster.wait_live(len(self.cluster.datanodes))

    def write_at_once(self, data: bytes, tmp_path: Path) -> None:
        """Eight clients write a file of 6 MiB each to /many; all of them read as they were."""
        sources = []
        for number in range(8):
            source = tmp_path / f"file-{number}"
            source.write_bytes(data[number * 5 * MIB : number * 5 * MIB + 6 * MIB + number])
            sources.append(source)
        self.cluster.client(FSSHELL, "-mkdir", "/many", name="mkdir")
        writers = [
            self.cluster.start_client(FSSHELL, "-put", str(source), f"/many/{source.name}", name=f"put-{source.name}")
            for source in sources
        ]
        for writer in writers:
            assert writer.wait(180) == 0, writer.log.read_text(errors="replace")
        self.cluster.client(FSSHELL, "-get", "/many", str(tmp_path / "back"), name="get-all")
        for source in sources:
            assert (tmp_path / "back" / source.name).read_bytes() == source.read_bytes()
            block = replicas.blocks(self.cluster, f"/many/{source.name}")[0].name
            assert len(replicas.of_block(self.cluster, block)) == 3


def under_way(bed: Bed, path: str, count: int) -> None:
    """Waits until the first DataNode of `path` has written `count` bytes of the block under construction."""

    def written() -> bool:
        found = replicas.blocks(bed.cluster, path)
        if not found:
            return False
        directory = replicas.data_directory(bed.cluster, found[-1].pipeline[0])
        return any(f.stat().st_size >= count for f in directory.rglob(f"rbw/{found[-1].name}"))

    wait_until(f"{count} bytes in mid-write", written, 60)


class SlowWriter:
    """`FsShell -put -d - path`, fed through a pipe so that the test knows what is in mid-write."""

    def __init__(self, cluster: Cluster, path: str) -> None:
        arguments = ["-D", "dfs.replication=3", "-put", "-d", "-", path]
        self.process = cluster.start_client(FSSHELL, *arguments, name="slow-put", stdin=subprocess.PIPE)

    def write(self, data: bytes) -> None:
        assert self.process.popen.stdin is not None
        self.process.popen.stdin.write(data)
        self.process.popen.stdin.flush()

    def finish(self, timeout_s: float = 120) -> None:
        assert self.process.popen.stdin is not None
        self.process.popen.stdin.close()
        assert self.process.wait(timeout_s) == 0, self.process.log.read_text(errors="replace")[-4000:]


def in_mid_write(bed: Bed, data: bytes) -> SlowWriter:
    """A client that has been given 24 MiB of `data` for /file, 8 of which are on their first DataNode's disk."""
    writer = SlowWriter(bed.cluster, "/file")
    writer.write(data[: 24 * MIB])
    under_way(bed, "/file", 8 * MIB)
    return writer


class FlushingWriter:
    """A client that hflushes a file piece by piece, at the test's pace."""

    def __init__(self, cluster: Cluster, path: str) -> None:
        source = Path(__file__).with_name("FlushingWriter.java")
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = cluster.start_client(str(source), path, name="flushing-writer", **streams)
        self._length = 0

    def flush(self, piece: bytes, timeout_s: float = 120) -> None:
        """Returns when `piece` is written and hflushed; fails where that takes longer than HDFS's own deadlines."""
        popen = self.process.popen
        assert popen.stdin is not None
        assert popen.stdout is not None
        popen.stdin.write(len(piece).to_bytes(4, "big") + piece)
        popen.stdin.flush()
        self._length += len(piece)
        ready, _, _ = select.select([popen.stdout], [], [], timeout_s)
        assert ready, f"{self._length} bytes are not written after {timeout_s:.0f} s"
        said = popen.stdout.readline()
        assert said == f"{self._length}\n".encode(), self.process.log.read_text(errors="replace")[-4000:]

    def finish(self, timeout_s: float = 60) -> None:
        """Closes the file."""
        assert self.process.popen.stdin is not None
        self.process.popen.stdin.close()
        assert self.process.wait(timeout_s) == 0, self.process.log.read_text(errors="replace")[-4000:]


class SlowReader:
    """`FsShell -cat path`, drained through a pipe at the test's pace."""

    def __init__(self, cluster: Cluster, path: str) -> None:
        self.process: Process = cluster.start_client(FSSHELL, "-cat", path, name="slow-cat", stdout=subprocess.PIPE)

    def read(self, count: int) -> bytes:
        assert self.process.popen.stdout is not None
        return self.process.popen.stdout.read(count)

    def finish(self, timeout_s: float = 120) -> bytes:
        assert self.process.popen.stdout is not None
        rest = self.process.popen.stdout.read()
        assert self.process.wait(timeout_s) == 0, self.process.log.read_text(errors="replace")[-4000:]
        return rest


@contextmanager
def a_bed(
    name: str,
    plane_name: str,
    formatted: Path,
    *,
    extra: Properties | None = None,
    without_plugin: tuple[int, ...] = (),
    datanodes: int = 4,
    hadoop: str = stock.NEWEST,
    jvm: tuple[str, ...] = (),
    set_up: Callable[..., tuple[Plane, Router | None]] = planes.set_up,
) -> Iterator[Bed]:
    """A cluster with `extra` properties; the DataNodes numbered in `without_plugin` are stock ones.

    Each version of Hadoop has an empty namespace of its own beside `formatted`, and a directory of its own: the suite
    tests several at once.
    """
    directory = paths.OUT / ("e2e" if hadoop == stock.NEWEST else f"e2e-{hadoop}") / name
    shutil.rmtree(directory, ignore_errors=True)
    try:
        with Stage(directory / "logs") as stage:
            loopback = pick_loopback()
            plane, router = set_up(plane_name, stage, directory, loopback, cache_bytes=64 * MIB)
            properties = {**QUICK_TO_NOTICE, **(extra or {})}
            jars = stock.classpath(hadoop=hadoop)
            site = loopback.site(datanodes)
            cluster = Cluster(
                *(stage, directory, site, plane),
                extra=properties,
                jars=jars,
                jvm=QUICK_TO_START + jvm,
                # Few are on stock TCP: theirs would cost more than it saves.
                archive=class_data.archive(plane.jars, jars) if plane.jars else None,
            )
            stocks = {number: planes.tcp() for number in without_plugin}
            cluster.start(stocks, formatted.with_name(f"{formatted.name}-{hadoop}"))
            yield Bed(stage, cluster, router, plane)
    finally:
        shutil.rmtree(directory / "data", ignore_errors=True)


@pytest.fixture(scope="session")
def formatted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first cluster leaves its empty namespace to the others."""
    return tmp_path_factory.mktemp("namenode") / "formatted"


@pytest.fixture
def make_bed(request: pytest.FixtureRequest, plane: str, formatted: Path) -> Iterator[Callable[..., Bed]]:
    """Starts a cluster for one test: `make_bed()`, or with what `a_bed` takes."""
    name = request.node.name.replace("[", "-").replace("]", "")
    with ExitStack() as stack:
        hadoop = request.config.getoption("hadoop")
        yield lambda **how: stack.enter_context(a_bed(name, plane, formatted, **{"hadoop": hadoop, **how}))


@pytest.fixture
def bed(make_bed: Callable[..., Bed]) -> Bed:
    """A cluster for one test."""
    return make_bed()


@pytest.fixture(scope="module")
def shared_bed(request: pytest.FixtureRequest, plane: str, formatted: Path) -> Iterator[Bed]:
    """A cluster for all tests of a file that do it no harm."""
    hadoop = request.config.getoption("hadoop")
    jvm = () if hadoop == stock.NEWEST else stock.WEBHDFS_ON_JAVA_17
    with a_bed(f"{request.module.__name__}-{plane}", plane, formatted, hadoop=hadoop, jvm=jvm) as bed:
        yield bed


@pytest.fixture(scope="session")
def data() -> bytes:
    """48 MiB of random bytes: a third of a block."""
    return random.Random(48).randbytes(48 * MIB)
