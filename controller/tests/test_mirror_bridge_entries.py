"""What flow entries of mirrors mean to bridges: each replica gets each segment once, as on OpenFlow switches."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from test_desired import peopled
from test_mirror_tree import figure_1, pipelines, segment, tables_of, walk
from test_paths import topology

from trunkline_controller.flows.entry import FlowEntry, Match, Output, Table
from trunkline_controller.mirror.bridge_entries import MAX_COPIES, Copy, Segments, admitted, copies
from trunkline_controller.mirror.entries import MARK, MAX_REPLICAS, Connection, guard
from trunkline_controller.mirror.tree import Paths
from trunkline_controller.net.topology import End


def of_bridges(tables):
    """By switch: the copies of segments, and the ports toward other bridges."""
    found = {}
    for dpid, flows in tables.items():
        made = [one for one in map(copies, flows) if one is not None]
        assert len({one.of for one in made}) == len(made)
        found[dpid] = {one.of: one.copies for one in made}, admitted(flows)
    return found


def bridged(network, tables, at, packet):
    """As `walk`, on bridges: they forward by themselves what is not marked."""
    bridges, paths, far = of_bridges(tables), Paths(network), network.link_ends()
    family = "ipv6" if "ipv6_src" in packet else "ipv4"
    out, sent, queue = [], [], [(at, packet)]
    while queue:
        here, packet = queue.pop()
        assert len(sent) < 200, "a loop"
        made, links = bridges[here.dpid]
        marked = packet["eth_src"].startswith(MARK)
        if marked and here.port not in links:
            continue
        ends = packet[f"{family}_src"], packet["tcp_src"], packet[f"{family}_dst"], packet["tcp_dst"]
        leaving = []
        for copy in made.get(Segments(here.port, marked, Connection(*ends)), ()):
            header = {"eth_src": f"{MARK}:00:00:{copy.position:02x}"}
            if copy.connection is not None:
                hop = copy.connection
                header |= {
                    "eth_dst": copy.to, f"{family}_src": hop.source, f"{family}_dst": hop.destination,
                    "tcp_src": hop.source_port, "tcp_dst": hop.destination_port,
                }  # fmt: skip
            leaving.append((copy.port, packet | header))
        target = network.hosts[packet["eth_dst"]]
        if not marked:
            path = paths.route(replace(target, at=here), target).ports
            leaving.append((next(end.port for end in path if end.dpid == here.dpid), packet))
        for port, leaves in leaving:
            end = End(here.dpid, port)
            if port == here.port and leaves is packet:
                continue  # a bridge sends nothing back where it came from
            sent.append(end)
            if end in far:
                queue.append((far[end], leaves))
            else:
                out.append((end, leaves))
    return out, sent


@st.composite
def trees(draw):
    """A pipeline or two in a network without loops, as bridges make of any."""
    network, made = draw(pipelines())
    size = len(network.switches)
    tree = topology(size, [(draw(st.integers(1, n - 1)), n) for n in range(2, size + 1)])
    tree = peopled(tree, [host.at.dpid for _, host in sorted(network.hosts.items())])
    hosts = tree.hosts
    return tree, [(hosts[c.mac], [hosts[r.mac] for r in replicas], hops) for c, replicas, hops in made]


@given(trees())
def test_bridges_send_what_openflow_switches_send(case):
    network, made = case
    tables = tables_of(network, made)
    for client, replicas, connections in made:
        sends = segment(client, replicas[0], connections[0])
        out, sent = bridged(network, tables, client.at, sends)
        expected, as_well = walk(network, tables, client.at, sends)
        assert sorted(out, key=str) == sorted(expected, key=str)
        assert sorted(sent) == sorted(end for end, _ in as_well)


@given(trees())
def test_a_mark_from_a_host_goes_nowhere(case):
    network, made = case
    tables = tables_of(network, made)
    for client, replicas, connections in made:
        for host in network.hosts.values():
            for source in (f"{MARK}:00:00:00", f"{MARK}:00:00:02"):
                forged = segment(client, replicas[0], connections[0], source)
                assert bridged(network, tables, host.at, forged) == ([], [])


def test_the_papers_figure_on_bridges():
    network, client, replicas = figure_1()
    hops = [
        Connection.of("192.0.2.1", 40000, "10.0.0.1", 9866),
        Connection.of("10.0.0.1", 41000, "10.0.0.2", 9866),
        Connection.of("10.0.0.2", 42000, "10.0.0.3", 9866),
    ]
    made = of_bridges(tables_of(network, [(client, replicas, hops)]))
    whole = hops[0]
    # S_b only hands on the client's own, which a bridge does unasked; S_a copies them to D2.
    assert made[2][0] == {}
    ((of, to_d2),) = made[1][0].items()
    assert (of.marked, of.connection) == (False, whole)
    assert to_d2 == (Copy(replicas[1].at.port, 2, replicas[1].mac, hops[1]),)
    # Toward D3 they are in transit: from S_c, by S_d, to S_e.
    for dpid, marked, positions in ((3, False, (0,)), (4, True, (0,)), (5, True, (3,))):
        ((of, some),) = made[dpid][0].items()
        assert (of.marked, of.connection, tuple(copy.position for copy in some)) == (marked, whole, positions)


def test_as_many_copies_as_the_program_has_room_for():
    network = peopled(topology(1, []), [1] * (MAX_REPLICAS + 1))
    client, *replicas = network.hosts.values()
    hops = [Connection.of("10.0.0.1", n, "10.0.0.2", n) for n in range(1, MAX_REPLICAS + 1)]
    ((_, made),) = of_bridges(tables_of(network, [(client, replicas, hops)]))[1][0].items()
    assert len(made) == MAX_COPIES == MAX_REPLICAS - 1


def test_what_comes_in_by_the_port_that_it_leaves_by_is_sent_back_there():
    client, replicas, hops = _behind_one_port()
    network = peopled(topology(1, []), [1, 1])
    tables = tables_of(network, [(client, replicas, hops)])
    made = of_bridges(tables)[1][0]
    assert made == {Segments(client.at.port, False, hops[0]): (Copy(client.at.port, 2, replicas[1].mac, hops[1]),)}


def _behind_one_port():
    """The client's host has the second replica, too."""
    network = peopled(topology(1, []), [1, 1])
    client, first = network.hosts.values()
    hops = [Connection.of("10.0.0.1", 1, "10.0.0.2", 2), Connection.of("10.0.0.2", 3, "10.0.0.1", 2)]
    return client, [first, client], hops


def test_what_says_nothing_of_copies_has_none():
    network, *_ = figure_1()
    for flows in guard(network).values():
        assert [copies(entry) for entry in flows] == [None] * len(flows)
    assert admitted(guard(network)[2]) == {1, 2}
    assert copies(FlowEntry(Table.FORWARD, 30, Match(eth_dst="02:00:00:00:00:01"), (Output(3),))) is None
    only_on = Match(in_port=1, ip_src="10.0.0.1", ip_dst="10.0.0.2", l4_src=1, l4_dst=2)
    assert copies(FlowEntry(Table.FORWARD, 44, only_on, (Output(3),))) is None
