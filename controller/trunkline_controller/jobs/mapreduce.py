"""A MapReduce job's reducers, as its ApplicationMaster tells them through the ResourceManager's proxy."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from . import answers
from .answers import Application, Attempt, Task
from .progress import JobProgress, Reducer, lags
from .rest import Rest, RestError

TYPE = "MAPREDUCE"
MOST_REQUESTS = 24  # to one ApplicationMaster, each time
BYTES_OF = 3  # stragglers, whose bytes the decisions name
_BEGUN = ("RUNNING", "SUCCEEDED")


@dataclass
class _Known:
    """Attempts at a task, and the task's progress when they were asked for."""

    attempts: tuple[Attempt, ...]
    turn: int
    percent: float


@dataclass
class _Job:
    tasks: dict[str, _Known] = field(default_factory=dict)
    turn: int = 0


class MapReduce:
    """Asks for the progress of all reduce tasks each time, in one request; for their attempts, which tell the hosts,
    when a task is new or may have another attempt, and of the others a few each time, in turn.
    """

    def __init__(self, most_requests: int = MOST_REQUESTS) -> None:
        self._most = most_requests
        self._jobs: dict[str, _Job] = {}

    def progress(self, rest: Rest, application: Application) -> tuple[JobProgress, ...]:
        """Raises RestError, or ValueError where the answer is no answer."""
        name = application.job
        base = f"/proxy/{application.id}/ws/v1/mapreduce/jobs/{name}/tasks"
        tasks = {task.id: task for task in answers.tasks(rest.get(f"{base}?type=r")) if task.state in _BEGUN}
        job = self._jobs.setdefault(name, _Job())
        job.turn += 1
        job.tasks = {task: known for task, known in job.tasks.items() if task in tasks}
        with contextlib.suppress(RestError):  # time is up: the others' turn comes
            for task in _to_ask(job, tasks)[: self._most]:
                found = answers.attempts(rest.get(f"{base}/{task.id}/attempts"))
                job.tasks[task.id] = _Known(found, job.turn, task.progress)
        reducers = [reducer for task in tasks.values() for reducer in _reducers(task, job.tasks.get(task.id))]
        progress = JobProgress(name, tuple(reducers))
        return (replace(progress, reducers=tuple(_with_bytes(rest, base, progress))),)

    def forget(self, running: frozenset[str]) -> None:
        """Applications that run; what is known of others goes."""
        jobs = {application.replace("application_", "job_") for application in running}
        self._jobs = {name: job for name, job in self._jobs.items() if name in jobs}


def _to_ask(job: _Job, tasks: dict[str, Task]) -> list[Task]:
    """Tasks whose attempts are to be asked for, the most urgent first."""

    def urgency(task: Task) -> tuple[int, int, str]:
        known = job.tasks.get(task.id)
        if known is None:
            return 0, task.state != "RUNNING", task.id
        if task.progress < known.percent or not any(attempt.host for attempt in known.attempts):
            return 1, known.turn, task.id
        return 2, known.turn, task.id

    wanted = (task for task in tasks.values() if task.state == "RUNNING" or _unfinished(job.tasks.get(task.id)))
    return sorted(wanted, key=urgency)


def _unfinished(known: _Known | None) -> bool:
    """Whether a task that has succeeded is known to have."""
    return known is None or not any(attempt.state == "SUCCEEDED" for attempt in known.attempts)


def _reducers(task: Task, known: _Known | None) -> Iterator[Reducer]:
    if known is None:
        return
    live = [attempt for attempt in known.attempts if attempt.state in _BEGUN]
    for attempt in live:
        # The task's progress is newer than the attempt's, and is that of its only attempt.
        yield answers.of_attempt(attempt, task.progress if len(live) == 1 else None)


def _with_bytes(rest: Rest, base: str, progress: JobProgress) -> Iterator[Reducer]:
    """The same reducers; those furthest behind with the bytes they have fetched."""
    behind = sorted(lags(progress).values(), key=lambda lag: -lag.share)[:BYTES_OF]
    asked = {lag.reducer.name for lag in behind if lag.share > 0}
    for reducer in progress.reducers:
        shuffled = None
        if reducer.name in asked:
            task = "_".join(reducer.name.split("_")[:-1]).replace("attempt_", "task_")
            with contextlib.suppress(RestError, ValueError):  # they are for people to read, no more
                shuffled = answers.shuffled_bytes(rest.get(f"{base}/{task}/attempts/{reducer.name}/counters"))
        yield replace(reducer, shuffled_bytes=shuffled)
