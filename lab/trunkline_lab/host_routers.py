"""Hosts with routers of their own, joined to their rack's by TLS, as docs/tls.md sets up a protected cluster."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from . import paths, planes
from .cluster import Plane
from .network import Loopback, Ports
from .procs import Stage
from .routers import Credentials, Router

RACK = "rack1"


class HostRouters:
    """A rack's router, and one for each host that asks for it."""

    def __init__(self, stage: Stage, directory: Path, loopback: Loopback, cache_bytes: int) -> None:
        self._stage, self._conf, self._cache_bytes = stage, directory / "conf", cache_bytes
        self._certificates = directory / "certificates"
        self._runtime = tempfile.TemporaryDirectory(prefix="trunkline-")
        self._of_host: dict[str, Router] = {}
        self._certificates.mkdir(parents=True)
        _keygen("ca", "--directory", str(self._certificates))
        address = loopback.address(planes.ROUTER_ADDRESS)
        self.rack = self._router("router", f"*.{RACK}", address)
        self.rack.listen = f"tls://{address}:{Ports().free(address)}"

    def _router(self, host: str, peers: str = "", *also: str) -> Router:
        name, folder = f"{host}.{RACK}", str(self._certificates)
        _keygen("host", "--ca", folder, "--directory", folder, name, *also)
        return Router(
            self._stage,
            host,
            self._conf / f"router-{host}.toml",
            Path(self._runtime.name) / f"{host}.sock",
            cache_bytes=self._cache_bytes,
            credentials=Credentials(self._certificates, name, peers),
        )

    def face(self, host: str) -> str:
        """What the JVMs of a host connect to; its router runs from the first call on."""
        router = self._of_host.get(host)
        if router is None:
            router = self._of_host[host] = self._router(host)
            router.local_apps = Path(self._runtime.name) / f"{host}.apps.sock"
            router.connect = [self.rack.listen]
            router.start()
        return f"unix://{router.local_apps}"

    def plane(self, directory: Path) -> Plane:
        """Named data by them, with a segment for each packet."""
        return planes.named(self.face, directory, extra=planes.large_segments())


def set_up(
    _plane: str, stage: Stage, directory: Path, loopback: Loopback, cache_bytes: int
) -> tuple[Plane, Router | None]:
    """As `planes.set_up`; the router is the rack's."""
    routers = HostRouters(stage, directory, loopback, cache_bytes)
    routers.rack.start()
    return routers.plane(directory), routers.rack


def _keygen(*words: str) -> None:
    subprocess.run([str(paths.built(paths.TRUNKLINE)), "keygen", *words], check=True, capture_output=True)
