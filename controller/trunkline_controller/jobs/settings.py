"""Whether and how stragglers are lifted: the table [dynamic] of the controller's configuration."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from ..refusal import SettingsError
from .lifting import Limits
from .rest import Rest


@dataclass(frozen=True)
class DynamicSettings:
    """`enabled` is enough: the rest has defaults."""

    enabled: bool = False
    """Whether reducers whose shuffle lags behind have their flows lifted to a better queue."""
    queue: str = "lifted"
    """The policy's queue that they are lifted to; it must be no worse than shuffles' own on any port."""
    resourcemanager: tuple[str, ...] = ()
    """Addresses of the ResourceManager's web service, as http://rm.example:8088, the first that answers is asked; none:
    port 8088 of the policy's hosts of role resourcemanager."""
    ca_file: Path | None = None
    """Certificates in PEM that an https ResourceManager is checked against; none: the system's."""
    poll_s: float = 1.0
    """How long after one look at the running jobs the next begins, in seconds, 0.1 to 3600."""
    timeout_s: float = 3.0
    """How long the ResourceManager, or one job, may take for its answers to one look, in seconds, 0.1 to 60."""
    lift_lag: float = 0.2
    """Share of its shuffle that a reducer must be behind the median to be lifted, above `return_lag` and at most 1."""
    return_lag: float = 0.05
    """Share that it may still be behind to be given back, 0 or more."""
    hold_s: float = 10.0
    """How long a reducer stays lifted, unless its shuffle ends, and then is not lifted again, in seconds, 0 to 3600."""
    silent_s: float = 10.0
    """After how long without news of a job its lifts are given back, in seconds, above `poll_s` and at most 3600."""
    max_lifted: int = 8
    """Reducers lifted at once, over all jobs, 1 to 256."""
    flow_changes_per_s: float = 100.0
    """Flow entries that lifts may change each second, over all switches, 1 to 100000."""

    @property
    def limits(self) -> Limits:
        return Limits(
            self.lift_lag, self.return_lag, self.hold_s, self.silent_s, self.max_lifted, self.flow_changes_per_s
        )

    def check(self) -> None:
        """Raises SettingsError unless dynamic control can start with these; reads the file that is named."""
        for name, least, most in (
            ("poll_s", 0.1, 3600.0),
            ("timeout_s", 0.1, 60.0),
            ("hold_s", 0.0, 3600.0),
            ("silent_s", 1.0, 3600.0),
            ("max_lifted", 1, 256),
            ("flow_changes_per_s", 1.0, 100_000.0),
        ):
            value = getattr(self, name)
            if not least <= value <= most:
                raise SettingsError(
                    f"dynamic.{name}", f"{value:g} is out of range", f"write a number from {least:g} to {most:g}"
                )
        if not 0 <= self.return_lag < self.lift_lag <= 1:
            raise SettingsError(
                "dynamic.return_lag",
                f"{self.return_lag:g} is not below lift_lag, {self.lift_lag:g}, within 0 and 1",
                "write shares of a shuffle, as 0.05 and 0.2",
            )
        if self.silent_s <= self.poll_s:
            raise SettingsError(
                "dynamic.silent_s",
                f"{self.silent_s:g} s is not above poll_s, {self.poll_s:g} s: jobs would always count as silent",
                "make it several times poll_s",
            )
        for address in self.resourcemanager:
            try:
                Rest(address, self.timeout_s, 1)
            except ValueError as error:
                what, _, remedy = str(error).partition("; ")
                raise SettingsError("dynamic.resourcemanager", what, remedy) from None
        self.tls()

    def tls(self) -> ssl.SSLContext | None:
        """What an https ResourceManager is checked with, where it is not the system's certificates."""
        if self.ca_file is None:
            return None
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(
                "dynamic.ca_file",
                f"{self.ca_file}: {getattr(error, 'strerror', None) or error}",
                "name a file with certificates in PEM",
            ) from None
