"""What to change on a switch so that it has what it should: in an order in which no packet is lost on the way."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from .entry import FlowEntry, Match, SelectGroup, Table, Tables

Key = tuple[int, int, Match]


@dataclass(frozen=True)
class AddGroup:
    group: SelectGroup


@dataclass(frozen=True)
class ModifyGroup:
    group: SelectGroup


@dataclass(frozen=True)
class DeleteGroup:
    number: int


@dataclass(frozen=True)
class AddFlow:
    """Replaces an entry with the same key, whose counters go on."""

    entry: FlowEntry


@dataclass(frozen=True)
class DeleteFlow:
    entry: FlowEntry


Change = AddGroup | ModifyGroup | DeleteGroup | AddFlow | DeleteFlow


def difference(
    desired: Tables, present: Tables, foreign: Collection[Key] = (), keep: Collection[Table] = ()
) -> list[Change]:
    """Changes in order: groups before the flows that use them, additions before deletions, later tables before earlier.

    `present` holds our own flows and groups alone. `foreign` are keys of entries that others made, which stay as they
    are. In tables of `keep` what is there stays as it is, and is only added to (groups too where FORWARD is one of
    them): for a controller that does not know yet what should be there.
    """
    missing = desired.flows - present.flows
    extra = present.flows - desired.flows
    replaced = {entry.key for entry in missing}
    if keep:
        held = {entry.key for entry in extra if entry.table in keep}
        missing = frozenset(entry for entry in missing if entry.key not in held)
        extra = frozenset(entry for entry in extra if entry.table not in keep)
    changes: list[Change] = []
    for number, group in sorted(desired.groups.items()):
        if number not in present.groups:
            changes.append(AddGroup(group))
        elif present.groups[number] != group and Table.FORWARD not in keep:
            changes.append(ModifyGroup(group))
    in_order = sorted(missing, key=lambda entry: (-entry.table, -entry.priority))
    changes += [AddFlow(entry) for entry in in_order if not foreign or entry.key not in foreign]
    deleted = [entry for entry in extra if entry.key not in replaced]
    changes += [DeleteFlow(entry) for entry in sorted(deleted, key=lambda entry: (entry.table, -entry.priority))]
    if Table.FORWARD not in keep:
        changes += [DeleteGroup(number) for number in sorted(present.groups) if number not in desired.groups]
    return changes
