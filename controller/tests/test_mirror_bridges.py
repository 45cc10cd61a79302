"""Bridges beside OpenFlow switches: their agents' polls, what discovery makes of them, and what they are told."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest
from edges import until
from test_mirror_pipelines import hops

from trunkline_controller.control import NotNow
from trunkline_controller.fabric import Fabric, FabricSettings
from trunkline_controller.mirror import bridges as module
from trunkline_controller.mirror.agents import Poll, TooMany
from trunkline_controller.mirror.bridge import BridgePoll, BridgeTold
from trunkline_controller.mirror.bridge_entries import Segments
from trunkline_controller.mirror.model import State, Why
from trunkline_controller.mirror.settings import MirrorSettings
from trunkline_controller.net import frames
from trunkline_controller.net.limits import Limits
from trunkline_controller.net.topology import End, Link, Port
from trunkline_controller.openflow.leases import Role
from trunkline_controller.openflow.lldp import Lldp

LONG_S = 600.0
UPLINK = 9


def mac(dpid, number):
    return f"02:ff:00:00:{dpid:02x}:{number:02x}"


@dataclass
class Agent:
    """Of a bridge with ports 1, 2 and 3 toward hosts 10.0.0.<dpid><port>, and port 9 toward the other bridge."""

    fabric: Fabric
    dpid: int
    cables: dict[End, End]
    run: str = "1"
    seen: int = -1
    polls: bool = True
    lldp: dict[int, bytes] = field(default_factory=dict)
    entries: dict[Segments, tuple] = field(default_factory=dict)
    links: frozenset[int] = frozenset()
    heard: dict[int, bytes] = field(default_factory=dict)
    hosts: list[tuple[int, str, str | None]] = field(default_factory=list)  # that are news
    answers: dict[str, tuple[int, str]] = field(default_factory=dict)  # by address: who answers a question
    asked: list[tuple[tuple[int, ...], bytes]] = field(default_factory=list)
    others: dict[int, Agent] = field(default_factory=dict)
    told: object = None  # what it said last of its ports and cables

    @property
    def name(self):
        return f"b{self.dpid}"

    def ports(self):
        return tuple(Port(number, f"p{number}", mac(self.dpid, number)) for number in (1, 2, 3, UPLINK))

    def says(self, **others):
        return BridgePoll(self.name, self.run, self.dpid, self.seen, **others)

    async def ask(self, wait_s=0.0, **others) -> BridgeTold:
        """Its ports and cables are said when they are news, or it was told to."""
        known = {"ports": self.ports(), "heard": {port: frame[:60] for port, frame in self.heard.items()}}
        is_news = known != self.told
        if is_news:
            others = {"ports": self.ports(), "heard": dict(self.heard)} | others
        hosts, self.hosts = tuple(self.hosts), []
        told = await self.fabric.bridges.poll(self.says(hosts=hosts, **others), wait_s)
        self.told = None if told.announce else known if is_news else self.told
        self.take(told)
        return told

    def take(self, told: BridgeTold) -> None:
        update = told.update
        if update.base is None and not told.announce:
            self.entries = {}
        for made in update.made:
            self.entries[made.of] = made.copies
        for of in update.removed:
            del self.entries[of]
        self.seen, self.links = update.version, update.links
        if told.lldp is not None:
            self.lldp = dict(told.lldp)
            for port, frame in self.lldp.items():
                if (far := self.cables.get(End(self.dpid, port))) is not None and far.dpid in self.others:
                    self.others[far.dpid].heard[far.port] = frame
        for ports, frame in told.send:
            self.asked.append((ports, frame))
            for address, (port, host) in self.answers.items():
                if port in ports and frame == frames.probe(
                    frames.read(frame).source, frames.read(frame).destination, address
                ):
                    self.hosts.append((port, host, address))

    async def run_on(self) -> None:
        """Polls as an agent does, but more often."""
        while True:
            if self.polls:
                with contextlib.suppress(NotNow):
                    await self.ask(0.05)
            await asyncio.sleep(0.01)


@dataclass
class World:
    fabric: Fabric
    agents: dict[int, Agent]

    @property
    def topology(self):
        return self.fabric.topology

    def host(self, dpid, port):
        """Speaks, so that its bridge knows of it."""
        address = f"10.0.0.{dpid}{port}"
        self.agents[dpid].hosts.append((port, f"02:00:00:00:{dpid:02x}:{port:02x}", address))
        return int(f"{dpid}{port}")

    async def announce(self, numbers, **others):
        mirrors = self.fabric.mirrors
        addresses = frozenset(f"10.0.0.{n}" for n in numbers)
        await mirrors.poll(Poll("everywhere", "1", addresses), 0.0)
        for hop in hops(numbers, **others):
            found = await mirrors.announce(hop, 0.0)
        return found


@contextlib.asynccontextmanager
async def world(count=2, *, running=True, **settings) -> AsyncIterator[World]:
    """Bridges 1 and 2, with a cable between their ports 9."""
    wanted = {"enabled": True, "agent_lease_s": LONG_S} | settings
    limits = Limits(settle_s=0.3, lldp_interval_s=0.2, switch_hold_s=0.2, probe_wait_s=0.3)
    fabric = Fabric(FabricSettings(limits=limits, mirror=MirrorSettings(**wanted)))
    fabric.start()
    cables = {End(1, UPLINK): End(2, UPLINK), End(2, UPLINK): End(1, UPLINK)}
    agents = {dpid: Agent(fabric, dpid, cables) for dpid in range(1, count + 1)}
    for agent in agents.values():
        agent.others = agents
    tasks = [asyncio.create_task(agent.run_on()) for agent in agents.values() if running]
    try:
        if running:
            await until("it has converged", lambda: len(fabric.topology.edges) == 3 * count + count % 2)
        yield World(fabric, agents)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def run(test: Callable[..., object]) -> None:
    asyncio.run(test())


def test_bridges_find_one_another_and_their_hosts():
    async def test():
        async with world() as net:
            assert net.topology.links == {Link.between(End(1, UPLINK), End(2, UPLINK))}
            assert [net.topology.switches[dpid].name for dpid in (1, 2)] == ["b1", "b2"]
            net.host(1, 2)
            await until("the host", lambda: len(net.topology.hosts) == 1)
            (host,) = net.topology.hosts.values()
            assert (host.at, host.addresses) == (End(1, 2), ("10.0.0.12",))
            await until("they are told", lambda: all(agent.links == {UPLINK} for agent in net.agents.values()))
            # What is behind the other bridge comes by the cable, too.
            net.agents[2].hosts.append((UPLINK, host.mac, None))
            net.host(2, 1)
            await until("the other host", lambda: len(net.topology.hosts) == 2)
            assert net.topology.hosts[host.mac].at == End(1, 2)
            assert [(b.name, b.ports, b.links) for b in net.fabric.bridges.all()] == [("b1", 4, 1), ("b2", 4, 1)]

    run(test)


def test_a_pipeline_is_armed_when_bridges_have_its_copies_and_closed_it_leaves_nothing():
    async def test():
        async with world() as net:
            client, first, second, third = net.host(1, 1), net.host(1, 2), net.host(1, 3), net.host(2, 1)
            await until("hosts", lambda: len(net.topology.hosts) == 4)
            pipeline = await net.announce([client, first, second, third])
            assert pipeline.state is State.ARMING

            def state():
                (found,) = net.fabric.mirrors.all()
                return found.state

            await until("it is armed", lambda: state() is State.ARMED)
            one, two = net.agents[1], net.agents[2]
            ((of, made),) = one.entries.items()
            assert (of.port, of.marked) == (1, False)
            assert [(copy.port, copy.position) for copy in made] == [(UPLINK, 0), (3, 2)]
            ((of, made),) = two.entries.items()
            assert (of.port, of.marked, [(c.port, c.position, c.to) for c in made]) == (
                UPLINK, True, [(1, 3, "02:00:00:00:02:01")],
            )  # fmt: skip
            await until("all is in step", net.fabric.converged)
            assert sum(bridge.entries for bridge in net.fabric.bridges.all()) == 2
            net.fabric.mirrors.close(pipeline.id)
            await until("nothing is left", lambda: not one.entries and not two.entries)

    run(test)


def test_an_agent_of_a_host_that_leaves_is_told_when_bridges_copy_to_it_no_more():
    async def test():
        async with world(1) as net:
            numbers = [net.host(1, port) for port in (1, 2, 3)]
            await until("hosts", lambda: len(net.topology.hosts) == 3)
            await net.announce(numbers)
            agent = net.agents[1]
            await until("copies", lambda: agent.entries)
            leaves = Poll("everywhere", "1", frozenset(f"10.0.0.{n}" for n in numbers), leaving=True)
            agent.polls = False
            told = await net.fabric.mirrors.poll(leaves, 0.1)
            assert told.stopped is False
            agent.polls = True
            told = await net.fabric.mirrors.poll(leaves, LONG_S)
            assert (told.stopped, agent.entries) == (True, {})

    run(test)


def test_what_a_bridge_can_not_copy_is_refused():
    async def test():
        async with world(1) as net:
            numbers = [net.host(1, port) for port in (1, 2, 3)]
            await until("hosts", lambda: len(net.topology.hosts) == 3)
            await net.announce(numbers)
            agent = net.agents[1]
            await until("copies", lambda: agent.entries)
            agent.polls = False
            await agent.ask(failed=dict.fromkeys(agent.entries, "no room for more entries"))
            (found,) = net.fabric.mirrors.all()
            assert (found.state, found.why) == (State.REFUSED, Why.SWITCH)
            assert "b1" in found.what
            assert "no room" in found.what

    run(test)


def test_an_address_that_nobody_knows_is_asked_for_at_all_bridges():
    async def test():
        async with world() as net:
            client, first = net.host(1, 1), net.host(1, 2)
            net.agents[2].answers["10.0.0.23"] = (3, "02:00:00:00:02:03")
            await until("hosts", lambda: len(net.topology.hosts) == 2)
            found = await net.announce([client, first, 23])
            assert found.why is Why.UNKNOWN_HOST
            await until("it is armed", lambda: net.fabric.mirrors.all()[0].state is State.ARMED)
            ports, frame = net.agents[2].asked[0]
            assert ports == (1, 2, 3), "toward hosts alone"
            assert frames.read(frame).asks_for == "10.0.0.23"

    run(test)


def test_a_host_keeps_its_place_while_it_answers_there():
    async def test():
        async with world() as net:
            net.host(1, 1)
            await until("a host", lambda: len(net.topology.hosts) == 1)
            (host,) = net.topology.hosts.values()
            net.agents[1].answers["10.0.0.11"] = (1, host.mac)
            net.agents[2].hosts.append((2, host.mac, None))
            await until("it is asked", lambda: net.agents[1].asked)
            await until("an alert", lambda: any("two hosts" in alarm.what for alarm in net.fabric.alarms.all()))
            assert net.topology.hosts[host.mac].at == End(1, 1)
            # It has moved: nobody answers at its old place.
            net.agents[1].answers.clear()
            await asyncio.sleep(0)
            net.fabric.discovery.hosts._refused.clear()
            net.agents[2].hosts.append((2, host.mac, None))
            await until("it is found at its new place", lambda: net.topology.hosts[host.mac].at == End(2, 2))

    run(test)


def test_lldp_of_another_controller_or_a_host_makes_no_link():
    async def test():
        async with world(1) as net:
            agent = net.agents[1]
            strange = Lldp().frame(End(1, 2), mac(1, 2), time.monotonic())
            agent.heard[1] = strange
            await agent.ask(ports=agent.ports(), heard={1: strange})
            assert net.fabric.bridges.there[1].heard == {}
            assert net.topology.links == frozenset()
            # A host that hands a bridge's own LLDP back is told of.
            await agent.ask(ports=agent.ports(), heard={1: agent.lldp[2]})
            assert any("connected with each other" in alarm.what for alarm in net.fabric.alarms.all())
            assert net.topology.links == frozenset()

    run(test)


def test_a_bridge_that_is_silent_is_gone_and_pipelines_through_it_are_refused_until_it_is_back():
    async def test():
        async with world(1, agent_lease_s=1.0) as net:
            numbers = [net.host(1, port) for port in (1, 2, 3)]
            await until("hosts", lambda: len(net.topology.hosts) == 3)
            await net.announce(numbers)
            agent = net.agents[1]

            def state():
                (found,) = net.fabric.mirrors.all()
                return found.state, found.why

            async def hosts_poll():
                while True:
                    await net.fabric.mirrors.poll(
                        Poll("everywhere", "1", frozenset(f"10.0.0.{n}" for n in numbers)), 0.0
                    )
                    await asyncio.sleep(0.1)

            polling = asyncio.create_task(hosts_poll())
            await until("it is armed", lambda: state()[0] is State.ARMED)
            had = dict(agent.entries)
            agent.polls = False
            await until("it is gone", lambda: state() == (State.REFUSED, Why.UNKNOWN_HOST))
            assert any("b1" in alarm.what for alarm in net.fabric.alarms.all())
            with pytest.raises(KeyError):
                net.fabric.topology.switches[1]
            told = await agent.fabric.bridges.poll(agent.says(), LONG_S)
            assert told.announce, "it is to say all again"
            agent.polls = True
            for port in (1, 2, 3):
                net.host(1, port)
            await until("it is armed again", lambda: state()[0] is State.ARMED)
            assert agent.entries == had
            polling.cancel()

    run(test)


def test_openflow_switches_and_bridges_do_not_go_together():
    async def test():
        async with world(1) as net:
            agent = net.agents[1]
            agent.polls = False
            net.fabric.role_changed(Role.MASTER, "a switch has connected")
            assert net.fabric.bridges.there == {}
            with pytest.raises(NotNow, match="OpenFlow switches are connected"):
                await agent.ask()
            assert any("switches of one kind" in alarm.what for alarm in net.fabric.alarms.all())
            net.fabric.role_changed(Role.NONE, "no switch is connected")
            assert (await agent.ask()).announce
            await agent.ask()
            assert set(net.fabric.bridges.there) == {1}

    run(test)


def test_mirroring_goes_on_when_a_bridge_comes_and_goes():
    """Pipelines are this controller's, and no other one is master of bridges."""

    async def test():
        async with world(1) as net:
            agent = net.agents[1]
            agent.polls = False
            await net.announce([1, 2, 3])
            await agent.ask(leaving=True)
            assert net.fabric.bridges.there == {}
            agent.run = "2"
            await agent.ask()
            assert len(net.fabric.mirrors.all()) == 1

    run(test)


def test_what_a_bridge_has_of_before_stays_for_a_lease():
    async def test():
        async with world(1, lease_s=1.0) as net:
            agent = net.agents[1]
            agent.polls = False
            agent.seen = -1
            told = await agent.ask(copies_to=frozenset({"10.0.0.3"}))
            assert not told.update.purge
            purged = False
            while not purged:
                purged = (await agent.ask(LONG_S)).update.purge

    run(test)


def test_one_agent_for_each_bridge_and_one_poll_at_a_time():
    async def test():
        async with world(1, running=False) as net:
            agent = net.agents[1]
            first = await agent.ask()
            assert set(first.lldp) == {1, 2, 3, UPLINK}
            await until("it is planned", lambda: net.fabric.bridges.is_planned)
            while not net.fabric.bridges.in_step:
                await agent.ask()
            waiting = asyncio.create_task(agent.ask(LONG_S))
            await asyncio.sleep(0.05)
            await agent.ask(0.0)  # beside it
            assert not waiting.done()
            again = asyncio.create_task(agent.ask(0.05))
            with pytest.raises(NotNow, match="polled again"):
                await waiting
            await again
            other = Agent(net.fabric, 1, {})
            other.dpid = 1
            with pytest.raises(NotNow, match="is that of bridge b1"):
                await net.fabric.bridges.poll(BridgePoll("x", "1", 1, ports=()), 0.0)
            # Its next run.
            waiting = asyncio.create_task(agent.ask(LONG_S))
            await asyncio.sleep(0.05)
            await net.fabric.bridges.poll(BridgePoll("b1", "2", 1, ports=agent.ports()), 0.0)
            with pytest.raises(NotNow, match="begun anew"):
                await waiting

    run(test)


def test_where_mirroring_is_off_or_too_many_are_there_none_is_taken(monkeypatch):
    async def test():
        async with world(1, running=False, enabled=False) as net:
            with pytest.raises(NotNow, match="mirroring is off"):
                await net.agents[1].ask()
        monkeypatch.setattr(module, "MAX_BRIDGES", 1)
        async with world(2, running=False) as net:
            await net.agents[1].ask()
            with pytest.raises(TooMany):
                await net.agents[2].ask()

    run(test)
