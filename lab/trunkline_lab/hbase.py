"""A stock HBase on one of the lab's HDFS clusters, and a load of 1 KB Puts on it.

Master and region server are HBase's own stand-alone JVM on the client's host; only its ZooKeeper is on its local disk.
Its write-ahead log goes through HDFS's stock client (`hbase.wal.provider=filesystem`): HBase's default writes to the
DataNodes with a client of its own on Netty, past every socket factory, so no transport of ours could carry it.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import Any

from . import paths, stock
from .cluster import LOG4J, Cluster, Properties, write_xml
from .network import Ports
from .procs import Process, wait_until

MASTER = "org.apache.hadoop.hbase.master.HMaster"
LOAD = paths.LAB / "hbase" / "PutLoad.java"

HEAP = "768m"
# HBase's own scripts pass these on a JDK of version 11 or newer (bin/hbase).
ADD_OPENS = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in (
    "java.lang", "java.lang.reflect", "java.io", "java.nio", "java.net", "java.util", "java.util.concurrent",
    "java.util.concurrent.atomic", "sun.nio.ch", "sun.nio.cs", "sun.security.action", "jdk.internal.ref",
)]  # fmt: skip
VALUE_BYTES = 1024  # of the load's Puts
READY = "Master has completed initialization"


@dataclass(frozen=True)
class Puts:
    """What one load measured; latencies in microseconds are exact percentiles over all threads."""

    puts: int
    seconds: float
    mean_us: float
    p50_us: float
    p95_us: float
    p99_us: float
    max_us: float
    rows_verified: int

    @property
    def per_second(self) -> float:
        return self.puts / self.seconds


class HBase:
    """Master and region server in one JVM, with `cluster` beneath them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._conf = cluster.directory / "conf" / "hbase"
        self._conf.mkdir(parents=True, exist_ok=True)
        self._zookeeper = cluster.directory / "zookeeper"
        self._jars = stock.classpath(pom=stock.HBASE)
        write_xml(self._conf / "hbase-site.xml", self._properties())
        (self._conf / "log4j.properties").write_text(LOG4J)
        self._loads = 0
        self.process: Process | None = None

    def _properties(self) -> Properties:
        address = self._cluster.site.clients[0][1]
        return {
            "hbase.rootdir": f"hdfs://{self._cluster.rpc}/hbase",
            "hbase.cluster.distributed": "false",
            "hbase.wal.provider": "filesystem",
            "hbase.hregion.memstore.flush.size": str(64 << 20),  # as the paper has it
            "hbase.tmp.dir": str(self._cluster.directory / "tmp" / "hbase"),
            "hbase.zookeeper.property.dataDir": str(self._zookeeper),
            "hbase.zookeeper.property.clientPort": str(Ports().free("127.0.0.1")),
            "hbase.master.port": str(Ports().free(address)),
            "hbase.regionserver.port": "0",
            "hbase.master.info.port": "-1",
            "hbase.regionserver.info.port": "-1",
            "hbase.master.hostname": address,
            "hbase.regionserver.hostname": address,
            "hbase.master.ipc.address": address,
            "hbase.regionserver.ipc.address": address,
        }

    def _java(self, *arguments: str) -> list[str]:
        plane = self._cluster.plane
        path = [self._conf, self._cluster.client_conf(), *plane.jars, *self._jars]
        return [
            paths.java(), f"-Xmx{HEAP}", "-XX:+UseG1GC", "-Djava.net.preferIPv4Stack=true", *ADD_OPENS, *plane.jvm,
            "-cp", ":".join(map(str, path)), *arguments,
        ]  # fmt: skip

    def start(self) -> None:
        """Starts it; returns when the master has given out the catalog."""
        shutil.rmtree(self._zookeeper, ignore_errors=True)
        self.process = self._cluster.stage.start("hbase", self._cluster.client_host(), self._java(MASTER, "start"))
        log = self.process.log
        wait_until("HBase", lambda: READY in log.read_text(errors="replace"), 180, self.process, pause_s=0.5)

    def load(self, *, threads: int, warm_s: int, seconds: int, records: int) -> Puts:
        """1 KB Puts by `threads` threads of a client JVM; raises ProcessFailed when a row is not as it was put."""
        self._loads += 1
        arguments = [str(n) for n in (threads, warm_s, seconds, records)]
        process = self._cluster.stage.run(
            f"hbase-load-{self._loads}",
            "load",
            self._java(str(LOAD), *arguments),
            timeout_s=warm_s + seconds + 240,
        )
        return parse(process.log.read_text(errors="replace"))


def parse(log: str) -> Puts:
    """The load's result, the last line of JSON in its output."""
    lines = [line for line in log.splitlines() if line.startswith('{"puts"')]
    if not lines:
        raise RuntimeError(f"the HBase load printed no result:\n{log[-2000:]}")
    fields: dict[str, Any] = json.loads(lines[-1])
    return Puts(**fields)


def prove(plane: str, puts: Puts, received: int, replication: int) -> None:
    """Raises RuntimeError when the DataNodes have `received` fewer bytes by a plane of ours than the Puts' values."""
    least = replication * puts.puts * VALUE_BYTES
    if plane != "tcp" and received < least:
        raise RuntimeError(f"{plane} did not carry the Puts: {received} bytes came to the DataNodes by it, not {least}")
