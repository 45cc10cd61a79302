"""What all tests share."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from trunkline_lab import procs


def pytest_configure(config: pytest.Config) -> None:
    """A run that is told to end (SIGTERM) ends what its tests have started, as one that is interrupted by hand does."""
    stack = ExitStack()
    stack.enter_context(procs.interruptible())
    config.add_cleanup(stack.close)
