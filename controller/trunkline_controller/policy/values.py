"""The small words of a policy file: rates, code points, ports. Each raises ValueError with what would be right."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_RATE = 10**13  # 10 Tbit/s

# Of ASCII: there are other letters than i and k that are i and k but for their case.
RATE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?) *(bit|kbit|mbit|gbit|tbit|%)", re.IGNORECASE | re.ASCII)
_UNITS = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9, "tbit": 10**12}

# RFC 2474, 2597, 3246, 5865, 8622
CODE_POINTS = {
    **{f"cs{n}": 8 * n for n in range(8)},
    **{f"af{c}{d}": 8 * c + 2 * d for c in range(1, 5) for d in range(1, 4)},
    "ef": 46,
    "va": 44,
    "voice-admit": 44,
    "le": 1,
}


@dataclass(frozen=True)
class Rate:
    """Bits a second, or percent of a port's rate."""

    bit_s: int = 0
    percent: float | None = None

    def of(self, port_bit_s: int) -> int:
        return self.bit_s if self.percent is None else int(port_bit_s * self.percent / 100)


def rate(text: str, percent: bool = True) -> Rate:
    """`300mbit`, `1.5gbit`, `10%`."""
    match = RATE.fullmatch(text.strip(" "))
    wanted = "write a rate such as 300mbit or 1.5gbit" + (", or a percentage such as 10%" if percent else "")
    if match is None or (match[2] == "%" and not percent):
        raise ValueError(wanted)
    if match[2] == "%":
        if float(match[1]) > 100:
            raise ValueError("a port has 100% and no more")
        return Rate(percent=float(match[1]))
    bit_s = round(float(match[1]) * _UNITS[match[2].lower()])
    if bit_s > MAX_RATE:
        raise ValueError("10tbit is the most")
    return Rate(bit_s)


def number(text: str, least: int, most: int) -> int:
    """A decimal number."""
    if not re.fullmatch(r"[0-9]{1,10}", text) or not least <= int(text) <= most:
        raise ValueError(f"write a number from {least} to {most}")
    return int(text)


def code_point(text: str) -> int:
    """A DSCP: 0 to 63, or a name such as af21, cs1, ef."""
    known = CODE_POINTS.get(text.lower())
    if known is not None:
        return known
    try:
        return number(text, 0, 63)
    except ValueError:
        raise ValueError("write a code point from 0 to 63, or a name such as af21, cs1 or ef") from None


def ports(text: str, most: int = 256) -> range:
    """`13562` or `50000-50100`."""
    first, dash, last = text.replace(" ", "").partition("-")
    wanted = f"write a port from 1 to 65535, or a range such as 50000-50100 of at most {most} ports"
    try:
        low = number(first, 1, 65535)
        high = number(last, 1, 65535) if dash else low
    except ValueError:
        raise ValueError(wanted) from None
    if high < low or high - low >= most:
        raise ValueError(wanted)
    return range(low, high + 1)


def rate_text(bit_s: int) -> str:
    """As a policy file writes it."""
    for unit in ("gbit", "mbit", "kbit"):
        if bit_s >= _UNITS[unit] and bit_s % (_UNITS[unit] // 1000) == 0:
            value = bit_s / _UNITS[unit]
            return f"{value:.3f}".rstrip("0").rstrip(".") + unit
    return f"{bit_s}bit"
