"""Pipelines from their first hop to their end, in simulated time."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from test_desired import peopled
from test_paths import leaf_spine

from trunkline_controller.flows.entry import Output, SetField
from trunkline_controller.mirror.agents import flows_of
from trunkline_controller.mirror.entries import MAX_REPLICAS, Connection, guard
from trunkline_controller.mirror.model import Head, Hop, Limits, Refused, State, Why
from trunkline_controller.mirror.pipelines import Pipelines
from trunkline_controller.net.topology import Topology

POOL = "BP-1-10.0.0.1-1790000000000"
LIMITS = Limits(pipelines=4, per_host=2, lease_s=10.0)
EVERYWHERE = frozenset(f"{net}{n}" for n in range(1, 10) for net in ("10.0.0.", "fd00::"))  # agents


def network(hosts=(3, 3, 4, 5, 6, 6)):
    """Two spines, 1 and 2, and leaves 3 to 6; host n has 10.0.0.n and fd00::n."""
    made = peopled(leaf_spine(4, 2), hosts)
    addressed = {
        mac: replace(host, addresses=(f"10.0.0.{n}", f"fd00::{n}"))
        for n, (mac, host) in enumerate(made.hosts.items(), 1)
    }
    return replace(made, hosts=addressed)


def hops(hosts, block=1, generation=1001, port=40000, **others):
    """Of the client and its replicas, by their numbers."""
    return [
        Hop(
            POOL, block, generation, position, len(hosts) - 1,
            Connection.of(f"10.0.0.{one}", port, f"10.0.0.{two}", 9866),
            **{"client": "DFSClient_1", **others},
        )
        for position, (one, two) in enumerate(itertools.pairwise(hosts), 1)
    ]  # fmt: skip


def made(limits=LIMITS, of=None):
    """With an agent at each host."""
    found = Pipelines(limits)
    found.served(EVERYWHERE, frozenset(), 0.0)
    found.network(network() if of is None else of, 0.0)
    return found


def at(*hosts):
    """Their addresses."""
    return frozenset(f"10.0.0.{n}" for n in hosts)


def told(pipelines, host):
    """Position, lead and head of each flow that the agent at a host is told."""
    return [(flow.position, flow.lead, flow.head) for flow in flows_of(pipelines.of(at(host)), at(host))]


def head(pipeline, zero):
    """As the lead's agent says it."""
    return Head(pipeline.id, pipeline.hops[pipeline.lead], zero)


def announce(pipelines, some, now=0.0):
    return [pipelines.announce(hop, now) for hop in some][-1]


def present(pipelines, dpids=range(1, 7)):
    """Pipelines' entries, without those that keep marks true."""
    guards = guard(network())
    return {(dpid, entry) for dpid in dpids for entry in pipelines.entries(dpid) - guards[dpid]}


def written(pipelines):
    """The header fields that copies get."""
    return {action for _, entry in present(pipelines) for action in entry.actions if isinstance(action, SetField)}


def confirm(pipelines, now=0.0):
    for dpid in range(1, 7):
        pipelines.confirmed(dpid, pipelines.entries(dpid), now)


def test_it_is_armed_when_the_last_hop_is_known_in_any_order_and_the_last_switch_has_confirmed():
    pipelines = made()
    first, second, third = hops([1, 2, 3, 4])
    for hop, missing in ((third, (1, 2)), (first, (2,))):
        found = pipelines.announce(hop, 1.0)
        assert (found.state, found.missing) == (State.ANNOUNCED, missing)
        assert not present(pipelines)
    found = pipelines.announce(second, 2.0)
    assert (found.state, found.complete_s) == (State.ARMING, 2.0)
    assert {dpid for dpid, _ in present(pipelines)} == found.waits_for == set(found.entries)
    *some, last = sorted(found.waits_for)
    for dpid in some:
        pipelines.confirmed(dpid, pipelines.entries(dpid), 2.5)
    assert pipelines.take_settled() == []
    pipelines.confirmed(last, frozenset(), 2.6)  # a barrier of before
    assert pipelines.get(found.id).state is State.ARMING
    pipelines.confirmed(last, pipelines.waiting(last), 3.0)
    (armed,) = pipelines.take_settled()
    assert (armed.state, armed.armed_s, pipelines.armed) == (State.ARMED, 3.0, 1)
    assert pipelines.get(found.id) == armed


def test_a_pipeline_that_is_closed_leaves_nothing():
    pipelines = made()
    found = announce(pipelines, hops([1, 2, 3, 4]))
    confirm(pipelines)
    changes = pipelines.take_changes()
    assert {(d, e) for d, some in changes.added.items() for e in some} == present(pipelines)
    pipelines.close(found.id, 1.0)
    after = pipelines.take_changes()
    assert {d: s for d, s in after.removed.items() if s} == {d: s for d, s in changes.added.items() if s}
    assert (present(pipelines), pipelines.all(), pipelines.closed) == (set(), (), 1)
    with pytest.raises(KeyError):
        pipelines.close(found.id, 1.0)
    for wrong in ("", "x", "a~b~c", f"{POOL}~1~1002"):
        with pytest.raises(KeyError):
            pipelines.get(wrong)


@pytest.mark.parametrize(
    ("some", "why"),
    [
        (hops([1, 2]), Why.ONE_REPLICA),
        (hops(range(1, MAX_REPLICAS + 3)), Why.TOO_MANY_REPLICAS),
        (hops([1, 2, 3], client=""), Why.NOT_A_WRITE),
        (hops([1, 2, 3], stage="TRANSFER_RBW"), Why.NOT_A_WRITE),
        (hops([1, 2, 3], stage="PIPELINE_CLOSE_RECOVERY"), Why.NOT_A_WRITE),
        ([replace(hops([1, 2, 3])[0], position=3)], Why.BROKEN_CHAIN),
    ],
)
def test_nothing_is_kept_of_what_is_never_mirrored(some, why):
    pipelines = made()
    with pytest.raises(Refused) as refused:
        pipelines.announce(some[0], 0.0)
    assert (refused.value.why, pipelines.refused[why], pipelines.all()) == (why, 1, ())


@pytest.mark.parametrize(
    ("hosts", "why"),
    [
        ([1, 2, 9], Why.UNKNOWN_HOST),
        ([1, 2, 3, 2], Why.SAME_HOST),
        ([2, 2, 3], Why.ONE_REPLICA),  # the client is on the first replica's host: one hop in the network
    ],
)
def test_what_has_no_tree_is_refused_and_says_why_until_its_end(hosts, why):
    pipelines = made()
    found = announce(pipelines, hops(hosts))
    assert (found.state, found.why) == (State.REFUSED, why)
    assert found.what
    assert [pipeline.id for pipeline in pipelines.take_settled()] == [found.id]
    assert announce(pipelines, hops(hosts), 5.0).why is why
    assert (pipelines.refused[why], present(pipelines)) == (1, set())
    assert pipelines.sweep(15.0) == 1


def test_hops_that_do_not_follow_each_other_are_refused():
    pipelines = made()
    first, _, third = hops([1, 2, 3, 4])
    other = hops([1, 5, 3, 4])[1]
    assert announce(pipelines, [first, other, third]).why is Why.BROKEN_CHAIN


def test_hops_over_ipv4_and_ipv6_can_not_be_copies_of_each_other():
    pipelines = made()
    first, second = hops([1, 2, 3])
    second = replace(second, connection=Connection.of("fd00::2", 1, "fd00::3", 9866))
    assert announce(pipelines, [first, second]).why is Why.MIXED_VERSIONS


@pytest.mark.parametrize("first", [("10.0.0.2", "10.0.0.2"), ("127.0.0.1", "127.0.0.1"), ("10.0.0.2", "127.0.1.1")])
def test_a_client_on_the_first_replicas_host_is_mirrored_from_there(first):
    pipelines = made()
    one, two, three = hops([2, 2, 3, 4])
    one = replace(one, connection=Connection.of(first[0], 1, first[1], 9866))
    found = announce(pipelines, [one, two, three])
    assert found.state is State.ARMING
    assert (found.tree.client, len(found.tree.replicas)) == (network().hosts["02:00:00:00:00:02"], 2)
    matches = {entry.match.ip_src for entry in found.entries.values()}
    assert matches == {"10.0.0.2"}


def test_a_recovery_with_a_new_generation_takes_the_place_of_the_old_pipeline():
    pipelines = made()
    old = announce(pipelines, hops([1, 2, 3, 4]))
    confirm(pipelines)
    before = present(pipelines)
    new = hops([1, 2, 4], generation=1002, port=41000)
    pipelines.announce(new[0], 1.0)
    assert present(pipelines) == set()
    with pytest.raises(KeyError):
        pipelines.get(old.id)
    assert announce(pipelines, new, 1.0).state is State.ARMING
    assert not present(pipelines) & before
    with pytest.raises(Refused) as late:
        announce(pipelines, hops([1, 2, 3, 4]), 2.0)
    assert late.value.why is Why.OUTDATED
    assert (pipelines.superseded, len(pipelines.all())) == (1, 1)


def test_a_hop_that_is_dialled_anew_is_mirrored_by_its_new_connection_alone():
    pipelines = made()
    one, two = hops([1, 2, 3])
    announce(pipelines, [one, two])
    assert SetField("tcp_src", 40000) in written(pipelines)
    again = replace(two, connection=replace(two.connection, source_port=50000))
    found = pipelines.announce(again, 1.0)
    assert found.state is State.ARMING
    assert SetField("tcp_src", 50000) in written(pipelines)
    assert SetField("tcp_src", 40000) not in written(pipelines)
    # The client's, too: nothing stays that takes its old segments.
    found = pipelines.announce(replace(one, connection=replace(one.connection, source_port=50000)), 2.0)
    assert {entry.match.l4_src for _, entry in present(pipelines)} == {50000}
    assert len(pipelines.all()) == 1


def test_a_connection_carries_one_pipeline_the_newest():
    pipelines = made()
    announce(pipelines, hops([1, 2, 3]))
    found = announce(pipelines, hops([1, 2, 4], block=2))
    assert [pipeline.id for pipeline in pipelines.all()] == [found.id]
    assert {entry.cookie for _, entry in present(pipelines)} == {entry.cookie for entry in found.entries.values()}


def test_a_connection_that_moves_within_its_pipeline_is_still_its_own():
    pipelines = made()
    one, two = hops([1, 2, 3])
    announce(pipelines, [one, two])
    announce(pipelines, [replace(one, connection=two.connection), replace(two, connection=one.connection)])
    found = pipelines.announce(hops([2, 3, 4], block=2)[0], 1.0)
    assert [pipeline.id for pipeline in pipelines.all()] == [found.id]


def test_a_pipeline_ends_when_an_owner_of_a_connection_no_longer_renews_its_lease():
    pipelines = made()
    some = hops([1, 2, 3])
    announce(pipelines, some, 0.0)
    announce(pipelines, hops([4, 5, 6], block=2), 0.0)
    for hop in some:
        pipelines.announce(hop, 9.0)
    # The second replica's DataNode is there on, the first's is gone.
    pipelines.announce(hops([4, 5, 6], block=2)[1], 9.0)
    assert pipelines.sweep(9.9) == 0
    assert pipelines.sweep(10.0) == 1
    assert [pipeline.block for pipeline in pipelines.all()] == [1]
    assert (pipelines.sweep(18.9), pipelines.sweep(19.0), pipelines.swept) == (0, 1, 2)
    assert present(pipelines) == set()


def test_there_is_a_bound_in_all_and_one_for_each_host():
    pipelines = made(Limits(pipelines=3, per_host=2, lease_s=10.0))
    announce(pipelines, hops([1, 2, 3], block=1))
    announce(pipelines, hops([1, 2, 3], block=2, port=2))
    with pytest.raises(Refused) as much:
        announce(pipelines, hops([1, 4, 5], block=3, port=3))
    assert much.value.why is Why.HOST_PIPELINES
    assert len(pipelines.all()) == 2
    announce(pipelines, hops([4, 5, 6], block=3, port=3))
    with pytest.raises(Refused) as full:
        announce(pipelines, hops([6, 5, 4], block=4, port=4))
    assert full.value.why is Why.ALL_PIPELINES
    pipelines.sweep(10.0)
    announce(pipelines, hops([1, 2, 3], block=5, port=5), 10.0)


def full_at_3(lease_s=10.0):
    """Hosts 1, 2 and 3 of eight have as many pipelines as they may; there is a third one, of which all hops but the
    last, to host 3, are announced.
    """
    pipelines = made(Limits(pipelines=8, per_host=2, lease_s=lease_s), network(hosts=(3, 3, 4, 5, 6, 6, 3, 4)))
    for block in (1, 2):
        announce(pipelines, hops([1, 2, 3], block=block, port=block))
    first, second, third = hops([4, 5, 6, 3], block=3, port=3)
    announce(pipelines, [first, second], 1.0)
    return pipelines, (first, second, third)


def test_a_pipeline_that_meets_a_full_host_is_kept_and_armed_when_that_has_room():
    pipelines, some = full_at_3()
    found = pipelines.announce(some[2], 2.0)
    assert (found.state, found.why, found.missing) == (State.REFUSED, Why.HOST_PIPELINES, ())
    assert "host 10.0.0.3" in found.what
    assert (pipelines.refused[Why.HOST_PIPELINES], [p.id for p in pipelines.take_settled()]) == (1, [found.id])
    # Its owners announce it on, which makes no room and counts nothing.
    assert [pipelines.announce(hop, 3.0).state for hop in some] == [State.REFUSED] * 3
    assert pipelines.refused[Why.HOST_PIPELINES] == 1
    assert told(pipelines, 6) == []
    pipelines.close(f"{POOL}~1~1001", 4.0)
    again = pipelines.get(found.id)
    assert (again.state, again.what, again.complete_s) == (State.ARMING, "", 4.0)
    assert pipelines.take_touched() >= at(5, 6, 3)
    confirm(pipelines, 4.5)
    assert pipelines.get(found.id).state is State.ARMED
    # Its leases are those that were announced.
    assert (pipelines.sweep(12.9), pipelines.sweep(13.0)) == (1, 1)


@pytest.mark.parametrize("how", ["lease", "generation", "connection", "dialled anew"])
def test_room_is_used_however_it_was_made(how):
    pipelines, some = full_at_3(lease_s=20.0)
    found = pipelines.announce(some[2], 2.0)
    if how == "lease":
        for hop in hops([1, 2, 3], block=2, port=2):
            pipelines.announce(hop, 10.0)
        pipelines.sweep(20.0)
    elif how == "generation":
        pipelines.announce(hops([1, 2, 7], block=1, generation=1002, port=4)[0], 3.0)
    elif how == "connection":
        pipelines.announce(hops([1, 2, 7], block=9, port=1)[0], 3.0)
    else:
        pipelines.announce(hops([1, 2, 7], block=1, port=1)[1], 3.0)
    assert pipelines.get(found.id).state is State.ARMING


def test_a_new_generation_has_the_place_of_the_old_one_before_those_that_wait():
    pipelines, some = full_at_3()
    found = pipelines.announce(some[2], 2.0)
    new = announce(pipelines, hops([1, 3, 2], generation=1002, port=4), 3.0)
    assert (new.state, pipelines.get(found.id).state) == (State.ARMING, State.REFUSED)


def test_a_pipeline_that_waits_takes_up_no_place_and_has_what_is_there_in_turn():
    pipelines, some = full_at_3()
    waiting = pipelines.announce(some[2], 2.0)
    there = [announce(pipelines, hops([4, 5, 6], block=block, port=block), 3.0) for block in (4, 5)]
    assert [p.state for p in there] == [State.ARMING] * 2
    first, second = hops([7, 8, 3], block=6, port=6)
    pipelines.announce(first, 3.0)
    later = pipelines.announce(second, 3.0)
    assert later.why is Why.HOST_PIPELINES
    pipelines.close(f"{POOL}~1~1001", 4.0)
    # The older one lacks room at host 4 now, which it says and is not counted for, so the later one has the place.
    assert "host 10.0.0.4" in pipelines.get(waiting.id).what
    assert (pipelines.get(later.id).state, pipelines.refused[Why.HOST_PIPELINES]) == (State.ARMING, 2)
    pipelines.close(there[0].id, 5.0)
    assert "host 10.0.0.3" in pipelines.get(waiting.id).what
    pipelines.close(later.id, 6.0)
    assert pipelines.get(waiting.id).state is State.ARMING


def test_a_pipeline_that_waits_for_room_without_all_of_its_hops_waits_for_these_then():
    pipelines, (first, second, third) = full_at_3()
    pipelines.close(f"{POOL}~3~1001", 1.0)
    pipelines.announce(second, 2.0)
    found = pipelines.announce(third, 2.0)
    assert (found.why, found.missing) == (Why.HOST_PIPELINES, (1,))
    pipelines.close(f"{POOL}~1~1001", 3.0)
    again = pipelines.get(found.id)
    assert (again.state, again.why, again.complete_s) == (State.ANNOUNCED, None, None)
    assert pipelines.announce(first, 4.0).state is State.ARMING


def test_a_pipeline_that_waits_for_room_can_be_ended_and_outlives_no_master():
    for how in ("close", "sweep", "clear"):
        pipelines, some = full_at_3()
        found = pipelines.announce(some[2], 2.0)
        if how == "close":
            pipelines.close(found.id, 3.0)
        elif how == "sweep":
            pipelines.sweep(20.0)
        else:
            pipelines.clear()
        with pytest.raises(KeyError):
            pipelines.get(found.id)
        assert not pipelines._roomless


def test_a_lost_link_leads_the_tree_around_it_and_it_is_confirmed_anew():
    pipelines = made()
    found = announce(pipelines, hops([1, 3, 4]))
    confirm(pipelines)
    (spine,) = {step.dpid for step in found.tree.steps} & {1, 2}
    whole = network()
    lost = {link for link in whole.links if spine in (link.a.dpid, link.b.dpid)}
    pipelines.network(replace(whole, links=whole.links - lost), 1.0)
    after = pipelines.get(found.id)
    assert after.state is State.ARMING
    assert {step.dpid for step in after.tree.steps} & {1, 2} == {3 - spine}
    confirm(pipelines)
    assert (pipelines.get(found.id).state, pipelines.armed) == (State.ARMED, 1)
    pipelines.network(replace(whole, links=frozenset()), 2.0)
    refused = pipelines.get(found.id)
    assert (refused.why, present(pipelines)) == (Why.NO_PATH, set())
    pipelines.network(whole, 3.0)
    assert pipelines.get(found.id).state is State.ARMING


def test_a_host_that_becomes_known_is_mirrored_then():
    pipelines = made(of=network(hosts=(3, 3, 4)))
    found = announce(pipelines, hops([1, 2, 4]))
    assert found.why is Why.UNKNOWN_HOST
    pipelines.network(network(hosts=(3, 3, 4, 5)), 1.0)
    assert pipelines.get(found.id).state is State.ARMING


def test_a_host_more_changes_nothing():
    pipelines = made(of=network(hosts=(3, 3, 4, 5)))
    found = announce(pipelines, hops([1, 2, 3]))
    confirm(pipelines)
    pipelines.take_changes()
    pipelines.network(network(hosts=(3, 3, 4, 5, 6)), 1.0)
    assert not pipelines.take_changes()
    assert pipelines.get(found.id).state is State.ARMED


def test_what_a_switch_refuses_is_not_mirrored_anywhere():
    pipelines = made()
    found = announce(pipelines, hops([1, 3, 4]))
    dpid, entry = next(iter(found.entries.items()))
    pipelines.switch_refused(dpid, frozenset({entry}), "switch s1: its flow table is full")
    refused = pipelines.get(found.id)
    assert (refused.why, refused.what) == (Why.SWITCH, "switch s1: its flow table is full")
    assert present(pipelines) == set()
    pipelines.network(Topology(), 1.0)  # it stays so, whatever else happens
    assert pipelines.get(found.id).why is Why.SWITCH


def test_a_switch_that_was_away_confirms_once_more():
    pipelines = made()
    found = announce(pipelines, hops([1, 3, 4]))
    confirm(pipelines)
    dpid = next(iter(found.entries))
    pipelines.switch_anew(dpid)
    assert pipelines.get(found.id).waits_for == {dpid}
    confirm(pipelines)
    assert (pipelines.get(found.id).state, pipelines.armed) == (State.ARMED, 1)


def test_another_controller_makes_the_same_entries():
    one, two = made(), made()
    announce(two, hops([4, 5, 6], block=7))
    announce(one, hops([1, 2, 3, 4]))
    announce(two, hops([1, 2, 3, 4]))
    assert present(one) < present(two)


def test_each_replicas_agent_is_told_its_connections_as_soon_as_switches_are_given_entries():
    pipelines = made()
    one, two, three = hops([1, 2, 3, 4])
    announce(pipelines, [one, two])
    assert [told(pipelines, host) for host in (1, 2, 3, 4)] == [[]] * 4
    found = announce(pipelines, [three])
    assert (found.state, pipelines.take_touched()) == (State.ARMING, at(2, 3, 4))
    assert [told(pipelines, host) for host in (1, 2, 3, 4)] == [
        [], [(1, True, None)], [(2, False, None)], [(3, False, None)],
    ]  # fmt: skip
    (flow,) = flows_of(pipelines.of(at(3)), at(3))
    assert (flow.id, flow.receive, flow.send) == (found.id, two.connection, three.connection)
    (last,) = flows_of(pipelines.of(at(4)), at(4))
    assert (last.receive, last.send) == (three.connection, None)
    # A host of two addresses is told each flow once; one of two replicas has both.
    assert flows_of(pipelines.of(at(3) | {"fd00::3"}), at(3) | {"fd00::3"}) == (flow,)
    both = frozenset((*at(3), *at(4)))
    assert flows_of(pipelines.of(both), both) == (flow, last)
    confirm(pipelines)
    assert pipelines.take_touched() == pipelines.take_ended() == frozenset()
    pipelines.close(found.id, 1.0)
    assert (pipelines.take_touched(), pipelines.take_ended()) == (frozenset(), at(2, 3, 4))
    assert told(pipelines, 3) == []


def test_the_second_replica_leads_where_the_client_is_on_the_first_ones_host():
    pipelines = Pipelines(LIMITS)
    pipelines.network(network(), 0.0)
    pipelines.served(at(3, 4), frozenset(), 0.0)  # the first one takes no part, and needs no agent
    found = announce(pipelines, hops([2, 2, 3, 4]))
    assert (found.state, found.lead) == (State.ARMING, 2)
    assert [told(pipelines, host) for host in (2, 3, 4)] == [[], [(2, True, None)], [(3, False, None)]]
    client, first = (pipelines.get(found.id).hops[position] for position in (1, 2))
    pipelines.head(Head(found.id, client, 7), at(2))
    pipelines.head(Head(found.id, first, 8), at(3))
    assert [told(pipelines, host) for host in (3, 4)] == [[(2, True, None)], [(3, False, 8)]]


def test_where_the_stream_begins_comes_from_the_lead_alone_and_goes_to_the_others():
    pipelines = made()
    found = announce(pipelines, hops([1, 2, 3, 4]))
    pipelines.take_touched()
    for stranger in (at(1), at(3), at(4), at(7), frozenset()):
        pipelines.head(head(found, 5), stranger)
    for other in (f"{POOL}~1~1002", f"{POOL}~2~1001", "x", "", "a~b~c"):
        pipelines.head(replace(head(found, 5), id=other), at(2))
    for position in (2, 3):
        pipelines.head(Head(found.id, found.hops[position], 5), at(2, 3, 4))
    assert (pipelines.take_touched(), pipelines.get(found.id).head) == (frozenset(), None)
    pipelines.head(head(found, 0), at(2))
    assert (pipelines.take_touched(), told(pipelines, 4)) == (at(3, 4), [(3, False, 0)])
    pipelines.head(head(found, 0), at(2))
    assert pipelines.take_touched() == frozenset()
    # Two starts can't both be right.
    pipelines.head(head(found, 1), at(2))
    refused = pipelines.get(found.id)
    assert (refused.why, pipelines.refused[Why.TWO_HEADS], present(pipelines)) == (Why.TWO_HEADS, 1, set())
    assert pipelines.take_touched() == at(2, 3, 4)
    assert told(pipelines, 3) == []
    for again in (0, 1, 2):
        pipelines.head(head(found, again), at(2))
    pipelines.served(frozenset(), at(3), 1.0)
    pipelines.served(at(3), frozenset(), 2.0)
    assert (pipelines.get(found.id), pipelines.refused[Why.TWO_HEADS]) == (refused, 1)


def test_where_the_stream_begins_is_taken_while_another_agent_is_away_too():
    pipelines = made()
    found = announce(pipelines, hops([1, 2, 3, 4]))
    pipelines.served(frozenset(), at(4), 1.0)
    pipelines.take_touched()
    pipelines.head(head(found, 5), at(2))
    assert pipelines.take_touched() == frozenset()
    pipelines.served(at(4), frozenset(), 2.0)
    assert told(pipelines, 4) == [(3, False, 5)]


def test_what_an_agent_can_not_take_part_in_is_not_mirrored():
    pipelines = made()
    found = announce(pipelines, hops([1, 2, 3, 4]))
    other = announce(pipelines, hops([5, 6, 1], block=2))
    for identity, addresses in ((found.id, at(1)), (found.id, at(5)), (f"{POOL}~7~1001", at(2)), ("x", at(2))):
        pipelines.failed(identity, "no", addresses)
    assert pipelines.get(found.id).state is State.ARMING
    pipelines.failed(found.id, "its map of flows is full", at(3))
    refused = pipelines.get(found.id)
    assert (refused.why, refused.what) == (Why.AGENT, "its map of flows is full")
    assert present(pipelines) == set(pipelines.get(other.id).entries.items())
    pipelines.served(frozenset(), at(3), 1.0)
    pipelines.served(at(3), frozenset(), 2.0)
    pipelines.failed(found.id, "and again", at(3))
    assert pipelines.get(found.id) == refused
    # With another connection it is another matter.
    first = replace(hops([1, 2, 3, 4])[0], connection=Connection.of("10.0.0.1", 7, "10.0.0.2", 9866))
    assert pipelines.announce(first, 3.0).state is State.ARMING


def test_a_start_is_of_one_connection_and_is_forgotten_with_it():
    pipelines = made()
    one, two = hops([1, 2, 3])
    found = announce(pipelines, [one, two])
    pipelines.head(head(found, 5), at(2))
    # Another connection than the lead's is dialled anew: the stream is the same.
    pipelines.announce(replace(two, connection=replace(two.connection, source_port=50000)), 1.0)
    assert told(pipelines, 3) == [(2, False, 5)]
    again = pipelines.announce(replace(one, connection=replace(one.connection, source_port=50000)), 1.0)
    assert told(pipelines, 3) == [(2, False, None)]
    # What the agent says of the one before is not of this one, and no second start of it.
    for zero in (5, 7):
        pipelines.head(head(found, zero), at(2))
    assert (told(pipelines, 3), pipelines.get(found.id).state) == ([(2, False, None)], State.ARMING)
    pipelines.head(head(again, 6), at(2))
    assert told(pipelines, 3) == [(2, False, 6)]
    # The ports of before, in a connection that is not the one of before.
    pipelines.announce(one, 2.0)
    assert told(pipelines, 3) == [(2, False, None)]
    pipelines.head(head(found, 9), at(2))
    assert told(pipelines, 3) == [(2, False, 9)]
    new = announce(pipelines, hops([1, 2, 3], generation=1002, port=41000))
    assert pipelines.take_touched() == at(2, 3)
    assert [flow.id for flow in flows_of(pipelines.of(at(3)), at(3))] == [new.id]
    assert told(pipelines, 3) == [(2, False, None)]


def test_a_pipeline_waits_for_agents_at_all_replicas_that_take_part():
    pipelines = Pipelines(LIMITS)
    pipelines.network(network(), 0.0)
    found = announce(pipelines, hops([1, 2, 3, 4]))
    assert (found.state, found.why) == (State.REFUSED, Why.NO_AGENT)
    assert found.what == "no agent on hosts 10.0.0.2, 10.0.0.3, 10.0.0.4: start `trunkline mirror run` there"
    pipelines.served(at(2, 4), frozenset(), 1.0)
    assert pipelines.get(found.id).what == "no agent on host 10.0.0.3: start `trunkline mirror run` there"
    assert (present(pipelines), pipelines.take_touched(), pipelines.refused[Why.NO_AGENT]) == (set(), frozenset(), 1)
    pipelines.served(at(3), frozenset(), 2.0)
    assert pipelines.get(found.id).state is State.ARMING
    confirm(pipelines, 2.5)
    armed = pipelines.get(found.id)
    assert (armed.state, armed.armed_s - armed.complete_s) == (State.ARMED, 0.5)  # the agent's coming is not counted


def test_copies_end_when_an_agent_goes_and_begin_again_when_it_comes():
    pipelines = made()
    found = announce(pipelines, hops([1, 2, 3, 4]))
    other = announce(pipelines, hops([1, 5, 6], block=2, port=2))
    confirm(pipelines)
    pipelines.head(head(found, 5), at(2))
    pipelines.take_changes()
    pipelines.take_touched()
    pipelines.served(frozenset(), at(3, 7), 1.0)
    assert (pipelines.get(found.id).why, pipelines.take_touched()) == (Why.NO_AGENT, at(2, 3, 4))
    assert present(pipelines) == set(pipelines.get(other.id).entries.items())
    assert {d for d, some in pipelines.take_changes().removed.items() if some} == set(found.entries)
    pipelines.served(at(3), frozenset(), 2.0)
    again = pipelines.get(found.id)
    assert (again.state, dict(again.entries), pipelines.take_touched()) == (
        State.ARMING,
        dict(found.entries),
        at(2, 3, 4),
    )
    assert told(pipelines, 4) == [(3, False, 5)]  # the connection is the same
    confirm(pipelines, 3.0)
    assert (pipelines.get(found.id).state, pipelines.armed) == (State.ARMED, 2)
    # A client's host and one that has no part need none.
    pipelines.served(frozenset(), at(1, 8), 4.0)
    assert pipelines.get(found.id).state is State.ARMED


class Anything(RuleBasedStateMachine):
    """Whatever happens in whatever order: what is told by changes is what should be there, and bounds hold."""

    def __init__(self):
        super().__init__()
        self.now = 0.0
        self.pipelines = made()
        self.told = set()
        self.agents = EVERYWHERE
        self.flows = {}

    @rule(
        hosts=st.lists(st.integers(1, 7), min_size=2, max_size=5),
        block=st.integers(1, 6),
        generation=st.integers(1, 3),
        port=st.integers(1, 3),
        which=st.integers(0, 3),
    )
    def announces(self, hosts, block, generation, port, which):
        some = hops(hosts, block, generation, port)
        try:
            self.pipelines.announce(some[which % len(some)], self.now)
        except Refused as refused:
            assert refused.what

    @rule(hosts=st.permutations(range(1, 7)), length=st.integers(3, 5), block=st.integers(1, 6), port=st.integers(1, 9))
    def announces_all(self, hosts, length, block, port):
        for hop in hops(hosts[:length], block, 3, port):
            try:
                self.pipelines.announce(hop, self.now)
            except Refused:
                return

    @rule(index=st.integers(0, 5))
    def closes(self, index):
        there = self.pipelines.all()
        if there:
            self.pipelines.close(there[index % len(there)].id, self.now)

    @rule(seconds=st.sampled_from([0.1, 4.0, 11.0]))
    def waits(self, seconds):
        self.now += seconds
        self.pipelines.sweep(self.now)

    @rule(kept=st.integers(0, 8), hosts=st.lists(st.integers(3, 6), min_size=3, max_size=6))
    def changes_network(self, kept, hosts):
        whole = network(hosts)
        self.pipelines.network(replace(whole, links=frozenset(sorted(whole.links)[:kept])), self.now)

    @rule(hosts=st.frozensets(st.integers(1, 7), max_size=3), come=st.booleans())
    def agents_move(self, hosts, come):
        nowhere = frozenset()
        self.pipelines.served(*((at(*hosts), nowhere) if come else (nowhere, at(*hosts))), self.now)
        self.agents = self.agents | at(*hosts) if come else self.agents - at(*hosts)

    @rule(index=st.integers(0, 5), zero=st.integers(1, 2), host=st.integers(1, 7))
    def tells_head(self, index, zero, host):
        there = self.pipelines.all()
        if there:
            pipeline = there[index % len(there)]
            for hop in pipeline.hops.values():
                self.pipelines.head(Head(pipeline.id, hop, zero), at(host))

    @rule(dpid=st.integers(1, 6))
    def confirms(self, dpid):
        self.pipelines.confirmed(dpid, self.pipelines.waiting(dpid), self.now)

    @rule(dpid=st.integers(1, 6))
    def refuses(self, dpid):
        self.pipelines.switch_refused(dpid, self.pipelines.waiting(dpid), "full")

    @rule(dpid=st.integers(1, 6))
    def comes_back(self, dpid):
        self.pipelines.switch_anew(dpid)

    @invariant()
    def holds(self):
        there = self.pipelines.all()
        wanted = {(dpid, entry) for pipeline in there for dpid, entry in pipeline.entries.items()}
        changes = self.pipelines.take_changes()
        added = {(dpid, entry) for dpid, some in changes.added.items() for entry in some}
        removed = {(dpid, entry) for dpid, some in changes.removed.items() for entry in some}
        assert not added & removed
        self.told = (self.told - removed) | added
        mirrored = {
            (dpid, entry)
            for dpid in range(1, 7)
            for entry in self.pipelines.entries(dpid)
            if any(isinstance(action, Output) for action in entry.actions)
        }
        assert wanted == self.told == mirrored
        assert len({(dpid, entry.key) for dpid, entry in wanted}) == len(wanted)  # none in the place of another
        assert len(there) <= LIMITS.pipelines
        hosts = [
            {a for hop in p.hops.values() for a in (hop.source, hop.destination)}
            for p in there
            if p.why is not Why.HOST_PIPELINES
        ]
        full = {host for host in set().union(*hosts) if sum(host in some for some in hosts) >= LIMITS.per_host}
        assert all(sum(host in some for some in hosts) == LIMITS.per_host for host in full)
        # Who waits for room has none at one host at least, which it names.
        roomless = {(p.pool, p.block): p for p in there if p.why is Why.HOST_PIPELINES}
        waits = [(host, key) for host, keys in self.pipelines._roomless.items() for key in keys]
        assert sorted(key for _, key in waits) == sorted(roomless)
        assert all(host in full and f"host {host} " in roomless[key].what for host, key in waits)
        for pipeline in there:
            assert (pipeline.state is State.ARMING) == bool(pipeline.waits_for)
            assert (pipeline.state is State.ARMED) <= bool(pipeline.entries)
            assert (pipeline.state in (State.ANNOUNCED, State.REFUSED)) == (not pipeline.entries)
        assert set(self.pipelines._of_host) == set().union(*hosts)
        assert self.pipelines._waiting == {
            dpid: {(p.pool, p.block) for p in there if dpid in p.waits_for} for p in there for dpid in p.waits_for
        }
        # Agents that are told something else are named; who is told of a pipeline is there, and nobody leads twice.
        touched = self.pipelines.take_touched() | self.pipelines.take_ended()
        for n in range(1, 8):
            now = flows_of(self.pipelines.of(at(n)), at(n))
            assert now == self.flows.get(n, ()) or at(n) <= touched
            assert not now or at(n) <= self.agents
            assert all((flow.head is None) >= flow.lead for flow in now)
            self.flows[n] = now
        assert set(self.pipelines._of_connection) == {c for p in there for c in p.hops.values()}
        settled = self.pipelines.take_settled()
        assert all(p.settled or p not in there for p in settled)


TestAnything = Anything.TestCase
TestAnything.settings = settings(max_examples=40, stateful_step_count=30)
