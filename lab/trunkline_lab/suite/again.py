"""A few failed cases run once more, by themselves: busy machines are slow, and a fault that is there fails twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .. import hadoop_tests
from .count import Count

MOST = 5  # where more fail, it was no accident


def once_more(first: Count, run: Callable[[Sequence[str]], Count]) -> Count:
    """`first` after its failed cases were run again by `run`, which is given their names.

    What passes then counts as passed and is named in the notes. Nothing is run where a failure has no case to its
    name, such as a program that did not compile.
    """
    if not 0 < len(first.failing) <= MOST or len(first.failing) != first.failed:
        return first
    second = run(first.failing)
    if second.passed + second.failed < first.failed:
        return first  # they were not found again
    mended = [label for label in first.failing if label not in second.failing][: max(first.failed - second.failed, 0)]
    kept = [note for note in first.notes if not note.startswith("failed: ")]
    return Count(
        passed=first.passed + len(mended),
        failed=second.failed,
        skipped=first.skipped,
        notes=[
            *kept,
            *(f"{hadoop_tests.PASSED_AGAIN}: {label}" for label in mended),
            *(note for note in second.notes if note.startswith("failed: ")),
        ],
        failing=second.failing,
        passing=[*first.passing, *mended],
    )
