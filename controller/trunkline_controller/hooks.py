"""What dynamic control asks of the switches, without knowing how they are spoken to; `Controller` keeps it."""

from __future__ import annotations

from typing import Protocol

from .policy.model import Lift


class Lifting(Protocol):
    """Puts lifts in force. Any thread may call."""

    def lift(self, lifts: frozenset[Lift]) -> int:
        """These lifts are in force on every switch from now on, and no others. Returns flow entries changed on all
        switches; does not wait for them. Raises KeyError where the policy in force has no such queue or category.
        """
        ...
