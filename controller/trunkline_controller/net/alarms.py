"""What operators should mend, while it lasts. Bounded, and without a clock of its own."""

from __future__ import annotations

from dataclasses import dataclass

MAX_ALARMS = 256
MAX_OF_HOSTS = 128  # of them; hosts can make up as many as they like


@dataclass(frozen=True)
class Alarm:
    """`since` is in the seconds of whoever sounds it; `until` is when it ends by itself, None: when it is cleared."""

    what: str
    remedy: str
    since: float
    until: float | None


class Alarms:
    """By a key each: one that sounds again keeps the moment at which it began."""

    def __init__(self) -> None:
        self._alarms: dict[str, Alarm] = {}
        self._of_hosts: set[str] = set()
        self._news: list[tuple[str, Alarm]] = []

    def sound(
        self, key: str, what: str, remedy: str, now: float, for_s: float | None = None, *, of_hosts: bool = False
    ) -> None:
        """`of_hosts`: hosts can cause it, and alarms of other kinds keep room beside all such."""
        old = self._alarms.get(key)
        if old is None:
            if len(self._alarms) >= MAX_ALARMS or (of_hosts and len(self._of_hosts) >= MAX_OF_HOSTS):
                return
            if of_hosts:
                self._of_hosts.add(key)
        alarm = Alarm(what, remedy, old.since if old else now, None if for_s is None else now + for_s)
        self._alarms[key] = alarm
        if old is None or old.what != what:
            self._news = [*self._news[-MAX_ALARMS:], ("began", alarm)]

    def clear(self, key: str) -> None:
        alarm = self._alarms.pop(key, None)
        self._of_hosts.discard(key)
        if alarm is not None:
            self._news = [*self._news[-MAX_ALARMS:], ("ended", alarm)]

    def tick(self, now: float) -> None:
        for key in [key for key, alarm in self._alarms.items() if alarm.until is not None and alarm.until <= now]:
            self.clear(key)

    def news(self) -> list[tuple[str, Alarm]]:
        """What began and ended since the last call, in order, for the log."""
        news, self._news = self._news, []
        return news

    def all(self) -> tuple[Alarm, ...]:
        """Newest first."""
        return tuple(sorted(self._alarms.values(), key=lambda alarm: -alarm.since))
