"""How busy links and the machine's processors are while something runs: what a transfer waited for."""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from .fabric import Fabric
from .links import LinkMeter
from .topology import Topology

Way = tuple[str, str]


@dataclass(frozen=True)
class Sample:
    """Bytes sent so far over each way of each link; processors' time so far, busy and in all, in the kernel's ticks."""

    at_s: float
    sent: dict[Way, int]
    busy_ticks: int
    all_ticks: int


class LinkTrace:
    """Samples a fabric's counters in a thread of its own for the length of a `with` block."""

    PERIOD_S = 0.25

    def __init__(self, fabric: Fabric, topology: Topology) -> None:
        self._fabric, self._topology = fabric, topology
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="link-trace", daemon=True)
        self._failure: Exception | None = None
        self.samples: list[Sample] = []

    def __enter__(self) -> LinkTrace:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _sample(self) -> None:
        try:
            meter = LinkMeter(self._fabric, self._topology)  # its netlink sockets are of the thread that makes them
            try:
                self._until_stopped(meter)
            finally:
                meter.close()
        except Exception as error:  # raised again by the block's end
            self._failure = error

    def _until_stopped(self, meter: LinkMeter) -> None:
        last = False
        while not last:
            last = self._stop.wait(self.PERIOD_S if self.samples else 0)
            sent = {way: count.sent_bytes for way, count in meter.read().by_way.items()}
            self.samples.append(Sample(time.monotonic(), sent, *processor_ticks()))

    def use(self) -> dict[Way, list[tuple[float, float]]]:
        """Of each way of each link: (seconds since the first sample, percent of its rate since the sample before)."""
        rates = {way: link.shape.rate_bit_s for link in self._topology.links for way in (link.ends, link.ends[::-1])}
        return use(self.samples, rates)

    def processors_use(self) -> float:
        """Percent of all processors' time that anything took, the lab itself and other work on the machine included."""
        return processors_use(self.samples)


def use(samples: list[Sample], rates_bit_s: dict[Way, int]) -> dict[Way, list[tuple[float, float]]]:
    """See `LinkTrace.use`."""
    found: dict[Way, list[tuple[float, float]]] = {way: [] for way in rates_bit_s}
    for before, after in itertools.pairwise(samples):
        for way, rate in rates_bit_s.items():
            bits = 8 * (after.sent[way] - before.sent[way])
            found[way].append((after.at_s - samples[0].at_s, 100 * bits / (rate * (after.at_s - before.at_s))))
    return found


def processors_use(samples: list[Sample]) -> float:
    """See `LinkTrace.processors_use`."""
    ticks = samples[-1].all_ticks - samples[0].all_ticks
    return 100 * (samples[-1].busy_ticks - samples[0].busy_ticks) / ticks if ticks else 0.0


def busy_share(steps: list[tuple[float, float]], full: float = 90.0) -> float:
    """Percent of the time in which a link was at `full` percent of its rate or above."""
    at_full, before, whole = 0.0, 0.0, steps[-1][0] if steps else 0.0
    for at_s, percent in steps:
        if percent >= full:
            at_full += at_s - before
        before = at_s
    return 100 * at_full / whole if whole else 0.0


def processor_ticks() -> tuple[int, int]:
    """(busy, all) ticks of all processors since the machine began; waiting for disks is idle."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)
