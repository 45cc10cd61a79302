"""What an experiment leaves: rows for a person, a JSON document, a CSV, and plots."""

from __future__ import annotations

import csv
import json
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import paths, report
from .plots import Plot

DIRECTORY = paths.OUT / "lab"


@dataclass(frozen=True)
class Row:
    """One figure. `paper` is what the paper's own system had, `paper_tcp` its TCP; `limit` what can't be beaten,
    `mount` what ours had as a file system, `ok` whether a goal holds.
    """

    what: str
    unit: str
    paper: float | None
    tcp: float | None
    ours: float | None
    paper_tcp: float | None = None
    limit: float | None = None
    mount: float | None = None
    ok: bool | None = None  # of a goal, whether it holds


@dataclass
class Result:
    """Of one run; ok when there are no `faults`. `detail` goes into the JSON as it is; `headings` stand above the
    columns of a row where what the rows compare is not named data with TCP.
    """

    name: str
    about: str
    rows: list[Row] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    headings: dict[str, str] = field(default_factory=dict)
    detail: dict[str, Any] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    took_s: float = 0.0
    at: str = ""

    def document(self) -> dict[str, Any]:
        """out/lab/<name>.json."""
        return {
            "experiment": self.name,
            "about": self.about,
            "ok": not self.faults,
            "headings": self.headings,
            "rows": [vars(row) for row in self.rows],
            "took_s": round(self.took_s, 1),
            "faults": self.faults,
            "notes": self.notes,
            "plots": [plot.name for plot in self.plots],
            "machine": report.machine(),
            "commit": commit(),
            "at": self.at,
            **self.detail,
        }

    def rename(self, name: str) -> None:
        """Another name for the documents, so that they don't take the place of the experiment's own."""
        for plot in self.plots:
            plot.name = plot.name.replace(self.name, name)
        self.name = name

    def write(self) -> list[Path]:
        """Writes JSON, CSV and plots under out/lab/; returns their paths, the JSON first."""
        self.took_s = time.monotonic() - self.began
        self.at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        DIRECTORY.mkdir(parents=True, exist_ok=True)
        document, table = DIRECTORY / f"{self.name}.json", DIRECTORY / f"{self.name}.csv"
        document.write_text(json.dumps(self.document(), indent=2) + "\n")
        with table.open("w", newline="") as out:
            writer = csv.writer(out)
            columns = list(Row.__dataclass_fields__)
            writer.writerow(columns)
            writer.writerows([getattr(row, column) for column in columns] for row in self.rows)
        return [document, table, *(path for plot in self.plots for path in plot.draw(DIRECTORY))]

    def text(self) -> str:
        """The table a person reads."""
        return render(self.document())


def render(document: dict[str, Any]) -> str:
    """The table of a result document."""
    columns = [
        ("what", "what"),
        ("unit", "unit"),
        ("paper_tcp", "paper's TCP"),
        ("paper", "paper's NDN"),
        ("tcp", "TCP here"),
        ("ours", "ours"),
        ("mount", "ours, mounted"),
        ("limit", "limit"),
        ("ok", "holds"),
    ]
    rows, headings = document["rows"], document.get("headings", {})
    shown = [(key, headings.get(key, title)) for key, title in columns if any(row.get(key) is not None for row in rows)]
    lines = [[title for _, title in shown]]
    lines += [[figure(row.get(key)) for key, _ in shown] for row in rows]
    parts = [f"{document['experiment']}: {document['about']}\n{document['machine']}", report.table(lines)]
    if document["notes"]:
        parts.append("\n".join(document["notes"]))
    parts += [f"FAILED: {fault}" for fault in document["faults"]]
    return "\n\n".join(parts)


def figure(value: object) -> str:
    """A number as tables show it, to four digits or to the whole; what holds or not as yes or no."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float | int):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}" if abs(value) < 10 else f"{value:.2f}"
    return "" if value is None else str(value)


def commit() -> str:
    """The commit of the checkout, with a + where files differ from it; "unknown" outside of git."""
    done = subprocess.run(
        ["git", "-C", str(paths.ROOT), "describe", "--always", "--abbrev=12", "--dirty=+"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "unknown"


def saved(before: float, after: float) -> float:
    """Percent less (negative: as the paper writes it) of `after` than of `before`."""
    return 100 * (after - before) / before if before else 0.0


def mb(count: float) -> float:
    """Bytes in MB of 10^6, as the paper counts."""
    return count / 1e6
