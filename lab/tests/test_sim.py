"""Experiments of the simulator, on answers such as it gives."""

from typing import Any

import pytest

from trunkline_lab import paths
from trunkline_lab.experiments import ndn_contended, sim, sim_cache, sim_fig6
from trunkline_lab.experiments.options import Options
from trunkline_lab.experiments.result import Result
from trunkline_lab.net.fabric import LabError


def _run(replicas: int, plane: str, hosts: int, links: int) -> dict[str, Any]:
    least = {"least_hosts_bytes": 300_000_000, "least_all_links_bytes": 600_000_000}
    return {"replicas": replicas, "plane": plane, "hosts_bytes": hosts, "all_links_bytes": links, "took_s": 1, **least}


def _fig6(named: int) -> Result:
    runs = {3: {"tcp": _run(3, "tcp", 400_000_000, 800_000_000), "named": _run(3, "named", named, 610_000_000)}}
    result = Result("sim-fig6", "")
    sim_fig6.rows(result, 128, runs)
    return result


def test_fig6_has_both_planes_beside_the_tree():
    result = _fig6(306_000_000)
    assert not result.faults
    assert [(row.tcp, row.ours, row.limit) for row in result.rows] == [
        (400, 306, 300),
        (800, 610, 600),
        (0.0, pytest.approx(-23.5), None),
    ]


def test_fig6_fails_when_the_tree_is_far_below():
    assert any("the tree takes" in fault for fault in _fig6(390_000_000).faults)
    assert any("above the paper's" in fault for fault in _fig6(390_000_000).faults)


def _cache(given: int) -> Result:
    run = {
        "policy": "s3-fifo",
        "taken_bytes": 100_000_000,
        "given_bytes": given,
        "local_bytes": 50_000_000,
        "levels": [{"name": "racks", "hit_bytes": 30_000_000}],
        "core_bytes": 1,
        "all_links_bytes": 2,
    }
    sums = {
        "network_bytes": 50_000_000,
        "node_bytes": 0,
        "network_level_bytes": 25_000_000,
        "unified_bytes": 40_000_000,
    }
    tcp = {"taken_bytes": 100_000_000, "core_bytes": 3, "all_links_bytes": 4}
    result = Result("sim-cache", "")
    sim_cache.rows(result, 128, {"potential": sums, "tcp": tcp, "runs": [run]})
    return result


def test_cache_tells_potential_and_hits():
    result = _cache(70_000_000)
    assert not result.faults
    found = {row.what: row.ours if row.ours is not None else row.tcp for row in result.rows}
    assert found["128 hosts: of these, one cache without end for all had"] == 80
    assert found["128 hosts, s3-fifo: given, against TCP"] == pytest.approx(-30)
    assert found["128 hosts, s3-fifo: hits at racks"] == 30


def test_cache_fails_without_a_hit():
    assert any("had nothing" in fault for fault in _cache(100_000_000).faults)


def test_other_topologies_are_refused():
    with pytest.raises(LabError, match="fat trees"):
        sim.fat_trees(Options(topology="tiny"))


def test_pipelines_that_the_simulator_is_held_against_are_those_of_the_lab():
    text = (paths.ROOT / "ndn" / "sim" / "tests" / "data" / "ndn-contended.txt").read_text()
    pairs = [line.split() for line in text.splitlines() if not line.startswith("#")]
    drawn = [
        [writer, ",".join(ndn_contended.draw(ndn_contended.ROLES.datanodes, writer, number))]
        for number in range(ndn_contended.FILES)
        for writer in ndn_contended.WRITERS
    ]
    assert pairs == drawn
