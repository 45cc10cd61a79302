"""Which stragglers' flows are in a better queue: the decisions of dynamic control, as a machine without a clock. Pure.

Of each reducer that fetches its share of the maps' output, `lag` being how far it is behind the median of its wave:

               lag >= lift_lag; there is room, and a change to spare
      WATCHED -------------------------------------------------------> LIFTED
         ^                                                                |
         |                        lag <= return_lag, lifted for hold_s    |  caught up
         |                        its shuffle is over, or it is gone      |  finished
         |                        its job has ended                       |  job ended
         |                        nothing new of its job for silent_s     |  silent
         |                        the policy has no such queue any more,  |
         |                        or its host is no NodeManager           |  policy
         |                                                                |
         +------------------- RESTING <-----------------------------------+
              after hold_s             a change to spare

Two thresholds and `hold_s` keep a reducer near a threshold from going to and fro. What is lifted is a host: the
packets of shuffles to it. Reducers that share a host share the lift, which ends with the last of them. Changes are
let through by a token bucket, those that give back before those that lift; the rest waits for the next step. A lift
whose queue the policy has no more ends at once and costs nothing: switches lost it with that queue.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from ..control import Decision
from ..policy.model import Category, Lift
from .budget import ChangeBudget
from .progress import JobProgress, Lag, lags
from .target import Target


@dataclass(frozen=True)
class Limits:
    """When to lift and give back. Lags are shares of a shuffle, 0 to 1."""

    lift_lag: float = 0.2
    return_lag: float = 0.05
    hold_s: float = 10.0
    silent_s: float = 10.0
    max_lifted: int = 8  # reducers at once, over all jobs
    flows_per_s: float = 100.0  # flow entries that change, over all switches

    def __post_init__(self) -> None:
        if not 0 <= self.return_lag < self.lift_lag <= 1:
            raise ValueError(
                f"return_lag {self.return_lag} is not below lift_lag {self.lift_lag}, or they are not within 0 and 1"
            )


class Ended(StrEnum):
    """Why a lift is given back."""

    CAUGHT_UP = "caught up"
    FINISHED = "its shuffle is over"
    GONE = "the attempt is no longer there"
    JOB_ENDED = "its job has ended"
    SILENT = "its job's status is silent"
    POLICY = "the policy no longer allows it"


@dataclass
class _Job:
    progress: JobProgress
    seen: float
    lags: dict[str, Lag]
    shuffling: frozenset[str]
    present: frozenset[str]


@dataclass(frozen=True)
class _Key:
    job: str
    reducer: str


@dataclass
class _Lifted:
    address: str
    host: str
    since: float
    target: Target


@dataclass
class Stragglers:
    """`observe` and `ended` say what jobs do, `step` decides. The caller puts `lifts` in force after each step."""

    limits: Limits = field(default_factory=Limits)
    _jobs: dict[str, _Job] = field(default_factory=dict)
    _lifted: dict[_Key, _Lifted] = field(default_factory=dict)
    _resting: dict[_Key, float] = field(default_factory=dict)  # until when
    _silent: set[str] = field(default_factory=set)  # jobs of which nothing new is heard

    def __post_init__(self) -> None:
        self._budget = ChangeBudget(self.limits.flows_per_s)

    @property
    def lifts(self) -> frozenset[Lift]:
        """What should be in force."""
        return frozenset(
            Lift(Category.SHUFFLE, lifted.address, lifted.target.to_queue) for lifted in self._lifted.values()
        )

    def observe(self, now: float, progress: JobProgress) -> None:
        """What a job says of its reducers now."""
        self._jobs[progress.job] = _Job(
            progress,
            now,
            lags(progress),
            frozenset(reducer.name for reducer in progress.reducers if reducer.shuffling),
            frozenset(reducer.name for reducer in progress.reducers),
        )
        self._silent.discard(progress.job)

    def running(self, jobs: frozenset[str]) -> None:
        """These jobs run and no others: what is known of others is forgotten, and their lifts end as those of an ended
        job."""
        for job in self._jobs.keys() - jobs:
            del self._jobs[job]
        self._silent &= jobs

    def cost(self, hosts: int, flows: int) -> None:
        """What putting a change of `hosts` lifts in force took: `flows` entries."""
        self._budget.cost(hosts, flows)

    def step(
        self,
        now: float,
        at_s: float,
        target: Target | None,
        address_of: Callable[[str], str | None],
        *,
        queues: Container[str] | None = None,
    ) -> tuple[Decision, ...]:
        """Decides. `now` is monotonic, `at_s` the same moment in Unix time; without a `target` nothing is lifted.

        `address_of` gives a host's address where its flows may be lifted at all, None where not. `queues` are those of
        the policy in force, `target`'s among them; None: all that are lifted into.
        """
        dropped = [
            k for k, lifted in self._lifted.items() if queues is not None and lifted.target.to_queue not in queues
        ]
        ends = [self._end(key, now, at_s, Ended.POLICY, "it has no such queue") for key in dropped]
        for name, job in list(self._jobs.items()):
            if now - job.seen > self.limits.silent_s:
                self._silent.add(name)
        self._resting = {key: until for key, until in self._resting.items() if until > now}
        return (*ends, *self._give_back(now, at_s, target, address_of), *self._lift(now, at_s, target, address_of))

    def _give_back(
        self, now: float, at_s: float, target: Target | None, address_of: Callable[[str], str | None]
    ) -> Iterator[Decision]:
        for key, lifted in list(self._lifted.items()):
            found = self._over(now, key, lifted, target, address_of)
            if found is None or (self._last_at(lifted.address) and not self._budget.take(now)):
                continue
            ended, why = found
            yield self._end(key, now, at_s, ended, why)

    def _end(self, key: _Key, now: float, at_s: float, ended: Ended, why: str) -> Decision:
        lifted = self._lifted.pop(key)
        self._resting[key] = now + self.limits.hold_s
        text = f"{ended}: {why}" if why else str(ended)
        return Decision(at_s, key.job, key.reducer, lifted.host, text, lifted.target.to_queue, lifted.target.from_queue)

    def _last_at(self, address: str) -> bool:
        """Whether one reducer alone holds the lift of a host."""
        return sum(lifted.address == address for lifted in self._lifted.values()) == 1

    def _over(
        self,
        now: float,
        key: _Key,
        lifted: _Lifted,
        target: Target | None,
        address_of: Callable[[str], str | None],
    ) -> tuple[Ended, str] | None:
        """Why a lift is to end; None where it goes on."""
        if target != lifted.target:
            other = f"it lifts from {target.from_queue} to {target.to_queue} now" if target else ""
            return Ended.POLICY, other
        if address_of(lifted.host) != lifted.address:
            return Ended.POLICY, f"{lifted.host} is no NodeManager at {lifted.address} any more"
        job = self._jobs.get(key.job)
        if job is None:
            return Ended.JOB_ENDED, ""
        if key.job in self._silent:
            return Ended.SILENT, f"nothing new for {now - job.seen:.0f} s"
        return self._reached(key.reducer, job, now - lifted.since)

    def _reached(self, reducer: str, job: _Job, lifted_s: float) -> tuple[Ended, str] | None:
        """The same of a reducer whose job is heard of."""
        if reducer not in job.present:
            return Ended.GONE, ""
        if reducer not in job.shuffling:
            return Ended.FINISHED, f"lifted for {lifted_s:.0f} s"
        lag = job.lags.get(reducer)
        if lag is None:
            return Ended.CAUGHT_UP, "no others are left to compare it with"
        if lag.share <= self.limits.return_lag and lifted_s >= self.limits.hold_s:
            return Ended.CAUGHT_UP, _numbers(lag, "at most", self.limits.return_lag)
        return None

    def _lift(
        self, now: float, at_s: float, target: Target | None, address_of: Callable[[str], str | None]
    ) -> Iterator[Decision]:
        if target is None:
            return
        waiting = self._laggards()
        while waiting and len(self._lifted) < self.limits.max_lifted:
            key, lag = min(waiting, key=self._turn)
            waiting.remove((key, lag))
            address = address_of(lag.reducer.host)
            if address is None:
                continue
            shared = any(lifted.address == address for lifted in self._lifted.values())
            if not shared and not self._budget.take(now):
                return
            self._lifted[key] = _Lifted(address, lag.reducer.host, now, target)
            why = _numbers(lag, "at least", self.limits.lift_lag)
            yield Decision(at_s, key.job, key.reducer, lag.reducer.host, why, target.from_queue, target.to_queue)

    def _laggards(self) -> list[tuple[_Key, Lag]]:
        """Reducers that may be lifted."""
        found = [
            (_Key(name, lag.reducer.name), lag)
            for name, job in self._jobs.items()
            if name not in self._silent
            for lag in job.lags.values()
            if lag.share >= self.limits.lift_lag
        ]
        return [(key, lag) for key, lag in found if key not in self._lifted and key not in self._resting]

    def _turn(self, laggard: tuple[_Key, Lag]) -> tuple[int, float, str, str]:
        """Whose turn it is: the job's with the fewest lifted, and of it the reducer's that is furthest behind."""
        key, lag = laggard
        return sum(lifted.job == key.job for lifted in self._lifted), -lag.share, key.job, key.reducer


def _numbers(lag: Lag, bound: str, limit: float) -> str:
    reducer = lag.reducer
    size = "" if reducer.shuffled_bytes is None else f" ({reducer.shuffled_bytes / 1e6:.1f} MB)"
    return (
        f"{reducer.fetched:.0%} of its shuffle fetched{size}, median of {lag.peers} reducers {lag.median:.0%}: "
        f"{100 * lag.share:.0f} points behind, {bound} {100 * limit:.0f}"
    )
