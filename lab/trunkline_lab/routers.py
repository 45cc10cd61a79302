"""`trunkline fwd run` on a host of an experiment."""

from __future__ import annotations

import json
import socket
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import paths
from .procs import Process, Stage, wait_until


@dataclass(frozen=True)
class Credentials:
    """What a router shows to others by TLS, as `trunkline keygen` leaves it in a folder."""

    folder: Path
    name: str
    peers: str = ""  # names of the certificates that may announce /hadoop; empty: all may, without one too

    def toml(self) -> str:
        own = f'certificate = "{self.folder}/{self.name}.crt"\nkey = "{self.folder}/{self.name}.key"'
        rule = f'[[authorize]]\ncertificate = "{self.peers}"\nprefixes = ["/hadoop"]\n\n' if self.peers else ""
        return f'[tls]\n{own}\nca = "{self.folder}/ca.crt"\n\n{rule}'


@dataclass
class Router:
    """One forwarder: `listen` and `connect` are faces to other hosts, `control` a Unix socket for its own host.

    It is asked over `control`, since `/localhost` names never cross a link. With `local_apps` the JVMs of its host
    connect there too, and are hosts like any other to it.
    """

    stage: Stage
    host: str
    config: Path
    control: Path  # Unix socket paths end at 107 bytes
    listen: str = ""
    connect: list[str] = field(default_factory=list)
    local_apps: Path | None = None
    cache_bytes: int = 0
    cache_policy: str = "lru"
    credentials: Credentials | None = None
    process: Process | None = None

    @property
    def name(self) -> str:
        return "router" if self.host == "router" else f"router-{self.host}"

    @property
    def face(self) -> str:
        """What the JVMs of other hosts connect to."""
        return self.listen

    def start(self) -> None:
        """Starts it (again after `kill`); returns when it answers."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Starts it and returns at once; `wait` for it afterwards."""
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text(self._toml())
        command = [str(paths.built(paths.TRUNKLINE)), "fwd", "run", "--config", str(self.config)]
        self.process = self.stage.start(self.name, self.host, command)

    def wait(self) -> None:
        """Returns when it answers."""
        assert self.process is not None
        wait_until(f"{self.name}'s control socket", self._listens, 20, self.process)

    def kill(self) -> None:
        """SIGKILL, as a power cut would."""
        assert self.process is not None
        self.process.kill()

    def _toml(self) -> str:
        faces = [f'listen = "unix://{self.control}"']
        if self.listen:
            faces.append(f'listen = "{self.listen}"\nscope = "non-local"')
        if self.local_apps:
            faces.append(f'listen = "unix://{self.local_apps}"\nscope = "non-local"\ndiscovery = true')
        faces += [f'connect = "{uri}"\nscope = "non-local"' for uri in self.connect]
        return (
            (self.credentials.toml() if self.credentials else "")
            + "".join(f"[[face]]\n{face}\n\n" for face in faces)
            # No routes: the first Interest for a block goes to all hosts, the others where its Data came from.
            + '[[strategy]]\nprefix = "/hadoop"\nname = "self-learning"\ngroup = 4\n\n'
            + f'[content_store]\ncapacity = {self.cache_bytes}\npolicy = "{self.cache_policy}"\n'
        )

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.control)) == 0

    def cache_hits(self) -> int:
        """Interests that its content store has answered so far."""
        return int(self.status()["content_store"]["hits"])

    def keep(self, size: int) -> None:
        """Empties its content store, which from now on keeps `size` bytes."""
        self._ask("cs", "erase", "/")
        self._ask("cs", "config", "--capacity", str(size))

    def status(self) -> dict[str, Any]:
        """`trunkline fwd status --json`."""
        return dict(self._ask("status"))

    def faces(self) -> list[dict[str, Any]]:
        """`trunkline fwd face list --json`."""
        return list(self._ask("face", "list"))

    def _ask(self, *words: str) -> Any:  # noqa: ANN401
        answer = subprocess.run(
            [str(paths.TRUNKLINE), "fwd", *words, "--json", "--face", f"unix://{self.control}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        if answer.returncode != 0:
            raise RuntimeError(f"{self.name} at {self.control} did not answer: {answer.stderr.strip()}")
        return json.loads(answer.stdout)
