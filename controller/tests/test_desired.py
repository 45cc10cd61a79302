"""Desired tables carry packets where they should go, on any network; differences lead from any state to them."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from test_paths import leaf_spine, topologies

from trunkline_controller.flows.desired import CONTROLLER_MAC, Desired, group_numbers, host_of, is_ours
from trunkline_controller.flows.difference import (
    AddFlow,
    AddGroup,
    DeleteFlow,
    DeleteGroup,
    ModifyGroup,
    difference,
)
from trunkline_controller.flows.entry import (
    CONTROLLER,
    FlowEntry,
    Match,
    Output,
    Owner,
    SelectGroup,
    SetQueue,
    Table,
    Tables,
    ToGroup,
    cookie,
)
from trunkline_controller.net.topology import End, Host

EDGE = 100  # first port toward hosts, in these networks


def peopled(network, hosts):
    """`hosts`: switches, one for each host."""
    made, edges = {}, set()
    for number, dpid in enumerate(hosts, 1):
        mac = f"02:00:00:00:00:{number:02x}"
        made[mac] = Host(mac, End(dpid, EDGE + number))
        edges.add(made[mac].at)
    return replace(network, hosts=made, edges=frozenset(edges))


@st.composite
def peopled_networks(draw):
    network = draw(topologies())
    return peopled(network, draw(st.lists(st.sampled_from(sorted(network.switches)), max_size=8)))


def forwarded(network, tables, at, dst, port_of):
    """Ports toward hosts at which a packet comes out, CONTROLLER included; `port_of` chooses among a group's ports."""
    far, out, queue, steps = network.link_ends(), [], [at], 0
    while queue:
        here = queue.pop()
        steps += 1
        assert steps < 100, "a loop"
        multicast = int(dst[:2], 16) & 1
        matching = [
            entry
            for entry in tables[here.dpid].flows
            if entry.table is Table.FORWARD
            and entry.match.in_port in (None, here.port)
            and (entry.match.eth_dst in (None, dst) or (multicast and "/" in entry.match.eth_dst))
        ]
        entry = max(matching, key=lambda entry: entry.priority)
        for action in entry.actions:
            port = port_of(tables[here.dpid].groups[action.group].ports) if isinstance(action, ToGroup) else action.port
            end = End(here.dpid, port)
            if port == CONTROLLER:
                out.append(CONTROLLER)
            elif end in far:
                if end != here:
                    queue.append(far[end])
            elif end != here:
                out.append(end)
    return out


def connected(network, one, other):
    found, queue = {one}, [one]
    while queue:
        here = queue.pop()
        for link in network.links:
            if here in (link.a.dpid, link.b.dpid) and (there := link.far(here).dpid) not in found:
                found.add(there)
                queue.append(there)
    return other in found


@given(peopled_networks(), st.sampled_from([min, max]))
def test_a_packet_comes_out_at_its_host_alone_or_at_the_controller_where_there_is_no_way(network, port_of):
    tables = Desired().tables(network)
    for source in network.hosts.values():
        for target in network.hosts.values():
            if source != target:
                way = connected(network, source.at.dpid, target.at.dpid)
                expected = [target.at] if way else [CONTROLLER]
                assert forwarded(network, tables, source.at, target.mac, port_of) == expected


@given(peopled_networks())
def test_a_broadcast_comes_out_once_at_each_port_toward_hosts_and_not_where_it_came_from(network):
    tables = Desired().tables(network)
    for source in network.hosts.values():
        expected = [end for end in network.edges if end != source.at and connected(network, source.at.dpid, end.dpid)]
        assert sorted(forwarded(network, tables, source.at, "ff:ff:ff:ff:ff:ff", min)) == sorted(expected)


def carry_out(present, changes):
    """What a switch has after the changes; it refuses what OpenFlow refuses."""
    flows, groups = {entry.key: entry for entry in present.flows}, dict(present.groups)
    for change in changes:
        match change:
            case AddGroup(group):
                assert group.number not in groups
                groups[group.number] = group
            case ModifyGroup(group):
                assert group.number in groups
                groups[group.number] = group
            case AddFlow(entry):
                assert all(action.group in groups for action in entry.actions if isinstance(action, ToGroup))
                flows[entry.key] = entry
            case DeleteFlow(entry):
                del flows[entry.key]
            case DeleteGroup(number):
                del groups[number]
                used = [action for entry in flows.values() for action in entry.actions if isinstance(action, ToGroup)]
                assert number not in [action.group for action in used]
    return Tables(frozenset(flows.values()), groups)


@settings(max_examples=50)
@given(peopled_networks(), peopled_networks())
def test_the_difference_leads_from_any_state_to_the_desired_one_and_then_there_is_none(before, after):
    old, new = Desired().tables(before), Desired().tables(after)
    for dpid, wanted in new.items():
        present = old.get(dpid, Tables())
        changes = difference(wanted, present)
        assert carry_out(present, changes) == wanted
        assert difference(wanted, wanted) == []
        untouched = wanted.flows & present.flows
        assert not untouched & {change.entry for change in changes if isinstance(change, AddFlow | DeleteFlow)}


def test_equal_networks_have_equal_tables_whoever_computes_them():
    network = peopled(leaf_spine(4, 2), [3, 4, 5, 6])
    assert Desired().tables(network) == Desired().tables(network)


def test_a_lost_link_changes_groups_and_floods_and_no_entry_of_a_host():
    network = peopled(leaf_spine(4, 2), [3, 4, 5, 6] * 5)
    desired = Desired()
    before = desired.tables(network)
    after = desired.tables(replace(network, links=network.links - {min(network.links)}))
    for dpid in before:
        for change in difference(after[dpid], before[dpid]):
            assert not isinstance(change, AddFlow | DeleteFlow) or host_of(change.entry) is None


def test_entries_by_host_are_shared_between_switches():
    tables = Desired().tables(peopled(leaf_spine(4, 2), [3]))
    entries = [entry for dpid in (1, 2, 4, 5, 6) for entry in tables[dpid].flows if entry.priority == 30]
    assert len(entries) == 5
    assert len({id(entry) for entry in entries}) == 1


def test_what_policy_says_goes_before_the_ways_from_table_to_table():
    network = peopled(leaf_spine(2, 1), [2, 3])
    classify = FlowEntry(Table.CLASSIFY, 50, Match(ip_proto=6), (SetQueue(2),), Table.FORWARD, cookie(Owner.POLICY, 1))
    default = FlowEntry(Table.CLASSIFY, 0, Match(), (SetQueue(1),), Table.FORWARD, cookie(Owner.POLICY, 2))
    for tables in Desired().tables(network, frozenset({classify, default})).values():
        assert {classify, default} == {entry for entry in tables.flows if entry.table is Table.CLASSIFY}


def test_entries_of_others_with_our_key_are_not_overwritten():
    wanted = Desired().tables(peopled(leaf_spine(1, 1), [2]))[2]
    foreign = next(entry for entry in wanted.flows if entry.table is Table.FORWARD)
    changes = difference(wanted, Tables(), {foreign.key})
    assert foreign not in [change.entry for change in changes if isinstance(change, AddFlow)]
    assert len(changes) == len(wanted.flows) + len(wanted.groups) - 1


def test_a_controller_that_does_not_know_the_whole_network_yet_adds_only():
    whole = Desired().tables(peopled(leaf_spine(3, 2), [3, 4, 5]))[3]
    part = Desired().tables(peopled(leaf_spine(3, 2), [3]))[3]
    part = replace(part, groups={number: SelectGroup(number, ports.ports[:1]) for number, ports in part.groups.items()})
    assert difference(part, whole, keep={Table.FORWARD}) == []
    lift = FlowEntry(Table.CLASSIFY, 9, Match(ip_proto=6), (SetQueue(2),), Table.FORWARD, cookie(Owner.LIFT))
    there = replace(whole, flows=whole.flows | {lift})
    assert difference(part, there, keep={Table.FORWARD}) == [DeleteFlow(lift)]
    assert difference(whole, part, keep={Table.FORWARD}) != []


def test_hosts_are_found_again_in_the_entries_that_lead_to_them():
    network = peopled(leaf_spine(2, 1), [2, 3])
    tables = Desired().tables(network)
    found = {(dpid, host_of(e)) for dpid, t in tables.items() for e in t.flows if host_of(e)}
    assert found == {(host.at.dpid, (mac, host.at.port)) for mac, host in network.hosts.items()}
    assert CONTROLLER_MAC not in [mac for _, (mac, _) in found]


@given(st.sets(st.integers(1, 2**64 - 1), max_size=20))
def test_each_switch_has_a_group_number_of_its_own(dpids):
    numbers = group_numbers(dpids)
    assert len(set(numbers.values())) == len(dpids)
    assert all(is_ours(number) for number in numbers.values())
    assert Output(1) != ToGroup(1)
