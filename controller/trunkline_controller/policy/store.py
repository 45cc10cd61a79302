"""The policy in force and those before it, in a directory, so that a restarted controller goes on where it was.

One file, replaced as a whole: a controller that is killed while it writes finds the old one. The file before it stays
beside it, for a disk that loses what it said it had.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ..control import Applied

FILE = "policy.json"
BEFORE = "policy.before.json"
DAMAGED = "policy.damaged.json"
FORMAT = 1
MAX_HISTORY = 50
MAX_HISTORY_BYTES = 2 << 20  # of policies' texts
MAX_FILE_BYTES = 16 << 20
MAX_NUMBER = 1 << 62


class StoreError(OSError):
    """The policy could not be written down; what was there still is."""


@dataclass(frozen=True)
class Stored:
    """What was in force when it was written down. `history` has the newest first, `in_force` too where there is one.

    `problem` is what an operator should know, empty where all is well.
    """

    in_force: bool = False
    history: tuple[Applied, ...] = ()
    problem: str = ""

    @property
    def policy(self) -> Applied | None:
        """The policy in force, as it was applied."""
        return self.history[0] if self.in_force and self.history else None

    @property
    def next_version(self) -> int:
        return max((applied.version for applied in self.history), default=0) + 1


class PolicyStore:
    """One controller's state directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def load(self) -> Stored:
        """What was written down; never raises for what it finds. A damaged file is set aside."""
        path = self._directory / FILE
        try:
            return _read(path)
        except FileNotFoundError:
            # Killed between two renames: only the one before is there.
            return self._before("") if (self._directory / BEFORE).exists() else Stored()
        except OSError as error:
            return Stored(problem=f"{path}: {error.strerror}; no policy is in force until one is applied")
        except ValueError as error:
            aside = self._directory / DAMAGED
            try:
                os.replace(path, aside)
            except OSError as failed:
                return self._before(f"{path}: {error}, and can't be set aside: {failed.strerror}")
            return self._before(f"{path}: {error}; it is set aside as {aside.name}")

    def _before(self, problem: str) -> Stored:
        said = f"{problem}; " if problem else ""
        try:
            found = _read(self._directory / BEFORE)
        except (OSError, ValueError):
            return Stored(problem=f"{said}no policy is in force until one is applied")
        return Stored(found.in_force, found.history, f"{said}the policy before it is in force")

    def save(self, in_force: bool, history: Iterable[Applied]) -> None:
        """Writes down the newest policies, as many as there is room for. Raises StoreError."""
        document = {"format": FORMAT, "in_force": in_force, "history": [asdict(entry) for entry in bounded(history)]}
        path, new = self._directory / FILE, self._directory / f"{FILE}.new"
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            with new.open("w", encoding="utf-8") as out:
                json.dump(document, out, ensure_ascii=False)
                out.flush()
                os.fsync(out.fileno())
            if path.exists():
                os.replace(path, self._directory / BEFORE)
            os.replace(new, path)
            _sync(self._directory)
        except OSError as error:
            with contextlib.suppress(OSError):
                new.unlink()
            what = f"{new.parent}: {error.strerror or error}"
            raise StoreError(f"{what}; make room or permit writing there, then apply again") from error


def bounded(history: Iterable[Applied]) -> tuple[Applied, ...]:
    """The newest of them within bounds; the first always."""
    kept: deque[Applied] = deque()
    size = 0
    for entry in history:
        size += len(entry.text.encode())
        if kept and (size > MAX_HISTORY_BYTES or len(kept) >= MAX_HISTORY):
            break
        kept.append(entry)
    return tuple(kept)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(path: Path) -> Stored:
    """Raises OSError and ValueError."""
    if path.stat().st_size > MAX_FILE_BYTES:
        raise ValueError("is larger than any that was written")
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError("is damaged") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"is not of format {FORMAT}")
    in_force, entries = document.get("in_force"), document.get("history")
    if not isinstance(in_force, bool) or not isinstance(entries, list):
        raise ValueError("is damaged")
    return Stored(in_force, bounded(_applied(entry) for entry in entries))


_TYPES = {"int": int, "str": str, "float": (int, float)}


def _applied(value: Any) -> Applied:  # noqa: ANN401 (of a file)
    if not isinstance(value, dict):
        raise ValueError("is damaged")
    for field in fields(Applied):
        if not isinstance(value.get(field.name), _TYPES[str(field.type)]):
            raise ValueError("is damaged")
    entry = Applied(**{field.name: value[field.name] for field in fields(Applied)})
    if not _sound(entry):
        raise ValueError("is damaged")
    return entry


def _sound(entry: Applied) -> bool:
    """Whether it can be written down again, and counted on from."""
    try:
        for text in (entry.name, entry.by, entry.text):
            text.encode()
        numbers = (entry.version, entry.flows_changed)
        return math.isfinite(entry.at_s) and all(0 <= number <= MAX_NUMBER for number in numbers)
    except (OverflowError, UnicodeEncodeError):
        return False
