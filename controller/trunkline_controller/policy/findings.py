"""Collects what is wrong with a policy file, so that all of it is said at once, and reads what a section's shape is."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from .model import Problem
from .tree import Node, shown

MAX_PROBLEMS = 200

T = TypeVar("T")


def nearest(word: str, known: Iterable[str]) -> str:
    """`did you mean x?`, or what there is."""
    words = sorted(known)
    close = difflib.get_close_matches(word, words, 1, 0.6) if len(word) <= 100 else []
    if close:
        return f"did you mean {close[0]}?"
    return f"there {'is' if len(words) == 1 else 'are'} {', '.join(words[:20])}" if words else "there are none"


@dataclass
class Findings:
    """Problems and warnings of one file."""

    file: str
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def wrong(self, at: Node, what: str, remedy: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(self.file, at.line, what, remedy))

    def warn(self, at: Node, what: str, remedy: str) -> None:
        if len(self.warnings) < MAX_PROBLEMS:
            self.warnings.append(Problem(self.file, at.line, what, remedy))

    def named(self, node: Node | None, what: str, example: str) -> list[tuple[str, Node, Node]]:
        """A mapping whose keys are names of the user's: name, key, value; without those that are wrong."""
        if node is None:
            return []
        if node.pairs is None:
            self.wrong(node, f"{what} is {node.kind()}", f"write a mapping such as {example}")
            return []
        seen: dict[str, int] = {}
        found = []
        for key, value in node.pairs:
            if not key.is_scalar or not key.text:
                self.wrong(key, f"a key of {what} is {key.kind()}", "write a name")
                continue
            if key.text in seen:
                first = f"it is also at line {seen[key.text]}"
                self.wrong(key, f"{what} has {shown(key.text)} twice", f"{first}; keep one of them")
                continue
            seen[key.text] = key.line
            found.append((key.text, key, value))
        return found

    def fields(self, node: Node, what: str, known: Sequence[str]) -> dict[str, Node]:
        """A mapping whose keys are `known`; the others are problems."""
        found = {}
        for name, key, value in self.named(node, what, "{ " + ", ".join(f"{k}: …" for k in known[:3]) + " }"):
            if name in known:
                found[name] = value
            else:
                self.wrong(key, f"{what} has no key {shown(name)}", self._nearest(name, known))
        return found

    def items(self, node: Node | None) -> tuple[Node, ...]:
        """A list's items; what is no list counts as a list of one."""
        if node is None or node.is_null:
            return ()
        return (node,) if node.items is None else node.items

    def scalar(self, node: Node, what: str, read: Callable[[str], T]) -> T | None:
        """A value by its reader, whose ValueError says what would be right."""
        if not node.is_scalar or node.text is None:
            remedy = "write one value here"
            try:
                read("")
            except ValueError as error:
                remedy = str(error)
            self.wrong(node, f"{what} is {node.kind()}", remedy)
            return None
        try:
            return read(node.text)
        except ValueError as error:
            self.wrong(node, f"{what} is {node.kind()}", str(error))
            return None

    def one_of(self, node: Node, what: str, known: Iterable[str]) -> str | None:
        known = list(known)
        if node.is_scalar and node.text in known:
            return node.text
        remedy = (
            self._nearest(node.text or "", known) if node.is_scalar else f"write one of {', '.join(sorted(known)[:20])}"
        )
        self.wrong(node, f"{what} is {node.kind()}", remedy)
        return None

    def _nearest(self, word: str, known: Iterable[str]) -> str:
        """Nothing is sought for what will not be said."""
        return nearest(word, known) if len(self.problems) < MAX_PROBLEMS else ""
