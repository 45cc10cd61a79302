"""What only one process may make at a time, as when two stages of the suite, or two checkouts, share .cache/."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from . import paths


@contextmanager
def held(name: str) -> Iterator[None]:
    """Waits until nobody else holds the lock `name`, and holds it for the length of the block."""
    file = paths.CACHE / f"{name}.lock"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
