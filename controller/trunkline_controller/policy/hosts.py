"""Hosts in a policy: addresses, prefixes and names, as sets of prefixes."""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping

Net = ipaddress.IPv4Network | ipaddress.IPv6Network

# Each name's addresses, or why there are none.
Resolve = Callable[[frozenset[str]], Mapping[str, tuple[str, ...] | str]]

_NAME = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,62}))*\.?")
_LIKE_ADDRESS = re.compile(r"[0-9.]+(/.*)?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(/.*)?|.*/.*")


def network(text: str) -> Net | None:
    """An address or prefix; None where the text looks like a host's name. Raises ValueError where it is neither."""
    wanted = "write an address (10.0.0.1), a prefix (10.0.0.0/24) or a host name"
    if not text.isascii() or "%" in text:
        raise ValueError(wanted)
    if not _LIKE_ADDRESS.fullmatch(text):
        if not _NAME.fullmatch(text):
            raise ValueError(wanted)
        return None
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        pass
    try:
        inside = ipaddress.ip_interface(text)
    except ValueError:
        raise ValueError(wanted) from None
    raise ValueError(f"write the prefix as {inside.network}, or the address as {inside.ip}")


def merged(networks: Iterable[Net]) -> tuple[str, ...]:
    """The fewest prefixes of the same addresses, in order; a single address without its length."""
    nets = list(networks)
    four = ipaddress.collapse_addresses(n for n in nets if isinstance(n, ipaddress.IPv4Network))
    six = ipaddress.collapse_addresses(n for n in nets if isinstance(n, ipaddress.IPv6Network))
    return tuple(text(net) for net in (*four, *six))


def text(net: Net) -> str:
    return str(net.network_address) if net.prefixlen == net.max_prefixlen else str(net)


def resolve(names: frozenset[str], within_s: float = 10.0) -> dict[str, tuple[str, ...] | str]:
    """Asks the system, for up to 16 names at a time. What is not answered `within_s` is given up."""
    waiting, lock = sorted(names, reverse=True), threading.Lock()
    answers: dict[str, tuple[str, ...] | str] = {}
    end = time.monotonic() + within_s

    def work() -> None:
        while time.monotonic() < end:
            with lock:
                if not waiting:
                    return
                name = waiting.pop()
            answer = _resolve(name)
            with lock:
                answers[name] = answer

    # Daemons: a resolver that hangs holds up neither this answer nor the process's end.
    threads = [threading.Thread(target=work, name="resolve", daemon=True) for _ in range(min(16, len(names)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    with lock:
        done = dict(answers)
    return {name: done.get(name, f"no answer in {within_s:.0f} s") for name in names}


def _resolve(name: str) -> tuple[str, ...] | str:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return getattr(error, "strerror", None) or str(error)
    addresses = sorted({str(entry[4][0]).partition("%")[0] for entry in found})
    outside = tuple(
        address
        for address in addresses
        if not (parsed := ipaddress.ip_address(address)).is_loopback and not parsed.is_link_local
    )
    return outside or f"only {', '.join(addresses)}, which other hosts don't see"
