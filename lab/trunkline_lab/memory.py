"""What the machine has of memory, and memory that is really there for whoever is measured.

A virtual machine may hand free pages back to its host, which gives them again page by page as they are touched: whoever
takes free memory after some rest waits for the host, and new files cost several times the kernel time that they cost
over pages that are there (3 GiB: 3.5 to 4.9 s instead of 0.8 to 1.1). As only free blocks of 2 MiB are handed back, it
meets large writes before small ones: the kernel copied 3 GiB of DataNodes into their files in 0.6 s where packets had
64 KiB, in 3.1 s where they had 512 KiB.
"""

from __future__ import annotations

import mmap
import threading
from pathlib import Path

CHUNK_BYTES = 64 << 20
MARGIN_BYTES = 512 << 20  # more than is taken between two looks
_LOOK_S = 0.01
_POPULATE_WRITE = 23  # MADV_POPULATE_WRITE of Linux, which the mmap module has no name for


def meminfo(field: str) -> int:
    """Bytes of a field of the kernel's `/proc/meminfo`; raises KeyError where it has none of that name."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) << 10
    raise KeyError(field)


class Supply:
    """Free memory that is there, for a block in which `size` bytes are taken: held before it, given up as others take.

    What the kernel gets back it hands out next, before the host may have it. So as much stays free as was free before,
    and a margin. Nothing is held where that is more than half of what is free: it must not drive files out of the page
    cache; nor under a kernel before 5.14, or without huge pages, which cannot be told to take pages at once.
    """

    def __init__(self, size: int) -> None:
        self._size = size + MARGIN_BYTES
        self._chunks: list[mmap.mmap] = []
        self._free = 0
        self._ended = threading.Event()
        self._feeder = threading.Thread(target=self._feed, name="memory-supply", daemon=True)

    def __enter__(self) -> Supply:
        if self._size <= meminfo("MemFree") // 2:
            try:
                while self.held() < self._size:
                    self._chunks.append(_populated(CHUNK_BYTES))
            except OSError:
                self._give_all()
        self._free = meminfo("MemFree") + MARGIN_BYTES
        self._feeder.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._feeder.join()
        self._give_all()

    def held(self) -> int:
        """Bytes that it has yet."""
        return len(self._chunks) * CHUNK_BYTES

    def look(self) -> None:
        """Gives up what was taken since the last look."""
        missing = self._free - meminfo("MemFree")
        while missing > 0 and self._chunks:
            self._chunks.pop().close()
            missing -= CHUNK_BYTES

    def _feed(self) -> None:
        while self._chunks and not self._ended.wait(_LOOK_S):
            self.look()

    def _give_all(self) -> None:
        while self._chunks:
            self._chunks.pop().close()


def _populated(size: int) -> mmap.mmap:
    area = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    area.madvise(mmap.MADV_HUGEPAGE)
    area.madvise(_POPULATE_WRITE)
    return area
