"""The parts of the experiments with queues that need no network: policies, Sort's counters, readers' lines, goals."""

import json
import tomllib

import pytest

from trunkline_lab import qos_policy, read_latency, sort_jobs
from trunkline_lab.controller import toml
from trunkline_lab.experiments import qos_conditions, qos_fig5, qos_fig5_report
from trunkline_lab.experiments.qos_conditions import (
    ALONE,
    BASELINE,
    CONDITIONS,
    CONTROLLED,
    CROSS,
    LIFTED,
    NARROW_ALONE,
    NARROW_CROSS,
    PAPERS,
    SHARED,
    UNCONTROLLED,
    Seen,
)
from trunkline_lab.experiments.result import Result, Row, render
from trunkline_lab.net import topology_file

TOPOLOGY = topology_file.named("qos-fig5")


def test_a_policy_names_the_topologys_hosts_and_keeps_cross_traffic_apart():
    document = json.loads(qos_conditions.policy(TOPOLOGY, LIFTED))
    assert document["roles"]["namenode"] == ["10.77.0.1"]
    assert document["roles"]["datanode"] == [TOPOLOGY.address(f"h{n}") for n in range(2, 8)]
    assert document["categories"]["shuffle"] == "q1"
    assert document["categories"]["iperf"]["queue"] == "q2"
    assert {match["port"] for match in document["categories"]["iperf"]["match"]} == {5001}
    assert document["ports"]["switches"]["rate"] == "300mbit"
    assert document["ports"]["hosts"]["queues"]["q1"] == {"min": "200mbit", "max": "200mbit"}
    assert document["default"] == document["categories"]["other"] == "q0"


def test_all_in_the_highest_queue_means_iperf_too():
    document = json.loads(qos_conditions.policy(TOPOLOGY, PAPERS[3]))
    assert document["default"] == document["categories"]["iperf"]["queue"] == "q1"


def test_roles_without_hosts_are_left_out():
    topology = topology_file.named("tiny")
    assert "resourcemanager" not in qos_policy.roles(topology)


def test_sorts_counters_are_read_as_its_client_prints_them():
    log = "\tMap-Reduce Framework\n\t\tMap input records=12\n\t\tReduce output records=11\n"
    assert sort_jobs.counter(log, "Map input records") == 12
    assert sort_jobs.counter(log, "Reduce output records") == 11
    assert sort_jobs.counter(log, "Spilled Records") == -1


def test_reads_and_their_percentiles():
    found = read_latency.reads("ready\nmicros 1500 2000\nnonsense\nmicros 2500 4000\n")
    assert found == [read_latency.Read(1.5, 0.002), read_latency.Read(2.5, 0.004)]
    values = [float(n) for n in range(1, 101)]
    assert [read_latency.percentile(values, p) for p in (50, 99, 100)] == [50, 99, 100]
    assert read_latency.percentile([7.0], 99) == 7.0


def test_settings_are_toml():
    text = toml({"": {"name": "s1", "bridges": ["s1"]}, "dynamic": {"enabled": True, "poll_s": 0.5}})
    assert tomllib.loads(text) == {"name": "s1", "bridges": ["s1"], "dynamic": {"enabled": True, "poll_s": 0.5}}


def seen_at(mb, **seconds):
    """All conditions at a size, 20 s each but for those that are named; experiment 5 lifted a reducer."""
    seen = {(mb, c.name): Seen([20.0, 20.0, 20.0], 1.0, [50.0], [10.0]) for c in CONDITIONS}
    for condition, took in ((LIFTED, seconds.get("lifted")), (SHARED, seconds.get("shared"))):
        if took is not None:
            seen[mb, condition.name].seconds = [1.0, took, 90.0]
    return seen


@pytest.mark.parametrize(
    ("seconds", "hold"),
    [
        ({"lifted": 21.9, "shared": 21.9}, [True, True]),
        ({"lifted": 22.1, "shared": 21.9}, [False, True]),
        ({"lifted": 21.9, "shared": 22.1}, [True, False]),
    ],
)
def test_both_goals_are_rows_and_a_fault_where_they_do_not_hold(seconds, hold):
    result = Result("t", "about")
    qos_fig5_report.goals(result, 400.0, seen_at(400.0, **seconds))
    assert [row.ok for row in result.rows if row.what.startswith("goal:")] == hold
    assert len(result.faults) == hold.count(False)
    assert result.document()["ok"] is all(hold)


def test_each_goal_has_its_own_baseline():
    seen = seen_at(400.0)
    seen[400.0, BASELINE.name].seconds, seen[400.0, NARROW_ALONE.name].seconds = [40.0] * 3, [10.0] * 3
    result = Result("t", "about")
    qos_fig5_report.goals(result, 400.0, seen)
    found = [(row.ours, row.ok) for row in result.rows if row.what.startswith("goal:")]
    assert found == [(0.5, True), (2.0, False)]


def test_a_goal_is_judged_by_turns():
    """A turn in which the machine was slow has both Sorts slow."""
    seen = seen_at(400.0)
    seen[400.0, BASELINE.name].seconds, seen[400.0, LIFTED.name].seconds = [10.0, 20.0, 30.0], [10.5, 30.0, 32.0]
    result = Result("t", "about")
    qos_fig5_report.goals(result, 400.0, seen)
    found = [(row.ours, row.ok) for row in result.rows if row.what.startswith("goal:")]
    assert found == [(32.0 / 30.0, True), (1.0, True)]


def test_what_cross_traffic_costs_is_told_for_ports_of_either_rate():
    seen = seen_at(400.0)
    seen[400.0, ALONE.name].seconds, seen[400.0, NARROW_ALONE.name].seconds = [10.0], [5.0]
    result = Result("t", "about")
    qos_fig5_report.goals(result, 400.0, seen)
    against = {row.what: row.ours for row in result.rows if not row.what.startswith("goal:")}
    assert against[f"400 MB: {CROSS.about}, against {ALONE.about}"] == 2.0
    assert against[f"400 MB: {NARROW_CROSS.about}, against {NARROW_ALONE.about}"] == 4.0
    assert len(against) == 2 + len(PAPERS)


def test_goals_that_small_sorts_cannot_judge_say_so_and_the_result_is_not_ok():
    result = Result("t", "about")
    qos_fig5_report.goals(result, 40.0, seen_at(40.0))
    rows = [row for row in result.rows if row.what.startswith("goal")]
    assert [row.what.startswith("goal, not judged: at 400 MB: ") for row in rows] == [True, True]
    assert [row.ok for row in rows] == [None, None]
    assert len(result.faults) == 2
    assert not result.document()["ok"]


def test_what_control_did_is_told_and_that_it_did_nothing_too():
    seen = seen_at(400.0)
    result = Result("t", "about")
    qos_fig5_report.control(result, 400.0, seen)
    assert [row.ours for row in result.rows] == [1.0, 0, 0]
    assert "lifted no reducer" in result.notes[0]

    seen[400.0, UNCONTROLLED.name].shuffles, seen[400.0, CONTROLLED.name].shuffles = [60.0], [12.0]
    seen[400.0, CONTROLLED.name].decisions = [[{"to_queue": "q1"}, {"to_queue": "q0"}], [{"to_queue": "q1"}]]
    result = Result("t", "about")
    qos_fig5_report.control(result, 400.0, seen)
    assert [row.ours for row in result.rows] == [60.0, 12.0, 1.0, 2, 3]
    assert not result.notes


def test_in_experiment_5_cross_traffic_shares_the_queue_of_one_workers_port_and_there_is_a_better_one():
    document = json.loads(qos_conditions.policy(TOPOLOGY, CONTROLLED))
    assert "iperf" not in document["categories"]
    assert document["categories"]["shuffle"] == document["categories"]["other"] == document["default"] == "q0"
    shares = document["ports"]["hosts"]["queues"]
    assert (shares["q0"]["max"], shares[qos_fig5_report.LIFTED_TO]["min"]) == ("50mbit", "200mbit")
    source, worker = CONTROLLED.cross
    assert worker in TOPOLOGY.roles.nodemanagers
    assert source not in TOPOLOGY.roles.nodemanagers
    assert len(TOPOLOGY.path(source, worker)) == 2  # through one switch
    assert CONTROLLED.properties["mapreduce.task.progress-report.interval"] == "1000"
    assert CONTROLLED.properties["dfs.replication"] == "1"  # no pipeline passes the congested port
    assert (UNCONTROLLED.cross, UNCONTROLLED.properties) == (CONTROLLED.cross, CONTROLLED.properties)


def test_experiment_6_lets_no_part_of_a_port_lie_idle():
    document = json.loads(qos_conditions.policy(TOPOLOGY, SHARED))
    shares, queues = document["ports"]["switches"]["queues"], document["queues"]
    assert [shares[name]["min"] for name in ("q0", "q1", "q2")] == ["10mbit", "40mbit", "1mbit"]
    assert {share["max"] for share in shares.values()} == {document["ports"]["switches"]["rate"]}
    assert queues["q1"]["priority"] < queues["q0"]["priority"] < queues["q2"]["priority"]


def test_the_ports_that_experiment_6_is_held_against_are_its_own_with_one_queue():
    document, shared = (json.loads(qos_conditions.policy(TOPOLOGY, c)) for c in (NARROW_ALONE, SHARED))
    for ports in ("hosts", "switches"):
        rate = document["ports"][ports]["rate"]
        assert rate == shared["ports"][ports]["rate"] == "60mbit"
        assert document["ports"][ports]["queues"] == {"q0": {"min": rate, "max": rate}}
    assert set(document["categories"].values()) == {"q0"}


def test_which_sorts_are_run_and_validated():
    sizes = [0.4, 4.0, 40.0, 400.0]
    small = list(qos_fig5.rounds(4.0, sizes, 0.1))
    assert small == [(condition, condition is PAPERS[0]) for condition in PAPERS]
    largest = [condition for condition, _ in qos_fig5.rounds(400.0, sizes, 0.1)]
    assert [largest.count(c) for c in (ALONE, BASELINE, LIFTED, SHARED, CROSS, CONTROLLED)] == [3, 5, 5, 5, 1, 1]
    validated = [condition for condition, yes in qos_fig5.rounds(400.0, sizes, 0.1) if yes]
    assert validated == list(CONDITIONS)
    assert len(list(qos_fig5.rounds(4.0, [*sizes, 4000.0], 1))) == 3 * len(CONDITIONS) + 2 * 4


def test_a_report_of_all_sizes_has_a_row_for_each_sort_and_one_plot():
    seen = seen_at(400.0) | {(4.0, c.name): Seen([9.0], 1.0 if c is PAPERS[0] else 0.0) for c in PAPERS}
    result = Result("t", "about")
    qos_fig5_report.report(result, [4.0, 400.0], {4.0: 8.0, 400.0: 30.0}, seen)
    sorts = [row for row in result.rows if ": Sort, " in row.what]
    assert len(sorts) == len(PAPERS) + len(CONDITIONS)
    assert not result.faults
    json.dumps(result.document())
    assert len(result.plots) == 1


def test_a_goal_that_holds_is_shown_as_such():
    result = Result("t", "about", rows=[Row("goal: x", "times", None, None, 1.0, limit=1.1, ok=True)])
    assert "yes" in render(result.document())
