"""Which way of telling queues apart is in force is found out by what the counters do, whatever the switch says."""

from __future__ import annotations

import itertools
import struct
from dataclasses import replace

import pytest

from trunkline_controller.control import QueueMode
from trunkline_controller.flows.entry import Output, SetQueue
from trunkline_controller.net.topology import Dpid, End, PortNo
from trunkline_controller.queues import probe
from trunkline_controller.queues.modes import FIRST_AGAIN_S, LAST_AGAIN_S, RECHECK_S, Modes
from trunkline_controller.queues.probe import PortProbe, Prober, Verdict, frame, judge, mode_of
from trunkline_controller.queues.probing import Probing
from trunkline_controller.queues.wanted import PortQueues, PortReport, QueuesReport, QueuesWanted, QueueWanted

GBIT = 10**9
QUEUES = (
    QueueWanted("q0", 0, 0, 4, 0, GBIT), QueueWanted("q1", 1, 11, 1, 0, GBIT), QueueWanted("q2", 2, 3, 7, 0, GBIT),
)  # fmt: skip


def port(number, dpid=1, queues=QUEUES):
    return PortQueues(Dpid(dpid), PortNo(number), f"eth{number}", GBIT, 0, queues)


class Switch:
    """Queues' counters of some ports, each of which obeys one way, both or none. Time passes when someone sleeps."""

    def __init__(self, obeys, queues=(0, 1, 2), others=0, late_s=0.0):
        self.obeys = obeys  # port number to a set of "set_queue", "dscp"
        self.counters = {number: dict.fromkeys(queues, 1000) for number in obeys}
        self.others = others  # packets a second of other traffic, in each queue
        self.late_s = late_s
        self.now = 0.0
        self.pending = []  # when, port, queue

    def packet_out(self, dpid, data, actions):
        *sets, out = actions
        assert isinstance(out, Output)
        queue = 0
        mark = data[15] >> 2
        by_mark = {3: 2, 11: 1}.get(mark, 0)
        if "dscp" in self.obeys[out.port]:
            queue = by_mark
        for action in sets:
            assert isinstance(action, SetQueue)
            if "set_queue" in self.obeys[out.port]:
                queue = action.queue
        self.pending.append((self.now + self.late_s, out.port, queue))

    def queue_packets(self, dpid, number, timeout_s):
        assert timeout_s > 0
        for item in [item for item in self.pending if item[0] <= self.now]:
            self.pending.remove(item)
            if item[2] in self.counters[item[1]]:
                self.counters[item[1]][item[2]] += 1
        passed = int(self.now * self.others)
        return {queue: count + passed for queue, count in self.counters[number].items()}

    def sleep(self, seconds):
        self.now += seconds

    def prober(self):
        return Prober(self, self.sleep, lambda: self.now)


def found(switch, *numbers):
    results = switch.prober().probe([port(number) for number in numbers])
    return {result.end.port: result.mode for result in results}


def test_each_port_has_the_mode_that_its_counters_show():
    switch = Switch({1: {"set_queue"}, 2: {"dscp"}, 3: {"set_queue", "dscp"}, 4: set()})
    assert found(switch, 1, 2, 3, 4) == {
        1: QueueMode.SET_QUEUE, 2: QueueMode.DSCP, 3: QueueMode.SET_QUEUE, 4: QueueMode.NONE,
    }  # fmt: skip


@pytest.mark.parametrize("others", [1, 50, 200])
def test_other_traffic_does_not_pass_for_an_effect(others):
    switch = Switch({1: {"set_queue"}, 2: {"dscp"}, 4: set()}, others=others)
    assert found(switch, 1, 2, 4)[4] in (QueueMode.NONE, QueueMode.UNKNOWN)
    assert found(Switch({1: {"dscp"}}, others=others), 1) == {1: QueueMode.DSCP}


def test_where_traffic_drowns_the_frames_nothing_is_claimed():
    switch = Switch({1: {"dscp"}, 2: set()}, others=100_000, late_s=0.01)
    assert found(switch, 1, 2) == {1: QueueMode.UNKNOWN, 2: QueueMode.UNKNOWN}


def test_a_burst_of_others_does_not_pass_for_an_effect():
    class Burst(Switch):
        """25 packets of others into each queue, once, as the first frames are sent."""

        burst = True

        def packet_out(self, dpid, data, actions):
            if self.burst:
                self.burst = False
                for queue in (0, 1, 2):
                    self.counters[1][queue] += 25
            super().packet_out(dpid, data, actions)

    assert found(Burst({1: set()}), 1)[1] in (QueueMode.NONE, QueueMode.UNKNOWN)
    assert found(Burst({1: {"dscp"}}), 1)[1] in (QueueMode.DSCP, QueueMode.UNKNOWN)


def test_counters_may_be_late():
    assert found(Switch({1: {"dscp"}}, late_s=1.0), 1) == {1: QueueMode.DSCP}


def test_queues_that_the_port_lacks_are_named():
    (result,) = Switch({1: {"set_queue"}}, queues=(0, 1)).prober().probe([port(1)])
    assert result.mode is QueueMode.NONE
    assert "no queue q2: run trunkline-controller agent" in result.why


def test_a_queue_that_is_missed_alone_is_named():
    assert mode_of(
        {"q1": Verdict.INEFFECTIVE, "q2": Verdict.INEFFECTIVE}, {"q1": Verdict.EFFECTIVE, "q2": Verdict.INEFFECTIVE}
    ) == (QueueMode.NONE, "set_queue has no effect on queue q1, q2, and marks have none on queue q2")


def test_a_switch_that_does_not_answer_is_unknown_and_others_are_still_probed():
    class Half(Switch):
        def queue_packets(self, dpid, number, timeout_s):
            if dpid == 2:
                raise TimeoutError
            return super().queue_packets(dpid, number, timeout_s)

    results = Half({1: {"dscp"}}).prober().probe([port(1), port(1, dpid=2)])
    assert [(r.end.dpid, r.mode) for r in results] == [(1, QueueMode.DSCP), (2, QueueMode.UNKNOWN)]
    assert "does not tell" in results[1].why


def test_a_switch_that_leaves_meanwhile_is_unknown():
    class Gone(Switch):
        def packet_out(self, dpid, data, actions):
            raise KeyError(dpid)

    (result,) = Gone({1: {"dscp"}}).prober().probe([port(1)])
    assert (result.mode, result.why) == (QueueMode.UNKNOWN, "the switch is not connected")


def test_a_port_with_one_queue_has_nothing_to_tell_apart():
    (result,) = Switch({1: {"dscp"}}).prober().probe([port(1, queues=QUEUES[:1])])
    assert result.mode is QueueMode.UNKNOWN


def test_a_verdict_needs_a_rise_that_others_cannot_explain():
    for expected, risen, sent in itertools.product(range(-1, 30), range(-1, 90), (20, 40)):
        verdict = judge(expected, risen, sent)
        if verdict is Verdict.EFFECTIVE:
            assert 2 * sent > risen >= sent > 4 * expected >= 0
        if verdict is Verdict.INEFFECTIVE:
            assert 0 <= risen < expected + sent / 4 < sent / 2


@pytest.mark.parametrize(
    ("expected", "risen", "verdict"),
    [
        (0, 0, Verdict.INEFFECTIVE), (0, 4, Verdict.INEFFECTIVE), (3, 7, Verdict.INEFFECTIVE), (0, 5, Verdict.UNSURE),
        (3, 8, Verdict.UNSURE), (0, 19, Verdict.UNSURE), (0, 20, Verdict.EFFECTIVE), (4, 24, Verdict.EFFECTIVE),
    ],
)  # fmt: skip
def test_frames_that_are_lost_or_late_are_not_taken_for_no_effect(expected, risen, verdict):
    assert judge(expected, risen, 20) is verdict


class Slow(Switch):
    """Each queue sends `frames_s` frames a second, and by marks alone."""

    def __init__(self, frames_s, others=0):
        super().__init__({1: {"dscp"}}, others=others)
        self.frames_s = frames_s
        self.waiting = []  # when, queue
        self.free = {}

    def packet_out(self, dpid, data, actions):
        if len(actions) > 1:
            return
        super().packet_out(dpid, data, actions)
        _, number, queue = self.pending.pop()
        self.free[queue] = max(self.free.get(queue, 0.0), self.now) + 1 / self.frames_s
        self.pending.append((self.free[queue], number, queue))


@pytest.mark.parametrize("others", [0, 1])
def test_a_slow_queue_is_sent_no_more_than_it_can_send_on_while_it_is_looked_at(others):
    slow = tuple(replace(queue, max_bit_s=100_000) for queue in QUEUES)
    switch = Slow(100_000 / (8 * 64), others * 10)
    (result,) = switch.prober().probe([port(1, queues=slow)])
    assert (result.mode, result.why) == (QueueMode.DSCP, "")
    # Where it is the port that is slow, its queues share it.
    switch = Slow(50_000 / (8 * 64), others * 5)
    (result,) = switch.prober().probe([replace(port(1), rate_bit_s=100_000)])
    assert (result.mode, result.why) == (QueueMode.DSCP, "")


def test_frames_are_bounded_and_at_least_one():
    assert probe.frames_over(0) == probe.LEAST_FRAMES
    assert probe.frames_over(10**6) == probe.frames_over(10**6, GBIT) == probe.MOST_FRAMES
    assert probe.frames_over(10**6, 1) == 1
    assert probe.frames_over(10, 100_000) * 8 * 64 <= 100_000 * probe.SETTLE_S


def test_the_frame_is_ip_with_its_mark_and_a_right_checksum():
    for mark in (0, 11, 46, 63):
        data = frame(mark)
        assert data[:6].hex(":") == probe.DESTINATION
        assert data[0] & 3 == 2  # locally administered, one host's
        header = data[14:34]
        total = sum(struct.unpack("!10H", header))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        assert total == 0xFFFF
        assert header[1] == mark << 2
        assert struct.unpack("!H", header[2:4])[0] == len(data) - 14
        assert len(data) >= 60
    assert probe.passing_by().match.eth_dst == probe.DESTINATION
    assert probe.passing_by().goto is None


def next_due(modes, now):
    """When some port is due, to half a second."""
    while not modes.due(now):
        now += 0.5
    return now


def test_ports_are_probed_when_their_queues_change_and_now_and_then():
    modes = Modes()
    modes.want(0.0, QueuesWanted((port(1), port(2))))
    assert modes.due(0.0) == (port(1), port(2))
    ends = [End(Dpid(1), PortNo(n)) for n in (1, 2)]
    modes.found(1.0, modes.due(0.0), [PortProbe(end, QueueMode.DSCP) for end in ends])
    assert modes.due(1.0) == ()
    assert next_due(modes, 1.0) == 1.0 + RECHECK_S
    changed = port(2, queues=QUEUES[:2])
    modes.want(2.0, QueuesWanted((port(1), changed)))
    assert modes.due(2.0) == (changed,)
    assert modes.state(ends[1])[0] is QueueMode.DSCP  # until it is known better
    modes.found(3.0, (port(2),), [PortProbe(ends[1], QueueMode.SET_QUEUE)])  # of the queues before
    assert modes.due(3.0) == (changed,)
    modes.want(4.0, QueuesWanted((changed,)))
    assert modes.state(ends[0])[0] is QueueMode.UNKNOWN
    modes.want(4.0, QueuesWanted(()))
    assert modes.due(10 * RECHECK_S) == ()


def test_a_probe_that_finds_nothing_is_repeated_ever_less_often_until_an_agent_reports():
    modes, end, now = Modes(), End(Dpid(1), PortNo(1)), 0.0
    modes.want(now, QueuesWanted((port(1),)))
    waits = []
    for _ in range(12):
        now = next_due(modes, now)
        modes.found(now, modes.due(now), [PortProbe(end, QueueMode.NONE, "no queue")])
        waits.append(next_due(modes, now) - now)
    assert waits[0] == FIRST_AGAIN_S
    assert waits == sorted(waits)
    assert waits[-1] == LAST_AGAIN_S
    modes.reported(now, QueuesReport("h", "v", (PortReport(Dpid(1), "eth1", "permission denied"),)))
    assert modes.due(now) == (port(1),)
    assert modes.state(end)[1] == "permission denied"
    modes.found(now, modes.due(now), [PortProbe(end, QueueMode.DSCP)])
    assert modes.state(end) == (QueueMode.DSCP, "")
    modes.connected(now, Dpid(1))
    assert modes.due(now) == (port(1),)


@pytest.mark.parametrize("mode", [QueueMode.DSCP, QueueMode.SET_QUEUE])
def test_what_was_proved_is_believed_until_a_probe_disproves_it(mode):
    modes, end = Modes(), End(Dpid(1), PortNo(1))
    modes.want(0.0, QueuesWanted((port(1),)))
    modes.found(0.0, modes.due(0.0), [PortProbe(end, mode)])
    now = RECHECK_S
    modes.found(now, modes.due(now), [PortProbe(end, QueueMode.UNKNOWN, "too much traffic")])
    assert modes.state(end) == (mode, "too much traffic")
    assert next_due(modes, now) == now + FIRST_AGAIN_S  # it is asked again soon
    now += FIRST_AGAIN_S
    modes.found(now, modes.due(now), [PortProbe(end, QueueMode.NONE, "no effect")])
    assert modes.state(end) == (QueueMode.NONE, "no effect")
    modes.found(now, [port(1)], [PortProbe(end, QueueMode.UNKNOWN, "too much traffic")])
    assert modes.state(end)[0] is QueueMode.UNKNOWN


def test_a_reason_is_told_and_logged_when_it_changes(caplog):
    """Of a port that has no mode before and after, too."""
    end, ended = End(Dpid(1), PortNo(1)), []

    class Finds:
        def probe(self, ports):
            return (PortProbe(end, *ended[-1]),)

    connections = {}
    probing = Probing(Finds(), lambda: QueuesWanted((port(1),)), lambda: True, connections.copy)
    assert probing.state(end) == (QueueMode.UNKNOWN, "not yet probed")
    for mode, why in (
        (QueueMode.UNKNOWN, "the switch is not connected"), (QueueMode.UNKNOWN, "the switch is not connected"),
        (QueueMode.UNKNOWN, "traffic"), (QueueMode.DSCP, ""), (QueueMode.UNKNOWN, "traffic"),
    ):  # fmt: skip
        ended.append((mode, why))
        with caplog.at_level("INFO"):
            connections[Dpid(1)] = object()  # so that it is due
            probing.look()
    assert probing.state(end) == (QueueMode.DSCP, "traffic")
    where = "queues of port 0000000000000001/eth1: "
    assert [record.getMessage() for record in caplog.records] == [
        where + "unknown: the switch is not connected",
        where + "unknown: traffic",
        where + "dscp",
        where + "dscp, which the last probe could not confirm: traffic",
    ]


def test_a_switch_that_connects_anew_is_probed_at_once_and_no_other():
    """However soon: its bridge may have another datapath now."""
    probed, connections = [], {Dpid(1): object(), Dpid(2): object()}
    both = (port(1), port(1, dpid=2))

    class Finds:
        def probe(self, ports):
            probed.append([port.dpid for port in ports])
            return tuple(PortProbe(End(port.dpid, port.port), QueueMode.DSCP) for port in ports)

    probing = Probing(Finds(), lambda: QueuesWanted(both), lambda: True, connections.copy)
    probing.look()
    probing.look()
    connections[Dpid(2)] = object()
    probing.look()
    probing.look()
    assert probed == [[1, 2], [2]]
