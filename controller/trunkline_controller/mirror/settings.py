"""Whether writes are mirrored, and how many at once: the table [mirror] of the controller's configuration."""

from __future__ import annotations

from dataclasses import dataclass

from .model import Limits


@dataclass(frozen=True)
class MirrorSettings:
    """`enabled` is enough: the rest has defaults."""

    enabled: bool = False
    """Whether switches copy the segments of block writes to all replicas, for pipelines that are announced."""
    max_pipelines: int = 1024
    """Pipelines announced at once, 1 to 65536. Each takes a flow entry on every switch of its tree."""
    max_pipelines_per_host: int = 64
    """Pipelines announced at once that one host has a part in, 1 to 65536."""
    lease_s: float = 60.0
    """A pipeline of which a connection was not announced again for so long is removed, in seconds, 1 to 86400."""

    agent_lease_s: float = 15.0
    """An agent that has not polled for so long is taken for gone, and copies to its host end; in seconds, 1 to 3600."""

    @property
    def limits(self) -> Limits:
        return Limits(self.max_pipelines, self.max_pipelines_per_host, self.lease_s)
