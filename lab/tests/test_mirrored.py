"""The parts of the experiments with mirrored replication that need no cluster: goals, equation 7, the lossy link."""

from __future__ import annotations

import socket
from collections import Counter

import labs
import pytest

from trunkline_lab import compilers, mirror_bench
from trunkline_lab.block_writer import Took, took
from trunkline_lab.experiments import mirrored, mr_fig10, mr_fig11, mr_loss, mr_planes, mr_setup, mr_uplink
from trunkline_lab.experiments.mirrored import Written
from trunkline_lab.experiments.mr_fig11 import ways
from trunkline_lab.experiments.result import Result
from trunkline_lab.mirror_agents import ProgramCost
from trunkline_lab.net import kernel, loss, topology_file, tuning
from trunkline_lab.net.kernel import Count
from trunkline_lab.net.links import LinkCounts
from trunkline_lab.net.meter import LabBytes
from trunkline_lab.transfer import Cost

TREE = topology_file.named("mr-tree")
STAR = topology_file.named("mr-star")
MB = 10**6


def written(data_s: float, sent: int) -> Written:
    counts = {("h2", "s1"): Count(sent), ("h3", "s1"): Count(sent)}
    return Written(Took(0.1, data_s, data_s + 0.2), ["h2", "h3", "h4"], LinkCounts(STAR, counts))


def test_what_a_writer_prints():
    assert took("wrote 1500 2000000 2100000\n") == Took(0.0015, 2.0, 2.1)
    with pytest.raises(ValueError, match="oops"):
        took("oops\n")


@pytest.mark.parametrize(
    ("ours", "faults"),
    [
        (written(1.0, 2 * MB), []),
        (written(2.0, 2 * MB), ["throughput against stock: 2 times, below 3"]),
        (written(1.0, 9 * MB), ["sent by D1, against stock: 9 %, above 5", "sent by D2, against stock: 9 %, above 5"]),
    ],
)
def test_goals_of_slow_uplinks(ours: Written, faults: list[str]):
    result = Result("t", "about")
    mr_uplink.compare(result, 100 * MB, [written(4.0, 100 * MB)] * 3, [ours] * 3)
    assert result.faults == faults
    assert [row.ok for row in result.rows if row.what.startswith("goal")].count(False) == len(faults)


@pytest.mark.parametrize(
    ("sent", "faults"),
    [
        ({0.001: 6.0, 0.01: 13.0, 0.05: 54.0}, []),
        ({0.0: 50.0}, ["0% lost: sent by a relay, of the block: 50 %, above 4.5"]),
        ({0.01: 18.0}, ["1% lost: sent by a relay, of the block: 18 %, above 13.6"]),
    ],
)
def test_what_relays_send_is_judged_by_what_is_lost(sent: dict[float, float], faults: list[str]):
    """Blocks of 100 MB, of which relays have sent 1% where the case says nothing else."""
    result = Result("t", "about")
    ours = {share: [written(4.0, round(sent.get(share, 1.0) * MB))] for share in mr_loss.LOSSES}
    mr_loss.compare(result, 100 * MB, [written(4.0, 100 * MB)], ours)
    assert result.faults == faults
    assert [row.ok for row in result.rows if row.what.startswith("goal")].count(False) == len(faults)


def test_goals_of_figure_10():
    for times, faults in ((1.0, []), (1.5, ["one writer, 3 replicas: data against stock: 1.5 times, above 1.02"])):
        result = Result("t", "about")
        both = [{count: [written(of, MB)] for count in mr_fig10.REPLICATIONS} for of in (2.0, 2.0 * times)]
        for of_plane in both:
            for [one] in of_plane.values():
                one.cpu_s.update(h2=1.0, h3=1.0)
        mr_fig10.compare(result, *both)
        mr_fig10.compare_shared(result, [[written(4.0, MB)], [written(2.0, MB)]])
        assert result.faults == faults
        assert len([row for row in result.rows if row.what.startswith("goal")]) == 3


def test_wrong_replicas_are_a_goal_that_does_not_hold():
    result = Result("t", "about", faults=["mirror: /f is not what was written on h2"])
    mirrored.right(result)
    assert [row.ok for row in result.rows] == [False]


def test_copies_bring_all_that_datanodes_relay_but_for_a_client_on_the_firsts_host():
    assert mirrored.connections_copied("h9", ["h3", "h6", "h7"]) == 2
    assert mirrored.connections_copied("h3", ["h3", "h6", "h7"]) == 1


@pytest.mark.parametrize(
    ("ours", "faults"), [(90, []), (120, ["mirrored, all links against TCP tuned alike: 1.2 times, above 1"])]
)
def test_goal_of_the_planes(ours: int, faults: list[str]):
    result, seen = Result("t", "about"), {}
    for kind in mr_planes.COLUMNS:
        counts = {way: Count() for link in TREE.links for way in (link.ends, link.ends[::-1])}
        counts["c1", "a1"] = Count(ours if kind == mr_planes.MIRROR else 100)
        links = LabBytes({}, {}, links=LinkCounts(TREE, counts), flows={})
        seen[kind] = mr_planes.Seen([1.0, 2.0], Cost(1.0, {}, links, 0, {}), {}, 50.0, {})
    mr_planes.compare(result, seen)
    assert result.faults == faults


@pytest.mark.parametrize(
    ("client", "pipeline", "chain", "climbed", "tree"),
    [
        ("h1", ["h3", "h6", "h7"], 11, 4, 7),  # the paper's figure 1, its racks exchanged
        ("h3", ["h3", "h6", "h7"], 8, 1, 7),
        ("h4", ["h3", "h6", "h7"], 10, 4, 8),
        ("h9", ["h6", "h3", "h5"], 14, 4, 9),
    ],
)
def test_equation_7_counts_links_up_and_a_tree_its_links(
    client: str, pipeline: list[str], chain: int, climbed: int, tree: int
):
    found = ways(TREE, mr_fig11.ROOT, client, pipeline)
    assert (len(found.chain), len(found.climbed), len(found.tree)) == (chain, climbed, tree)


def test_where_the_tree_is_equation_7_and_where_not():
    for where, host in mr_fig11.CLIENTS.items():
        of = ways(TREE, mr_fig11.ROOT, host, ["h3", "h6", "h7"])
        assert (of.equation_7 == len(of.tree)) is (where in mr_fig11.AS_EQUATION_7), where


def of_block(crossed: list[tuple[str, str]], acknowledged: list[tuple[str, str]], more: dict) -> Written:
    """A block of 1000 bytes over these links, with 20 of acknowledgements."""
    counts = {way: 0 for link in TREE.links for way in (link.ends, link.ends[::-1])}
    for of_each, links in ((1000, crossed), (20, acknowledged)):
        for way in links:
            counts[way] += of_each
    found = {way: Count(count + more.get(way, 0)) for way, count in counts.items()}
    return Written(Took(0, 1, 1), ["h3", "h6", "h7"], LinkCounts(TREE, found))


@pytest.mark.parametrize(
    ("more", "faults"),
    [
        ({}, []),
        # A relay's link up, which the tree has not: little of the whole, and much of that link.
        ({("h6", "e2"): 120}, ["sent by relays, against stock: 6 %, above 5"]),
        (
            {("c1", "a1"): 500},
            ["off the tree's links: ", "off the tree, aggregation and core, down: 25 %, above 3", "off equation 7: "],
        ),
    ],
)
def test_traffic_off_the_tree_is_a_fault(more: dict[tuple[str, str], int], faults: list[str]):
    result, found = Result("t", "about"), ways(TREE, mr_fig11.ROOT, "h1", ["h3", "h6", "h7"])
    tcp, ours = of_block(found.chain, found.acknowledged, {}), of_block(found.tree, found.acknowledged, more)
    mr_fig11.compare(result, "client outside", "h1", tcp, ours)
    assert len(result.faults) == len(faults)
    for fault, begins in zip(result.faults, faults, strict=True):
        assert fault.startswith(f"client outside: {begins}")
    assert [row.ok for row in result.rows if row.what.startswith("goal")].count(False) == len(faults)
    if more:
        exact = of_block(found.tree, found.acknowledged, {})
        assert mr_fig11.median("h1", tcp, [ours, exact, exact]) is exact
        assert mr_fig11.median("h1", tcp, [ours, exact, ours]) is ours
    else:
        [saved] = [row for row in result.rows if row.what == "client outside: links saved"]
        assert (saved.ours, saved.paper) == pytest.approx((100 * 4 / 11, 100 * 4 / 11))


def test_every_placement_is_in_the_tree():
    assert set(mr_fig11.CLIENTS.values()) == set(TREE.roles.clients)
    assert set(TREE.mirrored().management) >= set(TREE.roles.datanodes)


def test_copies_are_lost_and_nothing_else():
    """Marked and unmarked frames to a host whose link loses half of the copies; then none, then all."""
    tiny = topology_file.named("tiny")
    with labs.standing("z", tiny) as fabric:
        receiver = labs.run(
            fabric,
            "h2",
            "import socket; s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x88b5))\n"
            "s.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)\n"  # SO_RCVBUFFORCE: room for all
            "s.bind(('eth0', 0x88b5)); print('on', flush=True); n = {b'c': 0, b'o': 0}\n"
            "while (b := s.recv(99)[:1]) != b'e': n[b] += 1\n"
            "print(n[b'c'], n[b'o'], flush=True)",
        )
        assert receiver.stdout.readline() == "on\n"
        loss.of_copies(fabric, "h2", 1)
        _send(fabric, b"c", 100)
        loss.of_copies(fabric, "h2", 0.5)
        _send(fabric, b"c", 400)
        _send(fabric, b"o", 400)
        loss.of_copies(fabric, "h2", 0)
        _send(fabric, b"c", 100)
        _send(fabric, b"e", 1)
        copies, others = map(int, receiver.communicate(timeout=labs.GIVE_UP_S)[0].split())
    assert others == 400
    assert 100 + 100 < copies < 100 + 300


def _send(fabric, what: bytes, count: int) -> None:
    source = "024d52000002" if what == b"c" else "020000000009"
    frame = bytes.fromhex("ffffffffffff" + source + "88b5") + what * 60
    code = "import socket; s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); s.bind(('eth0', 0))\n"
    assert labs.run(fabric, "h1", f"{code}for _ in range({count}): s.send({frame!r})").wait(labs.GIVE_UP_S) == 0


def test_hosts_tcp_is_tuned_and_uplinks_are_slowed():
    tiny = topology_file.named("tiny")
    with labs.standing("y", tiny) as fabric:
        tuning.hosts(fabric, tiny)
        tuning.uplinks(fabric, tiny, ["h1"], 10**7)
        space = kernel.Namespace(fabric.namespace("h1"))
        try:
            assert space.largest_super_segment("eth0") == tuning.SUPER_SEGMENT_BYTES
        finally:
            space.close()
        server = labs.run(fabric, "h2", labs.RECEIVE)
        assert server.stdout.readline() == "on\n"
        code = "import socket; s = socket.create_connection(('h2', 7000)); s.sendall(b'x')\n"
        code += f"print(s.getsockopt({socket.IPPROTO_TCP}, {socket.TCP_CONGESTION}, 16).rstrip(bytes(1)).decode())"
        assert labs.run(fabric, "h1", code).communicate(timeout=labs.GIVE_UP_S)[0] == "cubic\n"
        assert server.communicate(timeout=labs.GIVE_UP_S)[0] == "1\n"


def test_what_compilers_take_is_told_by_threads(tmp_path):
    def thread(tid: int, name: str, ran_ms: int) -> None:
        directory = tmp_path / "7" / "task" / str(tid)
        directory.mkdir(parents=True)
        (directory / "comm").write_text(f"{name}\n")
        (directory / "schedstat").write_text(f"{ran_ms}000000 12345 6\n")

    thread(7, "java", 10_000)
    thread(8, "C2 CompilerThre", 350)
    thread(9, "C1 CompilerThre", 150)
    thread(10, "Data) Xceiver", 750)
    assert compilers.compilers_s(7, tmp_path) == pytest.approx(0.5)
    assert compilers.compilers_s(8, tmp_path) == 0


def test_what_a_set_up_costs_is_told_beside_stocks():
    result = Result("t", "about", detail={"blocks": 4})
    counts = {100: 120, 200: 190, 1000: 198, 50000: 199, "any": 200}
    held = mr_setup.held_ms(Counter({f"mirror_held_us_{bound}": count for bound, count in counts.items()}))
    ours = mr_setup.Measured([0.02, 0.02, 0.03, 0.05], held, ProgramCost(2000, 500_000))
    mr_setup.compare(result, mr_setup.Measured([0.02] * 4), ours)
    assert not result.faults
    figures = {figure.name: figure for figure in mirror_bench.of_setup(result.document())}
    assert figures["mirror.arm.p50_ms"].value == 0.1 and figures["mirror.arm.p99_ms"].value == 1
    assert figures["mirror.arm.p99_ms"].peer_value == mr_setup.GOAL_HELD_MS
    assert (figures["mirror.setup.p99_ms"].value, figures["mirror.setup.p99_ms"].peer_value) == (50, 20)
    assert figures["mirror.setup.bpf_ns_per_frame"].value == 250


@pytest.mark.parametrize(
    ("held", "cost", "fault"),
    [
        ({}, ProgramCost(1, 200), "no DataNode reported a block"),
        ({"p99": 2.5}, ProgramCost(1, 200), "above 2"),
        ({"p99": 1.0}, ProgramCost(), "the kernel counted no frame"),
    ],
)
def test_the_goal_of_a_set_up(held: dict[str, float], cost: ProgramCost, fault: str):
    result = Result("t", "about")
    mr_setup.compare(result, mr_setup.Measured([0.02]), mr_setup.Measured([0.02], held, cost))
    assert len(result.faults) == 1 and fault in result.faults[0]
