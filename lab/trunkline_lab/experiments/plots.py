"""Plots beside the tables, by matplotlib."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot

mpl.use("Agg")


@dataclass(frozen=True)
class Line:
    """A line or, in a bar plot, one bar of each group."""

    label: str
    x: list[float]
    y: list[float]
    dashed: bool = False


@dataclass
class Plot:
    """A line plot, or bars by `groups`; drawn as <name>.svg and <name>.png."""

    name: str
    title: str
    x: str
    y: str
    lines: list[Line] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    log_x: bool = False
    log_y: bool = False

    def draw(self, directory: Path) -> list[Path]:
        """Writes both files and returns their paths."""
        mpl.rcParams["svg.hashsalt"] = self.name  # the same figures make the same file
        figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
        if self.groups:
            self._bars(axes)
        else:
            for line in self.lines:
                axes.plot(line.x, line.y, "--" if line.dashed else "o-", label=line.label, markersize=4)
        axes.set(title=self.title, xlabel=self.x, ylabel=self.y)
        if self.log_x:
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter("{x:g}")
        if self.log_y:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
        made = []
        for kind in ("svg", "png"):
            path = directory / f"{self.name}.{kind}"
            figure.savefig(path, dpi=110, metadata={"Date": None} if kind == "svg" else None)
            made.append(path)
        pyplot.close(figure)
        return made

    def _bars(self, axes: object) -> None:
        width = 0.8 / max(len(self.lines), 1)
        for number, line in enumerate(self.lines):
            places = [group + (number - (len(self.lines) - 1) / 2) * width for group in range(len(self.groups))]
            axes.bar(places, line.y, width, label=line.label)  # type: ignore[attr-defined]
        axes.set_xticks(range(len(self.groups)), self.groups)  # type: ignore[attr-defined]
