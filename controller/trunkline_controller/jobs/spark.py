"""A Spark application's reducers, as its driver tells them through the ResourceManager's proxy.

Tasks that run are told of with the executors' heartbeats (spark.executor.heartbeatInterval, 10 s by default).
"""

from __future__ import annotations

from . import answers
from .answers import MOST_REDUCERS, Application
from .progress import JobProgress
from .rest import Rest

TYPE = "SPARK"
MOST_STAGES = 4  # at once


class Spark:
    """Stages that read a shuffle; each is a job of its own to the rest, as its tasks are compared with each other."""

    def progress(self, rest: Rest, application: Application) -> tuple[JobProgress, ...]:
        """Raises RestError, or ValueError where the answer is no answer."""
        base = f"/proxy/{application.id}/api/v1/applications/{application.id}/stages"
        reading = [stage for stage in answers.stages(rest.get(f"{base}?status=active")) if stage.shuffleReadBytes]
        found = []
        for stage in reading[:MOST_STAGES]:
            body = rest.get(f"{base}/{stage.stageId}/{stage.attemptId}/taskList?length={MOST_REDUCERS}")
            name = f"{application.id} stage {stage.stageId}.{stage.attemptId}"
            found.append(answers.of_spark(name, answers.spark_tasks(body)))
        return tuple(found)

    def forget(self, running: frozenset[str]) -> None:
        """Nothing is known from one time to the next."""
