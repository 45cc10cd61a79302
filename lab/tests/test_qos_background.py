"""qos-background's table: what is beside what, and when its goal holds."""

from __future__ import annotations

import pytest

from trunkline_lab.experiments import qos_background
from trunkline_lab.experiments.options import Options
from trunkline_lab.experiments.qos_background import FEW_COPIES, NO_POLICY, POLICY, Seen

OPTIONS = Options(0.15, "lab", None, ())


def seen(p99_ms: float, lasted_s: float, reads: int = 400) -> Seen:
    return Seen([0.005] * (reads - 20) + [p99_ms / 1000] * 20, lasted_s, 50.0, 60.0)


def result(monkeypatch, storms):
    monkeypatch.setattr(qos_background, "measure", lambda options, kind, result: [seen(10, 20), storms[kind]])
    return qos_background.run(OPTIONS)


def test_each_way_through_the_storm_stands_in_its_column_with_what_it_cost(monkeypatch):
    storms = {NO_POLICY: seen(900, 10), FEW_COPIES: seen(100, 60), POLICY: seen(12, 30)}
    found = result(monkeypatch, storms)
    assert found.faults == []
    rows = {row.what: row for row in found.rows}
    p99 = rows["a read of 64 KiB, p99"]
    assert (p99.paper_tcp, p99.tcp, p99.mount, p99.ours) == pytest.approx((10, 900, 100, 12))
    copied = rows["until all blocks were copied"]
    assert (copied.paper_tcp, copied.tcp, copied.mount, copied.ours) == (None, 10, 60, 30)
    assert [(row.ok, row.ours) for row in found.rows if row.ok is not None] == [(True, pytest.approx(1.2))]
    headings = (found.headings[key] for key in ("paper_tcp", "tcp", "mount", "ours"))
    assert list(headings) == ["no storm", "storm", "storm, Hadoop's own limits", "storm, policy"]


@pytest.mark.parametrize(
    ("ordered", "fault"),
    [(seen(16, 30), "1.60 times, above 1.5"), (seen(12, 30, reads=150), "only 150 reads in a period")],
)
def test_a_goal_that_is_missed_and_too_few_reads_are_faults(monkeypatch, ordered, fault):
    found = result(monkeypatch, {NO_POLICY: seen(900, 10), FEW_COPIES: seen(100, 60), POLICY: ordered})
    assert any(fault in one for one in found.faults)
