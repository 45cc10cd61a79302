"""How many flow entries dynamic control may change: a token bucket, time being an argument. Pure."""

from __future__ import annotations

import math


class ChangeBudget:
    """Lets changes through at `flows_per_s` on average, and at most a second's worth at once.

    What a change of one host costs (its entries on all switches) is known only when it was made: the first goes alone,
    what it cost is what the next are reckoned at, and the difference is charged afterwards.
    """

    def __init__(self, flows_per_s: float) -> None:
        self._rate = max(1.0, flows_per_s)
        self._tokens = self._rate
        self._at: float | None = None
        self._cost = self._rate

    def take(self, now: float) -> bool:
        """Whether one more host's flows may be changed now; if so, that is counted."""
        if self._at is not None:
            self._tokens = min(self._rate, self._tokens + max(0.0, now - self._at) * self._rate)
        self._at = now
        if self._tokens < min(self._cost, self._rate):
            return False
        self._tokens -= self._cost
        return True

    def cost(self, hosts: int, flows: int) -> None:
        """`hosts` that were let through cost `flows` entries together."""
        if hosts <= 0:
            return
        self._tokens += hosts * self._cost - flows
        self._cost = float(max(1, math.ceil(flows / hosts)))
