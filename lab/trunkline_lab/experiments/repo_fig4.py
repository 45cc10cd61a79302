"""Fig. 4 of the NDNFS and repo-ng paper: seconds until 2 GB and 3 GB are inserted, beside ext4."""

from __future__ import annotations

from . import repo_fig3, repo_insert
from .options import Options
from .result import Result

NAME = "repo-fig4"
ABOUT = "Fig. 4: time of an insertion of 2 GB and 3 GB, at which repo-ng ran out of memory"
SIZES_MB = [2000, 3000]


def run(options: Options) -> Result:
    """Both sizes."""
    result = Result(NAME, ABOUT)
    found = repo_insert.insert(NAME, SIZES_MB, options, result)
    result.rows += [repo_fig3.row(one) for one in found]
    for one in found:
        repo_insert.larger(one, result)
    result.plots.append(repo_fig3.plot(NAME, "Time of an insertion", found))
    return result
