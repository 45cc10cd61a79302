"""Files to write: half compressible text, half random bytes, the same for the same size every time."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator
from pathlib import Path

_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_PIECE = 1 << 20


def parse_size(text: str) -> int:
    """Bytes of "256MiB", "1GB", "1048576"; a bare K, M or G counts in powers of 1024, as in dd."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    unit = match.group(2).upper() if match else ""
    if unit in ("K", "M", "G"):
        unit += "IB"
    if match is None or unit not in _UNITS:
        raise ValueError(f"SIZE={text!r} is no size; write it as 256MiB, 1GB or a number of bytes")
    return int(float(match.group(1)) * _UNITS[unit])


def make(path: Path, size: int) -> None:
    """Writes `size` bytes: MiB by MiB, random bytes and repeating log lines by turns."""
    rng = random.Random(size)
    lines = _log_lines()
    left, number = size, 0
    with path.open("wb") as out:
        while left:
            if number % 2:
                start = rng.randrange(len(lines))
                piece = (lines[start:] + lines)[:_PIECE]
            else:
                piece = rng.randbytes(_PIECE)
            piece = piece[:left]
            out.write(piece)
            left -= len(piece)
            number += 1


def make_text(path: Path, size: int) -> None:
    """Writes log lines alone, cut off at `size` bytes."""
    lines, left = _log_lines(), size
    with path.open("wb") as out:
        while left:
            left -= out.write(lines[:left])


def _log_lines() -> bytes:
    return "".join(
        f"2017-06-{n % 28 + 1:02d} INFO block blk_{1073741825 + n} replicated to dn{n % 4 + 1} in {n % 97} ms\n"
        for n in range(20000)
    ).encode()


def sha256(path: Path) -> str:
    """Hex SHA-256 of a file."""
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def sha256_of(data: bytes) -> str:
    """Hex SHA-256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def sha256_pieces(path: Path, piece_bytes: int) -> Iterator[str]:
    """Hex SHA-256 of each piece of a file; an empty file has none."""
    with path.open("rb") as source:
        while first := source.read(min(_PIECE, piece_bytes)):
            digest, left = hashlib.sha256(first), piece_bytes - len(first)
            while left and (more := source.read(min(_PIECE, left))):
                digest.update(more)
                left -= len(more)
            yield digest.hexdigest()
