"""The directory in which a controller keeps what outlives it; one controller at a time has it."""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path

from .openflow.leases import new_identity

_MAC = re.compile(r"02(:[0-9a-f]{2}){5}")


class StateError(OSError):
    """The directory can't be used; the text says why, and the way out."""


class StateDirectory:
    """Taken when it is made, and given back by `close` or when the process ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StateError(f"{path}: {error.strerror}; set state.directory to one that can be written") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise StateError(
                f"{path}: another controller uses it; end that one, or give this one a state.directory of its own"
            ) from None
        self.identity = self._identity()

    def _identity(self) -> str:
        """The same in each life, so that a restarted controller need not wait for its own lease to run out."""
        path = self.path / "identity"
        try:
            text = path.read_text(encoding="ascii", errors="replace").strip()
            if _MAC.fullmatch(text):
                return text
        except FileNotFoundError:
            pass
        except OSError as error:
            raise StateError(f"{path}: {error.strerror}; make it readable, or remove it") from None
        text = new_identity()
        try:
            path.write_text(f"{text}\n", encoding="ascii")
        except OSError as error:
            raise StateError(f"{path}: {error.strerror}; make room or permit writing there") from None
        return text

    def close(self) -> None:
        os.close(self._lock)
