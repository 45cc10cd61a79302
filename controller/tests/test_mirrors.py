"""Mirrors between announcements and switches, on the loop and with switches that answer when the test says so."""

import asyncio

import pytest
from test_mirror_pipelines import EVERYWHERE, at, hops, network

from trunkline_controller.control import NotNow
from trunkline_controller.flows.entry import FlowEntry, Match, Owner, SetField, Table, cookie
from trunkline_controller.mirror import agents
from trunkline_controller.mirror import mirrors as module
from trunkline_controller.mirror.agents import NotTaken, Poll, TooMany
from trunkline_controller.mirror.counts import ArmTimes
from trunkline_controller.mirror.entries import guard
from trunkline_controller.mirror.mirrors import Mirrors
from trunkline_controller.mirror.model import Head, Limits, Refused, State, Why
from trunkline_controller.mirror.settings import MirrorSettings

LONG_S = 60.0


class Clock:
    """In the place of `time`."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


class FakeSwitch:
    """Takes what it is told, except what is in `refuses`."""

    def __init__(self, dpid):
        self.dpid, self.name = dpid, f"s{dpid}"
        self.flows = set()
        self.refuses = {}
        self.unanswered = frozenset()  # of what it was told to remove
        self.sent = []

    def amend(self, added, removed):
        self.sent.append((added, removed))
        self.flows = (self.flows - removed) | added

    def confirmed(self, entries):
        return entries & self.flows - self.refuses.keys()

    def refused(self, entries):
        return {entry: why for entry, why in self.refuses.items() if entry in entries}

    def leaving(self):
        return self.unanswered


class Network:
    """With an agent at each host, unless `served` says otherwise."""

    def __init__(self, served=EVERYWHERE, **settings):
        self.switches = {dpid: FakeSwitch(dpid) for dpid in range(1, 7)}
        wanted = {"enabled": True, "agent_lease_s": 3600.0} | settings
        self.mirrors = Mirrors(MirrorSettings(**wanted), lambda: self.switches)
        self.served = served
        self.begin()
        for switch in self.switches.values():
            self.mirrors.switch_ready(switch)
        self.mirrors.network(network())

    def begin(self):
        self.mirrors.role_changed(True)
        if self.served and self.mirrors.settings.enabled:
            poll = self.mirrors.poll(Poll("everywhere", "1", self.served), 0.0)
            with pytest.raises(StopIteration):
                poll.send(None)

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


def test_a_hop_that_waits_for_others_does_not_count_as_late():
    async def run():
        net = Network()
        first, second = hops([1, 2, 3])
        found = await net.mirrors.announce(second, 0.001)
        assert (found.state, found.missing, net.mirrors.counts().late) == (State.ANNOUNCED, (1,), 0)
        await net.mirrors.announce(first, 0.0)
        found = await net.mirrors.announce(second, 0.001)
        assert (found.state, net.mirrors.counts().late) == (State.ARMING, 1)

    asyncio.run(run())


def test_the_time_for_arming_begins_when_all_hops_are_known(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)

    async def run():
        net = Network()
        first, second = hops([1, 2, 3])
        wait = asyncio.create_task(net.mirrors.announce(second, 0.01))
        await asyncio.sleep(0)
        clock.now += 0.01
        await net.mirrors.announce(first, 0.0)
        await asyncio.sleep(0.05)
        assert not wait.done()
        net.answer()
        assert ((await wait).state, net.mirrors.counts().late) == (State.ARMED, 0)
        # It does not begin anew for ever, whoever announces hops anew.
        wait = asyncio.create_task(net.mirrors.announce(hops([1, 2, 3], block=2, port=2)[1], 0.01))
        await asyncio.sleep(0)
        clock.now += 0.02
        await net.mirrors.announce(hops([1, 2, 3], block=2, port=2)[0], 0.0)
        assert ((await wait).state, net.mirrors.counts().late) == (State.ARMING, 1)

    asyncio.run(run())


def test_a_pipeline_that_was_late_is_armed_when_switches_confirm():
    async def run():
        net = Network()
        for hop in hops([1, 2, 3]):
            found = await net.mirrors.announce(hop, 0.001)
        assert (found.state, net.mirrors.counts().late) == (State.ARMING, 1)
        net.answer()
        (found,) = net.mirrors.all()
        assert (found.state, bool(net.carried())) == (State.ARMED, True)

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


def test_a_datanode_may_have_as_many_pipelines_as_there_may_be_unless_it_is_set_otherwise():
    async def run():
        net = Network()
        for block in range(1, 130):
            for hop in hops([1, 2, 3], block=block, port=block):
                await net.mirrors.announce(hop, 0.0)
        assert net.mirrors.counts().by_state["arming"] == 129

    asyncio.run(run())
    assert MirrorSettings().limits == Limits()


def test_a_pipeline_that_met_a_full_host_is_given_to_switches_as_soon_as_there_is_room():
    async def run():
        net = Network(max_pipelines_per_host=1)
        first, second = hops([4, 5, 3], block=2)
        for hop in hops([1, 2, 3]):
            there = await net.mirrors.announce(hop, 0.0)
        wait = asyncio.create_task(net.mirrors.announce(first, LONG_S))
        await asyncio.sleep(0)
        found = await net.mirrors.announce(second, LONG_S)
        assert (found.state, found.why, (await wait).why) == (State.REFUSED, Why.HOST_PIPELINES, found.why)
        assert net.mirrors.counts().refused == {"max_pipelines_per_host": 1}
        net.answer()
        net.mirrors.close(there.id)
        net.answer()
        (now,) = net.mirrors.all()
        assert (now.id, now.state, net.carried()) == (found.id, State.ARMED, set(now.entries.items()))

    asyncio.run(run())


def test_who_waits_for_what_is_superseded_is_told_so():
    async def run():
        net = Network()
        wait = asyncio.create_task(net.mirrors.announce(hops([1, 2, 3])[0], LONG_S))
        await asyncio.sleep(0)
        await net.mirrors.announce(hops([1, 2, 3], generation=1002)[0], 0.0)
        with pytest.raises(NotNow, match="superseded") as ended:
            await wait
        assert ended.value.why == "closed"
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


def test_switches_mirror_on_where_another_controller_becomes_their_master():
    async def run():
        net = Network()
        for hop in hops([1, 2, 3]):
            await net.mirrors.announce(hop, 0.0)
        net.answer()
        left, sent = net.carried(), [len(switch.sent) for switch in net.switches.values()]
        waits = asyncio.create_task(net.mirrors.announce(hops([4, 5, 6], block=2)[0], LONG_S))
        await settle()
        net.mirrors.role_changed(False)
        with pytest.raises(NotNow):
            await waits
        assert left
        assert (net.carried(), [len(switch.sent) for switch in net.switches.values()]) == (left, sent)
        # Back as their master, it has nothing to make up for.
        net.begin()
        for hop in hops([1, 2, 3]):
            await net.mirrors.announce(hop, 0.0)
        assert net.carried() == left

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
        net.begin()
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


def test_what_another_controller_left_goes_when_its_pipeline_is_ended_here():
    async def run():
        before, net = Network(), Network()
        one, two = hops([1, 2, 3, 4]), hops([4, 5, 6], block=2)
        for hop in (*one, *two):
            found = await before.mirrors.announce(hop, 0.0)
        net.mirrors = Mirrors(net.mirrors.settings, lambda: net.switches)
        net.begin()
        for dpid, switch in net.switches.items():
            switch.flows = set(before.switches[dpid].flows)
            net.mirrors.switch_ready(switch)
        net.mirrors.network(network())
        # Its owner could not tell the controller before, and makes up for it.
        first = before.mirrors.all()[0].id
        net.mirrors.close(first)
        assert net.carried() == set(found.entries.items())
        guards = guard(network())
        assert {(dpid, e) for dpid in net.switches for e in net.mirrors.entries(dpid) - guards[dpid]} == net.carried()
        for identity in (first, "x", f"{first}0"):
            with pytest.raises(KeyError):
                net.mirrors.close(identity)

    asyncio.run(run())


def test_what_a_switch_that_comes_back_has_of_a_known_pipeline_ends_with_it():
    async def run():
        net = Network()
        for hop in hops([1, 2, 3]):
            found = await net.mirrors.announce(hop, 0.0)
        for switch in net.switches.values():
            net.mirrors.switch_ready(switch)
        (dpid, *_), away = found.entries, dict(net.switches)
        del net.switches[dpid]
        net.mirrors.close(found.id)
        assert net.carried() == set()
        net.switches[dpid] = away[dpid]
        assert net.carried()
        net.mirrors.switch_ready(away[dpid])
        assert {dpid: net.mirrors.entries(dpid) for dpid in net.switches} == guard(network())

    asyncio.run(run())


def test_a_held_entry_in_the_place_of_a_new_one_gives_way():
    async def run():
        before, net = Network(), Network()
        for hop in hops([1, 2, 3]):
            found = await before.mirrors.announce(hop, 0.0)
        net.mirrors = Mirrors(net.mirrors.settings, lambda: net.switches)
        net.begin()
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
    net.mirrors.role_changed(False)
    net.begin()
    mirror, other = (FlowEntry(Table.FORWARD, 44, Match(l4_src=n), (), None, cookie(n)) for n in (Owner.MIRROR, 4))
    net.switches[1].flows = {mirror, other}
    net.mirrors.switch_ready(net.switches[1])
    assert net.mirrors.entries(1) - guard(network())[1] == {mirror}


def poll(name, *hosts, seen=-1, run="1", **others):
    return Poll(name, run, at(*hosts), seen, **others)


async def settle():
    """All that can go on has gone on."""
    for _ in range(10):
        await asyncio.sleep(0)


def copied_to(net, host):
    """Entries that make copies for a host."""
    return {one for one in net.carried() if SetField("ipv4_dst", f"10.0.0.{host}") in one[1].actions}


def test_an_agents_poll_is_answered_when_something_of_its_own_changes_and_then_alone():
    async def run():
        net = Network(served=frozenset())
        for hop in hops([1, 2, 3, 4]):
            found = await net.mirrors.announce(hop, 0.0)
        assert (found.why, net.carried()) == (Why.NO_AGENT, set())
        seen = {}
        for n in (2, 3, 4, 5):
            told = await net.mirrors.poll(poll(f"d{n}", n), LONG_S)  # a first one is answered at once
            seen[n] = told.version
            assert told.lease_s == 3600.0
        # With the last of them the pipeline was armed, and all are told.
        assert net.carried()
        told = [await net.mirrors.poll(poll(f"d{n}", n, seen=seen[n]), LONG_S) for n in (2, 3)]
        assert [(flow.position, flow.lead) for answer in told for flow in answer.flows] == [(1, True), (2, False)]
        waits = {
            n: asyncio.create_task(net.mirrors.poll(poll(f"d{n}", n, seen=version), LONG_S))
            for n, version in {2: told[0].version, 3: told[1].version, 4: seen[4], 5: seen[5]}.items()
        }
        await settle()
        net.answer()
        await settle()
        assert not any(wait.done() for wait in waits.values())  # that switches have confirmed is nothing of theirs
        await net.mirrors.poll(
            poll("d2", 2, seen=told[0].version, heads=(Head(found.id, found.hops[1], 7),)), 0.0
        )  # besides the one that waits
        await settle()
        assert [n for n, wait in waits.items() if wait.done()] == [3, 4]
        assert [waits[n].result().flows[0].head for n in (3, 4)] == [7, 7]
        waits[2] = await again(net, waits[2], poll("d2", 2, seen=told[0].version))
        net.mirrors.close(found.id)
        assert ((await waits[2]).flows, waits[5].done()) == ((), False)
        waits[5].cancel()
        await settle()
        assert not net.mirrors._polls

    asyncio.run(run())


def test_of_an_end_an_agent_hears_with_what_comes_next(monkeypatch):
    monkeypatch.setattr(module, "END_AFTER_S", 3600.0)

    async def run():
        net = Network(served=at(2, 3))
        for hop in hops([1, 2, 3]):
            ended = await net.mirrors.announce(hop, 0.0)
        net.answer()
        told = await net.mirrors.poll(Poll("everywhere", "1", at(2, 3)), 0.0)
        assert len(told.flows) == 2
        waits = asyncio.create_task(net.mirrors.poll(Poll("everywhere", "1", at(2, 3), told.version), LONG_S))
        await settle()
        net.mirrors.close(ended.id)
        await settle()
        assert (waits.done(), net.carried()) == (False, set())
        for hop in hops([1, 2, 3], block=2, port=2):
            found = await net.mirrors.announce(hop, 0.0)
        assert {flow.id for flow in (await waits).flows} == {found.id}
        net.mirrors.close(found.id)
        # One that asks anew is told at once.
        assert (await net.mirrors.poll(Poll("everywhere", "1", at(2, 3), waits.result().version), LONG_S)).flows == ()

    asyncio.run(run())


async def again(net, before, poll):
    """The agent polls anew while its earlier poll waits, which ends that."""
    wait = asyncio.create_task(net.mirrors.poll(poll, LONG_S))
    with pytest.raises(NotNow, match="has polled again"):
        await before
    return wait


def test_a_poll_that_hears_nothing_new_is_told_so_in_the_end():
    async def run():
        net = Network(agent_lease_s=0.04, served=frozenset())
        first = await net.mirrors.poll(poll("d2", 2), LONG_S)
        for wait_s in (0.0, 0.001, LONG_S):  # half a lease at most, so that it polls again in time
            told = await net.mirrors.poll(poll("d2", 2, seen=first.version), wait_s)
            assert (told, told.stopped) == (first, None)
        assert not net.mirrors._polls

    asyncio.run(run())


def test_an_agent_whose_lease_ends_has_copies_to_its_host_end_and_begin_again_when_it_polls():
    async def run():
        net = Network(served=at(2, 4))
        now = asyncio.get_running_loop().time()
        net.mirrors._agents.lease_s = 10.0  # of the agent at 2 and 4, which polls in between
        await net.mirrors.poll(poll("d3", 3), 0.0)
        for hop in hops([1, 2, 3, 4]):
            found = await net.mirrors.announce(hop, 0.0)
        net.answer()
        carried = net.carried()
        assert carried
        net.mirrors._agents.polled(Poll("everywhere", "1", at(2, 4)), now + 8.0)
        net.mirrors.tick(now + 11.0)
        assert (net.carried(), net.mirrors.all()[0].why) == (set(), Why.NO_AGENT)
        assert [agent.name for agent in net.mirrors.agents()] == ["everywhere"]
        await net.mirrors.poll(poll("d3", 3), 0.0)
        assert (net.carried(), net.mirrors.all()[0].state) == (carried, State.ARMING)
        assert [(agent.name, agent.pipelines) for agent in net.mirrors.agents()] == [("everywhere", 2), ("d3", 1)]
        assert (net.mirrors.counts().agents, found.id) == (2, net.mirrors.all()[0].id)

    asyncio.run(run())


def test_an_agent_that_leaves_is_told_when_switches_have_confirmed_that_no_copies_come():
    async def run():
        net = Network(served=at(2, 4))
        waits = asyncio.create_task(net.mirrors.poll(poll("d3", 3, seen=2), LONG_S))
        await settle()
        for hop in hops([1, 2, 3, 4]):
            await net.mirrors.announce(hop, 0.0)
        assert (await waits).flows
        ((dpid, entry),) = copied_to(net, 3)
        waits = asyncio.create_task(net.mirrors.poll(poll("d3", 3, seen=waits.result().version), LONG_S))
        await settle()
        net.switches[dpid].unanswered = frozenset({entry})
        leaves = asyncio.create_task(net.mirrors.poll(poll("d3", 3, leaving=True), LONG_S))
        with pytest.raises(NotTaken) as left:
            await waits
        assert (left.value.why, net.carried()) == ("left", set())
        net.answer()  # other switches, and an earlier answer of this one
        await settle()
        assert not leaves.done()
        quick = await net.mirrors.poll(poll("d3", 3, leaving=True), 0.001)
        assert (quick.stopped, quick.flows) == (False, ())
        net.switches[dpid].unanswered = frozenset()
        net.answer()
        assert (await leaves).stopped is True
        assert (await net.mirrors.poll(poll("d3", 3, leaving=True), 0.0)).stopped is True
        # A poll that was sent before comes only now: its host's programs may be off already.
        with pytest.raises(NotTaken) as late:
            await net.mirrors.poll(poll("d3", 3), LONG_S)
        assert (late.value.why, net.carried()) == ("left", set())
        # Another run of it has copies come again.
        await net.mirrors.poll(poll("d3", 3, run="2"), 0.0)
        assert net.carried()
        with pytest.raises(NotTaken) as late:
            await net.mirrors.poll(poll("d3", 3, leaving=True), LONG_S)
        assert (late.value.why, bool(net.carried())) == ("another_run", True)
        await net.mirrors.poll(poll("d3", 3, run="2", leaving=True), LONG_S)
        assert [agent.name for agent in net.mirrors.agents()] == ["everywhere"]
        assert not net.mirrors._answers

    asyncio.run(run())


def test_of_a_switch_that_is_gone_nobody_knows_whether_it_has_stopped():
    async def run():
        net = Network(served=at(2, 3))
        for hop in hops([1, 2, 3]):
            await net.mirrors.announce(hop, 0.0)
        ((dpid, entry),) = copied_to(net, 3)
        net.switches[dpid].unanswered = frozenset({entry})
        leaves = asyncio.create_task(net.mirrors.poll(Poll("everywhere", "1", at(2, 3), leaving=True), 0.01))
        await settle()
        del net.switches[dpid]
        net.answer()
        assert (await leaves).stopped is False

    asyncio.run(run())


def test_agents_are_told_where_it_is_off_or_another_controller_is_master_and_when_there_are_too_many(monkeypatch):
    async def run():
        with pytest.raises(NotNow, match="mirroring is off"):
            await Network(enabled=False).mirrors.poll(poll("d2", 2), LONG_S)
        net = Network(served=frozenset())
        first = await net.mirrors.poll(poll("d2", 2), LONG_S)
        waits = asyncio.create_task(net.mirrors.poll(poll("d2", 2, seen=first.version), LONG_S))
        await settle()
        net.mirrors.role_changed(False)
        with pytest.raises(NotNow):
            await waits
        with pytest.raises(NotNow, match="master"):
            await net.mirrors.poll(poll("d2", 2), LONG_S)
        assert net.mirrors.agents() == ()
        net.mirrors.role_changed(True)
        monkeypatch.setattr(agents, "MAX_AGENTS", 0)
        with pytest.raises(TooMany):
            await net.mirrors.poll(poll("d2", 2), LONG_S)
        assert not net.mirrors._polls

    asyncio.run(run())
