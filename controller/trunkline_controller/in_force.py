"""The policy in force with its lifts: put into the switches, written down, and found again at a start."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from .control import Applied, NotNow
from .flows.entry import FlowEntry
from .policy import classify
from .policy.file import parse
from .policy.model import Lift, Policy, PolicyError
from .policy.store import MAX_HISTORY, PolicyStore, StoreError
from .queues.probe import passing_by

log = logging.getLogger(__name__)

RETRY_S = 30.0


class Switches(Protocol):
    """What is asked of the network. Any thread may call."""

    def stands_by(self) -> bool:
        """Whether another controller is the switches' master."""
        ...

    def changes(self, entries: frozenset[FlowEntry]) -> int:
        """How many entries `classify` would change."""
        ...

    def classify(self, entries: frozenset[FlowEntry], knows_policy: bool = True) -> None:
        """What policy and lifts want of each switch, from now on."""
        ...

    def sound(self, key: str, what: str, remedy: str) -> None:
        """An alert, until `quiet`."""
        ...

    def quiet(self, key: str) -> None: ...


@dataclass(frozen=True)
class InForce:
    policy: Policy
    applied: Applied


class PolicyInForce:
    """From any thread; `now` and `history` are snapshots."""

    def __init__(self, store: PolicyStore, switches: Switches) -> None:
        self.now: InForce | None = None
        self.history: tuple[Applied, ...] = ()  # newest first
        self._store = store
        self._switches = switches
        self._lock = threading.Lock()  # who changes policy or lifts
        self._next_version = 1
        self._lifts: frozenset[Lift] = frozenset()

    @property
    def policy(self) -> Policy | None:
        now = self.now
        return now.policy if now else None

    def load(self) -> None:
        """At the start: the policy that was in force goes on; where it can't be read now, its flow entries do."""
        stored = self._store.load()
        self.history, self._next_version = stored.history, stored.next_version
        if stored.problem:
            self._switches.sound("policy store", stored.problem, "apply the policy that should be in force")
        if stored.policy is None:
            if not stored.problem:
                # Without a history it is another controller's policy that may be in force, so that is left alone.
                self._switches.classify(_entries(None, ()), knows_policy=bool(stored.history))
        elif not self._restore(stored.policy):
            threading.Thread(target=self._restoring, args=(stored.policy,), name="policy", daemon=True).start()

    def _restore(self, applied: Applied) -> bool:
        try:
            policy = parse(applied.text, applied.name)
        except PolicyError as error:
            first = error.problems[0]
            self._switches.sound(
                "policy restore",
                f"policy {applied.name}, in force before the start, can't be read now: {first}",
                "its flow entries stay; it is tried again every 30 s, or apply another",
            )
            return False
        with self._lock:
            if self.now is None and self.history[:1] == (applied,):
                self.now = InForce(policy, applied)
                self._switches.classify(_entries(policy, self._lifts))
        self._switches.quiet("policy restore")
        log.info("policy %s, version %d, is in force again", applied.name, applied.version)
        return True

    def _restoring(self, applied: Applied) -> None:
        while self.now is None and self.history[:1] == (applied,):
            time.sleep(RETRY_S)
            if self._restore(applied):
                return

    def put(self, policy: Policy | None, text: str, by: str) -> Applied:
        """Another policy, or none. Raises NotNow, and nothing has changed."""
        if self._switches.stands_by():
            raise NotNow("this controller stands by, another one is master", "ask the master, or end it first")
        name = policy.name if policy else ""
        with self._lock:
            lifts = frozenset(lift for lift in self._lifts if policy is not None and _has(policy, lift))
            entries = _entries(policy, lifts)
            changed = self._switches.changes(entries)
            applied = Applied(self._next_version, name, time.time(), by, text, changed)
            history = (applied, *self.history)[:MAX_HISTORY]
            try:
                self._store.save(policy is not None, history)
            except StoreError as error:
                raise NotNow("the policy could not be written down", str(error)) from error
            self._next_version += 1
            self.history = history
            self.now = InForce(policy, applied) if policy else None
            self._lifts = lifts
            self._switches.classify(entries)
        for key in ("policy store", "policy restore"):
            self._switches.quiet(key)
        what = f"policy {name}, version {applied.version}, is" if policy else f"version {applied.version}: no policy is"
        log.info("%s in force, by %s; %d flow entries change", what, by, changed)
        return applied

    def lift(self, lifts: frozenset[Lift]) -> int:
        """Of `hooks.Lifting`."""
        with self._lock:
            policy = self.policy
            if policy is None:
                if lifts:
                    raise KeyError(next(iter(lifts)).queue)
                return 0
            entries = _entries(policy, lifts)
            changed = self._switches.changes(entries)
            self._lifts = lifts
            self._switches.classify(entries)
        return changed


def _entries(policy: Policy | None, lifts: Iterable[Lift]) -> frozenset[FlowEntry]:
    return classify.entries(policy, lifts) | {passing_by()}


def _has(policy: Policy, lift: Lift) -> bool:
    return lift.category in policy.categories and lift.queue in policy.queues
