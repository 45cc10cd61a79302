"""A YAML text as a tree of nodes that know their lines. No tag makes an object; size, depth and aliases are bounded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from ..text import printable
from .model import PolicyError, Problem

MAX_BYTES = 256 << 10
MAX_DEPTH = 12
MAX_NODES = 50_000  # after aliases are written out

_STANDARD = "tag:yaml.org,2002:"
_TAGS = {_STANDARD + kind for kind in ("str", "int", "float", "bool", "null", "map", "seq")}
_NULL = {"", "~", "null", "Null", "NULL"}


@dataclass(frozen=True)
class Node:
    """What the text has at a line: a scalar's text (None: null), pairs, or items; one of them."""

    line: int
    text: str | None = None
    pairs: tuple[tuple[Node, Node], ...] | None = None
    items: tuple[Node, ...] | None = None
    size: int = 1  # nodes in it, itself too

    @property
    def is_scalar(self) -> bool:
        return self.pairs is None and self.items is None

    @property
    def is_null(self) -> bool:
        return self.is_scalar and self.text is None

    def kind(self) -> str:
        if self.pairs is not None:
            return "a mapping"
        if self.items is not None:
            return "a list"
        return "nothing" if self.text is None else f"'{shown(self.text)}'"


def shown(text: str) -> str:
    """As it may stand in a message of one line."""
    return printable(text, 60)


def read(data: str | bytes, file: str) -> Node:
    """The tree; raises PolicyError with one problem where this is not one YAML document within bounds."""
    text = _text(data, file)
    builder = _Builder(file)
    try:
        root = builder.build(YAML(typ="safe", pure=True).parse(text))
    except YAMLError as error:
        line, what = _where(error, text)
        raise _refused(file, line, f"not valid YAML: {what}", "mend the syntax at this line or just above") from None
    except (ValueError, OverflowError, AttributeError, TypeError, AssertionError, LookupError) as error:
        if isinstance(error, PolicyError):
            raise
        # The library's own mistakes at odd input.
        raise _refused(file, 1, f"not valid YAML: {shown(str(error))}", "docs/qos.md has examples") from None
    if root is None or root.is_null:
        raise _refused(file, 1, "the policy is empty", "start from policy.sample.yaml")
    return root


def _text(data: str | bytes, file: str) -> str:
    size = len(data) if isinstance(data, bytes) else len(data.encode("utf-8", "replace"))
    if size > MAX_BYTES:
        raise _refused(
            file, 1, f"{size} bytes, more than the {MAX_BYTES} that a policy may have", "use prefixes for hosts"
        )
    if isinstance(data, str):
        return data
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _refused(file, line, "not UTF-8", "save the file as UTF-8") from None


def _where(error: YAMLError, text: str) -> tuple[int, str]:
    """Line, and what is wrong there."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).split("\n", 1)[0]
    if mark is not None:
        return min(mark.line, text.count("\n")) + 1, shown(str(problem))
    position = getattr(error, "position", None)  # of ReaderError, in characters
    return (text.count("\n", 0, position) + 1 if isinstance(position, int) else 1), shown(str(problem))


def _refused(file: str, line: int, what: str, remedy: str) -> PolicyError:
    return PolicyError((Problem(file, line, what, remedy),))


@dataclass
class _Open:
    """A mapping or list whose end is still to come."""

    line: int
    mapping: bool
    anchor: str | None
    nodes: list[Node] = field(default_factory=list)

    def closed(self) -> Node:
        size = 1 + sum(node.size for node in self.nodes)
        if self.mapping:
            return Node(self.line, pairs=tuple(zip(self.nodes[::2], self.nodes[1::2], strict=True)), size=size)
        return Node(self.line, items=tuple(self.nodes), size=size)


@dataclass
class _Builder:
    """Makes nodes of the parser's events; goes as deep as its own list, never the interpreter's stack."""

    file: str
    nodes: int = 0
    open: list[_Open] = field(default_factory=list)
    anchors: dict[str, Node] = field(default_factory=dict)
    root: Node | None = None
    documents: int = 0

    def build(self, events: Iterable[Event]) -> Node | None:
        for event in events:
            line = event.start_mark.line + 1
            if isinstance(event, ScalarEvent):
                self._tag(event.tag, line)
                null = event.implicit[0] and event.style in (None, "") and event.value in _NULL
                null = null or event.tag == _STANDARD + "null"
                self._add(Node(line, None if null else str(event.value)), event.anchor)
            elif isinstance(event, MappingStartEvent | SequenceStartEvent):
                self._tag(event.tag, line)
                if len(self.open) >= MAX_DEPTH:
                    raise _refused(self.file, line, f"nested deeper than {MAX_DEPTH} levels", "a policy needs five")
                self.open.append(_Open(line, isinstance(event, MappingStartEvent), event.anchor))
            elif isinstance(event, MappingEndEvent | SequenceEndEvent):
                done = self.open.pop()
                self._add(done.closed(), done.anchor)
            elif isinstance(event, AliasEvent):
                node = self._alias(event.anchor, line)
                self._add(node, None, node.size)
            elif isinstance(event, DocumentStartEvent):
                self.documents += 1
                if self.documents > 1:
                    raise _refused(self.file, line, "a second document begins here", "a file has one policy")
        return self.root

    def _add(self, node: Node, anchor: str | None, count: int = 1) -> None:
        self.nodes += count
        if self.nodes > MAX_NODES:
            remedy = "use prefixes for hosts, and fewer aliases"
            raise _refused(self.file, node.line, f"more than {MAX_NODES} values, aliases written out", remedy)
        if anchor is not None:
            self.anchors[anchor] = node
        if self.open:
            self.open[-1].nodes.append(node)
        else:
            self.root = node

    def _alias(self, anchor: str | None, line: int) -> Node:
        node = self.anchors.get(anchor or "")
        if node is None:
            what = f"alias *{shown(anchor or '')} names no anchor that is complete above it"
            raise _refused(self.file, line, what, f"put &{shown(anchor or '')} before what it stands for")
        return node

    def _tag(self, tag: object, line: int) -> None:
        if tag is not None and str(tag) not in _TAGS:
            raise _refused(self.file, line, f"tag {shown(str(tag))} is not taken", "leave the tag out")
