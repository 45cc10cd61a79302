"""The planes a transfer can run on: stock TCP, named data through one router, UCX, and mirrored replication."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from . import paths, stock
from .cluster import TUNED, Plane, Properties
from .network import Loopback, Ports
from .procs import Stage
from .routers import Router

NAMES = ("tcp", "ndn", "ucx")
NDN_LOCAL = "ndn-local"  # named data whose JVMs are all of the router's own host, and reach it by its Unix socket
MIRROR_WAIT_MS = "1000"  # the most: hosts, switches and controller share the lab's few processors
DEFAULT = ""  # the plug-in's own
ROUTER_ADDRESS = 2  # last number of the router's address in the experiment's /24


def tcp() -> Plane:
    """Stock Hadoop as it is: no jar, no property of ours."""
    return Plane("tcp")


class LoopbackRouter(Router):
    """The only hop between the hosts of the named-data plane on loopback addresses."""

    def __init__(
        self, stage: Stage, directory: Path, loopback: Loopback, cache_bytes: int, *, local: bool = False
    ) -> None:
        self.address = loopback.address(ROUTER_ADDRESS)
        self._runtime = tempfile.TemporaryDirectory(prefix="trunkline-")
        runtime = Path(self._runtime.name)
        super().__init__(
            stage,
            "router",
            directory / "conf" / "router.toml",
            runtime / "router.sock",
            listen=f"tcp://{self.address}:{Ports().free(self.address)}",
            local_apps=runtime / "apps.sock" if local else None,
            cache_bytes=cache_bytes,
        )

    @property
    def face(self) -> str:
        """What all JVMs connect to."""
        return f"unix://{self.local_apps}" if self.local_apps else self.listen


def ndn(router: Router, directory: Path, extra: Properties | None = None) -> Plane:
    """Stock Hadoop with the plug-in's jar first on the class path and the properties an operator pastes."""
    return named(lambda _host: router.face, directory, extra=extra)


def named(face_of: Callable[[str], str], directory: Path, port: int = 0, *, extra: Properties | None = None) -> Plane:
    """The same where each host has a router of its own to go to; `port` is the DataNodes' for control connections."""
    more = extra or {}
    return _with_plugin("ndn", lambda host, _address: {**pasted("ndn", face_of(host)), **more}, directory, port)


def ucx(directory: Path) -> Plane:
    """The same over UCX; between the hosts of one machine it takes shared memory."""

    def own(_host: str, address: str) -> Properties:
        # UCX takes no connections at loopback addresses that no interface carries.
        listen = "127.0.0.1" if address.startswith("127.") else address
        return {**pasted("ucx"), "trunkline.ucx.address": f"{listen}:0"}

    return _with_plugin("ucx", own, directory)


def mirror(
    datanodes: Collection[str],
    controller: str,
    token_file: Path,
    directory: Path,
    port: int = 0,
    *,
    wait_ms: str = MIRROR_WAIT_MS,
) -> Plane:
    """Stock TCP whose DataNodes tell a controller of their pipelines; clients and NameNode are stock throughout.

    `datanodes` are hosts, `controller` the URL of its REST interface, `wait_ms` how long it may take to arm a pipeline
    before that is counted as late; DEFAULT leaves that to the plug-in.
    """

    def own(_host: str, _address: str) -> Properties:
        return {
            **pasted("mirror"),
            "trunkline.mirror.controller": controller,
            "trunkline.mirror.token.file": str(token_file),
            **({"trunkline.mirror.wait.ms": wait_ms} if wait_ms else {}),
        }

    plane = _with_plugin("mirror", own, directory, port)
    return replace(plane, properties=lambda host, address: plane.properties(host, address) if host in datanodes else {})


def _with_plugin(name: str, own: Callable[[str, str], Properties], directory: Path, port: int = 0) -> Plane:
    def properties(host: str, address: str) -> Properties:
        return {
            **own(host, address),
            # Every socket leaves from its host's own address, so that the kernel's counters tell hosts apart.
            "trunkline.local.address": address,
            "trunkline.datanode.address": f"{address}:{port}",
            "trunkline.stats.file": str(stats_file(directory, host)),
        }

    return Plane(name, [paths.built(paths.PLUGIN_JAR)], properties)


# Makes a plane by its name, and starts the router between hosts, where it has one.
SetUp = Callable[[str, Stage, Path, Loopback, int], tuple[Plane, Router | None]]


def set_up(
    name: str, stage: Stage, directory: Path, loopback: Loopback, cache_bytes: int
) -> tuple[Plane, Router | None]:
    """The plane `name`, and its router, started, where it has one; raises ValueError for a name that is none."""
    if name in ("ndn", NDN_LOCAL):
        router = LoopbackRouter(stage, directory, loopback, cache_bytes, local=name == NDN_LOCAL)
        router.start()
        return ndn(router, directory, large_segments() if name == NDN_LOCAL else {}), router
    if name not in NAMES:
        raise ValueError(f"no plane {name!r}; there are {', '.join(NAMES)}")
    return (ucx(directory) if name == "ucx" else tcp()), None


def ucx_missing() -> str:
    """Why the plug-in can't use UCX on this machine, in its own words; empty when it can."""
    if "`trunkline.ucx.address`" not in _plugin("io.trunkline.hadoop.conf.SettingsPage").stdout:
        return "this build of the plug-in has no UCX transport for HDFS"
    done = _plugin("io.trunkline.hadoop.ucx.SelfTest", "probe")
    if done.returncode == 0:
        return ""
    said = [line for line in done.stdout.splitlines() if line.startswith("unavailable: ")]
    if not said:
        raise RuntimeError(f"the plug-in's probe for UCX ended with status {done.returncode}: {done.stderr.strip()}")
    return said[-1].removeprefix("unavailable: ")


def plugin_jars() -> list[str]:
    """The plug-in's jar with nothing but a logger beside it, for its classes that need no Hadoop."""
    logging = [jar for jar in stock.classpath() if "slf4j" in jar or "reload4j" in jar]
    return [str(paths.built(paths.PLUGIN_JAR)), *logging]


def _plugin(main: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a class of the plug-in's jar."""
    return subprocess.run(
        [paths.java(), "-cp", os.pathsep.join(plugin_jars()), main, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


# What named data needs besides in clusters with SASL or encryption (`trunkline hadoop conf ndn --secure`).
RESOLVER: Properties = {"dfs.trustedchannel.resolver.class": "io.trunkline.hadoop.TrunklineTrustedChannelResolver"}


def tuned_alike(plane: str) -> Properties:
    """The packet and buffer sizes of what is pasted for a plane, which a client over stock TCP may have, too."""
    return {key: value for key, value in pasted(plane).items() if key in TUNED}


def large_segments() -> Properties:
    """A segment for each packet, for JVMs that reach their host's router by its Unix socket."""
    key = "trunkline.ndn.segment.bytes"
    return {key: _shown("ndn", "--large-segments")[key]}


def pasted(plane: str, face: str = "") -> Properties:
    """What `trunkline hadoop conf PLANE` tells an operator to paste; ndn with no face: every JVM is on its own."""
    properties = _shown(plane, *(["--face", face] if face else []))
    return {**properties, "trunkline.ndn.face": face} if plane == "ndn" else properties


def _shown(plane: str, *options: str) -> Properties:
    shown = subprocess.run(
        [str(paths.built(paths.TRUNKLINE)), "hadoop", "conf", plane, "--json", *options],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    return {str(k): str(v) for own in json.loads(shown.stdout).values() for k, v in own.items()}


def stats_file(directory: Path, host: str) -> Path:
    """Where a JVM of a host writes its counters; {pid} is put in by the plug-in."""
    (directory / "stats").mkdir(parents=True, exist_ok=True)
    return directory / "stats" / f"{host}-{{pid}}.json"


Counters = dict[str, int]


def stats(directory: Path, host: str) -> list[dict[str, Any]]:
    """What the plug-in's JVMs of a host wrote down, one record each."""
    return [dict(json.loads(path.read_text())) for path in (directory / "stats").glob(f"{host}-*.json")]


def transport_counters(directory: Path, host: str) -> Counters:
    """The plug-in's counters of a host, summed over its JVMs; fallbacks are counted as `fallback.<reason>`."""
    total: Counters = {}
    for record in stats(directory, host):
        fallbacks = {f"fallback.{reason}": count for reason, count in record.get("fallbacks", {}).items()}
        for key, value in {**record, **fallbacks}.items():
            if isinstance(value, int) and key != "pid":
                total[key] = total.get(key, 0) + value
    return total
