"""Fig. 3 of the NDNFS and repo-ng paper: seconds until 200 MB, 700 MB and 1 GB are inserted."""

from __future__ import annotations

from . import repo_insert
from .options import Options
from .plots import Line, Plot
from .repo_insert import HEADINGS, NDNFS_S, REPO_NG_S, Inserted, label
from .result import Result, Row

NAME = "repo-fig3"
ABOUT = "Fig. 3: time of an insertion of 200 MB, 700 MB and 1 GB"
SIZES_MB = [200, 700, 1000]


def row(found: Inserted) -> Row:
    """Seconds of one size."""
    theirs = NDNFS_S.get(found.mb), REPO_NG_S.get(found.mb)
    mount = found.mount.wall_s if found.mount else None
    return Row(label(found.mb), "s", theirs[0], found.copy.wall_s, found.put.wall_s, theirs[1], mount=mount)


def plot(name: str, title: str, found: list[Inserted]) -> Plot:
    """Seconds by size; log, for the paper's are a thousand times ours."""
    x = [float(one.mb) for one in found]
    lines = [
        Line("paper, repo-ng", [float(mb) for mb in REPO_NG_S], list(REPO_NG_S.values()), dashed=True),
        Line("paper, NDNFS", [float(mb) for mb in NDNFS_S], list(NDNFS_S.values()), dashed=True),
        Line(HEADINGS["tcp"], x, [one.copy.wall_s for one in found]),
        Line(HEADINGS["ours"], x, [one.put.wall_s for one in found]),
    ]
    if mounts := [one.mount.wall_s for one in found if one.mount]:
        lines.append(Line(HEADINGS["mount"], x, mounts))
    return Plot(name, title, "MB", "s", [line for line in lines if set(line.x) & set(x)], log_y=True)


def run(options: Options) -> Result:
    """All three sizes."""
    result = Result(NAME, ABOUT)
    found = repo_insert.insert(NAME, SIZES_MB, options, result)
    for one in found:
        result.rows.append(row(one))
        repo_insert.slower(one, result)
    result.plots.append(plot(NAME, "Time of an insertion", found))
    return result
