"""What all experiments can be told."""

from __future__ import annotations

from dataclasses import dataclass

from ..net.fabric import DEFAULT_LAB


@dataclass(frozen=True)
class Options:
    """`scale` multiplies the paper's data sizes; `lab` names the namespaces used; `topology` replaces the usual one.

    `jobs` are those of MapReduce to run, of an experiment that has some; all of them where there is none.
    """

    scale: float = 1.0
    lab: str = DEFAULT_LAB
    topology: str | None = None
    jobs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.scale <= 1024:
            raise ValueError(f"--scale {self.scale} is not above 0 and at most 1024")
