"""What `qos-dynamic` makes of its runs, and what it reads of others' logs."""

import pytest

from trunkline_lab import cross_traffic, history
from trunkline_lab.cross_traffic import Second
from trunkline_lab.experiments import qos_conditions, qos_dynamic, qos_fig5
from trunkline_lab.experiments.qos_dynamic import ALONE, CONTROL, CROSS, STRAGGLER, Run
from trunkline_lab.experiments.result import Result
from trunkline_lab.history import Shuffle
from trunkline_lab.net import data_center, topology_file

LOG = """\
1795455841 -----------------------------------------------------------
1795455841 Server listening on 5001 (test #1)
1795455841 -----------------------------------------------------------
1795455841 Accepted connection from 10.77.0.7, port 33414
1795455841 [  5] local 10.77.0.6 port 5001 connected to 10.77.0.7 port 42111
1795455842 [ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
1795455842 [  5]   0.00-1.00   sec  5.24 MBytes  44.0 Mbits/sec  0.031 ms  0/3925 (0%)
1795455843 [  5]   1.00-2.00   sec  1.36 MBytes  11.4 Mbits/sec  0.944 ms  2990/4017 (74%)
1795455843 - - - - - - - - - - - - - - - - - - - - - - - - -
1795455843 [ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
1795455843 [  5]   0.00-2.00   sec  6.60 MBytes  27.7 Mbits/sec  0.944 ms  2990/7942 (37%)  receiver
1795455843 iperf3: the client has terminated
"""


LIFT_S, BACK_S, END_S = 10, 20, 40  # of the runs below, whose cross traffic begins at 0


def decision(reducer, *, to="lifted", at_s=LIFT_S):
    return {"reducer": reducer, "from_queue": "q0", "to_queue": to, "why": "…", "at_s": float(at_s)}


LIFTED_AND_BACK = (decision("r5"), decision("r5", to="q0", at_s=BACK_S))


def seconds(usual=40.0, lifted=None, since_s=LIFT_S, until_s=BACK_S):
    """Cross traffic of `END_S` seconds; `lifted` is what it has from `since_s` until `until_s`."""
    low = usual if lifted is None else lifted
    return [Second(float(at), low if since_s <= at <= until_s else usual) for at in range(END_S)]


def run(took_s, shuffle_s, *, decisions=(), arrived=()):
    shuffles = [Shuffle("r1", "h2", 5.0), Shuffle("r5", STRAGGLER, shuffle_s)]
    return Run(took_s, shuffles, list(decisions), list(arrived))


def runs(control_s=32.0, decisions=LIFTED_AND_BACK, arrived=None):
    return {
        ALONE: [run(30, 5)] * 3,
        CROSS: [run(60, 35, arrived=seconds())] * 3,
        CONTROL: [run(control_s, 10, decisions=decisions, arrived=arrived or seconds(lifted=30.0))] * 3,
    }


MINIMUM = "cross traffic's queue has its minimum while the straggler is lifted, least 3 s, at least 9.5 Mbit/s"  # of 10


def reported(found):
    result = Result("qos-dynamic", "")
    qos_dynamic.report(result, found)
    return result


def test_seconds_of_a_receiver_are_read_off_its_log():
    first, second = cross_traffic.arrived(LOG)
    assert (first.at_s, second.at_s) == (1795455842, 1795455843)
    assert (first.mbit_s, second.mbit_s) == pytest.approx((44.0 * 1442 / 1400, 11.4 * 1442 / 1400))


def test_the_job_and_its_shuffles_are_found():
    assert history.job_of("2026-11-21 19:40:01,100 INFO  mapreduce.Job: Running job: job_17_0001\n") == "job_17_0001"
    with pytest.raises(ValueError, match="no job's id"):
        history.job_of("")
    told = {"id": "attempt_17_0001_r_000000_0", "nodeHttpAddress": "h6:8042", "elapsedShuffleTime": 4321}
    assert history.listed(told) == history.listed([told]) == [told]
    assert history.shuffle_of(told) == Shuffle("attempt_17_0001_r_000000_0", STRAGGLER, 4.321)


@pytest.mark.parametrize("name", [qos_dynamic.TOPOLOGY, qos_fig5.NAME])
def test_each_host_takes_one_reducer_whether_or_not_the_jobs_master_is_there(name, tmp_path):
    topology = topology_file.named(name)
    told = data_center.properties(topology, tmp_path, [], racks=False, extra=qos_conditions.ONE_EACH)
    host, master, reducer = (
        int(told[key])
        for key in (
            "yarn.nodemanager.resource.memory-mb",
            "yarn.app.mapreduce.am.resource.mb",
            "mapreduce.reduce.memory.mb",
        )
    )
    assert master + reducer <= host < 2 * reducer


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
        (runs(decisions=[]), f"{MINIMUM}: not shown, no second of run 1, 2, 3 lies within a lift"),
        (runs(arrived=seconds(lifted=9.0)), f"{MINIMUM}: 9"),
    ],
)
def test_a_goal_that_does_not_hold_is_a_fault(found, fault):
    result = reported(found)
    assert fault in result.faults
    assert [row.ok for row in result.rows].count(False) == len(result.faults)


def test_starving_for_three_seconds_of_a_lift_is_a_fault_though_the_mean_of_the_run_is_high():
    starved = seconds(usual=45.0, lifted=0.5, since_s=14, until_s=16)
    with_control = runs()
    with_control[CONTROL][1] = run(32, 10, decisions=LIFTED_AND_BACK, arrived=starved)
    result = reported(with_control)
    assert sum(one.mbit_s for one in starved) / len(starved) > 40
    assert result.faults == [f"{MINIMUM}: 0.5"]
    assert [row.ours for row in result.rows if row.ok is False] == [0.5]


def test_what_cross_traffic_has_before_and_after_a_lift_is_not_the_lifts():
    low_outside = [Second(one.at_s, 30.0 if LIFT_S <= one.at_s <= BACK_S else 0.0) for one in seconds()]
    assert run(32, 10, decisions=LIFTED_AND_BACK, arrived=low_outside).least_during_lifts(STRAGGLER) == 30.0
    others = [decision("r1"), decision("r1", to="q0", at_s=BACK_S)]
    assert run(32, 10, decisions=others, arrived=seconds()).least_during_lifts(STRAGGLER) is None


def test_a_short_lift_is_judged_by_the_seconds_it_has_and_one_that_does_not_end_by_all_that_follow():
    short = [decision("r5"), decision("r5", to="q0", at_s=LIFT_S + 1)]
    starved = seconds(lifted=2.0, until_s=LIFT_S + 1)
    assert run(32, 10, decisions=short, arrived=starved).least_during_lifts(STRAGGLER) == 2.0
    late = seconds(lifted=1.0, since_s=35, until_s=38)
    assert run(32, 10, decisions=[decision("r5")], arrived=late).least_during_lifts(STRAGGLER) == 1.0


def test_decisions_without_control_are_a_fault():
    found = runs()
    found[CROSS] = [run(60, 35, arrived=seconds(), decisions=[decision("r5")])] * 3
    assert reported(found).faults == ["dynamic control decided while it was off"]
