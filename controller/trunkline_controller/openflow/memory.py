"""Memory that switches take, in bytes, against one budget for all of them; who takes most gives way.

What is counted stays so until it is gone, also after its connection was closed. Pure.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator


class Budget:
    """`too_much` is called with the account that takes most, when all together take more than `most_bytes`: its owner
    is to close it.
    """

    def __init__(self, most_bytes: int, too_much: Callable[[Account], None]) -> None:
        self.held = 0
        self._most_bytes = most_bytes
        self._too_much = too_much
        self._accounts: set[Account] = set()  # that hold anything

    def account(self) -> Account:
        return Account(self)

    def count(self, account: Account, octets: int) -> None:
        """`account` holds so many bytes more; it calls this itself."""
        self.held += octets
        if account.held:
            self._accounts.add(account)
        else:
            self._accounts.discard(account)
        if octets > 0 and self.held > self._most_bytes:
            most = max(self._accounts, key=lambda one: one.held)
            if not most.is_closed:  # else its memory is about to go, and nobody else need give way
                self._too_much(most)


class Account:
    """One connection's. What is kept goes with the connection; what is held, when the block that holds it is left."""

    def __init__(self, budget: Budget) -> None:
        self.held = 0
        self.is_closed = False
        self._kept = 0  # of it
        self._is_over = False
        self._budget = budget

    def keep(self, octets: int) -> None:
        """So many bytes more, or fewer, until the end."""
        if octets and not self._is_over:
            self._kept += octets
            self._count(octets)

    @contextlib.contextmanager
    def holding(self) -> Iterator[Holding]:
        held = Holding(self)
        try:
            yield held
        finally:
            held.set(0)

    def close(self) -> None:
        """No more comes in."""
        self.is_closed = True

    def end(self) -> None:
        """What was kept is gone."""
        self.close()
        self.keep(-self._kept)
        self._is_over = True

    def _count(self, octets: int) -> None:
        self.held += octets
        self._budget.count(self, octets)


class Holding:
    """What one piece of work holds."""

    def __init__(self, account: Account) -> None:
        self.octets = 0
        self._account = account

    def set(self, octets: int) -> None:
        more, self.octets = octets - self.octets, octets
        if more:
            self._account._count(more)
