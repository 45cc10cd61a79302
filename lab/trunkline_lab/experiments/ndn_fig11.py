"""Fig. 11 of the NDN paper and its round trip: seconds against the size of a buffer, beside a native TCP socket's."""

from __future__ import annotations

from statistics import median

from ..say import say
from . import pair
from .options import Options
from .pair import JUMBO_SEGMENT_BYTES, MB, PAPER_SEGMENT_BYTES, Pair
from .plots import Line, Plot
from .result import Result, Row

NAME = "ndn-fig11"
ABOUT = "Fig. 11: seconds of a transfer against its size for several windows, beside a TCP socket's; round trips"
SIZES_MB = (0.0625, 0.25, 1, 4, 16, 64, 128)
WINDOWS = (1, 8, 16, 32, 100)
OURS = "cubic"
PINGS, PAUSE_MS = 200, 10

PAPER_FACTORS = (7.4, 21.0)  # of its best window to TCP, over all sizes
PAPER_RTT_MS = (0.03, 21.0)  # TCP, NDN: through one host's interface or forwarder


def run(options: Options) -> Result:
    """One network, all transfers one after the other, then the round trips."""
    result = Result(NAME, ABOUT)
    with pair.standing(options, NAME) as hosts:
        _transfers(hosts, options, result)
        say("round trips")
        _round_trips(hosts, result)
    return result


def _repeats(size: int) -> int:
    return 5 if size < 8 * MB else 3 if size < 64 * MB else 1


def _transfers(hosts: Pair, options: Options, result: Result) -> None:
    sizes = [max(1, int(size * MB * options.scale)) for size in SIZES_MB]
    ways = {
        **{f"window {window}": (f"fixed:{window}", PAPER_SEGMENT_BYTES) for window in WINDOWS},
        f"{OURS}, segments of {PAPER_SEGMENT_BYTES}": (OURS, PAPER_SEGMENT_BYTES),
        f"{OURS}, segments of {JUMBO_SEGMENT_BYTES}": (OURS, JUMBO_SEGMENT_BYTES),
    }
    tcp: list[float] = []
    ours: dict[str, list[float]] = {way: [] for way in ways}
    for size in sizes:
        say(f"{size / MB:g} MB")
        port = hosts.serve_tcp(size)
        tcp.append(median(hosts.get_tcp(port, size) for _ in range(_repeats(size))))
        names = {segment: hosts.publish(size, segment) for segment in (PAPER_SEGMENT_BYTES, JUMBO_SEGMENT_BYTES)}
        for way, (window, segment) in ways.items():
            seconds = median(hosts.get(names[segment], window, size) for _ in range(_repeats(size)))
            ours[way].append(seconds)
            result.rows.append(Row(f"{size / MB:g} MB, {way}", "s", None, tcp[-1], seconds))
    for way in list(ways)[-3:]:
        factors = [seconds / over_tcp for seconds, over_tcp in zip(ours[way], tcp, strict=True)]
        for which, paper, value in zip(("least", "most"), PAPER_FACTORS, (min(factors), max(factors)), strict=True):
            result.rows.append(Row(f"times TCP's seconds, {which}: {way}", "x", paper, 1.0, value, 1.0))
        if min(factors) > PAPER_FACTORS[0] or max(factors) > PAPER_FACTORS[1]:
            result.faults.append(
                f"{way}: {min(factors):.1f} to {max(factors):.1f} times TCP's, slower than the paper's"
            )
    result.notes.append(
        "windows count Interests for segments of 8000 bytes; medians of 5 runs, of 3 from 8 MB, 1 from 64"
    )
    x = [size / MB for size in sizes]
    lines = [Line("TCP socket", x, tcp, dashed=True), *(Line(way, x, seconds) for way, seconds in ours.items())]
    title = "A transfer, three routers between the hosts"
    result.plots.append(Plot(NAME, title, "MB", "s", lines, log_x=True, log_y=True))


def _round_trips(hosts: Pair, result: Result) -> None:
    paper_tcp, paper = PAPER_RTT_MS
    for what, host, published in (("on one host", hosts.client, True), ("three routers between", hosts.server, False)):
        tcp = hosts.ping_tcp(host, hosts.echo_tcp(host), PINGS, PAUSE_MS)
        ours = hosts.ping(hosts.pingserver(host), PINGS, PAUSE_MS)
        rows = (paper, paper_tcp) if published else (None, None)
        result.rows.append(Row(f"round trip {what}, mean", "ms", rows[0], tcp["mean"], ours["mean"], rows[1]))
        result.rows.append(Row(f"round trip {what}, median", "ms", None, tcp["p50"], ours["p50"]))
        if published and ours["mean"] > paper:
            result.faults.append(f"a round trip takes {ours['mean']:.2f} ms, longer than the paper's {paper} ms")
    result.notes.append(f"{PINGS} round trips each, {PAUSE_MS} ms apart; the paper's go through one host's NFD")
