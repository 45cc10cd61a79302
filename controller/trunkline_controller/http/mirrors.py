"""Pipelines that are mirrored: `MirrorControl` for those who open their connections, and for operators."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field
from starlette.types import Scope

from ..control import MirrorControl
from ..mirror.entries import Connection
from ..mirror.model import WRITES, Hop, Pipeline, Refused, State, Why
from ..mirror.tree import Tree
from ..net.topology import End, Link, Topology, dpid_text
from . import problem
from .problem import Stop
from .quick import QuickRoute
from .views.network import DpidText, end_id, link_id

PATH = "/v1/mirrors"
MAX_WAIT_MS = 1000
MAX_ID = 320  # letters of a mirror's id
NO_ADDRESS = "write IP addresses, as 192.0.2.1 or 2001:db8::1"
_REMEDIES = {
    Why.ALL_PIPELINES: "raise mirror.max_pipelines, or write unmirrored",
    Why.HOST_PIPELINES: "raise mirror.max_pipelines_per_host, or write unmirrored",
    Why.OUTDATED: "announce the generation stamp that the write will have",
    Why.BROKEN_CHAIN: "count positions from 1, which the client's connection leads to",
}


class EndView(BaseModel):
    """One end of a TCP connection."""

    address: str = Field(max_length=64, description="IPv4 or IPv6, as the packets have it")
    port: int = Field(ge=1, le=65535)


def connection_of(source: EndView, destination: EndView) -> Connection:
    """Raises ValueError for what is no IP address."""
    return Connection.of(source.address, source.port, destination.address, destination.port)


class HopView(BaseModel):
    """A connection of a pipeline."""

    position: int = Field(ge=1, le=512, description="Of the replica that it leads to: 1 is the client's")
    source: EndView = Field(description="Who opened it")
    destination: EndView

    @staticmethod
    @lru_cache(maxsize=16384)  # each of a pipeline's hops is in the answer to all of them
    def of(position: int, connection: Connection) -> HopView:
        return HopView(
            position=position,
            source=EndView(address=connection.source, port=connection.source_port),
            destination=EndView(address=connection.destination, port=connection.destination_port),
        )


class AnnouncedHopView(HopView):
    """A hop, as one of its ends announces it after the header has left, which does not wait for that; again, to renew
    the lease.
    """

    pool: str = Field(max_length=255, pattern=r"^[A-Za-z0-9._:-]+$", description="Block pool")
    block: int = Field(ge=-(1 << 63), lt=1 << 63, description="Block id")
    generation: int = Field(ge=0, lt=1 << 63, description="Generation stamp that the write will have")
    replicas: int = Field(ge=1, le=512, description="DataNodes of the pipeline")
    client: str = Field(max_length=255, description="Hadoop's name of the client; empty where a DataNode re-replicates")
    stage: str = Field(WRITES[0], max_length=64, description="Hadoop's BlockConstructionStage")
    wait_ms: int = Field(
        0,
        ge=0,
        le=MAX_WAIT_MS,
        description="How long to wait for hops that are missing, and once all are known for the pipeline to be armed "
        "or refused, in milliseconds",
    )

    def hop(self) -> Hop:
        """Raises ValueError for what is no IP address."""
        connection = connection_of(self.source, self.destination)
        return Hop(
            self.pool, self.block, self.generation, self.position, self.replicas, connection, self.client, self.stage
        )


class MirrorView(BaseModel):
    """A pipeline that was announced. Its writes may count on copies while it is armed."""

    id: str = Field(description="<block pool>~<block id>~<generation stamp>")
    pool: str
    block: int
    generation: int
    replicas: int
    state: State
    why: Why | None = Field(description="Why it is refused")
    what: str = Field(description="The same for people")
    hops: list[HopView]
    complete: bool = Field(description="Whether all hops are known. If not, it is others that keep it from being armed")
    missing: list[int] = Field(description="Positions that nobody has announced")
    switches: list[DpidText] = Field(description="Those with flow entries for it")
    lead: int = Field(description="Position of the first replica that segments come to over the network")
    head: int | None = Field(
        description="Sequence number at which the stream begins in the connection to that replica, as its agent says"
    )
    arm_ms: float | None = Field(
        description="From the last hop's announcement, or when what was in the way ended, until switches had confirmed"
    )

    @staticmethod
    def fields(pipeline: Pipeline) -> dict[str, Any]:
        missing, arm_ms = pipeline.missing, None
        if pipeline.armed_s is not None and pipeline.complete_s is not None:
            arm_ms = round((pipeline.armed_s - pipeline.complete_s) * 1000, 3)
        return {
            "id": pipeline.id,
            "pool": pipeline.pool,
            "block": pipeline.block,
            "generation": pipeline.generation,
            "replicas": pipeline.replicas,
            "state": pipeline.state,
            "why": pipeline.why,
            "what": pipeline.what,
            "hops": [HopView.of(position, hop) for position, hop in sorted(pipeline.hops.items())],
            "complete": not missing,
            "missing": list(missing),
            "switches": [dpid_text(dpid) for dpid in sorted(pipeline.entries)],
            "lead": pipeline.lead,
            "head": pipeline.head,
            "arm_ms": arm_ms,
        }


class AnnouncedView(MirrorView):
    """What became of an announcement."""

    lease_s: float = Field(description="After so long it is removed, unless its hops are announced again, each")

    @staticmethod
    def announced(pipeline: Pipeline, lease_s: float) -> AnnouncedView:
        return AnnouncedView(**MirrorView.fields(pipeline), lease_s=lease_s)


class ListedMirrorView(MirrorView):
    """A pipeline, and its way through the network."""

    links: list[str] = Field(
        description="Ids of the links that its segments and their copies cross, as /v1/links has them"
    )

    @staticmethod
    def listed(pipeline: Pipeline, far: Mapping[End, End]) -> ListedMirrorView:
        """`far`: the other ends of links between switches."""
        links = [] if pipeline.tree is None else _links(pipeline.tree, far)
        return ListedMirrorView(**MirrorView.fields(pipeline), links=links)


class MirrorsView(BaseModel):
    """Pipelines that were announced and have not ended."""

    enabled: bool
    total: int
    mirrors: list[ListedMirrorView]


def _links(tree: Tree, far: Mapping[End, End]) -> list[str]:
    ends = (sender if isinstance(sender, End) else tree.client.at for sender in tree.senders())
    found = (link_id(Link.between(end, far[end])) if end in far else end_id(end) for end in ends)
    return list(dict.fromkeys(found))


async def announce(control: MirrorControl, hop: AnnouncedHopView) -> AnnouncedView:
    """Raises Stop or NotNow."""
    try:
        announced = hop.hop()
    except ValueError as error:
        raise Stop(422, str(error), NO_ADDRESS) from None
    try:
        pipeline = await asyncio.wrap_future(control.mirror_announce(announced, hop.wait_ms / 1000))
    except Refused as refused:
        remedy = _REMEDIES.get(refused.why, "write unmirrored")
        raise Stop(409, refused.what, remedy, why=refused.why) from None
    return AnnouncedView.announced(pipeline, control.mirror_lease_s())


def quick_mirrors(control: MirrorControl) -> QuickRoute:
    """Announcing, on which arming waits."""

    async def answer(hop: AnnouncedHopView, _: Scope) -> AnnouncedView:
        return await announce(control, hop)

    return QuickRoute(PATH, re.compile(re.escape(PATH)), AnnouncedHopView, answer)


def mirrors(control: MirrorControl, topology: Callable[[], Topology]) -> APIRouter:
    """The paths of mirrored pipelines."""
    router = APIRouter(prefix=PATH, tags=["mirrors"], responses=problem.responses(401, 403, 422))

    @router.post("", responses=problem.responses(409, 413, 415))
    async def announce_hop(hop: AnnouncedHopView) -> AnnouncedView:
        """Announces a hop; answers when its pipeline is armed or refused, or after `wait_ms`, which begins anew when
        all hops are known.
        """
        return await announce(control, hop)

    @router.get("")
    def mirrored_pipelines(
        state: Annotated[list[State] | None, Query(max_length=len(State), description="Only in these states")] = None,
        limit: Annotated[int, Query(ge=1, le=10_000, description="How many rows at most")] = 1000,
        offset: Annotated[int, Query(ge=0, le=1 << 40, description="Rows to leave out first")] = 0,
    ) -> MirrorsView:
        """Pipelines that were announced, the newest first."""
        found = [pipeline for pipeline in control.mirrors() if state is None or pipeline.state in state]
        found.sort(key=lambda pipeline: (-pipeline.announced_s, pipeline.id))
        far = topology().link_ends()
        shown = [ListedMirrorView.listed(pipeline, far) for pipeline in found[offset : offset + limit]]
        return MirrorsView(enabled=control.mirror_counts().enabled, total=len(found), mirrors=shown)

    @router.delete("/{identity}", status_code=204, responses=problem.responses(404, 409))
    async def end_mirror(
        identity: Annotated[str, Path(max_length=MAX_ID, description="The id of a mirror, from its announcement")],
    ) -> None:
        """The pipeline has closed: switches copy nothing more for it."""
        try:
            await asyncio.wrap_future(control.mirror_close(identity))
        except KeyError:
            raise Stop(
                404, f"no mirror {identity} is announced", "it has ended already, or see /v1/mirrors for those that are"
            ) from None

    return router
