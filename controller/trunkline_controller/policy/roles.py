"""Which bits of a packet's metadata say what its hosts do, and the flow entries that write them.

There are as many entries as there are prefixes, twice: the longest prefix that holds an address says all of its roles.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping

from ..flows.entry import FlowEntry, Match, Owner, Table, cookie
from .hosts import Net, text
from .model import Policy, Role, Rule

TRUSTED = 1 << 15  # marks of the source are believed
BITS = 16  # of the source; the destination's lie above them
MASK = (1 << BITS) - 1

_BIT: Mapping[Role, int] = {role: 1 << number for number, role in enumerate(Role)}
_ETH_TYPE = {4: 0x0800, 6: 0x86DD}


def wanted(rule: Rule) -> int:
    """The bits that a packet's metadata must have for a rule."""
    source = _BIT[rule.source_role] if rule.source_role else 0
    destination = _BIT[rule.destination_role] if rule.destination_role else 0
    return source | (TRUSTED if rule.trusted else 0) | destination << BITS


def versions(policy: Policy, rule: Rule) -> frozenset[int]:
    """The versions of IP in which hosts have the roles that a rule is by."""
    found = frozenset((4, 6))
    for members in (
        policy.roles.get(rule.source_role, ()) if rule.source_role else None,
        policy.roles.get(rule.destination_role, ()) if rule.destination_role else None,
        policy.trusted if rule.trusted else None,
    ):
        if members is not None:
            found &= {6 if ":" in member else 4 for member in members}
    return found


def entries(policy: Policy, rules: Iterable[Rule]) -> Iterable[FlowEntry]:
    """Those of SOURCE_ROLES and DESTINATION_ROLES, as far as the rules ask; without what takes all other packets."""
    asked = 0
    for rule in rules:
        asked |= wanted(rule)
    for table, after, shift in (
        (Table.SOURCE_ROLES, Table.DESTINATION_ROLES, 0),
        (Table.DESTINATION_ROLES, Table.CLASSIFY, BITS),
    ):
        members = {bit: policy.roles.get(role, ()) for role, bit in _BIT.items()}
        members[TRUSTED] = policy.trusted
        held = {bit: hosts for bit, hosts in members.items() if asked >> shift & bit}
        for net, bits in prefixes(held).items():
            address = text(net) if net.prefixlen else None
            match = Match(
                eth_type=_ETH_TYPE[net.version],
                ip_src=address if shift == 0 else None,
                ip_dst=address if shift else None,
            )
            yield FlowEntry(
                table,
                net.prefixlen + 1,
                match,
                goto=after,
                cookie=cookie(Owner.POLICY),
                write_metadata=(bits << shift, MASK << shift),
            )


def prefixes(members: Mapping[int, Iterable[str]]) -> dict[Net, int]:
    """Few prefixes, the longest of which that holds an address has all bits whose members hold it."""
    found: dict[Net, int] = {}
    for version in (4, 6):
        own: dict[Net, int] = {}
        for bit, texts in members.items():
            for member in texts:
                net = ipaddress.ip_network(member)
                if net.version == version:
                    own[net] = own.get(net, 0) | bit
        found.update(_fewer(_inherited(own)))
    return found


def _inherited(own: Mapping[Net, int]) -> dict[Net, int]:
    """Each prefix with the bits of all prefixes around it too."""
    found: dict[Net, int] = {}
    around: list[Net] = []
    for net in sorted(own, key=lambda n: (int(n.network_address), n.prefixlen)):
        while around and int(around[-1].broadcast_address) < int(net.network_address):
            around.pop()
        found[net] = own[net] | (found[around[-1]] if around else 0)
        around.append(net)
    return found


def _fewer(bits_of: Mapping[Net, int]) -> dict[Net, int]:
    """The same with halves of one prefix joined, and without prefixes that say what the next longer one around says."""
    found = dict(bits_of)
    by_length: dict[int, set[Net]] = {}
    for net in found:
        by_length.setdefault(net.prefixlen, set()).add(net)
    for length in range(max(by_length, default=0), 0, -1):
        for net in by_length.get(length, ()):
            parent = net.supernet()
            one, other = parent.subnets()
            if one in found and found[one] == found.get(other):
                # The halves are all of it: what it said by itself no packet sees.
                found[parent] = found.pop(one)
                del found[other]
                by_length.setdefault(length - 1, set()).add(parent)
    kept: dict[Net, int] = {}
    around: list[Net] = []
    for net in sorted(found, key=lambda n: (int(n.network_address), n.prefixlen)):
        while around and int(around[-1].broadcast_address) < int(net.network_address):
            around.pop()
        if found[net] != (kept[around[-1]] if around else 0):
            kept[net] = found[net]
            around.append(net)
    return kept
