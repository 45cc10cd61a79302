"""The kernel's filters and classes of an interface, by netlink."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from . import filters
from .filters import Filters

ROOT = 1 << 16  # 1:0, HTB as Open vSwitch makes it


class TcError(OSError):
    """The kernel refused; the message names the interface and the way out."""


class TrafficControl:
    """One network namespace's, from one thread."""

    def __init__(self) -> None:
        self._route = IPRoute()

    def close(self) -> None:
        self._route.close()

    def index(self, name: str) -> int | None:
        """An interface's number; None where there is no such interface."""
        found = self._route.link_lookup(ifname=name)
        return found[0] if found else None

    def prune(self, name: str, desired: Filters) -> bool:
        """Deletes our filters that should not be, or should lead elsewhere: a class that one leads to can't be
        deleted. Whether any are missing then.
        """
        index = self.index(name)
        if index is None or not self.has_htb(index):
            return bool(desired)
        present, handles = self._present(index)
        gone, new = filters.changes(present, desired)
        with _saying(name):
            for at in gone:
                self._change("del-filter", index, at, present[at], handles[at])
        return bool(new)

    def ensure(self, name: str, desired: Filters) -> None:
        """Makes our filters at an interface what they should be. Raises TcError."""
        index = self.index(name)
        if index is None:
            raise TcError(f"{name}: no such interface; run the agent in the network namespace of ovs-vswitchd")
        if not self.has_htb(index):
            raise TcError(f"{name}: no HTB, though the port has QoS; its datapath may not take linux-htb (see its log)")
        self.prune(name, desired)
        present, _ = self._present(index)
        with _saying(name):
            for at in filters.changes(present, desired)[1]:
                self._change("add-filter", index, at, desired[at], at[1])

    def _change(self, command: str, index: int, at: tuple[int, int], leads: int, handle: int) -> None:
        priority, node = at
        key = filters.key(priority, node)
        self._route.tc(
            command,
            "u32",
            index=index,
            parent=ROOT,
            protocol=filters.PROTOCOLS[priority],
            prio=priority,
            handle=handle,
            target=leads,
            keys=[f"{key.value:#010x}/{key.mask:#010x}+0" if key.mask else "0x0/0x0+0"],
        )

    def _present(self, index: int) -> tuple[dict[tuple[int, int], int], dict[tuple[int, int], int]]:
        """Our filters at an interface: where each leads, and its whole handle."""
        leads, handles = {}, {}
        for message in self._route.get_filters(index=index, parent=ROOT):
            priority, node = message["info"] >> 16, message["handle"] & 0xFFF
            if priority not in filters.OURS or not node:
                continue  # another's, or what holds ours together
            leads[priority, node] = _attribute(message.get_attr("TCA_OPTIONS"), "TCA_U32_CLASSID") or 0
            handles[priority, node] = message["handle"]
        return leads, handles

    def has_htb(self, index: int) -> bool:
        return any(
            message["handle"] == ROOT and message.get_attr("TCA_KIND") == "htb"
            for message in self._route.get_qdiscs(index=index)
        )

    def sent_packets(self, name: str) -> Mapping[int, int]:
        """Packets that each queue of an interface has sent, by number."""
        return {queue: stats["packets"] for queue, stats in self._sent(name)}

    def sent_bytes(self, name: str) -> Mapping[int, int]:
        """Bytes that each queue of an interface has sent, by number."""
        return {queue: stats["bytes"] for queue, stats in self._sent(name)}

    def _sent(self, name: str) -> Iterator[tuple[int, Mapping[str, int]]]:
        index = self.index(name)
        for message in self._route.get_classes(index=index) if index is not None else ():
            queue = (message["handle"] & 0xFFFF) - 1
            stats = message.get_attr("TCA_STATS")
            if message["handle"] >> 16 == 1 and queue != 0xFFFD and stats is not None:
                yield queue, stats


@contextmanager
def _saying(name: str) -> Iterator[None]:
    try:
        yield
    except NetlinkError as error:
        raise TcError(f"{name}: filters: {error}; {_remedy(error.code)}") from error


def _attribute(options: Any, name: str) -> int | None:  # noqa: ANN401 (pyroute2's)
    return options.get_attr(name) if options is not None and hasattr(options, "get_attr") else None


def _remedy(code: int) -> str:
    if code in (errno.EPERM, errno.EACCES):
        return "run the agent as root, or with CAP_NET_ADMIN"
    if code in (errno.ENOENT, errno.EOPNOTSUPP):
        return "the kernel needs sch_htb and cls_u32 (modprobe cls_u32)"
    return "look at `tc filter show dev` of the interface"
