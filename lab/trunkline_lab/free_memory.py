"""Free memory that is really there.

A virtual machine may hand free pages back to its host; whoever takes them next waits for the host, page by page. Into
pages of that kind the page cache took 2 GiB in 1.7 to 3.0 s, into others in 0.4 to 0.8 s: as much as a whole transfer
takes, and by chance more for one of two that are compared.
"""

from __future__ import annotations

import mmap

_FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE


def touch(size: int) -> None:
    """Takes `size` bytes of free memory and gives them back, so that whoever takes them next has them at once.

    Does nothing where that is more than half of what is free.
    """
    if 0 < size <= available() // 2:
        mmap.mmap(-1, size, flags=_FLAGS).close()


def available() -> int:
    """Bytes that processes can have without swapping, the kernel's `MemAvailable`."""
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
