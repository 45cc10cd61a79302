"""How long discovery waits, and how much it remembers of what hosts say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Seconds and counts; `settings` gives each its range."""

    lldp_interval_s: float = 2.0
    settle_s: float = 1.0  # a port that hears no LLDP for so long leads to no switch
    switch_hold_s: float = 5.0  # a switch that lost its connection is still reckoned with
    adopt_hold_s: float = 20.0  # what was known before a start, or of a link, is not given up for so long
    host_timeout_s: float = 3600.0  # a host that is silent for so long is asked, and forgotten where it does not answer
    probe_wait_s: float = 1.0
    max_hosts: int = 10_000
    max_hosts_per_port: int = 64
    max_addresses_per_host: int = 16

    @property
    def lldp_timeout_s(self) -> float:
        """Three in a row are missing."""
        return 3.5 * self.lldp_interval_s
