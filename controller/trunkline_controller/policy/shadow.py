"""Rules that can never match, since an earlier one takes all that they would."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product

from .hosts import Net
from .model import Rule

Shape = tuple[object, ...]
Pair = tuple[Net | None, Net | None]


@dataclass
class _Taken:
    """Addresses of the rules of one shape, and which lengths their prefixes have."""

    positions: dict[Pair, int] = field(default_factory=dict)
    source_lengths: set[int | None] = field(default_factory=set)
    destination_lengths: set[int | None] = field(default_factory=set)

    def add(self, pair: Pair, position: int) -> None:
        self.positions.setdefault(pair, position)
        self.source_lengths.add(None if pair[0] is None else pair[0].prefixlen)
        self.destination_lengths.add(None if pair[1] is None else pair[1].prefixlen)


def shadowed(rules: Iterable[Rule]) -> dict[int, int]:
    """Position of each rule that can't match to the position of an earlier rule that takes its packets."""
    taken: dict[Shape, _Taken] = defaultdict(_Taken)
    found = {}
    for position, rule in enumerate(rules):
        pair = _net(rule.source), _net(rule.destination)
        by = next(_earlier(taken, _shape(rule), pair), None)
        if by is not None:
            found[position] = by
        taken[_shape(rule)].add(pair, position)
    return found


def _shape(rule: Rule) -> Shape:
    """All of a rule but its addresses; None takes all."""
    return (
        rule.protocol,
        rule.source_role,
        rule.destination_role,
        rule.source_port,
        rule.destination_port,
        rule.dscp,
        rule.trusted or None,
    )


def _net(text: str | None) -> Net | None:
    return None if text is None else ipaddress.ip_network(text)


def _earlier(taken: dict[Shape, _Taken], shape: Shape, pair: Pair) -> Iterator[int]:
    """Positions of rules that take all packets of this shape and these addresses."""
    for wider in product(*((value,) if value is None else (value, None) for value in shape)):
        if wider not in taken:
            continue
        here = taken[wider]
        sources, destinations = _wider(pair[0], here.source_lengths), _wider(pair[1], here.destination_lengths)
        for wide in product(sources, destinations):
            if wide in here.positions:
                yield here.positions[wide]


def _wider(net: Net | None, lengths: set[int | None]) -> Iterator[Net | None]:
    if None in lengths:
        yield None
    if net is None:
        return
    for length in lengths:
        if length is not None and length <= net.prefixlen:
            yield net.supernet(new_prefix=length)
