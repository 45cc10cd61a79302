"""Agents at replicas' hosts, in simulated time."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from trunkline_controller.mirror import agents
from trunkline_controller.mirror.agents import Agents, NotTaken, Poll, TooMany

LEASE_S = 10.0


def poll(name, *addresses, run="1"):
    return Poll(name, run, frozenset(addresses))


def moved(found):
    return tuple(set(addresses) for addresses in found.take_moved())


def test_an_agent_is_there_from_its_first_poll_until_a_lease_after_its_last():
    found = Agents(LEASE_S)
    found.polled(poll("d1", "10.0.0.1", "10.1.0.1"), 0.0)
    assert moved(found) == ({"10.0.0.1", "10.1.0.1"}, set())
    found.polled(poll("d1", "10.0.0.1", "10.1.0.1"), 9.0)
    assert (moved(found), found.sweep(18.9)) == ((set(), set()), ())
    assert (found.sweep(19.0), moved(found)) == (("d1",), (set(), {"10.0.0.1", "10.1.0.1"}))
    assert (found.all(), found.get("d1"), found.sweep(99.0)) == ((), None, ())


def test_what_it_is_told_has_another_version_when_something_of_its_own_changed_and_then_alone():
    found = Agents(LEASE_S)
    one = found.polled(poll("d1", "10.0.0.1", "10.1.0.1"), 0.0).version
    two = found.polled(poll("d2", "10.0.0.2"), 0.0).version
    assert found.polled(poll("d1", "10.0.0.1", "10.1.0.1"), 1.0).version == one
    assert found.touch({"10.1.0.1", "10.9.9.9"}) == {"d1"}
    assert found.get("d1").version not in (one, two)
    assert found.get("d2").version == two
    # Also where its addresses are others, and where it comes back: no version is ever used twice.
    seen = {one, two, found.get("d1").version}
    found.polled(poll("d1", "10.0.0.1"), 2.0)
    found.leave("d2", "1")
    found.polled(poll("d2", "10.0.0.2", run="2"), 3.0)
    assert not {found.get("d1").version, found.get("d2").version} & seen


def test_a_later_run_takes_the_place_of_an_earlier_one():
    found = Agents(LEASE_S)
    assert found.polled(poll("d1", "10.0.0.1", run="1"), 0.0).polls == 1
    assert moved(found) == ({"10.0.0.1"}, set())
    made = found.polled(poll("d1", "10.0.0.2", run="2"), 1.0)
    assert (made.run, made.polls, len(found.all())) == ("2", 2, 1)
    assert moved(found) == ({"10.0.0.2"}, {"10.0.0.1"})
    # What does not wait takes no place, unless it is of another run.
    assert found.polled(poll("d1", "10.0.0.2", run="2"), 1.5, may_wait=False).polls == 2
    assert found.polled(poll("d1", "10.0.0.2", run="3"), 1.5, may_wait=False).polls == 3
    assert found.polled(poll("d1", "10.0.0.2", run="3"), 1.5).polls == 4


def test_an_address_is_of_the_agent_that_claimed_it_first_until_it_leaves_or_its_lease_is_over():
    found = Agents(LEASE_S)
    found.polled(poll("d1", "10.0.0.1", "10.1.0.1"), 0.0)
    found.polled(poll("d2", "10.0.0.2"), 0.0)
    moved(found)
    for name, addresses in (("d3", ["10.0.0.1"]), ("d3", ["10.0.0.3", "10.1.0.1"]), ("d2", ["10.0.0.2", "10.0.0.1"])):
        with pytest.raises(NotTaken, match="agent d1 is there") as taken:
            found.polled(poll(name, *addresses), 5.0)
        assert (taken.value.why, moved(found)) == ("address_taken", (set(), set()))
    assert ({agent.name for agent in found.all()}, found.get("d2").polled_s) == ({"d1", "d2"}, 0.0)
    assert found.touch({"10.0.0.1", "10.0.0.3"}) == {"d1"}
    # The first no longer claims it; it leaves; its lease is over.
    found.polled(poll("d1", "10.0.0.1"), 9.0)
    found.polled(poll("d3", "10.1.0.1"), 9.0)
    assert moved(found) == ({"10.1.0.1"}, set())
    assert (found.leave("d3", "1"), moved(found)) == (True, (set(), {"10.1.0.1"}))
    assert found.leave("d3", "1") is False
    found.polled(poll("d4", "10.1.0.1"), 10.0)
    found.sweep(19.0)
    found.polled(poll("d4", "10.0.0.1"), 19.0)
    assert found.touch({"10.0.0.1"}) == {"d4"}


def test_what_a_run_said_before_it_left_brings_it_back_no_more_however_late_it_comes(monkeypatch):
    found = Agents(LEASE_S)
    found.polled(poll("d1", "10.0.0.1"), 0.0)
    found.leave("d1", "1")
    assert moved(found) == (set(), {"10.0.0.1"})
    with pytest.raises(NotTaken) as late:
        found.polled(poll("d1", "10.0.0.1"), 0.1)
    assert (late.value.why, found.all(), moved(found)) == ("left", (), (set(), set()))
    # Its next run is another matter, and so is an agent of another name; that it left may come late, too.
    found.polled(poll("d1", "10.0.0.1", run="2"), 0.2)
    found.polled(poll("d2", "10.0.0.2"), 0.2)
    with pytest.raises(NotTaken) as other:
        found.leave("d1", "1")
    assert (other.value.why, found.get("d1").run) == ("another_run", "2")
    # So many are remembered, the latest.
    monkeypatch.setattr(agents, "MAX_LEFT", 2)
    for name in ("d3", "d4", "d3"):
        found.leave(name, "1")
    assert [found.has_left(name, "1") for name in ("d1", "d3", "d4")] == [False, True, True]


def test_there_is_a_bound_of_them(monkeypatch):
    monkeypatch.setattr(agents, "MAX_AGENTS", 2)
    found = Agents(LEASE_S)
    for n in (1, 2):
        found.polled(poll(f"d{n}", f"10.0.0.{n}"), 0.0)
    found.take_moved()
    with pytest.raises(TooMany, match="2 agents"):
        found.polled(poll("d3", "10.0.0.3"), 0.0)
    assert moved(found) == (set(), set())
    found.polled(poll("d2", "10.0.0.2"), 5.0)  # who is there may stay
    found.sweep(10.0)
    found.polled(poll("d3", "10.0.0.3"), 10.0)
    assert {agent.name for agent in found.all()} == {"d2", "d3"}


def test_another_master_has_agents_of_its_own():
    found = Agents(LEASE_S)
    before = found.polled(poll("d1", "10.0.0.1"), 0.0).version
    assert found.clear() == ("d1",)
    assert (moved(found), found.all(), found.touch({"10.0.0.1"})) == ((set(), set()), (), frozenset())
    assert found.polled(poll("d1", "10.0.0.1"), 1.0).version != before


class Anything(RuleBasedStateMachine):
    """Whatever they say in whatever order: who hears where they come and go knows where they are."""

    def __init__(self):
        super().__init__()
        self.now = 0.0
        self.agents = Agents(LEASE_S)
        self.served = set()
        self.until = {}
        self.runs = dict.fromkeys("abc", 0)

    @rule(name=st.sampled_from("abc"), addresses=st.frozensets(st.sampled_from("1234"), min_size=1))
    def polls(self, name, addresses):
        taken = {address for other, (_, some) in self.until.items() if other != name for address in some}
        try:
            self.agents.polled(Poll(name, str(self.runs[name]), addresses), self.now)
        except NotTaken:
            assert taken & addresses
            return
        assert not taken & addresses
        self.until[name] = self.now + LEASE_S, addresses

    @rule(name=st.sampled_from("abc"))
    def leaves(self, name):
        assert self.agents.leave(name, str(self.runs[name])) == (name in self.until)
        self.until.pop(name, None)
        self.runs[name] += 1

    @rule(seconds=st.sampled_from([0.5, 6.0]))
    def waits(self, seconds):
        self.now += seconds
        over = {name for name, (until, _) in self.until.items() if until <= self.now}
        assert set(self.agents.sweep(self.now)) == over
        for name in over:
            del self.until[name]

    @rule()
    def looks(self):
        came, gone = self.agents.take_moved()
        assert not came & gone
        self.served = (self.served | came) - gone
        assert self.served == {address for _, addresses in self.until.values() for address in addresses}

    @invariant()
    def holds(self):
        assert {agent.name: agent.addresses for agent in self.agents.all()} == {
            name: addresses for name, (_, addresses) in self.until.items()
        }
        assert set(self.agents._at) == {a for _, addresses in self.until.values() for a in addresses}


TestAnything = Anything.TestCase
TestAnything.settings = settings(max_examples=40, stateful_step_count=30)
