"""Flow entries and what they counted."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from ...control import FlowState
from ...flows.entry import Action, Output, SetField, SetQueue, Table, ToGroup, owner_name
from ...net.topology import dpid_text
from .network import DpidText


class OutputView(BaseModel):
    """Send by a port."""

    type: Literal["output"] = "output"
    port: int


class GroupView(BaseModel):
    """Send by one of a group's ports."""

    type: Literal["group"] = "group"
    group: int


class SetQueueView(BaseModel):
    """Take this queue of whichever port sends."""

    type: Literal["set_queue"] = "set_queue"
    queue: int


class SetFieldView(BaseModel):
    """Write a header field."""

    type: Literal["set_field"] = "set_field"
    field: str
    value: int | str


ActionView = Annotated[OutputView | GroupView | SetQueueView | SetFieldView, Field(discriminator="type")]


def _action(action: Action) -> ActionView:
    match action:
        case Output():
            return OutputView(port=action.port)
        case ToGroup():
            return GroupView(group=action.group)
        case SetQueue():
            return SetQueueView(queue=action.queue)
        case SetField():
            return SetFieldView(field=action.field, value=action.value)


class MetadataView(BaseModel):
    """Bits that an entry sets in a packet's metadata, which a later table matches."""

    value: int
    mask: int


class FlowView(BaseModel):
    """A flow entry of the controller's, and what it counted."""

    dpid: DpidText
    table: str = Field(description="admit, source_roles, destination_roles, classify or forward")
    priority: int
    match: dict[str, int | str] = Field(description="OXM fields; one that is absent matches all")
    actions: list[ActionView]
    write_metadata: MetadataView | None
    goto: str | None
    owner: str = Field(description="Which part of the controller the entry serves")
    cookie: str
    idle_timeout_s: int
    category: str = Field(description="Of the policy; empty for what is not a policy's")
    packets: int
    bytes: int

    @staticmethod
    def of(state: FlowState) -> FlowView:
        entry = state.entry
        return FlowView(
            dpid=dpid_text(state.dpid),
            table=Table(entry.table).name.lower(),
            priority=entry.priority,
            match={name: value for name, value in asdict(entry.match).items() if value is not None},
            actions=[_action(action) for action in entry.actions],
            write_metadata=MetadataView(value=entry.write_metadata[0], mask=entry.write_metadata[1])
            if entry.write_metadata is not None
            else None,
            goto=None if entry.goto is None else Table(entry.goto).name.lower(),
            owner=owner_name(entry.cookie),
            cookie=f"0x{entry.cookie:016x}",
            idle_timeout_s=entry.idle_timeout_s,
            category=state.category,
            packets=state.packets,
            bytes=state.bytes,
        )


class FlowsView(BaseModel):
    """Some of the flow entries that were asked for."""

    total: int = Field(description="How many there are; `offset` and `limit` say which of them follow")
    flows: list[FlowView]
