"""Dynamic control at work: one thread looks at the running jobs, another decides and has the lifts put in force.

Two, so that a ResourceManager that keeps the first waiting does not keep lifts from being given back.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from ..control import Alert, Applied, Decision
from ..hooks import Lifting
from ..policy import classify
from ..policy.model import Category, Lift, Policy, Problem, Role
from .hosts import Hosts
from .lifting import Stragglers
from .poll import Looked, Poll
from .settings import DynamicSettings
from .target import NoTarget, Target, runs_tasks, target, warnings

log = logging.getLogger(__name__)

KEPT_DECISIONS = 1000
TICK_S = 0.5
DEFAULT_PORT = 8088  # yarn.resourcemanager.webapp.address
NOBODY = "the policy names no ResourceManager to ask about jobs"
NAME_ONE = "give its host the role resourcemanager in the policy, or set [dynamic] resourcemanager"
REMEDY = "shuffles stay in the policy's queue until it answers; see whether it runs, and [dynamic] resourcemanager"


class Network(Lifting, Protocol):
    """What the loop asks of a running controller; any thread may call."""

    def policy(self) -> tuple[Policy, Applied] | None: ...


class DynamicControl:
    """Runs from `start` to `stop`, after which no lift is left."""

    def __init__(
        self,
        settings: DynamicSettings,
        network: Network,
        poll: Poll | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._network, self._clock = settings, network, clock
        self._poll = poll or Poll(settings.timeout_s, settings.tls(), clock)
        self._hosts = Hosts()
        self._machine = Stragglers(settings.limits)
        self._in_force: frozenset[Lift] | None = None  # None: not known, what should be is to be said again
        self._version = 0  # of the policy that this was said under; another may have ended lifts
        self._decisions: deque[Decision] = deque(maxlen=KEPT_DECISIONS)
        self._decided = 0
        self._alerts: dict[str, Alert] = {}
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Both threads run from now on."""
        for name, work in (("dynamic-poll", self._polling), ("dynamic-decide", self._deciding)):
            thread = threading.Thread(target=work, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Gives all lifts back."""
        self._stop.set()
        self._news.set()
        for thread in self._threads:  # the one that looks may wait for an answer, and does no harm meanwhile
            thread.join(timeout=2 * TICK_S)
        with contextlib.suppress(Exception):  # the controller may be ending, too
            self._network.lift(frozenset())

    def decisions(self) -> tuple[Decision, ...]:
        """Newest first, as many as are kept."""
        with self._lock:
            return tuple(reversed(self._decisions))

    @property
    def decided(self) -> int:
        """How many decisions there were, also those that are no longer kept."""
        return self._decided

    def alerts(self) -> tuple[Alert, ...]:
        with self._lock:
            return tuple(self._alerts.values())

    def warnings(self, policy: Policy, file: str) -> tuple[Problem, ...]:
        """What keeps it from lifting anything under a policy."""
        found = warnings(policy, self._settings.queue, file)
        if not (self._settings.resourcemanager or _resourcemanagers(policy)):
            found += (Problem(file, policy.line("roles"), f"dynamic control lifts nothing: {NOBODY}", NAME_ONE),)
        return found

    def _polling(self) -> None:
        while not self._stop.is_set():
            try:
                self.poll()
            except Exception:
                log.exception("dynamic control: looking at the running jobs failed; going on")
            self._news.set()
            self._stop.wait(self._settings.poll_s)

    def _deciding(self) -> None:
        while not self._stop.is_set():
            self._news.wait(TICK_S)
            self._news.clear()
            try:
                self.decide()
            except Exception:
                log.exception("dynamic control: a decision failed; going on")
                self._in_force = None

    def poll(self) -> None:
        """One look at the jobs."""
        policy = self._policy()
        addresses = self._settings.resourcemanager or _resourcemanagers(policy)
        looked = self._poll.look(addresses) if addresses else Looked(None)
        # A lookup may wait for the resolver, so not while the lock is held.
        self._hosts.learn(self._clock(), (one.host for job in looked.progress for one in job.reducers if one.shuffling))
        with self._lock:
            now = self._clock()
            for progress in looked.progress:
                self._machine.observe(now, progress)
            if looked.running is not None:
                self._machine.running(looked.running)
            self._alert("resourcemanager", f"no list of running jobs: {looked.error}" if looked.error else "", REMEDY)
            nobody = policy is not None and not addresses
            self._alert("role", NOBODY if nobody else "", NAME_ONE)
            for key in [key for key in self._alerts if key.startswith("application_")]:
                if key not in looked.failed and looked.running is not None:
                    del self._alerts[key]
            for application, why in looked.failed.items():
                self._alert(application, f"no status of {application}: {why}", REMEDY)

    def decide(self) -> None:
        """One step of the machine, and what follows of it for the switches."""
        found = self._network.policy()
        policy, version = (found[0], found[1].version) if found else (None, 0)
        queues = policy.queues if policy else {}
        with self._lock:
            aim = self._target(policy)
            before = {lift for lift in self._machine.lifts if lift.queue in queues}
            made = self._machine.step(
                self._clock(), time.time(), aim, lambda name: self._address(policy, name), queues=queues
            )
            lifts = self._machine.lifts
            self._decided += len(made)
            self._decisions.extend(made)
        for decision in made:
            log.info(
                "dynamic control: %s %s on %s: from queue %s to %s: %s",
                decision.job, decision.reducer, decision.host, decision.from_queue, decision.to_queue, decision.why,
            )  # fmt: skip
        if lifts == self._in_force and version == self._version:
            return
        self._in_force, self._version = None, version
        try:
            flows = self._network.lift(lifts)
        except KeyError:
            now_found = self._network.policy()
            if (now_found[1].version if now_found else 0) == version:
                raise
            return  # another policy has come in force meanwhile; the next step is taken under it
        self._in_force = lifts
        with self._lock:
            self._machine.cost(len(lifts ^ before), flows)

    def _policy(self) -> Policy | None:
        found = self._network.policy()
        return found[0] if found else None

    def _target(self, policy: Policy | None) -> Target | None:
        try:
            found = target(policy, self._settings.queue)
        except NoTarget as error:
            self._alert("target", f"dynamic control lifts nothing: {error.what}", error.remedy)
            return None
        self._alert("target", "", "")
        return found

    def _address(self, policy: Policy | None, name: str) -> str | None:
        """The host's address that the policy names a NodeManager's, and whose shuffles it tells from other traffic."""
        if policy is None:
            return None
        return next(
            (
                found
                for found in self._hosts.addresses(name)
                if runs_tasks(policy, found) and classify.may_lift(policy, Category.SHUFFLE, found)
            ),
            None,
        )

    def _alert(self, key: str, what: str, remedy: str) -> None:
        """An alert stands from when it was first so until it is no longer; empty `what` ends it."""
        if not what:
            self._alerts.pop(key, None)
        elif key not in self._alerts or self._alerts[key].what != what:
            since = self._alerts[key].at_s if key in self._alerts else time.time()
            self._alerts[key] = Alert(since, what, remedy)
            log.warning("%s; %s", what, remedy)


def _resourcemanagers(policy: Policy | None) -> tuple[str, ...]:
    hosts = policy.roles.get(Role.RESOURCEMANAGER, ()) if policy else ()
    return tuple(f"http://{f'[{host}]' if ':' in host else host}:{DEFAULT_PORT}" for host in hosts if "/" not in host)
