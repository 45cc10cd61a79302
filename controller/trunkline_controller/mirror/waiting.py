"""Who waits for news, of what."""

from __future__ import annotations

import asyncio


class Waiting:
    """On one loop's thread."""

    def __init__(self) -> None:
        self._for: dict[str, set[asyncio.Future[None]]] = {}

    def __len__(self) -> int:
        return len(self._for)

    async def news(self, of: str, seconds: float) -> None:
        """Returns after the next `wake` of it, or when the time is over."""
        loop = asyncio.get_running_loop()
        told: asyncio.Future[None] = loop.create_future()
        over = loop.call_later(seconds, _tell, told)
        waiting = self._for.setdefault(of, set())
        waiting.add(told)
        try:
            await told
        finally:
            over.cancel()
            waiting.discard(told)
            if not waiting and self._for.get(of) is waiting:
                del self._for[of]

    def wake(self, of: str) -> None:
        for told in self._for.get(of, ()):
            _tell(told)


def _tell(told: asyncio.Future[None]) -> None:
    if not told.done():
        told.set_result(None)
