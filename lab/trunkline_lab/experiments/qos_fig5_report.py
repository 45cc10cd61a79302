"""What `qos-fig5` makes of its Sorts: rows, goals, notes and the plot. Pure."""

from __future__ import annotations

import math
import statistics

from .plots import Line, Plot
from .qos_conditions import (
    ALONE,
    BASELINE,
    CONDITIONS,
    CONTROLLED,
    CROSS,
    LIFTED,
    NARROW_ALONE,
    NARROW_CROSS,
    SHARED,
    UNCONTROLLED,
    Condition,
    Seen,
)
from .result import Result, Row

GOAL_MB, GOAL = 400.0, 1.10
LIFTED_TO = "q1"
GOALS = (
    (LIFTED, BASELINE, "experiment 3 (shuffle lifted, cross traffic) against experiment 1 (no cross traffic)"),
    (SHARED, NARROW_ALONE, "experiment 6 (shuffle first, cross traffic) against one queue without cross traffic"),
)

AllSeen = dict[tuple[float, str], Seen]


def report(result: Result, sizes: list[float], written_s: dict[float, float], seen: AllSeen) -> None:
    """All of it; `written_s` are RandomWriter's seconds by size."""
    for mb in sizes:
        _rows(result, mb, written_s[mb], seen)
    largest = judged_size(sizes)
    goals(result, largest, seen)
    control(result, largest, seen)
    _busy(result, largest, seen)
    _plot(result, sizes, seen)


def judged_size(sizes: list[float]) -> float:
    """The goals' own size, or the largest that there is."""
    return GOAL_MB if GOAL_MB in sizes else max(sizes)


def _at(mb: float, seen: AllSeen) -> list[Condition]:
    """Conditions under which this size was sorted."""
    return [condition for condition in CONDITIONS if (mb, condition.name) in seen]


def _rows(result: Result, mb: float, written_s: float, seen: AllSeen) -> None:
    result.rows.append(Row(f"{mb:g} MB: RandomWriter", "s", None, None, written_s))
    there = _at(mb, seen)
    for condition in there:
        of = seen[mb, condition.name]
        what = f"{mb:g} MB: Sort, {condition.about}"
        fastest, slowest = (min(of.seconds), max(of.seconds)) if len(of.seconds) > 1 else (None, None)
        result.rows.append(Row(what, "s", None, fastest, of.median, mount=slowest))
    validated = [seen[mb, condition.name].validate_s for condition in there]
    result.rows.append(Row(f"{mb:g} MB: SortValidator", "s", None, None, statistics.median(filter(None, validated))))
    result.detail.setdefault("sorts", {})[f"{mb:g}"] = {
        condition.name: {**vars(seen[mb, condition.name]), "about": condition.about} for condition in there
    }


def goals(result: Result, mb: float, seen: AllSeen) -> None:
    """A row for each goal, and what there is to compare; a goal that can't be judged is a fault too."""
    for measured, against, about in GOALS:
        ratio = seen[mb, measured.name].times(seen[mb, against.name])
        if mb != GOAL_MB:  # what is smaller mostly starts JVMs
            what = f"at {GOAL_MB:g} MB: {about}"
            result.rows.append(Row(f"goal, not judged: {what}; here {mb:g} MB", "times", None, None, ratio, limit=GOAL))
            result.faults.append(f"not judged {what}: this scale leaves that size out; --scale 0.1 has it")
            continue
        what, holds = f"{mb:g} MB: {about}", ratio <= GOAL
        result.rows.append(Row(f"goal: {what}", "times", None, None, ratio, limit=GOAL, ok=holds))
        if not holds:
            result.faults.append(f"{what}: {ratio:.2f} times, above {GOAL}")
    for condition in _at(mb, seen):
        alone = ALONE if condition.port_bit_s == ALONE.port_bit_s else NARROW_ALONE
        if condition not in (alone, SHARED) and not condition.properties:
            what = f"{mb:g} MB: {condition.about}, against {alone.about}"
            times = seen[mb, condition.name].median / seen[mb, alone.name].median
            result.rows.append(Row(what, "times", None, None, times))


def control(result: Result, mb: float, seen: AllSeen) -> None:
    """What dynamic control did in experiment 5, and what it was good for."""
    off, on = seen[mb, UNCONTROLLED.name], seen[mb, CONTROLLED.name]
    for condition, of in ((UNCONTROLLED, off), (CONTROLLED, on)):
        if of.shuffles:
            what = f"{mb:g} MB: {condition.about}: the slowest reducer's shuffle"
            result.rows.append(Row(what, "s", None, None, statistics.median(of.shuffles)))
    what = f"{mb:g} MB: experiment 5: Sort with control against without"
    result.rows.append(Row(what, "times", None, None, on.median / off.median))
    lifts, decisions = on.lifted(LIFTED_TO), sum(map(len, on.decisions))
    result.rows.append(Row(f"{mb:g} MB: experiment 5: reducers lifted, all runs", "", None, None, lifts))
    result.rows.append(Row(f"{mb:g} MB: experiment 5: decisions, all runs", "", None, None, decisions))
    if not lifts:
        result.notes.append(
            "experiment 5: dynamic control lifted no reducer, so its seconds say nothing about control; the "
            "controller's log and its alerts tell what it saw"
        )


def _busy(result: Result, mb: float, seen: AllSeen) -> None:
    for condition in _at(mb, seen):
        of = seen[mb, condition.name]
        for what, percents in (
            ("time that the fullest link was at 90% of its rate or more", of.fullest),
            ("busiest queue of Hadoop's traffic, of its maximum", of.queues),
            ("processors of this machine busy", of.processors),
        ):
            if percents:
                figure = statistics.median(percents)
                result.rows.append(Row(f"{mb:g} MB: {condition.about}: {what}", "%", None, None, figure))


def _plot(result: Result, sizes: list[float], seen: AllSeen) -> None:
    names = {condition.name: condition.about for condition in (ALONE, CROSS, NARROW_ALONE, NARROW_CROSS)}
    lines = [
        Line(
            names.get(c.name, f"experiment {c.name}"),
            [],
            [seen[mb, c.name].median if (mb, c.name) in seen else math.nan for mb in sizes],
        )
        for c in CONDITIONS
    ]
    title = "Sort beside cross traffic, by the queues of its traffic"
    result.plots.append(Plot(result.name, title, "MB", "s", lines, groups=[f"{mb:g}" for mb in sizes]))
