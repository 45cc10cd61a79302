"""The lab itself: how long its data centre of 16 hosts takes to come up and to go down, and what its routers weigh."""

from __future__ import annotations

import time

from ..net import data_center, topology_file
from ..say import say
from .options import Options
from .result import DIRECTORY, Result, Row

NAME = "lab-up"
ABOUT = "the lab itself: 16 hosts with 6 DataNodes and 6 routers: up, down, memory of a router without work"
AIM_UP_S, AIM_DOWN_S, AIM_ROUTER_MB = 60.0, 10.0, 20.0
IDLE_S = 2


def run(options: Options) -> Result:
    """Up and down, once."""
    result = Result(NAME, ABOUT)
    topology = topology_file.named(options.topology or "paper-fig5")
    began = time.monotonic()
    with data_center.standing(topology, DIRECTORY / NAME, options.lab) as (fabric, stage):
        center = data_center.start(fabric, topology, stage, "ndn", DIRECTORY / NAME)
        up_s = time.monotonic() - began
        say("up")
        time.sleep(IDLE_S)
        weights = [router.process.rss_bytes() / 1e6 for router in center.routers if router.process]
        began = time.monotonic()
    down_s = time.monotonic() - began
    for what, unit, value, aim in (
        ("up, until all DataNodes live", "s", up_s, AIM_UP_S),
        ("down", "s", down_s, AIM_DOWN_S),
        ("heaviest router without work, resident", "MB", max(weights), AIM_ROUTER_MB),
    ):
        result.rows.append(Row(f"{what} (aim: {aim:.0f})", unit, None, None, value))
        if value > aim:
            result.faults.append(f"{what}: {value:.1f} {unit}, above {aim:.0f}")
    result.notes.append(
        f"{len(topology.hosts)} hosts, {len(topology.roles.datanodes)} DataNodes, {len(weights)} routers"
    )
    return result
