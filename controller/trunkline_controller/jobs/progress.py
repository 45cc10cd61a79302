"""How far the reducers of a job are with their shuffle, in one form whatever framework runs them. Pure.

A reducer counts what it has fetched in outputs of maps, not in bytes: MapReduce's progress of a reduce attempt does so
itself (`ShuffleSchedulerImpl.updateStatus`), and Spark's blocks are one for each map task. Who is behind is told from
the median of a wave: reducers that began at about the same time. One that began later is not a straggler for that.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass

WAVE_S = 30.0  # reducers that began within so many seconds of the first of them are compared with each other
LEAST_PEERS = 3  # fewer have no median to be behind


@dataclass(frozen=True)
class Reducer:
    """An attempt at a reduce task, or at a task of a Spark stage that reads a shuffle. `name` is the framework's id."""

    name: str
    host: str  # as the framework names it, without a port
    began_s: float  # by the framework's clock
    fetched: float  # share of its shuffle that has arrived, 0 to 1
    shuffling: bool  # still fetching
    shuffled_bytes: int | None = None  # fetched so far, where it is told


@dataclass(frozen=True)
class JobProgress:
    """All reducers of a running job that have begun, those that have ended well among them."""

    job: str
    reducers: tuple[Reducer, ...]


@dataclass(frozen=True)
class Lag:
    """A reducer that still fetches, and how far it is behind the median of its wave; negative where it is ahead."""

    reducer: Reducer
    median: float
    peers: int

    @property
    def share(self) -> float:
        return self.median - self.reducer.fetched


def lags(progress: JobProgress) -> dict[str, Lag]:
    """By name, of each reducer that still fetches and has peers enough."""
    found: dict[str, Lag] = {}
    for wave in _waves(progress.reducers):
        if len(wave) < LEAST_PEERS:
            continue
        median = statistics.median(reducer.fetched for reducer in wave)
        found |= {r.name: Lag(r, median, len(wave)) for r in wave if r.shuffling}
    return found


def _waves(reducers: tuple[Reducer, ...]) -> Iterator[list[Reducer]]:
    wave: list[Reducer] = []
    for reducer in sorted(reducers, key=lambda reducer: reducer.began_s):
        if wave and reducer.began_s > wave[0].began_s + WAVE_S:
            yield wave
            wave = []
        wave.append(reducer)
    if wave:
        yield wave
