"""Answers of Hadoop's and Spark's REST, checked against what they must hold, and what they say of reducers. Pure.

A MapReduce ApplicationMaster and a Spark driver run what a job's user wrote, so that nothing they say is taken on
trust: what is not of the right kind, range or length is refused whole (ValueError).

Sources: "ResourceManager REST API's" and "MapReduce Application Master REST API's" of Hadoop 3.5.0, "Monitoring and
Instrumentation: REST API" of Spark 3.5.1, and answers of both as they were given (tests/data/jobs).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter

from .progress import JobProgress, Reducer

# The phases of MapReduce's ReduceTask are thirds of its progress: copy, sort, reduce (ReduceTask.java).
COPIED_PERCENT = 100 / 3
MOST_APPLICATIONS = 10_000
MOST_REDUCERS = 10_000

_Count = Annotated[int, Field(ge=0, le=2**63)]
_Percent = Annotated[float, Field(ge=0, le=100.001, allow_inf_nan=False)]
_Milliseconds = Annotated[int, Field(ge=0, le=2**53)]


def _as_list(value: object) -> object:
    """Some of Hadoop's services write a list of one element as that element; the JobHistoryServer of 3.5.0 does."""
    return [value] if isinstance(value, dict) else value


_OneOrMore = BeforeValidator(_as_list)


class _Answer(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class Application(_Answer):
    """Of the ResourceManager's list."""

    id: Annotated[str, Field(pattern=r"^application_[0-9]{1,20}_[0-9]{1,10}$")]
    applicationType: Annotated[str, Field(max_length=255)] = ""

    @property
    def job(self) -> str:
        """The MapReduce job's id, which follows from the application's."""
        return self.id.replace("application_", "job_")


class _Applications(_Answer):
    app: Annotated[list[Application], _OneOrMore, Field(max_length=MOST_APPLICATIONS)] = []


class _ApplicationsAnswer(_Answer):
    apps: _Applications | None


class Task(_Answer):
    """A reduce task."""

    id: Annotated[str, Field(pattern=r"^task_[0-9]{1,20}_[0-9]{1,10}_r_[0-9]{1,10}$")]
    state: Annotated[str, Field(max_length=32)]
    progress: _Percent


class _Tasks(_Answer):
    task: Annotated[list[Task], _OneOrMore, Field(max_length=MOST_REDUCERS)] = []


class _TasksAnswer(_Answer):
    tasks: _Tasks | None


class Attempt(_Answer):
    """An attempt at a reduce task."""

    id: Annotated[str, Field(pattern=r"^attempt_[0-9]{1,20}_[0-9]{1,10}_r_[0-9]{1,10}_[0-9]{1,10}$")]
    state: Annotated[str, Field(max_length=32)]
    progress: _Percent
    startTime: _Milliseconds
    nodeHttpAddress: Annotated[str, Field(max_length=300)] = ""

    @property
    def host(self) -> str:
        return self.nodeHttpAddress.rpartition(":")[0]


class _Attempts(_Answer):
    taskAttempt: Annotated[list[Attempt], _OneOrMore, Field(max_length=1000)] = []


class _AttemptsAnswer(_Answer):
    taskAttempts: _Attempts | None


class _Counter(_Answer):
    name: Annotated[str, Field(max_length=1000)]
    value: Annotated[int, Field(ge=-(2**63), lt=2**63)] = 0  # Java's long


class _Group(_Answer):
    counter: Annotated[list[_Counter], _OneOrMore, Field(max_length=10_000)] = []


class _Counters(_Answer):
    taskAttemptCounterGroup: Annotated[list[_Group], _OneOrMore, Field(max_length=1000)] = []


class _CountersAnswer(_Answer):
    jobTaskAttemptCounters: _Counters


class Stage(_Answer):
    """An active stage of a Spark application."""

    stageId: _Count
    attemptId: _Count
    shuffleReadBytes: _Count = 0


class _Pushed(_Answer):
    remoteMergedBlocksFetched: _Count = 0
    localMergedBlocksFetched: _Count = 0
    remoteMergedChunksFetched: _Count = 0
    localMergedChunksFetched: _Count = 0


class _ShuffleRead(_Answer):
    remoteBlocksFetched: _Count = 0
    localBlocksFetched: _Count = 0
    remoteBytesRead: _Count = 0
    shufflePushReadMetrics: _Pushed = _Pushed()

    @property
    def blocks(self) -> int:
        """Blocks fetched. Spark 3.5 names the counts of a task that still runs by each other's names (what was fetched
        from other hosts stands under localMergedBlocksFetched), so that their sum alone can be relied upon.
        """
        pushed = self.shufflePushReadMetrics
        merged = pushed.remoteMergedBlocksFetched + pushed.localMergedBlocksFetched
        chunks = pushed.remoteMergedChunksFetched + pushed.localMergedChunksFetched
        return self.remoteBlocksFetched + self.localBlocksFetched + merged + chunks


class _Metrics(_Answer):
    shuffleReadMetrics: _ShuffleRead = _ShuffleRead()


class SparkTask(_Answer):
    taskId: _Count
    attempt: _Count = 0
    host: Annotated[str, Field(max_length=255)]
    status: Annotated[str, Field(max_length=32)]
    launchTime: Annotated[str, Field(max_length=40)]
    taskMetrics: _Metrics = _Metrics()


_APPLICATIONS = TypeAdapter(_ApplicationsAnswer)
_TASKS = TypeAdapter(_TasksAnswer)
_ATTEMPTS = TypeAdapter(_AttemptsAnswer)
_COUNTERS = TypeAdapter(_CountersAnswer)
_STAGES = TypeAdapter(Annotated[list[Stage], Field(max_length=1000)])
_SPARK_TASKS = TypeAdapter(Annotated[list[SparkTask], Field(max_length=MOST_REDUCERS)])


def applications(body: bytes) -> tuple[Application, ...]:
    """Of GET /ws/v1/cluster/apps."""
    answer = _APPLICATIONS.validate_json(body)
    return tuple(answer.apps.app) if answer.apps else ()


def tasks(body: bytes) -> tuple[Task, ...]:
    """Of GET …/jobs/<job>/tasks?type=r."""
    answer = _TASKS.validate_json(body)
    return tuple(answer.tasks.task) if answer.tasks else ()


def attempts(body: bytes) -> tuple[Attempt, ...]:
    """Of GET …/tasks/<task>/attempts."""
    answer = _ATTEMPTS.validate_json(body)
    return tuple(answer.taskAttempts.taskAttempt) if answer.taskAttempts else ()


def shuffled_bytes(body: bytes) -> int | None:
    """REDUCE_SHUFFLE_BYTES of GET …/attempts/<attempt>/counters, where the attempt has told it."""
    groups = _COUNTERS.validate_json(body).jobTaskAttemptCounters.taskAttemptCounterGroup
    found = (counter.value for group in groups for counter in group.counter if counter.name == "REDUCE_SHUFFLE_BYTES")
    return next((value for value in found if value >= 0), None)


def stages(body: bytes) -> tuple[Stage, ...]:
    """Of GET …/stages?status=active."""
    return tuple(_STAGES.validate_json(body))


def spark_tasks(body: bytes) -> tuple[SparkTask, ...]:
    """Of GET …/stages/<stage>/<attempt>/taskList."""
    return tuple(_SPARK_TASKS.validate_json(body))


def of_attempt(attempt: Attempt, task_percent: float | None = None, shuffled: int | None = None) -> Reducer:
    """A reducer of MapReduce. `task_percent` is the task's newer progress, where it is known to be this attempt's."""
    percent = attempt.progress if task_percent is None else task_percent
    ended = attempt.state != "RUNNING"
    return Reducer(
        attempt.id,
        attempt.host,
        attempt.startTime / 1000,
        1.0 if ended else min(1.0, percent / COPIED_PERCENT),
        not ended and percent < COPIED_PERCENT - 0.01,
        shuffled,
    )


def of_spark(job: str, listed: Sequence[SparkTask]) -> JobProgress:
    """The reducers of a Spark stage, that `job` names; none where it reads no shuffle.

    How many blocks a task will fetch is not told; the most that any of its stage has fetched stands for it.
    """
    live = [task for task in listed if task.status in ("RUNNING", "SUCCESS")]
    most = max((task.taskMetrics.shuffleReadMetrics.blocks for task in live), default=0)
    if most == 0:
        return JobProgress(job, ())
    return JobProgress(job, tuple(_of_spark(task, most) for task in live))


def _of_spark(task: SparkTask, most: int) -> Reducer:
    read, ended = task.taskMetrics.shuffleReadMetrics, task.status == "SUCCESS"
    return Reducer(
        f"task {task.taskId}.{task.attempt}",
        task.host,
        _unix_s(task.launchTime),
        1.0 if ended else read.blocks / most,
        not ended and read.blocks < most,
        read.remoteBytesRead if ended else None,
    )


def _unix_s(text: str) -> float:
    """A time as Spark's REST writes it: 2026-11-23T15:57:51.169GMT."""
    return datetime.strptime(text.removesuffix("GMT"), "%Y-%m-%dT%H:%M:%S.%f").replace(tzinfo=UTC).timestamp()
