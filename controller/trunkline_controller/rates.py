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

    def take(self, key: Hashable, now: float, count: float = 1) -> bool:
        """Whether there were as many tokens left, or the bucket was full."""
        if key not in self._left and len(self._left) >= MAX_KEYS:
            return False
        tokens, at = self._left.get(key, (self._burst, now))
        tokens = min(self._burst, tokens + (now - at) * self._per_s)
        taken = tokens >= min(count, self._burst)
        self._left[key] = (max(0.0, tokens - count) if taken else tokens), now
        return taken

    def forget(self, now: float) -> None:
        """Drops buckets that have filled up again; looks through them every now and then."""
        if now >= self._forget_at:
            self._forget_at = now + 10
            fills_in = self._burst / self._per_s
            self._left = {key: (left, at) for key, (left, at) in self._left.items() if now - at < fills_in}
