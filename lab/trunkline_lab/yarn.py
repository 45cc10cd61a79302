"""A real YARN beside an HDFS: ResourceManager, NodeManagers and JobHistoryServer, and jobs of Hadoop's own jars on it.

Stock classes, stock defaults but for addresses, directories, memory and how often who asks whom.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import paths
from .cluster import Cluster, Properties, write_xml
from .network import Hosted
from .procs import Process, Stage, wait_until

RESOURCEMANAGER = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
NODEMANAGER = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
RUNJAR = "org.apache.hadoop.util.RunJar"
YARN_APPLICATION = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"
YARN_NODE = "org.apache.hadoop.yarn.client.cli.NodeCLI"
HISTORYSERVER = "org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer"

# What bin/yarn gives daemons on Java 17: their injection of dependencies reaches into java.lang.
_OPENS = ["--add-opens=java.base/java.lang=ALL-UNNAMED"]
_TASK_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.net.preferIPv4Stack=true"
_MIB = 1 << 20


@dataclass(frozen=True)
class Place:
    """Where YARN's daemons run, (host, address) each; `historyserver` may be None."""

    resourcemanager: Hosted
    nodemanagers: tuple[Hosted, ...]
    historyserver: Hosted | None
    port: Callable[[str, str], int]


def properties(place: Place, container_classpath: list[str]) -> Properties:
    """What all hosts of a cluster with YARN are told."""
    found = {
        "yarn.resourcemanager.hostname": place.resourcemanager[1],
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "250",
        "yarn.scheduler.minimum-allocation-mb": "128",
        "yarn.nodemanager.aux-services": "mapreduce_shuffle",
        "yarn.nodemanager.resource.memory-mb": "1280",
        "yarn.nodemanager.resource.cpu-vcores": "4",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.enable": "false",
        # Even without the checker a NodeManager looks once, at its start: on a disk that is nine tenths full it takes
        # no directory for good, however much room a tenth is, and every container fails. Room is the lab's to look for.
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
        "yarn.application.classpath": ",".join(["$HADOOP_CONF_DIR", *container_classpath]),
        "mapreduce.application.classpath": "$HADOOP_CONF_DIR",
        "mapreduce.framework.name": "yarn",
        "mapreduce.map.memory.mb": "256",
        "mapreduce.reduce.memory.mb": "256",
        "mapreduce.map.java.opts": f"-Xmx192m {_TASK_JVM}",
        "mapreduce.reduce.java.opts": f"-Xmx192m {_TASK_JVM}",
        "mapreduce.task.io.sort.mb": "48",
        "mapreduce.map.speculative": "false",
        "mapreduce.reduce.speculative": "false",
        "mapreduce.client.progressmonitor.pollinterval": "200",
        "mapreduce.client.completion.pollinterval": "500",
        "yarn.app.mapreduce.am.resource.mb": "384",
        "yarn.app.mapreduce.am.command-opts": f"-Xmx256m {_TASK_JVM} {' '.join(_OPENS)}",
        "yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms": "250",
    }
    if place.historyserver:
        address = place.historyserver[1]
        found["mapreduce.jobhistory.address"] = f"{address}:{place.port(address, 'historyserver')}"
    return found


def class_path_of_containers(directory: Path, jars: list[str], first: list[Path]) -> list[str]:
    """A short class path for containers: jars of which a directory of links is made, `first` before them."""
    links = directory / "jars"
    links.mkdir(parents=True, exist_ok=True)
    for jar in jars:
        with contextlib.suppress(FileExistsError):
            (links / Path(jar).name).symlink_to(jar)
    return [*map(str, first), f"{links}/*"]


def java_home() -> str:
    """Where the JVM of the lab lies; containers are started by $JAVA_HOME/bin/java."""
    found = shutil.which(paths.java())
    if found is None:
        raise RuntimeError("there is no java on PATH; install Java 17 or set JAVA_HOME")
    return str(Path(found).resolve().parents[1])


class Yarn:
    """The daemons, owned by the stage of `cluster`, whose configuration must hold `properties`."""

    def __init__(self, cluster: Cluster, place: Place) -> None:
        self._cluster, self._place = cluster, place
        self._stage: Stage = cluster.stage
        self._daemons: list[Process] = []
        self.node_hosts = [host for host, _ in place.nodemanagers]

    def start(self) -> None:
        """Starts all; returns when the ResourceManager counts all NodeManagers active."""
        place = self._place
        self._start("resourcemanager", place.resourcemanager, RESOURCEMANAGER, {})
        for host, address in place.nodemanagers:
            own = {
                "yarn.nodemanager.hostname": address,
                "yarn.nodemanager.address": f"{address}:{place.port(address, 'nodemanager')}",
                "yarn.nodemanager.localizer.address": f"{address}:{place.port(address, 'nodemanager-localizer')}",
                "yarn.nodemanager.webapp.address": f"{address}:{place.port(address, 'nodemanager-web')}",
                "yarn.nodemanager.local-dirs": str(self._cluster.directory / "tmp" / host / "containers"),
                "yarn.nodemanager.log-dirs": str(self._stage.logs / "containers" / host),
            }
            self._start(f"nodemanager-{host}", (host, address), NODEMANAGER, own)
        if place.historyserver:
            self._start("historyserver", place.historyserver, HISTORYSERVER, {})
        count = len(place.nodemanagers)
        wait_until(f"{count} active NodeManagers", lambda: self._active() == count, 120, *self._daemons, pause_s=0.3)
        if place.historyserver:
            wait_until("the JobHistoryServer's port", self._history_listens, 60, *self._daemons, pause_s=0.3)

    def _start(self, name: str, hosted: Hosted, main: str, own: Properties) -> None:
        host, address = hosted
        label = f"{host}.{name.partition('-')[0]}"
        conf = self._cluster.conf(label, address, own)
        self._cluster.labels.append(label)
        if main == RESOURCEMANAGER:
            queues = {"yarn.scheduler.capacity.root.queues": "default"}
            queues["yarn.scheduler.capacity.root.default.capacity"] = "100"
            queues["yarn.scheduler.capacity.maximum-am-resource-percent"] = "0.5"
            write_xml(conf / "capacity-scheduler.xml", queues)
        command = self._cluster.java(conf, main, jvm=_OPENS)
        env = {"JAVA_HOME": java_home(), "HADOOP_CONF_DIR": str(conf), "HADOOP_LOG_DIR": str(self._stage.logs)}
        self._daemons.append(self._stage.start(name, host, command, env=env))

    def _active(self) -> int:
        """How many NodeManagers the ResourceManager counts active."""
        bean = "Hadoop:service=ResourceManager,name=ClusterMetrics"
        url = f"http://{self._place.resourcemanager[1]}:8088/jmx?qry={bean}"
        with contextlib.suppress(OSError, ValueError, KeyError, IndexError):
            with self._cluster.site.near(), urllib.request.urlopen(url, timeout=5) as page:
                return int(json.load(page)["beans"][0]["NumActiveNMs"])
        return -1

    def _history_listens(self) -> bool:
        assert self._place.historyserver is not None
        address = self._place.historyserver[1]
        with self._cluster.site.near(), socket.socket() as probe:
            return probe.connect_ex((address, self._place.port(address, "historyserver"))) == os.EX_OK
