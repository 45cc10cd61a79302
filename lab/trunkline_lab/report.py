"""Plain tables for a terminal."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

from .memory import meminfo


def table(rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns: the first to the left, the rest to the right; an empty row is a blank line."""
    widths = [max((len(row[n]) for row in rows if n < len(row)), default=0) for n in range(max(map(len, rows)))]
    lines = []
    for row in rows:
        cells = [cell.ljust(widths[n]) if n == 0 else cell.rjust(widths[n]) for n, cell in enumerate(row)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """The same rows as a table of Markdown, the first of them its head."""
    head, *body = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    ruled = [head, ["---", *["---:"] * (len(head) - 1)], *body]
    return "\n".join(f"| {' | '.join(row)} |" for row in ruled)


def mib(count: float) -> str:
    """Bytes in MiB with one digit, as tables show them."""
    return f"{count / (1 << 20):.1f}"


def machine() -> str:
    """The machine in a line: processor, cores, memory, kernel."""
    model, cores = "unknown processor", 0
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model, cores = line.partition(":")[2].strip(), cores + 1
    return f"{cores} x {model}, {meminfo('MemTotal') / (1 << 30):.0f} GiB, Linux {platform.release()}"
