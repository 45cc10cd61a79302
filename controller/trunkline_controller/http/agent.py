"""What the agents at the switches' hosts ask and report: `AgentControl` by long polls."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Annotated, TypeVar

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool

from ..control import AgentControl
from ..net.topology import Dpid
from ..queues.wanted import QueuesWanted
from . import problem
from .views.agent import ReportView, WantedView
from .views.network import DpidText

T = TypeVar("T")

MAX_POLLS = 256
MAX_WAIT_S = 60.0
MAX_SWITCHES = 256  # of one agent


class Polls:
    """The polls that wait. `end` answers all of them, and lets none wait any more. `run` is this run's own word."""

    def __init__(self) -> None:
        self.run = secrets.token_hex(8)
        self._waiting: set[Callable[[], None]] = set()
        self._told: set[Callable[[], None]] = set()
        self._lock = threading.Lock()
        self.ended = False

    def end(self) -> None:
        with self._lock:
            self.ended = True
            for wake in self._waiting | self._told:
                wake()

    @contextmanager
    def until_end(self, wake: Callable[[], None]) -> Iterator[None]:
        """For polls whose number is bounded elsewhere. `wake` is called when no poll may wait any more."""
        with self._lock:
            self._told.add(wake)
            if self.ended:
                wake()
        try:
            yield
        finally:
            with self._lock:
                self._told.discard(wake)

    @contextmanager
    def waiting(self, wake: Callable[[], None]) -> Iterator[None]:
        with self._lock:
            if len(self._waiting) >= MAX_POLLS:
                raise problem.Stop(
                    503, f"{MAX_POLLS} agents wait already", "ask again later", {"Retry-After": str(int(MAX_WAIT_S))}
                )
            self._waiting.add(wake)
        try:
            yield
        finally:
            with self._lock:
                self._waiting.discard(wake)


async def unless_ended(polls: Polls, asked: Future[T]) -> T:
    """What was asked for, unless the server ends before."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def end() -> None:
        if not ended.done():
            ended.set_result(None)

    def wake() -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(end)

    answer = asyncio.wrap_future(asked)
    with polls.until_end(wake):
        try:
            await asyncio.wait({answer, ended}, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                return answer.result()
            raise problem.Stop(503, "the controller stops", "ask again", {"Retry-After": "1"})
        finally:
            answer.cancel()


def agent(control: AgentControl, polls: Polls) -> APIRouter:
    """The paths of agents."""
    router = APIRouter(prefix="/v1/agent", tags=["agent"], responses=problem.responses(401, 403, 422))

    @router.get("/queues", responses=problem.responses(503))
    async def wanted_queues(
        dpid: Annotated[
            list[DpidText], Query(min_length=1, max_length=MAX_SWITCHES, description="The agent's switches")
        ],
        seen: Annotated[str, Query(max_length=64, description="The version that the agent has")] = "",
        wait: Annotated[float, Query(ge=0, le=MAX_WAIT_S, description="Seconds to wait for another one")] = 0,
    ) -> WantedView:
        """Which queues the switches' ports should have; waits while it is the version that was seen."""
        dpids = tuple(Dpid(int(text, 16)) for text in dpid)
        return WantedView.of(await _another(control, polls, dpids, seen, wait), polls.run)

    @router.post("/queues", status_code=204, responses=problem.responses(413, 415))
    def report_queues(report: ReportView) -> None:
        """What became of the queues at the switches."""
        control.queues_reported(report.report())

    return router


async def _another(
    control: AgentControl, polls: Polls, dpids: tuple[Dpid, ...], seen: str, wait_s: float
) -> QueuesWanted:
    """What is wanted, once its version is not the one seen or the time is over."""
    loop = asyncio.get_running_loop()
    changed = asyncio.Event()
    until = loop.time() + wait_s

    def wake() -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(changed.set)

    wanted = await run_in_threadpool(control.queues_wanted, dpids)
    if wanted.version != seen or wait_s <= 0 or polls.ended:
        return wanted  # who need not wait takes no place of those who do
    with polls.waiting(wake):
        forget = control.when_queues_change(wake)
        try:
            while True:
                changed.clear()
                wanted = await run_in_threadpool(control.queues_wanted, dpids)
                left = until - loop.time()
                if wanted.version != seen or left <= 0 or polls.ended:
                    return wanted
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), left)
        finally:
            forget()
