"""What a bench keeps when a part of it fails, and what its figures are not believed without."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from trunkline_lab import bench, hbase, link_bench, mirror_bench, secure_bench, small_bench
from trunkline_lab.figures import Figure
from trunkline_lab.hostbytes import LinkBytes
from trunkline_lab.transfer import Cost


def figure(name: str) -> Figure:
    return Figure(name, 1.0, "s", "", None, 1)


def test_what_was_measured_outlives_a_part_that_fails():
    def fails() -> Iterator[Figure]:
        yield figure("b.first")
        raise RuntimeError("no such host")

    groups = {
        ("a.",): lambda: iter([figure("a.one"), figure("a.two")]),
        ("b.",): fails,
        ("c.",): lambda: iter([figure("c.one")]),
    }
    found, failed = bench.measured(groups, "")
    assert [f.name for f in found] == ["a.one", "a.two", "c.one"]
    assert failed == ["b.: no such host"]
    found, failed = bench.measured({("a.",): groups["a.",]}, "a.t")
    assert [f.name for f in found] == ["a.two"]
    assert not failed


@pytest.mark.parametrize("plane", ["ndn", "ucx"])
def test_puts_that_a_plane_did_not_carry_are_no_figure_of_it(plane):
    puts = hbase.Puts(
        puts=100, seconds=1.0, mean_us=1, p50_us=1, p95_us=1, p99_us=1, max_us=1, rows_verified=100
    )  # 100 KiB of values
    hbase.prove("tcp", puts, 0, 3)
    hbase.prove(plane, puts, 3 * 102_400, 3)
    with pytest.raises(RuntimeError, match=f"{plane} did not carry the Puts"):
        hbase.prove(plane, puts, 3 * 102_400 - 1, 3)


def test_a_client_that_prints_too_little_of_small_operations_is_no_figure():
    log = "INFO something\nmicros hflush 131 3587\nmicros file 25215 513214\nmicros pread 312 9068\n"
    found = small_bench.percentiles(log)
    assert (found["hflush.p50"], found["file.p99"], found["pread.p50"]) == (131, 513214, 312)
    with pytest.raises(RuntimeError, match="nothing of pread"):
        small_bench.percentiles(log.replace("pread", "read"))


def test_what_is_sealed_is_held_against_each_other_way_by_medians():
    def cost(wall_s: float) -> Cost:
        return Cost(wall_s, {"client": wall_s, "h1": 2 * wall_s}, LinkBytes({}, {}), 0, {})

    seconds = {"sealed": (2, 9, 1), "encrypted": (4, 4, 4), "encrypted default": (8, 1, 9), "open": (2, 2, 2)}
    seconds |= {"sealed tcp": (1, 1, 1), "open tcp": (4, 4, 4)}
    costs = {label: [cost(s) for s in found] for label, found in seconds.items()}
    puts = list(secure_bench.figures("put.r3", secure_bench.PUT_PEERS, costs, 3))
    by_tcp = {f.name: f.value for f in puts if "tcp" in f.name}
    assert by_tcp["secure.put.r3.sealed_tcp_over_open_tcp.wall"] == 0.25
    assert by_tcp["secure.put.r3.sealed_tcp_over_encrypted_default.cpu"] == 0.125
    found = {f.name.removeprefix("secure.put.r3.sealed_over_"): f for f in puts}
    assert found["encrypted.wall"].value == 0.5
    assert found["encrypted_default.cpu"].value == 0.25
    assert (found["open.cpu_each"].value, found["open.cpu_each"].peer_value) == (6, 6)
    gets = {f.name: f for f in secure_bench.figures("get", secure_bench.GET_PEERS, costs, 3) if "sealed_over" in f.name}
    wanted = {"wall": 0.75, "cpu": 0.95}
    for what, most in wanted.items():
        figure = gets.pop(f"secure.get.sealed_over_encrypted.{what}")
        assert (figure.value, figure.peer_value) == (0.5, most)
    assert set(gets) == {f"secure.get.sealed_over_encrypted.{what}_each" for what in wanted}
    small = {f.name: f for f in secure_bench.figures("small_files", secure_bench.SMALL_PEERS, costs, 3)}
    assert small["secure.small_files.sealed_over_open.wall"].peer_value == 1.10


def test_costs_are_told_from_what_else_their_test_prints():
    lines = ["running 1 test", '{"name": "mirror.bpf.ns_per_segment", "value": 250.5}', "."]
    assert list(mirror_bench.costs(lines)) == [("mirror.bpf.ns_per_segment", 250.5)]


def test_a_router_on_slow_links_is_held_against_plain_tcp_by_medians():
    def took(cpu_s: float) -> link_bench.Took:
        return link_bench.Took(0.25, {"forwarder": cpu_s, "producer": 2 * cpu_s, "consumer": 3 * cpu_s})

    by_name = [took(cpu_s) for cpu_s in (9, 1, 2)]
    found = {"tcp": [link_bench.Took(0.5, {"producer": 1, "consumer": 3})], "8000B": by_name, "jumbo": by_name}
    figures = {figure.name: figure for figure in link_bench.figures_of(found)}
    rate, cost = (figures[f"forwarder.link.jumbo.{name}"] for name in ("gbit_s", "consumer_cpu_s_per_gb"))
    assert (rate.value, rate.peer_value) == (0.25, 0.5)
    assert (cost.value, cost.peer_value) == (6, 3)
    assert figures["forwarder.link.8000B.cpu_s_per_gb"].value == 2


def test_namespaces_of_the_bench_on_slow_links_go_with_it():
    if why := link_bench.missing():
        pytest.skip(why)
    with pytest.raises(RuntimeError, match="stop"), link_bench.row() as hosts:
        names = {entry.name for entry in Path("/run/netns").iterdir()}
        assert {hosts.producer, hosts.router, hosts.consumer} <= names
        raise RuntimeError("stop")
    assert not {hosts.producer, hosts.router, hosts.consumer} & {entry.name for entry in Path("/run/netns").iterdir()}
