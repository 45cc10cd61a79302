"""What YARN's JobHistoryServer knows of a job that has ended."""

from __future__ import annotations

import contextlib
import json
import re
import urllib.request
from dataclasses import dataclass
from typing import Any

from .cluster import Cluster
from .procs import wait_until

WEB_PORT = 19888
LIMIT_S = 60

# "2026-11-21 19:40:01,100 INFO  mapreduce.Job: Running job: job_1763754000000_0001"
_JOB = re.compile(r"mapreduce\.Job: Running job: (job_\d+_\d+)")


@dataclass(frozen=True)
class Shuffle:
    """How long a reducer fetched, from its start to its last map's output, and where."""

    reducer: str
    host: str  # as its NodeManager calls itself
    took_s: float


def job_of(log: str) -> str:
    """The id of the job that a client's log is about."""
    found = _JOB.search(log)
    if found is None:
        raise ValueError("no job's id in what its client logged")
    return found.group(1)


def shuffles(cluster: Cluster, historyserver: str, job: str) -> list[Shuffle]:
    """Of all reduce attempts of a job that ended well. `historyserver` is its address."""
    base = f"http://{historyserver}:{WEB_PORT}/ws/v1/history/mapreduce/jobs/{job}"

    def ask(path: str) -> dict[str, Any]:
        with cluster.site.near(), urllib.request.urlopen(base + path, timeout=20) as page:
            return dict(json.load(page))

    def known() -> bool:
        with contextlib.suppress(OSError, ValueError, KeyError):
            return bool(ask("")["job"]["state"] == "SUCCEEDED")
        return False

    wait_until(f"the JobHistoryServer's knowledge of {job}", known, LIMIT_S, pause_s=0.5)
    tasks = listed(ask("/tasks?type=r")["tasks"]["task"])
    attempts = [
        one for task in tasks for one in listed(ask(f"/tasks/{task['id']}/attempts")["taskAttempts"]["taskAttempt"])
    ]
    return [shuffle_of(attempt) for attempt in attempts if attempt["state"] == "SUCCEEDED"]


def listed(answer: list[dict[str, Any]] | dict[str, Any]) -> list[dict[str, Any]]:
    """A list that the JobHistoryServer answers with; one of a single element it writes as that element."""
    return answer if isinstance(answer, list) else [answer]


def shuffle_of(attempt: dict[str, Any]) -> Shuffle:
    """Of a reduce attempt as the JobHistoryServer describes it."""
    host = str(attempt["nodeHttpAddress"]).rpartition(":")[0]
    return Shuffle(str(attempt["id"]), host, int(attempt["elapsedShuffleTime"]) / 1000)
