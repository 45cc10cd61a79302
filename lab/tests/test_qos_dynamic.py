"""What `qos-dynamic` makes of its runs, and what it reads of others' logs."""

import pytest

from trunkline_lab import cross_traffic, history
from trunkline_lab.experiments import qos_dynamic
from trunkline_lab.experiments.qos_dynamic import ALONE, CONTROL, CROSS, STRAGGLER, Run
from trunkline_lab.experiments.result import Result
from trunkline_lab.history import Shuffle

LOG = """\
-----------------------------------------------------------
Server listening on 5001 (test #1)
-----------------------------------------------------------
Accepted connection from 10.77.0.7, port 33414
[  5] local 10.77.0.6 port 5001 connected to 10.77.0.7 port 42111
[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  5]   0.00-1.00   sec  5.24 MBytes  44.0 Mbits/sec  0.031 ms  0/3925 (0%)
[  5]   1.00-2.00   sec  1.36 MBytes  11.4 Mbits/sec  0.944 ms  2990/4017 (74%)
iperf3: the client has terminated
"""


def decision(reducer, *, to="lifted"):
    return {"reducer": reducer, "from_queue": "q0", "to_queue": to, "why": "…"}


def run(took_s, shuffle_s, *, decisions=(), arrived=()):
    shuffles = [Shuffle("r1", "h2", 5.0), Shuffle("r5", STRAGGLER, shuffle_s)]
    return Run(took_s, shuffles, list(decisions), list(arrived))


def runs(control_s=32.0, decisions=None, arrived=30.0):
    made = [decision("r5"), decision("r5", to="q0")] if decisions is None else decisions
    return {
        ALONE: [run(30, 5)] * 3,
        CROSS: [run(60, 35, arrived=[40.0])] * 3,
        CONTROL: [run(control_s, 10, decisions=made, arrived=[arrived])] * 3,
    }


def reported(found):
    result = Result("qos-dynamic", "")
    qos_dynamic.report(result, found)
    return result


def test_seconds_of_a_receiver_are_read_off_its_log():
    assert cross_traffic.arrived(LOG) == [44.0, 11.4]


def test_the_job_and_its_shuffles_are_found():
    assert history.job_of("2026-11-21 19:40:01,100 INFO  mapreduce.Job: Running job: job_17_0001\n") == "job_17_0001"
    with pytest.raises(ValueError, match="no job's id"):
        history.job_of("")
    told = {"id": "attempt_17_0001_r_000000_0", "nodeHttpAddress": "h6:8042", "elapsedShuffleTime": 4321}
    assert history.listed(told) == history.listed([told]) == [told]
    assert history.shuffle_of(told) == Shuffle("attempt_17_0001_r_000000_0", STRAGGLER, 4.321)


def test_all_goals_that_hold_are_rows_and_no_faults():
    result = reported(runs())
    assert not result.faults
    assert [row.ok for row in result.rows if row.what.startswith("goal: ")] == [True] * 5
    won = next(row for row in result.rows if row.what.startswith("goal: sort: won back"))
    assert won.ours == pytest.approx(100 * 28 / 30)


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        (runs(control_s=50.0), "sort: won back of what cross traffic costs, at least 50 %: 33.3"),
        (runs(decisions=[]), "runs in which the straggler is lifted 3 runs: 0"),
        (runs(decisions=[decision("r1"), decision("r1", to="q0")]), "runs in which the straggler is lifted 3 runs: 0"),
        (runs(decisions=[decision("r5")]), "runs in which every lift is given back 3 runs: 0"),
        (runs(arrived=9.0), "cross traffic has its queue's minimum with control, at least 10 Mbit/s: 9"),
    ],
)
def test_a_goal_that_does_not_hold_is_a_fault(found, fault):
    result = reported(found)
    assert fault in result.faults
    assert [row.ok for row in result.rows].count(False) == len(result.faults)


def test_decisions_without_control_are_a_fault():
    found = runs()
    found[CROSS] = [run(60, 35, arrived=[40.0], decisions=[decision("r5")])] * 3
    assert reported(found).faults == ["dynamic control decided while it was off"]
