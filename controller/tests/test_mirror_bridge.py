"""A bridge's entries between what is wanted and what its agent says it has."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from test_mirror_pipelines import hops

from trunkline_controller.flows.entry import FlowEntry, Match, Output, Owner, SetField, Table, cookie
from trunkline_controller.mirror import bridge as module
from trunkline_controller.mirror.bridge import Bridge
from trunkline_controller.mirror.bridge_entries import Segments, copies
from trunkline_controller.mirror.entries import MARK, MARKED


def entry(number, out=9):
    """Copies of what comes in by port 1, to a replica."""
    match = Match(
        in_port=1, eth_type=0x0800, ip_proto=6, ip_src="10.0.0.1", ip_dst="10.0.0.2", l4_src=number, l4_dst=9866
    )
    header = (
        SetField("eth_src", f"{MARK}:00:00:02"), SetField("eth_dst", "02:00:00:00:00:03"),
        SetField("ipv4_src", "10.0.0.2"), SetField("ipv4_dst", "10.0.0.3"),
        SetField("tcp_src", number), SetField("tcp_dst", 9866),
    )  # fmt: skip
    return FlowEntry(Table.FORWARD, 44, match, (Output(5), *header, Output(out)), None, cookie(Owner.MIRROR, number))


ONLY_ON = replace(entry(500), actions=(Output(5),))  # the bridge does so by itself
LINK = FlowEntry(Table.ADMIT, 97, Match(in_port=7, eth_src=MARKED), (), Table.SOURCE_ROLES, cookie(Owner.MIRROR))


class Agent:
    """Takes answers as a bridge's agent does; `has` are out ports by segments, some of before."""

    def __init__(self, bridge, has=()):
        self.bridge = bridge
        self.has = {copies(e).of: copies(e).copies for e in has}
        self.named = set()
        self.seen = -1
        self.failed = {}
        self.links = frozenset()

    def ask(self, hold=False):
        """Says what it has, and takes the answer; whether there was news."""
        news = self.bridge.said(self.seen, self.failed)
        return self.take(self.bridge.tell(self.seen, hold)), news

    def take(self, update):
        assert update.base in (None, self.seen)
        if update.base is None:
            self.named = set()
        for made in update.made:
            self.has[made.of] = made.copies
            self.named.add(made.of)
        for of in update.removed:
            self.has.pop(of, None)
            self.named.discard(of)
        if update.purge:
            self.has = {of: made for of, made in self.has.items() if of in self.named}
        self.seen, self.links = update.version, update.links
        return update

    def agrees(self):
        wanted = {c.of: c.copies for c in map(copies, self.bridge.flows) if c is not None}
        return self.has == wanted


def bridge(*flows):
    made = Bridge(1, "b1", "run")
    if flows:
        made.want(frozenset(flows))
    return made


def test_an_entry_is_confirmed_when_the_agent_has_taken_it():
    of = bridge(LINK)
    agent = Agent(of)
    agent.ask()
    one, two = entry(1), entry(2)
    of.amend(frozenset({one, ONLY_ON}), frozenset())
    some = frozenset({one, two, ONLY_ON})
    assert of.confirmed(some) == frozenset()
    update, _ = agent.ask()
    assert (agent.links, agent.agrees(), len(update.made)) == ({7}, True, 1)
    assert of.confirmed(some) == frozenset(), "it was told, and has not said that it has it"
    _, news = agent.ask()
    assert (of.confirmed(some), news, of.in_step) == ({one, ONLY_ON}, True, True)
    assert not of.has_news(agent.seen, False)


def test_what_it_was_told_to_remove_is_leaving_until_it_says_so():
    one = entry(1)
    of = bridge(one)
    agent = Agent(of)
    agent.ask()
    agent.ask()
    of.amend(frozenset(), frozenset({one}))
    assert (of.leaving(), of.confirmed(frozenset({one}))) == ({one}, frozenset())
    update, _ = agent.ask()
    assert (update.removed, agent.has) == ((copies(one).of,), {})
    assert of.leaving() == {one}
    agent.ask()
    assert of.leaving() == frozenset()


def test_an_entry_that_was_told_and_taken_back_before_the_agent_said_anything_is_leaving():
    one = entry(1)
    of = bridge(LINK)
    agent = Agent(of)
    agent.ask()
    of.amend(frozenset({one}), frozenset())
    lost = of.tell(agent.seen, False)  # this answer may have come, or not
    of.amend(frozenset(), frozenset({one}))
    assert of.leaving() == {one}
    agent.take(lost)
    agent.ask()
    agent.ask()
    assert (of.leaving(), agent.has) == (frozenset(), {})


def test_other_copies_of_the_same_segments_take_the_place_of_those_before():
    before, after = entry(1, out=9), entry(1, out=8)
    of = bridge(before)
    agent = Agent(of)
    agent.ask()
    of.amend(frozenset({after}), frozenset({before}))
    update, _ = agent.ask()
    assert (len(update.made), update.removed, agent.agrees()) == (1, (), True)


def test_what_it_has_of_before_stays_as_long_as_it_is_to_be_held():
    of = bridge()
    agent = Agent(of, has=[entry(1), entry(2)])
    agent.ask(hold=True)
    assert len(agent.has) == 2, "it is not planned yet what it should have"
    of.want(frozenset({entry(2, out=8), entry(3)}))
    assert of.has_news(agent.seen, True)
    agent.ask(hold=True)
    assert {of.connection.source_port for of in agent.has} == {1, 2, 3}
    assert not of.has_news(agent.seen, True)
    assert of.has_news(agent.seen, False)
    update, _ = agent.ask(hold=False)
    assert (update.purge, agent.agrees()) == (True, True)
    update, _ = agent.ask(hold=False)
    assert (update.purge, update.base, of.has_news(agent.seen, False)) == (False, agent.seen, False)


def test_who_has_lost_what_it_was_told_is_told_all():
    of = bridge(entry(1))
    agent = Agent(of)
    agent.ask()
    other = Agent(of)
    other.seen = 77
    assert of.has_news(77, False)
    update = of.tell(77, False)
    assert (update.base, len(update.made), update.purge) == (None, 1, True)
    assert update.version not in (77, agent.seen)


def test_what_it_copied_to_before_is_leaving_until_it_has_nothing_of_before():
    of = Bridge(1, "b1", "run", had=frozenset({"10.0.0.3", "fd00::3"}))
    agent = Agent(of, has=[entry(1)])

    def addresses():
        return {action.value for entry in of.leaving() for action in entry.actions}

    of.want(frozenset())
    agent.ask(hold=True)
    agent.ask(hold=True)
    assert addresses() == {"10.0.0.3", "fd00::3"}
    agent.ask()
    assert addresses() == {"10.0.0.3", "fd00::3"}
    agent.ask()
    assert addresses() == set()


def test_what_failed_is_refused_until_it_is_made_or_not_wanted():
    one = entry(1)
    of = bridge(one)
    agent = Agent(of)
    agent.ask()
    agent.failed = {copies(one).of: "no room"}
    _, news = agent.ask()
    assert (news, of.refused(frozenset({one, entry(2)})), of.confirmed(frozenset({one}))) == (
        True, {one: "no room"}, frozenset(),
    )  # fmt: skip
    agent.failed = {}
    _, news = agent.ask()
    assert (news, of.refused(frozenset({one})), of.confirmed(frozenset({one}))) == (True, {}, {one})
    agent.failed = {Segments(99, True, hops([1, 2, 3])[0].connection): "of no entry"}
    agent.ask()
    assert of.refused(frozenset({one})) == {}


def test_a_long_list_is_told_in_parts_and_nothing_is_purged_before_its_end(monkeypatch):
    monkeypatch.setattr(module, "MAX_CHANGES", 3)
    wanted = {entry(number) for number in range(10, 17)}
    of = bridge(*wanted)
    agent = Agent(of, has=[entry(1)])
    parts = 0
    while of.has_news(agent.seen, False):
        update, _ = agent.ask()
        assert len(update.made) + len(update.removed) <= 3
        assert update.purge == agent.agrees()
        parts += 1
    assert (parts, agent.agrees()) == (3, True)
    of.want(frozenset({entry(99)}))
    while of.has_news(agent.seen, False):
        agent.ask()
    assert agent.agrees()


def test_news_are_told_when_there_are_some():
    told = []
    of = Bridge(1, "b1", "run", news=lambda: told.append(1))
    of.want(frozenset())
    assert told == [1], "that there is nothing is news, too, at first"
    of.want(frozenset())
    of.amend(frozenset(), frozenset({entry(1)}))
    assert told == [1]
    of.amend(frozenset({entry(1)}), frozenset())
    assert told == [1, 1]


@given(st.data())
def test_whatever_is_lost_on_the_way_the_agent_has_what_is_wanted_in_the_end(data):
    """Answers get lost, agents begin anew with what they have, and what is wanted changes between."""
    of = bridge()
    agent = Agent(of, has=[entry(1), entry(2)])
    some = st.frozensets(st.builds(entry, st.integers(1, 5), st.sampled_from([8, 9])), max_size=5)

    def sane(flows):
        """One entry for each match."""
        return frozenset({e.key: e for e in sorted(flows, key=str)}.values())

    for step in data.draw(st.lists(st.sampled_from(["want", "amend", "ask", "lost", "anew"]), max_size=20)):
        if step == "want":
            of.want(sane(data.draw(some)))
        elif step == "amend":
            of.amend(frozenset(), sane(data.draw(some)))
        elif step == "ask":
            agent.ask(hold=data.draw(st.booleans()))
        elif step == "lost":
            of.said(agent.seen, {})
            of.tell(agent.seen, False)
        else:
            agent.seen = -1
    of.want(sane(data.draw(some)))
    for _ in range(3):
        agent.ask()
    assert agent.agrees()
    assert of.in_step
    assert of.leaving() == frozenset()
    assert not of.has_news(agent.seen, False)
