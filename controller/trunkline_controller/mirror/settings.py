"""Whether writes are mirrored, and how many at once: the table [mirror] of the controller's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..refusal import token
from .model import Limits
from .permits import PermittedAgent, load


@dataclass(frozen=True)
class MirrorSettings:
    """`enabled` is enough: the rest has defaults."""

    enabled: bool = False
    """Whether switches copy the segments of block writes to all replicas, for pipelines that are announced."""
    max_pipelines: int = 1024
    """Pipelines announced at once, 1 to 65536. Each takes a flow entry on every switch of its tree."""
    max_pipelines_per_host: int = 1024
    """Pipelines announced at once that one host has a part in, 1 to 65536: how many of `max_pipelines` one host may
    take, and how many its agent is told of, whose host has room for 4096."""
    lease_s: float = 60.0
    """A pipeline of which a connection was not announced again for so long is removed, in seconds, 1 to 86400."""

    agent_lease_s: float = 15.0
    """An agent that has not polled for so long is taken for gone, and copies to its host end; in seconds, 1 to 3600."""

    agents: Path | None = None
    """TOML file with the agents that there may be: a table for each, by its name, with its `token_file`, and with the
    `addresses` and networks that it may claim, or `bridge = true` where it is a Linux bridge's. Each polls with its own
    token then, which lets it do nothing else, and nobody else is an agent. Without it whoever has the token of
    `http.token_file` can be the agent of any address or bridge."""
    announce_token_file: Path | None = None
    """File with a bearer token for DataNodes: it is taken, besides that of `http.token_file`, for announcing pipelines
    and ending them, and for nothing else."""

    def check(self) -> None:
        """Raises SettingsError unless the files that are named can be used."""
        self.permitted()
        self.announce_token()

    def permitted(self) -> Mapping[str, PermittedAgent] | None:
        """Agents that there may be, by name; none: any. Raises SettingsError."""
        return None if self.agents is None else load(self.agents)

    def announce_token(self) -> bytes | None:
        """Raises SettingsError."""
        file = self.announce_token_file
        return None if file is None else token("mirror.announce_token_file", file)

    @property
    def limits(self) -> Limits:
        return Limits(self.max_pipelines, self.max_pipelines_per_host, self.lease_s)
