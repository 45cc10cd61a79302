"""Addresses of hosts that jobs name: looked up seldom, a few at a time, and remembered within bounds."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass

MOST_NAMES = 4096
MOST_LOOKUPS = 16  # each time; the rest waits
KEEP_S = 300.0
KEEP_UNKNOWN_S = 30.0
_NAME = re.compile(r"(?=.{1,253}$)[A-Za-z0-9][A-Za-z0-9-]{0,62}(\.[A-Za-z0-9][A-Za-z0-9-]{0,62})*\.?")


def system_lookup(name: str) -> tuple[str, ...]:
    """The addresses that the system's resolver has for a name. Raises OSError."""
    return tuple(dict.fromkeys(str(found[4][0]) for found in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)))


@dataclass(frozen=True)
class _Found:
    addresses: tuple[str, ...]
    until: float


class Hosts:
    """`learn` may wait for the resolver, `addresses` never does."""

    def __init__(self, lookup: Callable[[str], tuple[str, ...]] = system_lookup) -> None:
        self._lookup = lookup
        self._found: dict[str, _Found] = {}

    def learn(self, now: float, names: Iterable[str]) -> None:
        """Looks up those of the names that are not known, or no longer."""
        left = MOST_LOOKUPS
        for name in dict.fromkeys(names):
            known = self._found.get(name)
            if (known and known.until > now) or _literal(name) or not _NAME.fullmatch(name):
                continue
            if left == 0:
                return
            left -= 1
            try:
                addresses = tuple(filter(None, map(_literal, self._lookup(name))))
            except (OSError, UnicodeError):
                addresses = ()
            while len(self._found) >= MOST_NAMES:
                self._found.pop(next(iter(self._found)))
            self._found.pop(name, None)
            self._found[name] = _Found(addresses, now + (KEEP_S if addresses else KEEP_UNKNOWN_S))

    def addresses(self, name: str) -> tuple[str, ...]:
        """None where the name is not known."""
        if literal := _literal(name):
            return (literal,)
        known = self._found.get(name)
        return known.addresses if known else ()


def _literal(name: str) -> str:
    """An address that is written as one; empty for a name, and for an address that has a meaning on one host alone."""
    if "%" in name:  # a zone (RFC 4007), which may hold anything
        return ""
    try:
        return str(ipaddress.ip_address(name.strip("[]")))
    except ValueError:
        return ""
