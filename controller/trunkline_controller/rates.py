"""Token buckets: how many packets a second of one port, or one kind, the controller lets through."""

from __future__ import annotations

from collections.abc import Hashable

MAX_KEYS = 16384


class Buckets:
    """A bucket for each key; each is full when it is first used."""

    def __init__(self, per_s: float, burst: float) -> None:
        self._per_s = per_s
        self._burst = burst
        self._left: dict[Hashable, tuple[float, float]] = {}  # tokens, and when
        self._forget_at = 0.0

    def take(self, key: Hashable, now: float) -> bool:
        """Whether there was a token left."""
        if key not in self._left and len(self._left) >= MAX_KEYS:
            return False
        tokens, at = self._left.get(key, (self._burst, now))
        tokens = min(self._burst, tokens + (now - at) * self._per_s)
        self._left[key] = (tokens - 1 if tokens >= 1 else tokens), now
        return tokens >= 1

    def forget(self, now: float) -> None:
        """Drops buckets that have filled up again; looks through them every now and then."""
        if now >= self._forget_at:
            self._forget_at = now + 10
            fills_in = self._burst / self._per_s
            self._left = {key: (left, at) for key, (left, at) in self._left.items() if now - at < fills_in}
