"""A real HDFS: NameNode, DataNodes and client JVMs as processes, each on the host that a `Site` gives it.

Stock classes, stock defaults but for addresses, directories and waits, and a NameNode that places replicas on busy
DataNodes too. What a plane adds (the plug-in's jar and properties) comes from a `Plane`; "tcp" adds nothing at all.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from . import paths, stock
from .network import Site
from .procs import Process, Stage, wait_until

NAMENODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATANODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
FSSHELL = "org.apache.hadoop.fs.FsShell"
DFSADMIN = "org.apache.hadoop.hdfs.tools.DFSAdmin"
FSCK = "org.apache.hadoop.hdfs.tools.DFSck"

PACKET_SIZE = "dfs.client-write-packet-size"
BUFFER_SIZE = "io.file.buffer.size"
PACKETS_IN_FLIGHT = "dfs.client.write.max-packets-in-flight"
# What `trunkline hadoop conf` sets for throughput, and what is as good on any plane.
TUNED = (PACKET_SIZE, PACKETS_IN_FLIGHT, BUFFER_SIZE)

HEAP = "256m"  # of every JVM

LOG4J = """\
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %-5p %c{2}: %m%n
log4j.logger.org.apache.hadoop.util.NativeCodeLoader=ERROR
log4j.logger.org.apache.hadoop.hdfs.server.datanode.DataNode.clienttrace=DEBUG
"""

Properties = dict[str, str]

_FINAL = "<final>true</final>"
_SITES = (("dfs.", "hdfs"), ("mapreduce.", "mapred"), ("yarn.app.mapreduce.", "mapred"), ("yarn.", "yarn"))

# So that experiments with faults need not wait as long as a cluster of hundreds of hosts must.
QUICK_TO_NOTICE: Properties = {
    "dfs.heartbeat.interval": "1s",
    "dfs.namenode.heartbeat.recheck-interval": "2000",
    "dfs.namenode.redundancy.interval.seconds": "1s",
    "dfs.namenode.reconstruction.pending.timeout-sec": "5",
    "dfs.client.datanode-restart.timeout": "2s",
    "dfs.client.socket-timeout": "10000",
}

# For JVMs of tests, of which most only start and end: without C2, that compiles what never pays. Not for measurements.
QUICK_TO_START = ("-XX:TieredStopAtLevel=1",)


@dataclass
class Plane:
    """What carries the bytes: jars to put first on every class path, and properties for each host's JVMs."""

    name: str
    jars: list[Path] = field(default_factory=list)
    properties: Callable[[str, str], Properties] = lambda host, address: {}  # (host, its address)
    jvm: list[str] = field(default_factory=list)


@dataclass
class DataNodeHost:
    """One DataNode: where it runs and what it needs to be started again."""

    host: str
    address: str
    transfer: str  # address:port of its stock data transfer server
    conf: Path
    process: Process | None = None


def write_xml(path: Path, properties: Properties) -> None:
    """A Hadoop configuration file.

    What is a host's own (its router, its address) is final: a job brings its submitter's properties to other hosts.
    """
    rows = "".join(
        f"  <property><name>{escape(k)}</name><value>{escape(v)}</value>{_FINAL if k.startswith('trunkline.') else ''}"
        "</property>\n"
        for k, v in sorted(properties.items())
    )
    path.write_text(f"<configuration>\n{rows}</configuration>\n")


def write_conf(conf: Path, properties: Properties) -> None:
    """Each property into the file that is read after the defaults it replaces; what belongs in none, into core-site."""
    files: dict[str, Properties] = {name: {} for name in ("core", "hdfs", "mapred", "yarn")}
    for key, value in properties.items():
        files[next((name for prefix, name in _SITES if key.startswith(prefix)), "core")][key] = value
    for name, own in files.items():
        if own or name in ("core", "hdfs"):
            write_xml(conf / f"{name}-site.xml", own)


class Cluster:
    """One NameNode, DataNodes and any number of clients on the hosts of `site`, all owned by `stage`.

    `hosts` maps the addresses of the hosts to their names; `jars` are in place of stock HDFS's; `jvm` are options for
    every JVM; `archive` is of the classes in the plane's jars and these, see `class_data`.
    """

    def __init__(
        self,
        stage: Stage,
        directory: Path,
        site: Site,
        plane: Plane,
        *,
        extra: Properties | None = None,
        jars: list[str] | None = None,
        jvm: Sequence[str] = (),
        archive: Path | None = None,
    ) -> None:
        self.stage, self.directory, self.plane, self.site = stage, directory, plane, site
        self._extra = extra or {}
        self._jars = jars or stock.classpath()
        self._jvm = tuple(jvm)
        self._archive = archive
        self.labels: list[str] = []  # further names that counters stand under
        self._started_clients = 0
        self.namenode_host, self.namenode_address = site.namenode
        self.hosts = {address: host for host, address in (site.namenode, *site.datanodes, *site.clients)}
        self.rpc = f"{self.namenode_address}:{site.port(self.namenode_address, 'namenode')}"
        self.http = f"{self.namenode_address}:{site.port(self.namenode_address, 'namenode-http')}"
        self._namenode: Process | None = None
        self._namenode_conf = self._conf_of_namenode()
        self.datanodes = [self._datanode_host(host, address) for host, address in site.datanodes]
        taken = {self.namenode_host, *(datanode.host for datanode in self.datanodes)}
        # A client's counters stand apart from those of a daemon on its host.
        self.clients = {host: f"{host}.client" if host in taken else host for host, _ in site.clients}
        self._client_confs = {host: self.conf(self.clients[host], address, {}) for host, address in site.clients}

    # Configuration

    def conf(self, host: str, address: str, own: Properties, plane: Plane | None = None) -> Path:
        """Writes a configuration directory; `host` names it, and what it says before a dot is the host."""
        conf = self.directory / "conf" / host
        conf.mkdir(parents=True, exist_ok=True)
        tmp = self.directory / "tmp" / host
        tmp.mkdir(parents=True, exist_ok=True)
        core = {
            "fs.defaultFS": f"hdfs://{self.rpc}",
            "dfs.namenode.http-address": self.http,
            "hadoop.tmp.dir": str(tmp),
            # Hosts are known by their loopback addresses. A stock client's sockets all leave from 127.0.0.1, so a
            # DataNode's address is the name it gives itself, not what the NameNode sees.
            "dfs.client.use.datanode.hostname": "true",
            "dfs.datanode.use.datanode.hostname": "true",
            "dfs.replication": "3",
        }
        write_conf(conf, {**core, **own, **(plane or self.plane).properties(host, address), **self._extra})
        (conf / "log4j.properties").write_text(LOG4J)
        # Maven's jars carry no web pages, and the daemons refuse to start without the folders.
        for pages in ("hdfs", "datanode"):
            (conf / "webapps" / pages).mkdir(parents=True, exist_ok=True)
        return conf

    def _conf_of_namenode(self) -> Path:
        return self.conf(
            self.namenode_host,
            self.namenode_address,
            {
                "dfs.namenode.rpc-address": self.rpc,
                "dfs.namenode.name.dir": f"file://{self.directory}/namenode",
                "dfs.namenode.datanode.registration.ip-hostname-check": "false",
                "dfs.namenode.safemode.extension": "0",
                # With few DataNodes each is wanted for nearly every block; one that is busy would be passed over, and
                # a block have fewer replicas than it was written with.
                "dfs.namenode.redundancy.considerLoad": "false",
            },
        )

    def _datanode_host(self, host: str, address: str) -> DataNodeHost:
        datanode = DataNodeHost(host, address, f"{address}:{self.site.port(address, 'datanode')}", Path())
        datanode.conf = self._datanode_conf(datanode, self.plane)
        return datanode

    def _datanode_conf(self, datanode: DataNodeHost, plane: Plane) -> Path:
        address = datanode.address
        return self.conf(
            datanode.host,
            address,
            {
                "dfs.datanode.hostname": address,
                "dfs.datanode.address": datanode.transfer,
                "dfs.datanode.ipc.address": f"{address}:{self.site.port(address, 'datanode-ipc')}",
                "dfs.datanode.http.address": f"{address}:{self.site.port(address, 'datanode-http')}",
                "dfs.datanode.data.dir": f"file://{self.directory}/data/{datanode.host}",
            },
            plane,
        )

    def java(
        self, conf: Path, main: str, *arguments: str, plane: Plane | None = None, jvm: Sequence[str] = ()
    ) -> list[str]:
        """The command line of a JVM with a host's configuration; `jvm` are the JVM's own."""
        plane = plane or self.plane
        classes = [*map(str, plane.jars), *self._jars]
        # With an archive folders that are not empty may stand behind jars alone; none of these has a configuration.
        path = ":".join([*classes, str(conf)] if self._archive else [str(conf), *classes])
        return [
            paths.java(),
            f"-Xmx{HEAP}",
            "-XX:+UseSerialGC",
            *([f"-XX:SharedArchiveFile={self._archive}", "-Xlog:cds=off"] if self._archive else []),
            "-Djava.net.preferIPv4Stack=true",
            *self._jvm,
            *plane.jvm,
            *jvm,
            "-cp",
            path,
            main,
            *arguments,
        ]

    # Daemons

    def start(self, differing: dict[int, Plane] | None = None, formatted: Path | None = None) -> None:
        """Formats and starts everything; returns when the NameNode counts all DataNodes alive.

        `differing` gives single DataNodes (1 is dn1) a plane other than the cluster's. `formatted` is where an empty
        namespace is kept between clusters of which no two run at once: the first formats it, the others copy it.
        """
        conf = self._namenode_conf
        namespace = self.directory / "namenode"
        if formatted and formatted.exists():
            shutil.copytree(formatted, namespace)
        else:
            format_ = self.java(conf, NAMENODE, "-format", "-nonInteractive")
            self.stage.run("namenode-format", self.namenode_host, format_, timeout_s=120)
            if formatted:
                beside = formatted.with_name(formatted.name + ".part")
                shutil.rmtree(beside, ignore_errors=True)
                shutil.copytree(namespace, beside)
                beside.rename(formatted)
        self._namenode = self.stage.start("namenode", self.namenode_host, self.java(conf, NAMENODE))
        for number, datanode in enumerate(self.datanodes, start=1):
            self.start_datanode(datanode, (differing or {}).get(number))
        self.wait_live(len(self.datanodes))

    def start_datanode(self, datanode: DataNodeHost, plane: Plane | None = None) -> None:
        """Starts (or starts again) one DataNode; `plane` lets one of them differ from the rest."""
        if plane is not None:
            datanode.conf = self._datanode_conf(datanode, plane)
        command = self.java(datanode.conf, DATANODE, plane=plane)
        datanode.process = self.stage.start(datanode.host, datanode.host, command)

    def wait_live(self, count: int, timeout_s: float = 90) -> None:
        """Waits until exactly `count` DataNodes are alive in the NameNode's eyes and safe mode is off."""
        daemons = [self._namenode] if self._namenode else []
        daemons += [d.process for d in self.datanodes if d.process and d.process.running()]
        wait_until(f"{count} live DataNodes", lambda: self._live() == count, timeout_s, *daemons, pause_s=0.2)

    def _live(self) -> int:
        """How many DataNodes live and have told of their storage, without which nothing is placed on them."""
        with contextlib.suppress(OSError, ValueError, KeyError, IndexError):
            info = self.jmx("Hadoop:service=NameNode,name=NameNodeInfo")
            if not info["Safemode"]:
                return sum(node["capacity"] > 0 for node in json.loads(info["LiveNodes"]).values())
        return -1

    def jmx(self, bean: str) -> dict[str, Any]:
        """A JMX bean of the NameNode, from its own /jmx page."""
        with self.site.near(), urllib.request.urlopen(f"http://{self.http}/jmx?qry={bean}", timeout=5) as page:
            return dict(json.load(page)["beans"][0])

    def processes(self) -> list[tuple[int, str]]:
        """(pid, host) of every process alive now."""
        return [(p.pid, p.host) for p in list(self.stage.processes) if p.popen.returncode is None]

    # Clients

    def client_host(self, host: str | None = None) -> str:
        """`host`, or the first of the hosts that have clients."""
        return host or next(iter(self.clients))

    def client_conf(self, host: str | None = None) -> Path:
        """The configuration directory of a client's host, for programs that are no part of Hadoop."""
        return self._client_confs[self.client_host(host)]

    def client_command(self, main: str, *arguments: str, host: str | None = None, jvm: Sequence[str] = ()) -> list[str]:
        """The command line of a client JVM on a client's host; `jvm` are options for the JVM itself."""
        return self.java(self.client_conf(host), main, *arguments, jvm=jvm)

    def _label(self, name: str) -> str:
        self._started_clients += 1
        return f"client-{self._started_clients:02d}-{name}"

    def client(
        self,
        main: str,
        *arguments: str,
        name: str,
        host: str | None = None,
        jvm: Sequence[str] = (),
        timeout_s: float = 600,
    ) -> Process:
        """Runs a client JVM to its end; raises ProcessFailed when it ends badly."""
        command = self.client_command(main, *arguments, host=host, jvm=jvm)
        return self.stage.run(self._label(name), self.client_host(host), command, timeout_s=timeout_s)

    def start_client(self, main: str, *arguments: str, name: str, host: str | None = None, **streams: int) -> Process:
        """Starts a client JVM and returns at once; `stdin` and `stdout` may be subprocess.PIPE."""
        command = self.client_command(main, *arguments, host=host)
        return self.stage.start(self._label(name), self.client_host(host), command, **streams)

    def put(
        self,
        source: Path,
        target: str,
        *options: str,
        replication: int = 3,
        host: str | None = None,
        properties: Properties | None = None,
        jvm: Sequence[str] = (),
    ) -> Process:
        """`FsShell -D dfs.replication=N -put source target`."""
        given = {"dfs.replication": str(replication), **(properties or {})}
        return self.client(
            FSSHELL, *generic(given), "-put", *options, str(source), target, name="put", host=host, jvm=jvm
        )

    def get(self, source: str, target: Path, host: str | None = None, properties: Properties | None = None) -> Process:
        """`FsShell -get source target`, which verifies HDFS checksums as it reads."""
        return self.client(FSSHELL, *generic(properties or {}), "-get", source, str(target), name="get", host=host)


def generic(properties: Mapping[str, object]) -> list[str]:
    """Hadoop's generic options for these properties."""
    return [word for key, value in properties.items() for word in ("-D", f"{key}={value}")]
