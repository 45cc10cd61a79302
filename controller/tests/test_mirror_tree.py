"""Distribution trees: the paper's example, and on any network each replica gets each segment exactly once."""

import itertools
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_desired import peopled
from test_paths import leaf_spine, topology

from trunkline_controller.flows.entry import FlowEntry, Match, Output, SetField, Table
from trunkline_controller.mirror.entries import IN_PORT, MARK, Connection, entries, guard
from trunkline_controller.mirror.tree import NoTree, Paths, ascending, bytes_by_class, equation_7, saving, tiers
from trunkline_controller.net.topology import End

SA, SB, SC, SD, SE = 1, 2, 3, 4, 5
FIGURE_1 = {SA: 0, SB: 1, SC: 2, SD: 1, SE: 0}  # tiers


def figure_1(client_at=SC):
    """The paper's figure 1: D1 and D2 in the rack of S_a, D3 in that of S_e; the client in the Internet, behind S_c."""
    network = peopled(topology(5, [(SA, SB), (SB, SC), (SC, SD), (SD, SE)]), [client_at, SA, SA, SE])
    hosts = [network.hosts[f"02:00:00:00:00:0{n}"] for n in (1, 2, 3, 4)]
    return network, hosts[0], hosts[1:]


def routes_of(paths, hosts, draw=0):
    return [paths.route(one, other, draw) for one, other in itertools.pairwise(hosts)]


def toward(network, end):
    """What a port leads to: a switch's datapath id, or a host's MAC address."""
    far = network.link_ends()
    return far[end].dpid if end in far else next(host.mac for host in network.hosts.values() if host.at == end)


def test_table_1_of_the_paper():
    network, client, (d1, d2, d3) = figure_1()
    tree = Paths(network).tree(client, [d1, d2, d3])
    found = {
        step.dpid: (
            toward(network, End(step.dpid, step.in_port)),
            {toward(network, End(step.dpid, port)) for port in step.forwarding},
        )
        for step in tree.steps
    }
    assert found == {
        SA: (SB, {d1.mac, d2.mac}),
        SB: (SC, {SA}),
        SC: (client.mac, {SB, SD}),
        SD: (SC, {SE}),
        SE: (SD, {d3.mac}),
    }


def test_equation_7_and_the_tree_agree_where_the_client_is_above_all_replicas():
    network, client, replicas = figure_1()
    paths = Paths(network)
    tree, routes = paths.tree(client, replicas), routes_of(paths, [client, *replicas])
    # The paper's links 5, 7, 8 and 9, of 2 to 12 and, in this network, link 1 as well.
    assert [ascending(route, FIGURE_1) for route in routes] == [1, 1, 3]
    assert sum(len(route.senders()) for route in routes) == 12
    assert equation_7(routes, FIGURE_1) == pytest.approx(4 / 12)
    assert saving(tree, routes) == pytest.approx(4 / 12)


def test_a_client_below_pays_for_the_way_up_to_other_racks_which_equation_7_does_not_count():
    network, client, replicas = figure_1(client_at=SA)
    paths = Paths(network)
    tree, routes = paths.tree(client, replicas), routes_of(paths, [client, *replicas])
    assert sum(len(route.senders()) for route in routes) == 2 + 2 + 6
    assert equation_7(routes, FIGURE_1) == pytest.approx((1 + 3) / 10)
    assert saving(tree, routes) == pytest.approx((1 + 3 - 2) / 10)  # S_a to S_b to S_c are climbed once


def test_bytes_are_told_by_class_of_links():
    network, client, replicas = figure_1()
    tree = Paths(network).tree(client, replicas)
    assert bytes_by_class(tree.senders(), 10, network, FIGURE_1) == {
        "host to switch": 10, "tier 2 to 1": 20, "tier 1 to 0": 20, "switch to host": 30,
    }  # fmt: skip
    network = replace(network, hosts={mac: host for mac, host in network.hosts.items() if host != client})
    assert tiers(network) == FIGURE_1


def test_replicas_that_share_a_way_share_its_links_among_equal_paths():
    network = peopled(leaf_spine(4, 4), [5, 6, 7, 7])
    client, *replicas = network.hosts.values()
    for draw in range(20):
        tree = Paths(network).tree(client, replicas, draw)
        # Its host's link, one up, and down to two leaves and three hosts.
        assert len(tree.senders()) == 1 + 1 + 2 + 3


def test_equal_paths_are_all_in_use():
    network = peopled(leaf_spine(2, 4), [5, 6, 6])
    client, *replicas = network.hosts.values()
    assert {Paths(network).tree(client, replicas, draw).steps[1].dpid for draw in range(40)} == {1, 2, 3, 4}


def test_a_replica_without_a_path_has_no_tree():
    network = peopled(topology(3, [(1, 2)]), [1, 2, 3])
    client, *replicas = network.hosts.values()
    with pytest.raises(NoTree, match="0000000000000003"):
        Paths(network).tree(client, replicas)


@st.composite
def networks(draw):
    """All switches are connected, by a tree and some cables more; five to nine hosts."""
    size = draw(st.integers(1, 8))
    cables = [(draw(st.integers(max(1, n - 3), n - 1)), n) for n in range(2, size + 1)]
    pair = st.tuples(st.integers(1, size), st.integers(1, size)).filter(lambda p: p[0] != p[1])
    cables += draw(st.lists(pair, max_size=6)) if size > 1 else []
    return peopled(topology(size, cables), draw(st.lists(st.integers(1, size), min_size=5, max_size=9)))


@st.composite
def pipelines(draw):
    """A network, and one or two pipelines in it: (client, replicas, connections)."""
    network = draw(networks())
    made = []
    ipv6 = draw(st.booleans())
    for number in range(draw(st.integers(1, 2))):
        first, *others = draw(st.permutations(sorted(network.hosts.values(), key=lambda host: host.mac)))
        replicas = others[: draw(st.integers(2, 4))]
        # Else on a later replica's own host, whose port its packets come in by.
        client = replicas[-1] if draw(st.integers(0, 3)) == 0 else first
        hosts = [client, *replicas]
        connections = [
            Connection.of(_ip(one, ipv6), 40000 + number, _ip(two, ipv6), 9866)
            for one, two in itertools.pairwise(hosts)
        ]
        made.append((client, replicas, connections))
    return network, made


def _ip(host, ipv6):
    number = int(host.mac[-2:], 16)
    return f"fd00::{number:x}" if ipv6 else f"10.0.0.{number}"


def walk(network, tables, at, packet):
    """What comes out at hosts' ports, as (port, packet), and what was sent, as (end, whether marked), for a packet that
    comes in at a switch's port. A packet is a dict of OXM fields. What no mirror entry takes goes by a shortest path.
    """
    paths = Paths(network)
    far = network.link_ends()
    macs = {host.mac: host for host in network.hosts.values()}
    out, sent, queue = [], [], [(at, packet)]
    while queue:
        here, packet = queue.pop()
        assert len(sent) < 200, "a loop"
        table = Table.ADMIT
        entry = _highest(tables[here.dpid], table, here.port, packet)
        if entry is not None and entry.goto is None:
            continue  # dropped
        entry = _highest(tables[here.dpid], Table.FORWARD, here.port, packet)
        if entry is None:
            target = macs[packet["eth_dst"]]
            path = paths.route(replace(target, at=here), target).ports
            actions = (Output(next(end.port for end in path if end.dpid == here.dpid)),)
        else:
            actions = entry.actions
        packet = dict(packet)
        for action in actions:
            if isinstance(action, SetField):
                packet[action.field] = action.value
                continue
            if action.port == here.port:
                continue  # OpenFlow sends nothing back where it came from …
            end = End(here.dpid, here.port if action.port == IN_PORT else action.port)  # … unless it is told so
            sent.append((end, packet["eth_src"].startswith(MARK)))
            if end in far:
                queue.append((far[end], dict(packet)))
            else:
                out.append((end, dict(packet)))
    return out, sent


def _highest(of_switch, table, in_port, packet):
    found = [e for e in of_switch if e.table is table and _matches(e.match, in_port, packet)]
    assert len({e.priority for e in found}) == len(found), "two entries of one priority take the same packet"
    return max(found, key=lambda entry: entry.priority, default=None)


def _matches(match: Match, in_port, packet):
    family = "ipv6" if "ipv6_src" in packet else "ipv4"
    return (
        match.in_port in (None, in_port)
        and (match.eth_src is None or packet["eth_src"].startswith(MARK))
        and match.eth_type in (None, packet["eth_type"])
        and match.ip_src in (None, packet.get(f"{family}_src"))
        and match.ip_dst in (None, packet.get(f"{family}_dst"))
        and match.l4_src in (None, packet["tcp_src"])
        and match.l4_dst in (None, packet["tcp_dst"])
    )


def segment(source, target, connection, eth_src=None):
    family = "ipv6" if connection.is_ipv6 else "ipv4"
    return {
        "eth_src": eth_src or source.mac,
        "eth_dst": target.mac,
        "eth_type": 0x86DD if connection.is_ipv6 else 0x0800,
        f"{family}_src": connection.source,
        f"{family}_dst": connection.destination,
        "tcp_src": connection.source_port,
        "tcp_dst": connection.destination_port,
    }


def tables_of(network, made, draw=0):
    tables: dict[int, set[FlowEntry]] = {dpid: set(kept) for dpid, kept in guard(network).items()}
    for number, (client, replicas, connections) in enumerate(made):
        for dpid, entry in entries(Paths(network).tree(client, replicas, draw), connections, number).items():
            assert entry.key not in {other.key for other in tables[dpid]}
            tables[dpid].add(entry)
    return tables


@given(pipelines(), st.integers(0, 3))
def test_each_replica_gets_each_segment_once_with_the_header_of_its_hop(case, draw):
    network, made = case
    tables = tables_of(network, made, draw)
    for client, replicas, connections in made:
        out, sent = walk(network, tables, client.at, segment(client, replicas[0], connections[0]))
        expected = []
        for position, (host, connection) in enumerate(zip(replicas, connections, strict=True), 1):
            source = client.mac if position == 1 else f"{MARK}:00:00:{position:02x}"
            expected.append((host.at, segment(client, host, connection, source)))
        assert sorted(out, key=str) == sorted(expected, key=str)
        assert max(Counter(end for end, _ in sent).values()) == 1  # no cable carries it twice in one direction
        tree = Paths(network).tree(client, replicas, draw)
        assert len(sent) == len(tree.senders()) - 1  # one is the client's own link


@given(pipelines())
def test_a_mark_from_a_host_goes_nowhere(case):
    network, made = case
    tables = tables_of(network, made)
    for client, replicas, connections in made:
        for host in network.hosts.values():
            for source in (f"{MARK}:00:00:00", f"{MARK}:00:00:02"):
                forged = segment(client, replicas[0], connections[0], source)
                assert walk(network, tables, host.at, forged) == ([], [])


@given(pipelines())
def test_what_was_not_announced_is_not_mirrored(case):
    network, made = case
    tables = tables_of(network, made)
    for client, replicas, connections in made:
        strange = replace(connections[0], source_port=1)
        out, _ = walk(network, tables, client.at, segment(client, replicas[0], strange))
        assert [end for end, _ in out] == [replicas[0].at]


def test_another_host_of_a_switch_is_not_mirrored_there_with_the_clients_addresses():
    network = peopled(topology(1, []), [1, 1, 1, 1])
    client, d1, d2, other = network.hosts.values()
    connections = [Connection.of("10.0.0.1", 1, "10.0.0.2", 2), Connection.of("10.0.0.2", 3, "10.0.0.3", 2)]
    tables = tables_of(network, [(client, [d1, d2], connections)])
    assert len(walk(network, tables, client.at, segment(client, d1, connections[0]))[0]) == 2
    assert len(walk(network, tables, other.at, segment(other, d1, connections[0]))[0]) == 1


@given(pipelines(), st.data())
def test_while_entries_are_missing_nothing_loops_and_the_first_replica_gets_it_once(case, data):
    """As between the first and the last switch that confirms, or one that has lost its entries."""
    network, made = case
    whole = tables_of(network, made)
    mirrors = [(dpid, e) for dpid, kept in whole.items() for e in kept if e.priority in (44, 46)]
    mirrors.sort(key=str)
    gone = data.draw(st.sets(st.sampled_from(range(len(mirrors)))))
    for index in gone:
        dpid, entry = mirrors[index]
        whole[dpid].discard(entry)
    for client, replicas, connections in made:
        out, _ = walk(network, whole, client.at, segment(client, replicas[0], connections[0]))
        assert [end for end, _ in out].count(replicas[0].at) == 1
        assert max(Counter(end for end, _ in out).values()) == 1


def test_the_header_is_rewritten_at_the_last_switch_and_switches_after_the_last_fork_need_no_entry():
    network, client, replicas = figure_1()
    connections = [
        Connection.of("192.0.2.1", 40000, "10.0.0.1", 9866),
        Connection.of("10.0.0.1", 41000, "10.0.0.2", 9866),
        Connection.of("10.0.0.2", 42000, "10.0.0.3", 9866),
    ]
    found = entries(Paths(network).tree(client, replicas), connections)
    rewriting = {dpid for dpid, entry in found.items() if any(a == SetField("tcp_dst", 9866) for a in entry.actions)}
    assert (set(found), rewriting) == ({SA, SB, SC, SD, SE}, {SA, SE})
    # D1 alone in a far rack: from the fork on its segments go as ever.
    found = entries(Paths(network).tree(replicas[2], [replicas[0], client]), connections[:2])
    assert set(found) == {SE, SD, SC}


def test_addresses_are_written_in_one_way():
    assert Connection.of("::ffff:10.0.0.1", 1, "FD00:0::1", 2) == Connection("10.0.0.1", 1, "fd00::1", 2)
    for wrong in ("fe80::1%eth0", "node1", ""):
        with pytest.raises(ValueError):
            Connection.of(wrong, 1, "10.0.0.1", 2)
