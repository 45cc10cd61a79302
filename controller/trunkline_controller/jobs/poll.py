"""One look at all running jobs, through the ResourceManager: what they say of their reducers, and who is silent."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from . import answers, mapreduce, spark
from .answers import Application
from .mapreduce import MapReduce
from .progress import JobProgress
from .rest import Rest, RestError
from .spark import Spark

MOST_APPLICATIONS = 100
MOST_BYTES = 16 << 20  # of one answer
FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 60.0  # before an application that gave no answer is asked again


@dataclass(frozen=True)
class Looked:
    """`running` names all jobs that the ResourceManager counts as running; None where it gave no answer.

    `failed` says why of applications that gave none, `error` of the ResourceManager.
    """

    running: frozenset[str] | None
    progress: tuple[JobProgress, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)
    error: str = ""


@dataclass
class _Failing:
    why: str
    pause_s: float
    until: float


class Poll:
    """Asks the first of `addresses` that answers, and then the applications.

    Those go first that answered soonest, and when `timeout_s` has passed twice the rest waits for the next look. One
    that gives no answer is left alone for a while, longer each time. So no application keeps others from being heard.
    """

    def __init__(
        self, timeout_s: float, tls: ssl.SSLContext | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._timeout_s, self._tls, self._clock = timeout_s, tls, clock
        self._clients: dict[str, MapReduce | Spark] = {mapreduce.TYPE: MapReduce(), spark.TYPE: Spark()}
        self._failing: dict[str, _Failing] = {}
        self._jobs: dict[str, frozenset[str]] = {}  # by application, as it last said
        self._took_s: dict[str, float] = {}  # by application, its last answers

    def look(self, addresses: tuple[str, ...]) -> Looked:
        """Once round."""
        errors = []
        for address in addresses:
            try:
                rest = Rest(address, self._timeout_s, MOST_BYTES, self._tls)
                applications = self._applications(rest)
            except (RestError, ValueError) as error:
                errors.append(brief(error, address))
            else:
                return self._ask(rest, applications)
        return Looked(None, error="; ".join(errors))

    def _applications(self, rest: Rest) -> tuple[Application, ...]:
        kinds = ",".join(self._clients)
        with rest:
            body = rest.get(
                f"/ws/v1/cluster/apps?states=RUNNING&applicationTypes={kinds}&limit={MOST_APPLICATIONS}"
                "&deSelects=resourceRequests"
            )
        found = answers.applications(body)
        return tuple(one for one in found if one.applicationType in self._clients)[:MOST_APPLICATIONS]

    def _ask(self, rest: Rest, applications: tuple[Application, ...]) -> Looked:
        ids = frozenset(application.id for application in applications)
        self._failing = {name: failing for name, failing in self._failing.items() if name in ids}
        self._jobs = {name: jobs for name, jobs in self._jobs.items() if name in ids}
        for client in self._clients.values():
            client.forget(ids)
        self._took_s = {name: took_s for name, took_s in self._took_s.items() if name in ids}
        progress: list[JobProgress] = []
        first = began = self._clock()
        for application in sorted(applications, key=lambda one: self._took_s.get(one.id, 0.0)):
            failing = self._failing.get(application.id)
            if failing and failing.until > began:
                continue
            if began - first > 2 * self._timeout_s:
                break
            try:
                with rest:
                    found = self._clients[application.applicationType].progress(rest, application)
            except (RestError, ValueError) as error:
                pause_s = min(LONGEST_PAUSE_S, 2 * failing.pause_s) if failing else FIRST_PAUSE_S
                why = brief(error, application.id)
                self._failing[application.id] = _Failing(why, pause_s, self._clock() + pause_s)
            else:
                self._failing.pop(application.id, None)
                self._jobs[application.id] = frozenset(job.job for job in found)
                progress += found
            ended = self._clock()
            self._took_s[application.id], began = ended - began, ended
        running = frozenset(job for jobs in self._jobs.values() for job in jobs)
        return Looked(running, tuple(progress), {name: failing.why for name, failing in self._failing.items()})


def brief(error: Exception, of: str) -> str:
    """What went wrong, without a stranger's bytes."""
    if isinstance(error, RestError):
        return str(error)
    return f"{of}: its answer is not what the REST documentation says ({type(error).__name__})"
