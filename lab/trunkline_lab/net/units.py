"""Rates as people write them."""

from __future__ import annotations

import re

_RATES = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}


def parse_rate(text: str) -> int:
    """Bits a second of "1gbit", "250mbit"; ValueError says how to write it."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmg]?bit)\s*", text.lower())
    if match is None:
        raise ValueError(f"{text!r} is no rate; write it as 1gbit, 250mbit or 64kbit")
    return int(float(match.group(1)) * _RATES[match.group(2)])


def rate_text(bits_s: int) -> str:
    """The shortest way to write a rate that `parse_rate` reads as the same."""
    for unit, factor in reversed(_RATES.items()):
        if bits_s % factor == 0 and bits_s >= factor:
            return f"{bits_s // factor}{unit}"
    return f"{bits_s}bit"
