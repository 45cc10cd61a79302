"""Reads and checks a topology file whole; every error names the file, the entry and the way out."""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any

from .. import paths
from ..payload import parse_size
from .topology import Link, LinkShape, Roles, Topology, TopologyError, check_management, check_roles
from .units import parse_rate

TOPOLOGIES = paths.LAB / "topologies"
_NAME = re.compile(r"[a-z][a-z0-9-]{0,10}")  # interfaces are called to-<name>, of 15 characters at most
_KEYS = {"about", "subnet", "link", "router", "switch", "rack", "links", "roles"}


def load(path: Path) -> Topology:
    """Reads and checks a topology file."""
    try:
        text = path.read_text()
    except OSError as error:
        raise TopologyError(f"{path}: {error.strerror}; `lab list` names the topologies there are") from error
    return parse(text, path.stem, str(path))


def parse(text: str, name: str, where: str) -> Topology:
    """The same of text; `where` is what errors name."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TopologyError(f"{where}: {error}") from error
    _known(document, _KEYS, where)
    usual = _shape(document.get("link", {}), LinkShape(), f"{where}: [link]")
    routers = _named(document, "router", where)
    switches = _named(document, "switch", where, {"openflow"})
    openflow = _openflow(document.get("switch", []), where)
    hosts: list[str] = []
    racks: dict[str, str] = {}
    links: list[Link] = []
    for entry in document.get("rack", []):
        _known(entry, {"name", "at", "hosts", "rate", "queue", "mtu"}, f"{where}: [[rack]]")
        rack, at = str(entry.get("name", "")), str(entry.get("at", ""))
        here = f"{where}: [[rack]] {rack or '(without name)'}"
        if not re.fullmatch(r"/[A-Za-z0-9._-]+", rack):
            raise TopologyError(f"{here}: a rack's name is written like /r1")
        if at not in (*routers, *switches):
            raise TopologyError(f"{here}: at = {at!r} is no router or switch of this file")
        shape = _shape({k: v for k, v in entry.items() if k in ("rate", "queue", "mtu")}, usual, here)
        for host in _names(entry.get("hosts"), f"{here}: hosts"):
            hosts.append(host)
            racks[host] = rack
            links.append(Link((host, at), shape))
    for entry in document.get("links", []):
        here = f"{where}: [[links]] {entry.get('ends')}"
        _known(entry, {"ends", "rate", "queue", "mtu"}, here)
        ends = entry.get("ends")
        if not isinstance(ends, list) or len(ends) != 2 or not set(ends) <= {*routers, *switches}:
            raise TopologyError(f"{here}: ends are two routers or switches; a host's link comes with its [[rack]]")
        shape = _shape({k: v for k, v in entry.items() if k != "ends"}, usual, here)
        links.append(Link((str(ends[0]), str(ends[1])), shape))
    nodes = [*hosts, *routers, *switches]
    _check_names(nodes, where)
    _check_tree(nodes, links, openflow, where)
    network = _network(document.get("subnet", "10.77.0.0/16"), len(nodes), where)
    if openflow:
        check_management(nodes, network, where)
    addresses = {node: str(network.network_address + 1 + n) for n, node in enumerate(nodes)}
    topology = Topology(
        name,
        str(document.get("about", "")),
        tuple(hosts),
        tuple(routers),
        tuple(switches),
        tuple(links),
        racks,
        _roles(document.get("roles", {}), where),
        network,
        addresses,
        openflow,
    )
    check_roles(topology, where)
    return topology


def _known(entry: dict[str, Any], keys: set[str], where: str) -> None:
    for key in entry:
        if key not in keys:
            raise TopologyError(f"{where}: no such key {key!r}; there are {', '.join(sorted(keys))}")


def _named(document: dict[str, Any], kind: str, where: str, more: Set[str] = frozenset()) -> list[str]:
    entries = document.get(kind, [])
    for entry in entries:
        _known(entry, {"name", *more}, f"{where}: [[{kind}]]")
    return [str(entry.get("name", "")) for entry in entries]


def _openflow(entries: list[dict[str, Any]], where: str) -> tuple[str, ...]:
    """The switches that speak OpenFlow."""
    for entry in entries:
        if not isinstance(value := entry.get("openflow", False), bool):
            raise TopologyError(f"{where}: [[switch]] {entry.get('name')}: openflow = {value!r} is not true or false")
    return tuple(str(entry.get("name", "")) for entry in entries if entry.get("openflow"))


def _names(value: object, where: str) -> Iterator[str]:
    """A list of names, in which "h1..h4" stands for four."""
    if not isinstance(value, list) or not value:
        raise TopologyError(f'{where} is a list of names, such as ["h1", "h2"] or ["h1..h4"]')
    for item in value:
        span = re.fullmatch(r"([a-z-]+)(\d+)\.\.([a-z-]+)(\d+)", str(item))
        if span is None:
            yield str(item)
        elif span.group(1) != span.group(3) or not 0 <= int(span.group(4)) - int(span.group(2)) < 65536:
            raise TopologyError(f"{where}: {item!r} is no range; write it as h1..h4")
        else:
            yield from (f"{span.group(1)}{n}" for n in range(int(span.group(2)), int(span.group(4)) + 1))


def _shape(entry: dict[str, Any], usual: LinkShape, where: str) -> LinkShape:
    _known(entry, {"rate", "queue", "mtu"}, where)
    try:
        rate = parse_rate(entry["rate"]) if "rate" in entry else usual.rate_bit_s
        queue = parse_size(str(entry["queue"])) if "queue" in entry else usual.queue_bytes
    except (ValueError, AttributeError) as error:
        raise TopologyError(f"{where}: {error}") from error
    mtu = entry.get("mtu", usual.mtu)
    for what, value, least, most in (
        ("rate", rate, 10**4, 10**11),
        ("queue", queue, 1 << 13, 1 << 30),
        ("mtu", mtu, 576, 65000),
    ):
        if not isinstance(value, int) or not least <= value <= most:
            raise TopologyError(f"{where}: {what} = {value!r} is not between {least} and {most}")
    return LinkShape(rate, queue, mtu)


def _check_names(nodes: list[str], where: str) -> None:
    for node in nodes:
        if not _NAME.fullmatch(node):
            raise TopologyError(f"{where}: {node!r} is no name: a small letter, then letters, digits or -, 11 in all")
    if twice := {node for node in nodes if nodes.count(node) > 1}:
        raise TopologyError(f"{where}: {', '.join(sorted(twice))} stands there twice; each node has a name of its own")
    if not nodes:
        raise TopologyError(f"{where}: there is no host; write a [[router]] and a [[rack]] at it")


def _check_tree(nodes: list[str], links: list[Link], openflow: tuple[str, ...], where: str) -> None:
    """Every node is reached, by one way only unless the ways part and meet among OpenFlow switches alone."""
    group = {node: node for node in nodes}

    def root(node: str) -> str:
        while group[node] != node:
            node = group[node]
        return node

    between, others = [], []
    for link in links:
        (between if set(link.ends) <= set(openflow) else others).append(link)
    for link in between:
        if link.ends[0] == link.ends[1]:
            raise TopologyError(f"{where}: the link {link.name} has both its ends at one switch")
        if [set(other.ends) for other in between].count(set(link.ends)) > 1:
            raise TopologyError(f"{where}: there are two links {link.name}; two nodes have one link at most")
        group[root(link.ends[0])] = root(link.ends[1])
    for link in others:
        a, b = (root(end) for end in link.ends)
        if a == b:
            raise TopologyError(
                f"{where}: the link {link.name} closes a loop; bridges would send round it for ever, and only switches "
                "with openflow = true may be joined in a loop"
            )
        group[a] = b
    if apart := [node for node in nodes if root(node) != root(nodes[0])]:
        raise TopologyError(f"{where}: {', '.join(apart)} can't be reached from {nodes[0]}; add a [[links]] entry")


def _network(text: str, nodes: int, where: str) -> ipaddress.IPv4Network:
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError as error:
        raise TopologyError(f"{where}: subnet: {error}; write it as 10.77.0.0/16") from error
    if network.num_addresses < nodes + 2:
        raise TopologyError(f"{where}: subnet {text} has no room for {nodes} nodes; take a shorter prefix")
    return network


def _roles(entry: dict[str, Any], where: str) -> Roles:
    here = f"{where}: [roles]"
    one, many = ("namenode", "resourcemanager", "historyserver"), ("datanodes", "clients", "nodemanagers")
    _known(entry, {*one, *many}, here)
    single = {key: str(entry.get(key, "")) for key in one}
    several = {key: tuple(_names(entry[key], f"{here} {key}")) for key in many if entry.get(key)}
    return Roles(**single, **several)


def names() -> list[str]:
    """The topologies that come with the lab."""
    return sorted(path.stem for path in TOPOLOGIES.glob("*.toml"))


def path_of(name: str) -> Path:
    """Where a topology of the lab lies, or any other by its path."""
    path = TOPOLOGIES / f"{name}.toml"
    return path if path.exists() else Path(name)


def named(name: str) -> Topology:
    """A topology of the lab by name, or any by its path."""
    return load(path_of(name))
