"""The parts of the experiments with queues that need no network: policies, Sort's counters, readers' lines, goals."""

import json
import tomllib

import pytest

from trunkline_lab import qos_policy, read_latency, sort_jobs
from trunkline_lab.controller import toml
from trunkline_lab.experiments import qos_fig5
from trunkline_lab.experiments.result import Result, Row, render
from trunkline_lab.net import topology_file

TOPOLOGY = topology_file.named("qos-fig5")


def test_a_policy_names_the_topologys_hosts_and_keeps_cross_traffic_apart():
    document = json.loads(qos_fig5.policy(TOPOLOGY, qos_fig5.LIFTED))
    assert document["roles"]["namenode"] == ["10.77.0.1"]
    assert document["roles"]["datanode"] == [TOPOLOGY.address(f"h{n}") for n in range(2, 8)]
    assert document["categories"]["shuffle"] == "q1"
    assert document["categories"]["iperf"]["queue"] == "q2"
    assert {match["port"] for match in document["categories"]["iperf"]["match"]} == {5001}
    assert document["ports"]["switches"]["rate"] == "300mbit"
    assert document["ports"]["hosts"]["queues"]["q1"] == {"min": "200mbit", "max": "200mbit"}
    assert document["default"] == document["categories"]["other"] == "q0"


def test_all_in_the_highest_queue_means_iperf_too():
    document = json.loads(qos_fig5.policy(TOPOLOGY, qos_fig5.PAPERS[3]))
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


@pytest.mark.parametrize(("lifted_s", "holds"), [(21.9, True), (22.1, False)])
def test_the_goal_is_a_row_and_a_fault_where_it_does_not_hold(lifted_s, holds):
    seen = {(400.0, c.name): qos_fig5.Seen([20.0, 20.0, 20.0], 1.0, [50.0], [10.0]) for c in qos_fig5.CONDITIONS}
    seen[400.0, qos_fig5.LIFTED.name].seconds = [1.0, lifted_s, 90.0]
    result = Result("t", "about")
    qos_fig5._goals(result, seen)
    assert [row.ok for row in result.rows if row.what.startswith("goal:")] == [holds]
    assert bool(result.faults) is not holds


def test_the_goal_is_not_judged_by_small_sorts():
    seen = {(40.0, c.name): qos_fig5.Seen([20.0], 1.0, [50.0], [10.0]) for c in qos_fig5.CONDITIONS}
    seen[40.0, qos_fig5.LIFTED.name].seconds = [90.0]
    result = Result("t", "about")
    qos_fig5._goals(result, seen)
    assert [row.ok for row in result.rows if row.what.startswith("goal:")] == [None]
    assert not result.faults
    assert "is not judged" in result.notes[0]


def test_a_goal_that_holds_is_shown_as_such():
    result = Result("t", "about", rows=[Row("goal: x", "times", None, None, 1.0, limit=1.1, ok=True)])
    assert "yes" in render(result.document())
