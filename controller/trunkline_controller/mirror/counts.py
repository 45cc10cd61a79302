"""What mirroring did since the start, for operators."""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import dataclass, field

ARM_BOUNDS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)


class ArmTimes:
    """How long pipelines took from their last hop's announcement until all switches had confirmed, in seconds."""

    def __init__(self) -> None:
        self.sum_s = 0.0
        self._counts = [0] * (len(ARM_BOUNDS_S) + 1)

    def add(self, seconds: float) -> None:
        self._counts[bisect.bisect_left(ARM_BOUNDS_S, seconds)] += 1
        self.sum_s += seconds

    def cumulative(self) -> tuple[tuple[str, int], ...]:
        """As Prometheus has histograms: how many took a bound or less, by bound."""
        found, total = [], 0
        for bound, count in zip((*map(repr, ARM_BOUNDS_S), "+Inf"), self._counts, strict=True):
            total += count
            found.append((bound, total))
        return tuple(found)


@dataclass(frozen=True)
class MirrorCounts:
    """`by_state` and `agents` are of now. `late`: announcements that waited, all hops being known, and whose time was
    over before their pipeline was armed or refused."""

    enabled: bool
    lease_s: float
    by_state: Mapping[str, int] = field(default_factory=dict)
    armed: int = 0
    closed: int = 0
    superseded: int = 0
    swept: int = 0
    late: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    arm_times: tuple[tuple[str, int], ...] = field(default_factory=lambda: ArmTimes().cumulative())
    arm_sum_s: float = 0.0
    agents: int = 0
