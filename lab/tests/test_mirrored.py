"""The parts of the experiments with mirrored replication that need no cluster: goals, equation 7, the lossy link."""

from __future__ import annotations

import socket

import labs
import pytest

from trunkline_lab.block_writer import Took, took
from trunkline_lab.experiments import mr_fig11, mr_uplink
from trunkline_lab.experiments.mirrored import Written
from trunkline_lab.experiments.mr_fig11 import Ways, ways
from trunkline_lab.experiments.result import Result
from trunkline_lab.net import kernel, loss, topology_file, tuning
from trunkline_lab.net.kernel import Count
from trunkline_lab.net.links import LinkCounts

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
    ("client", "pipeline", "found"),
    [
        ("h1", ["h3", "h6", "h7"], Ways(chain=11, climbed=4, tree=7)),  # the paper's figure 1, its racks exchanged
        ("h3", ["h3", "h6", "h7"], Ways(chain=8, climbed=1, tree=7)),
        ("h4", ["h3", "h6", "h7"], Ways(chain=10, climbed=4, tree=8)),
        ("h9", ["h6", "h3", "h5"], Ways(chain=14, climbed=4, tree=9)),
    ],
)
def test_equation_7_counts_links_up_and_a_tree_its_links(client: str, pipeline: list[str], found: Ways):
    assert ways(TREE, mr_fig11.ROOT, client, pipeline) == found


def test_where_the_tree_is_equation_7_and_where_not():
    for where, host in mr_fig11.CLIENTS.items():
        pipeline = ["h3", "h6", "h7"]
        of = ways(TREE, mr_fig11.ROOT, host, pipeline)
        assert (of.chain - of.climbed == of.tree) is (where in mr_fig11.AS_EQUATION_7), where


def test_traffic_off_the_tree_is_a_fault():
    for crossed, ok in ((700, True), (760, False)):
        result = Result("t", "about")
        both = [LinkCounts(TREE, {("c1", "a1"): Count(count)}) for count in (1100, crossed)]
        pipeline = ["h3", "h6", "h7"]
        mr_fig11._compare(result, "client outside", "h1", *(Written(Took(0, 1, 1), pipeline, one) for one in both))
        assert (not result.faults) is ok
        assert {row.ok for row in result.rows if row.what.startswith("goal")} == {ok}


def test_every_placement_is_in_the_tree():
    assert set(mr_fig11.CLIENTS.values()) == set(TREE.roles.clients)
    assert set(TREE.management) >= set(TREE.roles.datanodes)


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
