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
    """A rack's router, and one for each host that asks for it; each has a folder with its own key and certificate."""

    def __init__(self, stage: Stage, directory: Path, loopback: Loopback, cache_bytes: int) -> None:
        self._stage, self._conf, self._cache_bytes = stage, directory / "conf", cache_bytes
        self._certificates = directory / "certificates"
        self._runtime = tempfile.TemporaryDirectory(prefix="trunkline-")
        self.of_host: dict[str, Router] = {}
        self._address = loopback.address(planes.ROUTER_ADDRESS)
        self.authority = self.new_authority("ca")
        self.rack = self._router("router", f"*.{RACK}")
        self.rack.listen = f"tls://{self._address}:{Ports().free(self._address)}"

    def new_authority(self, name: str) -> Path:
        """The folder of a CA that has signed nothing yet."""
        folder = self._certificates / name
        folder.mkdir(parents=True)
        _keygen("ca", "--directory", str(folder), "--name", name)
        return folder

    def folder(self, host: str) -> Path:
        """What a host's router shows, and whom it trusts."""
        return self._certificates / "hosts" / host

    def certify(self, host: str, authority: Path) -> None:
        """Gives a host's router another key, and a certificate for it."""
        folder = self.folder(host)
        folder.mkdir(parents=True, exist_ok=True)
        also = [self._address] if host == "router" else []
        _keygen("host", "--ca", str(authority), "--directory", str(folder), "--force", f"{host}.{RACK}", *also)

    def trust(self, host: str, *authorities: Path) -> None:
        """Whose certificates a host's router takes from now on."""
        self.folder(host).joinpath("ca.crt").write_text("".join((a / "ca.crt").read_text() for a in authorities))

    def _router(self, host: str, peers: str = "") -> Router:
        self.certify(host, self.authority)
        self.trust(host, self.authority)
        return Router(
            self._stage,
            host,
            self._conf / f"router-{host}.toml",
            Path(self._runtime.name) / f"{host}.sock",
            cache_bytes=self._cache_bytes,
            credentials=Credentials(self.folder(host), f"{host}.{RACK}", peers),
        )

    def face(self, host: str) -> str:
        """What the JVMs of a host connect to; its router runs from the first call on."""
        router = self.of_host.get(host)
        if router is None:
            router = self.of_host[host] = self._router(host)
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
