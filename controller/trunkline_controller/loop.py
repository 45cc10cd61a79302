"""The asyncio loop for the switches, on a thread of its own; other threads have it do what concerns them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

WAIT_S = 30.0  # it never blocks, so this ends only what would hang for ever


class LoopThread:
    """From `start` to `stop`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="openflow", daemon=True)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_S)

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begins it there."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Waits until it is done."""
        return self.submit(work).result(WAIT_S)

    def call(self, work: Callable[[], T]) -> T:
        """Done there and waited for; before the thread runs, done at once."""
        return self.submit_call(work).result(WAIT_S) if self.is_alive else work()

    def submit_call(self, work: Callable[[], T]) -> Future[T]:
        """Done there soon."""

        async def done() -> T:
            return work()

        return self.submit(done())

    def call_soon(self, work: Callable[..., object], *arguments: object) -> None:
        """Not waited for."""
        self._loop.call_soon_threadsafe(work, *arguments)
