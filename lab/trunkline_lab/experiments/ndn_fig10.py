"""Fig. 10 of the NDN paper: seconds of a transfer against the window of Interests, and with our congestion control."""

from __future__ import annotations

from statistics import median

from ..say import say
from . import pair
from .options import Options
from .pair import JUMBO_SEGMENT_BYTES, MB, PAPER_SEGMENT_BYTES, Pair
from .plots import Line, Plot
from .result import Result, Row

NAME = "ndn-fig10"
ABOUT = "Fig. 10: seconds of a transfer by name against its window, 8 to 128 MB, beside a TCP socket's"
SIZES_MB = (8, 16, 32, 64, 128)
WINDOWS = (1, 2, 4, 8, 16, 32, 64, 100, 128)
OURS = "cubic"
REPEATS = 3


def run(options: Options) -> Result:
    """One network, all transfers one after the other."""
    result = Result(NAME, ABOUT)
    lines = []
    with pair.standing(options, NAME) as hosts:
        for size_mb in SIZES_MB:
            size = max(1, int(size_mb * MB * options.scale))
            say(f"{size_mb * options.scale:g} MB")
            lines.append(_of_size(hosts, result, size))
    result.notes.append(
        "windows count Interests for segments of 8000 bytes, as the paper's; fixed windows once, the others the median "
        f"of {REPEATS}; `cubic` is our congestion control; the paper drew its figures and wrote none of them down"
    )
    title = "A transfer by name, three routers between the hosts"
    result.plots.append(Plot(NAME, title, "window, segments of 8000 bytes", "s", lines, log_x=True, log_y=True))
    return result


def _of_size(hosts: Pair, result: Result, size: int) -> Line:
    what = f"{size / MB:g} MB"
    port = hosts.serve_tcp(size)
    tcp_s = median(hosts.get_tcp(port, size) for _ in range(REPEATS))
    name = hosts.publish(size, PAPER_SEGMENT_BYTES)
    fixed = [hosts.get(name, f"fixed:{window}", size) for window in WINDOWS]
    result.rows += [
        Row(f"{what}, window {window}", "s", None, tcp_s, seconds)
        for window, seconds in zip(WINDOWS, fixed, strict=True)
    ]
    adaptive = median(hosts.get(name, OURS, size) for _ in range(REPEATS))
    result.rows.append(Row(f"{what}, {OURS}, segments of {PAPER_SEGMENT_BYTES}", "s", None, tcp_s, adaptive))
    jumbo_name = hosts.publish(size, JUMBO_SEGMENT_BYTES)
    jumbo = median(hosts.get(jumbo_name, OURS, size) for _ in range(REPEATS))
    result.rows.append(Row(f"{what}, {OURS}, segments of {JUMBO_SEGMENT_BYTES}", "s", None, tcp_s, jumbo))
    best = min(fixed)
    if adaptive > 2 * best:
        result.faults.append(
            f"{what}: {OURS} took {adaptive:.2f} s, more than twice the best fixed window's {best:.2f} s"
        )
    return Line(what, [float(window) for window in WINDOWS], fixed)
