"""Copies of mirrored replication that get lost on a host's link, at random: a filter of the kernel's, by `tc`."""

from __future__ import annotations

import shutil
import subprocess

from .fabric import Fabric, LabError

MARK = (0x02, 0x4D, 0x52)  # the first octets of the source's Ethernet address (docs/mirror.md)
PREFERENCE, HANDLE = 1, 1  # of several filters with a preference the kernel asks the newest first

_LOAD_HALF, _LOAD_BYTE, _LOAD_WORD = 0x28, 0x30, 0x20
_IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x15, 0x35, 0x06
_SOURCE = 6  # of an Ethernet frame
_RANDOM = 0xFFFFF038  # SKF_AD_OFF + SKF_AD_RANDOM: a random number of 32 bits
_DROP, _GO_ON = 2, 0xFFFFFFFF  # TC_ACT_SHOT, TC_ACT_UNSPEC


def program(share: float) -> list[tuple[int, int, int, int]]:
    """Classic BPF (code, jump if so, jump if not, operand) that drops a share, 0 to 1, of the copies."""
    return [
        (_LOAD_HALF, 0, 0, _SOURCE),
        (_IF_EQUAL, 0, 5, MARK[0] << 8 | MARK[1]),
        (_LOAD_BYTE, 0, 0, _SOURCE + 2),
        (_IF_EQUAL, 0, 3, MARK[2]),
        (_LOAD_WORD, 0, 0, _RANDOM),
        (_IF_AT_LEAST, 1, 0, min(round(share * 2**32), 2**32 - 1)),
        (_RETURN, 0, 0, _DROP),
        (_RETURN, 0, 0, _GO_ON),
    ]


def of_copies(fabric: Fabric, host: str, share: float) -> None:
    """From now on a host loses this share of the copies that come to it; 0: none any more."""
    if shutil.which("tc") is None:
        raise LabError("tc is missing; install iproute2")
    where = ["dev", "eth0", "ingress", "protocol", "all", "pref", str(PREFERENCE), "handle", str(HANDLE), "bpf"]
    _tc(fabric, host, ["filter", "del", *where], may_fail=True)
    if share:
        code = program(share)
        text = f"{len(code)}," + ",".join(" ".join(map(str, step)) for step in code)
        _tc(fabric, host, ["qdisc", "add", "dev", "eth0", "clsact"], may_fail=True)  # a filter's home, if there is none
        _tc(fabric, host, ["filter", "add", *where, "da", "bytecode", text])


def _tc(fabric: Fabric, host: str, words: list[str], *, may_fail: bool = False) -> None:
    done = subprocess.run(fabric.command(host, ["tc", *words]), capture_output=True, text=True, check=False)
    if done.returncode != 0 and not may_fail:
        raise LabError(f"tc {' '.join(words)} at {host}: {done.stderr.strip()}")
