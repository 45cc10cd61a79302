"""A measured number beside a peer's, and the table of many of them that `make bench` prints."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from . import paths, report


@dataclass
class Figure:
    """One measured number; `ratio` is ours over the peer's."""

    name: str
    value: float
    unit: str
    peer: str
    peer_value: float | None
    runs: int

    def as_json(self) -> dict[str, Any]:
        ratio = None if not self.peer_value else round(self.value / self.peer_value, 3)
        return {
            "name": self.name,
            "value": round(self.value, 4),
            "unit": self.unit,
            "peer": self.peer,
            "peer_value": None if self.peer_value is None else round(self.peer_value, 4),
            "ratio": ratio,
        }


@dataclass(frozen=True)
class Peer:
    """A peer's figure, quoted."""

    peer: str
    value: float


def peers() -> dict[str, Peer]:
    """Quoted figures by the name of ours."""
    quoted = json.loads((paths.LAB / "peers.json").read_text())["figures"]
    return {name: Peer(entry["peer"], entry["value"]) for name, entry in quoted.items()}


def render(figures: list[Figure], table: Callable[[Sequence[Sequence[str]]], str] = report.table) -> str:
    """The table a person reads, as `table` sets it: in columns, or as Markdown."""
    rows = [["name", "value", "unit", "ratio", "peer's", "runs", "peer"]]
    for figure in figures:
        entry = figure.as_json()
        rows.append(
            [
                figure.name,
                short(figure.value),
                figure.unit,
                "" if entry["ratio"] is None else f"{entry['ratio']:.2f}",
                "" if figure.peer_value is None else short(figure.peer_value),
                str(figure.runs),
                figure.peer,
            ]
        )
    quoted = json.loads((paths.LAB / "peers.json").read_text())
    notes = [
        f"Quoted peers: {quoted['what']}; on {quoted['machine']}.",
        f"Hadoop on NDN as published in 2017: {quoted['paper']}.",
    ]
    return "\n\n".join([report.machine(), table(rows), "\n".join(notes)])


def short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
