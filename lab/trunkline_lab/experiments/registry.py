"""Experiments by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import (
    lab_up,
    mr_fig10,
    mr_fig11,
    mr_loss,
    mr_planes,
    mr_setup,
    mr_uplink,
    ndn_cache,
    ndn_contended,
    ndn_fig6,
    ndn_fig10,
    ndn_fig11,
    ndn_fig12,
    ndn_table2,
    qos_background,
    qos_dynamic,
    qos_fig5,
    repo_fig3,
    repo_fig4,
    repo_table3,
    sim_cache,
    sim_fig6,
)
from .options import Options
from .result import Result


@dataclass(frozen=True)
class Experiment:
    """What `lab list` tells and `lab run` runs; `scale` is the usual one, which a machine of 2 cores and 24 GiB has
    room and minutes for."""

    name: str
    about: str
    run: Callable[[Options], Result]
    needs_hadoop: bool
    scale: float


ON_HADOOP = (
    ndn_table2,
    ndn_fig6,
    ndn_fig10,
    ndn_fig11,
    ndn_fig12,
    ndn_cache,
    ndn_contended,
    qos_fig5,
    qos_dynamic,
    qos_background,
    mr_fig10,
    mr_fig11,
    mr_uplink,
    mr_loss,
    mr_planes,
    mr_setup,
    lab_up,
)
WITHOUT_HADOOP = (repo_table3, repo_fig3, repo_fig4, sim_fig6, sim_cache)

EXPERIMENTS = {
    module.NAME: Experiment(module.NAME, module.ABOUT, module.run, module in ON_HADOOP, getattr(module, "SCALE", 1.0))
    for module in (*ON_HADOOP, *WITHOUT_HADOOP)
}
