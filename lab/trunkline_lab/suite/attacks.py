"""Which attacks a run of the suite has tried: those of docs/security.md, each by the tests that are named beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .. import paths

PAGE = paths.ROOT / "docs" / "security.md"
HEAD = "| attack | test |"

_QUOTED = re.compile(r"`([^`]+)`")
_WORD = re.compile(r"\w+")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


@dataclass(frozen=True)
class Attack:
    """A row of the table; `tests` are classes, `Class.case`, or functions by their names alone."""

    what: str
    tests: tuple[str, ...]


def listed(page: Path = PAGE) -> list[Attack]:
    """The attacks of the page, in its order; empty where it has no such table."""
    lines = iter(page.read_text().splitlines())
    for line in lines:
        if line == HEAD:
            break
    next(lines, None)  # the line below the head
    found = []
    for line in lines:
        if not line.startswith("| "):
            break
        what, cell = line.strip("| ").split(" | ", 1)
        found.append(Attack(_LINK.sub(r"\1", what), tuple(_tests(cell))))
    return found


def _tests(cell: str) -> Iterable[str]:
    """`a.rs: one` and `one` are functions, `.case` is of the class before it; files and others are no tests."""
    of = ""
    for quoted in _QUOTED.findall(cell):
        name = quoted.rpartition(": ")[2]
        if name.startswith("."):
            name = of + name
        if re.fullmatch(r"[A-Z]\w*Test(\.\w+)?", name):
            of = name.partition(".")[0]
            yield name
        elif re.fullmatch(r"[a-z]\w*_\w+", name):
            yield name


def report(passed: Iterable[str], page: Path = PAGE) -> list[str]:
    """A line for each attack of which a test has passed, and one for those that were not tried.

    `passed` are the names of cases: JUnit's `package.Class.case`, cargo's `module::case`. A class has passed where one
    of its cases has; what failed is told elsewhere.
    """
    words = [_WORD.findall(name.partition("(")[0].partition("[")[0]) for name in passed]
    functions = {name[-1] for name in words if name}
    cases = {".".join(name[-2:]) for name in words}
    classes = {name[-2] for name in words if len(name) > 1}
    known = functions | cases | classes
    lines, without = [], []
    for attack in listed(page):
        there = [test for test in attack.tests if test in known]
        if there:
            lines.append(f"attack: {attack.what}: {len(there)} of {len(attack.tests)} tests passed")
        else:
            without.append(attack.what)
    if without and lines:
        lines.append("attacks not tried: " + "; ".join(without))
    return lines
