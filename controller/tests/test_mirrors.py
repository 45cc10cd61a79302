"""Mirrors between announcements and switches, on the loop and with switches that answer when the test says so."""

import asyncio

import pytest
from test_mirror_pipelines import hops, network

from trunkline_controller.control import NotNow
from trunkline_controller.flows.entry import FlowEntry, Match, Owner, Table, cookie
from trunkline_controller.mirror.counts import ArmTimes
from trunkline_controller.mirror.entries import guard
from trunkline_controller.mirror.mirrors import Mirrors
from trunkline_controller.mirror.model import Refused, State, Why
from trunkline_controller.mirror.settings import MirrorSettings

LONG_S = 60.0


class FakeSwitch:
    """Takes what it is told, except what is in `refuses`."""

    def __init__(self, dpid):
        self.dpid, self.name = dpid, f"s{dpid}"
        self.flows = set()
        self.refuses = {}
        self.sent = []

    def amend(self, added, removed):
        self.sent.append((added, removed))
        self.flows = (self.flows - removed) | added

    def confirmed(self, entries):
        return entries & self.flows - self.refuses.keys()

    def refused(self, entries):
        return {entry: why for entry, why in self.refuses.items() if entry in entries}


class Network:
    def __init__(self, **settings):
        self.switches = {dpid: FakeSwitch(dpid) for dpid in range(1, 7)}
        self.mirrors = Mirrors(MirrorSettings(**({"enabled": True} | settings)), lambda: self.switches)
        self.mirrors.role_changed(True)
        for switch in self.switches.values():
            self.mirrors.switch_ready(switch)
        self.mirrors.network(network())

    def answer(self):
        for switch in self.switches.values():
            self.mirrors.answered(switch)

    def carried(self):
        return {(dpid, entry) for dpid, switch in self.switches.items() for entry in switch.flows}


def test_who_waits_is_told_when_all_switches_have_confirmed():
    async def run():
        net = Network()
        first, second, third = hops([1, 2, 3, 4])
        waits = [asyncio.create_task(net.mirrors.announce(hop, LONG_S)) for hop in (first, second)]
        await asyncio.sleep(0)
        assert net.carried() == set()
        waits.append(asyncio.create_task(net.mirrors.announce(third, LONG_S)))
        await asyncio.sleep(0)
        assert net.carried()
        assert not any(wait.done() for wait in waits)
        net.answer()
        assert [pipeline.state for pipeline in await asyncio.gather(*waits)] == [State.ARMED] * 3
        counts = net.mirrors.counts()
        assert (counts.armed, counts.late, counts.by_state["armed"], counts.arm_times[-1]) == (1, 0, 1, ("+Inf", 1))
        net.mirrors.close((await waits[0]).id)
        assert net.carried() == set()

    asyncio.run(run())


def test_who_does_not_wait_long_enough_goes_on_unmirrored_and_is_counted():
    async def run():
        net = Network()
        for hop in hops([1, 2, 3]):
            found = await net.mirrors.announce(hop, 0.0)
        assert (found.state, net.mirrors.counts().late) == (State.ARMING, 0)
        found = await net.mirrors.announce(hops([1, 2, 3])[0], 0.001)
        assert (found.state, net.mirrors.counts().late) == (State.ARMING, 1)
        assert not net.mirrors._waiting

    asyncio.run(run())


def test_a_hop_that_is_refused_may_still_end_another_pipeline():
    async def run():
        net = Network(max_pipelines_per_host=1)
        for hop in (*hops([1, 2, 3]), *hops([4, 5, 6], block=2)):
            await net.mirrors.announce(hop, 0.0)
        # The client of the first has ended that and writes on, to replicas that have no room.
        with pytest.raises(Refused):
            await net.mirrors.announce(hops([1, 5, 6], generation=1002)[0], 0.0)
        assert net.carried() == set(net.mirrors.all()[0].entries.items())

    asyncio.run(run())


def test_who_waits_for_what_is_superseded_is_told_so():
    async def run():
        net = Network()
        wait = asyncio.create_task(net.mirrors.announce(hops([1, 2, 3])[0], LONG_S))
        await asyncio.sleep(0)
        await net.mirrors.announce(hops([1, 2, 3], generation=1002)[0], 0.0)
        with pytest.raises(NotNow, match="superseded"):
            await wait
        assert not net.mirrors._waiting

    asyncio.run(run())


def test_what_one_switch_refuses_is_taken_from_all_and_who_waits_is_told():
    async def run():
        net = Network()
        some = hops([1, 3, 4])
        waits = [asyncio.create_task(net.mirrors.announce(hop, LONG_S)) for hop in some]
        await asyncio.sleep(0)
        dpid, entry = next(iter(net.carried()))
        net.switches[dpid].refuses = {entry: "error 5/1"}
        net.answer()
        for wait in waits:
            found = await wait
            assert (found.state, found.why) == (State.REFUSED, Why.SWITCH)
            assert "error 5/1" in found.what
        assert net.carried() == set()

    asyncio.run(run())


def test_nothing_is_done_where_it_is_off_or_another_controller_is_master():
    async def run():
        off = Network(enabled=False)
        for dpid in range(1, 7):
            assert off.mirrors.entries(dpid) == frozenset()
        with pytest.raises(NotNow, match="mirroring is off"):
            await off.mirrors.announce(hops([1, 2, 3])[0], 0.0)
        net = Network()
        for hop in hops([1, 2, 3]):
            await net.mirrors.announce(hop, 0.0)
        net.mirrors.role_changed(False)
        assert net.mirrors.all() == ()
        with pytest.raises(NotNow, match="master"):
            await net.mirrors.announce(hops([1, 2, 3])[0], 0.0)
        with pytest.raises(NotNow):
            net.mirrors.close("a~1~1")

    asyncio.run(run())


def test_marks_are_guarded_without_any_pipeline():
    net = Network()
    for dpid, kept in guard(network()).items():
        assert net.mirrors.entries(dpid) == kept


def test_what_another_controller_left_stays_for_one_lease_and_is_taken_over_where_it_is_announced_again():
    async def run():
        before = Network()
        one, two = hops([1, 2, 3]), hops([4, 5, 6], block=2)
        for hop in (*one, *two):
            await before.mirrors.announce(hop, 0.0)
        left = before.carried()

        net = Network(lease_s=30.0)
        net.mirrors = Mirrors(net.mirrors.settings, lambda: net.switches)
        net.mirrors.role_changed(True)
        begun = asyncio.get_running_loop().time()
        for dpid, switch in net.switches.items():
            switch.flows = {entry for at, entry in left if at == dpid}
            net.mirrors.switch_ready(switch)
        net.mirrors.network(network())
        guards = guard(network())
        assert {(dpid, e) for dpid in net.switches for e in net.mirrors.entries(dpid) - guards[dpid]} == left
        for hop in one:
            found = await net.mirrors.announce(hop, 0.0)
        assert net.carried() == left
        net.answer()
        assert net.mirrors.all()[0].state is State.ARMED
        assert not net.mirrors.tick(begun + 1.0)
        # Its owner renews the one; nobody knows the other.
        for hop in one:
            net.mirrors._pipelines.announce(hop, begun + 40.0)
        assert net.mirrors.tick(begun + 40.0)
        kept = {(dpid, e) for dpid in net.switches for e in net.mirrors.entries(dpid) - guards[dpid]}
        assert kept == set(found.entries.items())
        assert kept < left

    asyncio.run(run())


def test_a_held_entry_in_the_place_of_a_new_one_gives_way():
    async def run():
        before, net = Network(), Network()
        for hop in hops([1, 2, 3]):
            found = await before.mirrors.announce(hop, 0.0)
        net.mirrors = Mirrors(net.mirrors.settings, lambda: net.switches)
        net.mirrors.role_changed(True)
        for dpid, entry in found.entries.items():
            net.switches[dpid].flows = {entry}
            net.mirrors.switch_ready(net.switches[dpid])
        net.mirrors.network(network())
        for hop in hops([1, 2, 3], block=2):  # the same connections
            found = await net.mirrors.announce(hop, 0.0)
        assert net.carried() == set(found.entries.items())

    asyncio.run(run())


def test_addresses_of_no_known_host_are_sought_once_for_each_time_they_are_announced():
    async def run():
        net = Network()
        now = asyncio.get_running_loop().time()
        for _ in range(2):
            for hop in hops([1, 2, 9]):
                await net.mirrors.announce(hop, 0.0)
            assert net.mirrors.take_sought() == set()
            now += 2.0
            net.mirrors.tick(now)
            assert net.mirrors.take_sought() == {"10.0.0.9"}
            assert net.mirrors.take_sought() == set()

    asyncio.run(run())


def test_a_switch_that_still_has_all_when_it_comes_back_is_armed_without_a_change():
    async def run():
        net = Network()
        for hop in hops([1, 2, 3]):
            await net.mirrors.announce(hop, 0.0)
        net.answer()
        for switch in net.switches.values():
            net.mirrors.switch_ready(switch)
        assert net.mirrors.all()[0].state is State.ARMED

    asyncio.run(run())


def test_what_a_switch_has_already_is_found_out_in_time():
    async def run():
        net = Network()
        for hop in hops([1, 2, 3]):
            await net.mirrors.announce(hop, 0.0)
        net.mirrors.tick(asyncio.get_running_loop().time() + 2.0)
        assert net.mirrors.all()[0].state is State.ARMED

    asyncio.run(run())


def test_sweeping_takes_entries_from_switches():
    async def run():
        net = Network(lease_s=5.0)
        for hop in hops([1, 2, 3]):
            await net.mirrors.announce(hop, 0.0)
        assert net.carried()
        net.mirrors.tick(asyncio.get_running_loop().time() + 6.0)
        assert (net.carried(), net.mirrors.counts().swept) == (set(), 1)

    asyncio.run(run())


def test_refusals_are_counted_by_reason():
    async def run():
        net = Network()
        with pytest.raises(Refused):
            await net.mirrors.announce(hops([1, 2])[0], 0.0)
        assert net.mirrors.counts().refused == {"one_replica": 1}

    asyncio.run(run())


def test_times_are_counted_as_a_histogram():
    times = ArmTimes()
    for seconds in (0.0001, 0.0005, 0.0015, 3.0):
        times.add(seconds)
    found = dict(times.cumulative())
    assert (found["0.0005"], found["0.001"], found["0.002"], found["0.5"], found["+Inf"]) == (2, 2, 3, 3, 4)
    assert times.sum_s == pytest.approx(3.0021)


def test_only_entries_of_mirrors_are_held():
    net = Network()
    mirror, other = (FlowEntry(Table.FORWARD, 44, Match(l4_src=n), (), None, cookie(n)) for n in (Owner.MIRROR, 4))
    net.switches[1].flows = {mirror, other}
    net.mirrors.switch_ready(net.switches[1])
    assert net.mirrors.entries(1) - guard(network())[1] == {mirror}
