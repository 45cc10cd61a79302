"""Progress for a person, on stderr; results go to stdout."""

from __future__ import annotations

import sys
import time

_START = time.monotonic()


def say(text: str) -> None:
    """One line of progress, with the seconds since the command began."""
    print(f"[{time.monotonic() - _START:6.1f} s] {text}", file=sys.stderr, flush=True)
