"""Shortest paths, their equal alternatives, and the tree for floods, on networks of all shapes."""

from hypothesis import given
from hypothesis import strategies as st

from trunkline_controller.net.paths import flood_tree, neighbours, next_hops
from trunkline_controller.net.topology import End, Link, Switch, Topology


def topology(switches, cables):
    """Each cable takes the next free port at both of its ends."""
    used = dict.fromkeys(range(1, switches + 1), 0)
    links = set()
    for one, other in cables:
        ends = []
        for dpid in (one, other):
            used[dpid] += 1
            ends.append(End(dpid, used[dpid]))
        links.add(Link.between(*ends))
    return Topology({dpid: Switch(dpid, f"s{dpid}") for dpid in used}, frozenset(links))


@st.composite
def topologies(draw):
    switches = draw(st.integers(1, 8))
    pair = st.tuples(st.integers(1, switches), st.integers(1, switches)).filter(lambda p: p[0] != p[1])
    return topology(switches, draw(st.lists(pair, max_size=16)) if switches > 1 else [])


def leaf_spine(leaves, spines):
    return topology(leaves + spines, [(s + 1, spines + leaf + 1) for leaf in range(leaves) for s in range(spines)])


def test_a_leaf_has_as_many_ways_to_another_as_there_are_spines():
    graph = neighbours(leaf_spine(leaves=3, spines=2))
    assert next_hops(graph, 3) == {1: (1,), 2: (1,), 4: (1, 2), 5: (1, 2)}


def test_two_cables_between_two_switches_are_two_ways():
    assert next_hops(neighbours(topology(2, [(1, 2), (1, 2)])), 2) == {1: (1, 2)}


def test_what_can_not_be_reached_has_no_next_hop():
    assert next_hops(neighbours(topology(3, [(1, 2)])), 3) == {}


@given(topologies())
def test_each_hop_brings_a_packet_closer_until_it_is_there(network):
    graph, far = neighbours(network), network.link_ends()
    for to in network.switches:
        hops = next_hops(graph, to)
        for start in hops:
            frontier, steps = {start}, 0
            while frontier != {to}:
                assert to not in frontier, "all alternatives are equally long"
                frontier = {far[End(dpid, port)].dpid for dpid in frontier for port in hops[dpid]}
                steps += 1
                assert steps <= len(network.switches)


def reached(links, start):
    found, queue = {start}, [start]
    while queue:
        here = queue.pop()
        for link in links:
            if here in (link.a.dpid, link.b.dpid) and (there := link.far(here).dpid) not in found:
                found.add(there)
                queue.append(there)
    return found


@given(topologies())
def test_the_tree_reaches_all_that_the_links_reach_and_has_no_loop(network):
    tree = flood_tree(network)
    assert tree <= network.links
    parts = set()
    for dpid in network.switches:
        part = frozenset(reached(network.links, dpid))
        assert reached(tree, dpid) == part
        parts.add(part)
    assert len(tree) == len(network.switches) - len(parts)


@given(topologies(), st.randoms())
def test_paths_and_tree_do_not_depend_on_the_order_in_which_the_network_was_learned(network, random):
    switches, links = list(network.switches.items()), list(network.links)
    random.shuffle(switches)
    random.shuffle(links)
    again = Topology(dict(switches), frozenset(links))
    assert flood_tree(again) == flood_tree(network)
    assert neighbours(again) == neighbours(network)
