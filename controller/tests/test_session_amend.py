"""Small changes of what a switch should have, made at once and told when the switch has answered."""

import asyncio

import edges
import pytest
from test_session import BARRIER, flow, flows, has, served, with_room_for

from trunkline_controller.openflow import session as sessions


@pytest.fixture(autouse=True)
def _no_second_try_by_the_clock(monkeypatch):
    monkeypatch.setattr(sessions, "RETRY_S", 86_400.0)


async def with_flows(world, *numbers):
    speaker, session = await served(world)
    session.want(flows(*numbers), frozenset())
    await edges.until("it has them", lambda: has(speaker) == set(numbers) and session.in_step)
    return speaker, session


def test_what_is_amended_is_sent_alone_and_confirmed_by_the_answer_after_it():
    async def run():
        async with edges.world() as world:
            speaker, session = await with_flows(world, 1, 2)
            answers, confirmed = [], []
            barrier = speaker.handlers[BARRIER]

            def answer(this, xid, message):
                confirmed.append(session.confirmed(frozenset({flow(2), flow(3)})))
                return barrier(this, xid, message)

            speaker.handlers[BARRIER] = answer
            session.answered = lambda: answers.append(session.confirmed(frozenset({flow(1), flow(3)})))
            before = session.changes_sent
            session.amend(frozenset({flow(3)}), frozenset({flow(1)}))
            await edges.until("it is answered", lambda: answers)
            assert (session.changes_sent - before, has(speaker)) == (2, {2, 3})
            assert (confirmed[0], answers[0]) == ({flow(2)}, {flow(3)})
            # What is planned next knows of it.
            assert session.wants()[0] == flows(2, 3)

    asyncio.run(run())


def test_what_is_removed_is_gone_only_when_the_switch_has_answered():
    async def run():
        async with edges.world() as world:
            speaker, session = await with_flows(world, 1, 2)
            before, answers = [], []
            barrier = speaker.handlers[BARRIER]

            def answer(this, xid, message):
                before.append(session.leaving())
                return barrier(this, xid, message)

            speaker.handlers[BARRIER] = answer
            session.answered = lambda: answers.append(session.leaving())
            assert session.leaving() == frozenset()
            session.amend(frozenset(), frozenset({flow(1)}))
            assert (session.leaving(), flow(1) in session.flows) == ({flow(1)}, False)
            await edges.until("it is answered", lambda: answers)
            assert (before, answers, has(speaker)) == ([{flow(1)}], [frozenset()], {2})

    asyncio.run(run())


def test_what_is_refused_is_told_with_its_answer_and_tried_again_when_it_is_amended_anew():
    async def run():
        async with edges.world() as world:
            speaker, session = await with_flows(world, 1)
            most, told = [1], []
            with_room_for(speaker, most)
            session.answered = lambda: told.append(session.refused(frozenset({flow(1), flow(2)})))
            session.amend(frozenset({flow(2)}), frozenset())
            await edges.until("it is answered", lambda: told)
            assert told[0].keys() == {flow(2)}
            assert session.confirmed(frozenset({flow(2)})) == frozenset()
            session.amend(frozenset(), frozenset({flow(2)}))
            most[0] = 2
            session.amend(frozenset({flow(2)}), frozenset())
            await edges.until("it has it", lambda: session.confirmed(frozenset({flow(2)})))
            assert has(speaker) == {1, 2}
            assert not session.refusals

    asyncio.run(run())


def test_what_is_amended_between_two_parts_of_a_long_change_is_so_in_the_end(monkeypatch):
    monkeypatch.setattr(sessions, "BATCH", 4)

    async def run():
        async with edges.world() as world:
            speaker, session = await with_flows(world)
            barrier, amended = speaker.handlers[BARRIER], []

            def answer(this, xid, message):
                if has(this) and not amended:
                    amended.append(True)
                    session.amend(frozenset({flow(99)}), frozenset(map(flow, range(1, 13))))
                return barrier(this, xid, message)

            speaker.handlers[BARRIER] = answer
            session.want(flows(*range(1, 25)), frozenset())
            expected = {*range(13, 25), 99}
            await edges.until("all is as it should be", lambda: has(speaker) == expected and session.in_step)
            assert session.confirmed(frozenset(map(flow, expected))) == set(map(flow, expected))

    asyncio.run(run())


def test_nothing_is_sent_where_nothing_is_planned_yet():
    async def run():
        async with edges.world() as world:
            world.network.plan_after_s = 3600.0
            speaker, session = await served(world)
            session.amend(frozenset({flow(1)}), frozenset())
            assert session.wants()[0] is None
            session.want(flows(2), frozenset())
            await edges.until("it has what is planned", lambda: has(speaker) == {2})

    asyncio.run(run())
