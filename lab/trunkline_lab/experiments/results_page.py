"""`lab report`: the last results of all experiments in one page, plots beside it.

An experiment without a result in this checkout keeps the section that the page has of it: nobody runs all in one go.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from .. import paths
from .registry import EXPERIMENTS
from .result import DIRECTORY, figure

PAGE = paths.ROOT / "docs" / "results.md"

HEAD = """\
# The papers' tables beside ours

Made by `lab report` from the last run of each experiment, at the commit that its section names; `make lab RUN=<experiment>` repeats one (with `SCALE=1` where a section says so). "paper" columns are quoted, "TCP here" is stock Hadoop or a raw socket on the same emulated network in the same run. [lab.md](lab.md) tells how it is measured.

The five papers: **NDN**, M. Gibbens, C. Gniady, L. Ye and B. Zhang, "Hadoop on Named Data Networking: Experience and Results" (2017). **OpenFlow**, S. Narayan, S. Bailey and A. Daga, "Hadoop Acceleration in an OpenFlow-based Cluster" (2012). **Repository**, I. Hwang, D. Kim and Y.-B. Ko, "Analysis of NDN Repository Architectures". **Mirrored replication**, S. Lim and H. Kim, "Extending TCP for Accelerating Replication on Cluster File Systems over SDNs". **RDMA**, N. S. Islam and others, "High Performance RDMA-based Design of HDFS over InfiniBand" (2012). A "study" column has what a quick program on one host showed before there was Trunkline's.
"""  # noqa: E501

COLUMNS = (
    ("what", "what"),
    ("unit", "unit"),
    ("paper_tcp", "paper, TCP"),
    ("paper", "paper, NDN"),
    ("tcp", "TCP here"),
    ("ours", "Trunkline"),
    ("mount", "Trunkline, mounted"),
    ("limit", "limit"),
    ("ok", "holds"),
)


def write(page: Path) -> dict[str, Any]:
    """Writes the page and copies the plots; says which experiments have no result, and which only an older section."""
    page.parent.mkdir(parents=True, exist_ok=True)
    older = _sections(page.read_text()) if page.exists() else {}
    parts, kept, missing = [HEAD], [], []
    for name in EXPERIMENTS:
        if documents := _of(name):
            parts += [_section(document, page) for document in documents]
        elif sections := [text for title, text in older.items() if _owner(title) == name]:
            parts += sections
            kept.append(name)
        else:
            missing.append(name)
    if missing:
        parts.append(f"Not run yet: {', '.join(missing)}.\n")
    page.write_text("\n".join(parts))
    return {"page": str(page), "experiments": len(EXPERIMENTS) - len(missing), "kept": kept, "missing": missing}


def _sections(text: str) -> dict[str, str]:
    """The sections that a page has, by their titles."""
    parts = re.split(r"^(?=## |Not run yet: )", text, flags=re.MULTILINE)
    found = {part.partition("\n")[0].removeprefix("## "): part for part in parts if part.startswith("## ")}
    return {title: part.rstrip("\n") + "\n" for title, part in found.items()}


def _owner(title: str) -> str:
    """The experiment a section is of: a run with some of its jobs alone is called after it and them."""
    return max((name for name in EXPERIMENTS if title == name or title.startswith(f"{name}-")), key=len, default="")


def _of(name: str) -> list[dict[str, Any]]:
    """An experiment's last result, and those of runs with some of its jobs alone; other variants stay out."""
    whole = DIRECTORY / f"{name}.json"
    found = [json.loads(whole.read_text())] if whole.exists() else []
    others = (json.loads(path.read_text()) for path in sorted(DIRECTORY.glob(f"{name}-*.json")))
    return found + [document for document in others if document.get("jobs")]


def _section(document: dict[str, Any], page: Path) -> str:
    rows, headings = document["rows"], document.get("headings", {})
    shown = [(key, headings.get(key, title)) for key, title in COLUMNS if any(row.get(key) is not None for row in rows)]
    lines = [
        f"## {document['experiment']}",
        f"{document['about']}.",
        "",
        f"{document['machine']}; commit {document['commit']}; {document['at']}; "
        f"{document['took_s']:.0f} s{'' if document['ok'] else '; **not ok**'}",
        "",
        "| " + " | ".join(title for _, title in shown) + " |",
        "|" + "|".join("---" if key in ("what", "unit") else "---:" for key, _ in shown) + "|",
    ]
    lines += ["| " + " | ".join(figure(row.get(key)) for key, _ in shown) + " |" for row in rows]
    lines += ["", *(f"- {note}" for note in document["notes"])]
    lines += [f"- **Failed:** {fault}" for fault in document["faults"]]
    for plot in document["plots"]:
        folder = page.parent / "results"
        folder.mkdir(exist_ok=True)
        shutil.copyfile(DIRECTORY / f"{plot}.svg", folder / f"{plot}.svg")
        lines += ["", f"![{document['about']}](results/{plot}.svg)"]
    return "\n".join([*lines, ""])
