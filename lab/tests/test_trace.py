"""How busy links and processors were, from samples of their counters."""

import os

import pytest

from trunkline_lab.net.trace import Sample, busy_share, processor_ticks, processors_use, use

WAY = ("r1", "r2")
SAMPLES = [Sample(10.0, {WAY: 0}, 100, 1000), Sample(11.0, {WAY: 500}, 150, 1100), Sample(13.0, {WAY: 2500}, 280, 1300)]


def test_use_is_percent_of_the_rate_since_the_sample_before():
    assert use(SAMPLES, {WAY: 8000}) == {WAY: [(1.0, pytest.approx(50)), (3.0, pytest.approx(100))]}


def test_a_link_is_full_for_a_share_of_the_time():
    assert busy_share([(1.0, 50.0), (3.0, 95.0)]) == pytest.approx(200 / 3)
    assert busy_share([]) == 0


def test_processors_use_is_of_all_of_them():
    assert processors_use(SAMPLES) == pytest.approx(60)
    assert processors_use(SAMPLES[:1]) == 0


def test_ticks_grow_with_work():
    busy, whole = processor_ticks()
    used = os.times().user
    while os.times().user < used + 0.05:
        pass
    now, then = processor_ticks()
    assert now > busy and then > whole and now <= then
