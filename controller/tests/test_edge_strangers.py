"""Who connects to the OpenFlow port and never says anything keeps no switch out."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator

import edges
import pytest
import speakers
import trustme

from trunkline_controller.openflow import edge as module

HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def tls(authority: trustme.CA, purpose: int) -> ssl.SSLContext:
    """One that shows a certificate, and wants to see one."""
    context = ssl.SSLContext(purpose)
    context.verify_mode = ssl.CERT_REQUIRED
    authority.issue_cert("switch", HOST).configure_cert(context)
    authority.configure_trust(context)
    return context


@contextlib.contextmanager
def silent(port: int, hosts: list[str]) -> Iterator[list[socket.socket]]:
    """Connections that say nothing."""
    with contextlib.ExitStack() as stack:
        opened = []
        for host in hosts:
            one = stack.enter_context(socket.create_connection((HOST, port), 60.0, (host, 0)))
            one.setblocking(False)
            opened.append(one)
        yield opened


def ended(one: socket.socket) -> bool:
    try:
        while one.recv(4096):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        pass
    return True


async def connect(world: edges.World, dpid: int, context: ssl.SSLContext | None) -> speakers.Speaker:
    """A switch."""
    loop = asyncio.get_running_loop()
    speaker = speakers.Speaker(world.fabric, dpid)
    name = HOST if context else None
    await loop.create_connection(lambda: speaker, HOST, world.edge.port, ssl=context, server_hostname=name)
    return speaker


@pytest.fixture(params=["tcp", "ssl"])
def sides(request: pytest.FixtureRequest, authority: trustme.CA) -> tuple[ssl.SSLContext | None, ...]:
    """The controller's and a switch's TLS, if any."""
    if request.param == "tcp":
        return None, None
    return tls(authority, ssl.PROTOCOL_TLS_SERVER), tls(authority, ssl.PROTOCOL_TLS_CLIENT)


def test_strangers_take_no_more_than_their_address_s_share_and_give_way_to_switches(sides, monkeypatch):
    monkeypatch.setattr(module, "HANDSHAKE_S", 3600.0)
    monkeypatch.setattr("trunkline_controller.openflow.connection.HANDSHAKE_S", 3600.0)

    async def run():
        async with edges.world(max_connections=8, tls=sides[0]) as world:
            port = world.edge.port
            with silent(port, ["127.0.0.2"] * 10) as many:
                await edges.until("all but its share are closed", lambda: sum(map(ended, many)) == 8)
                assert any("127.0.0.2 has 2 connections" in str(what) for _, what in world.network.told)
                # All places are taken: 2 by those, the others by other strangers.
                with silent(port, [f"127.0.0.{host}" for host in (3, 3, 4, 4, 5, 5)]) as others:
                    for dpid in (1, 2, 3):
                        await connect(world, dpid, sides[1])
                        await edges.until("the switch is served", lambda dpid=dpid: dpid in world.network.ready)
                    await edges.until("three gave way", lambda: sum(map(ended, (*many, *others))) == 8 + 3)
                    assert any(
                        "8 connections, the limit; each further one ends" in str(w) for _, w in world.network.told
                    )

    asyncio.run(run())


def test_switches_that_were_let_in_keep_their_places(sides):
    async def run():
        async with edges.world(max_connections=2, tls=sides[0]) as world:

            async def served(*dpids):
                await edges.until("they are served", lambda: set(world.network.ready) == set(dpids))

            first = await connect(world, 1, sides[1])
            await served(1)
            second = await connect(world, 2, sides[1])
            await served(1, 2)
            with silent(world.edge.port, ["127.0.0.2"]) as others:
                await edges.until("a third is refused", lambda: ended(others[0]))
            assert any("2 connections, the limit; further ones are refused" in str(w) for _, w in world.network.told)
            assert first.transport is not None
            assert second.transport is not None
            first.transport.abort()
            await served(2)
            await connect(world, 3, sides[1])
            await served(2, 3)

    asyncio.run(run())


def test_a_tls_handshake_that_never_ends_is_ended(authority, monkeypatch):
    monkeypatch.setattr(module, "HANDSHAKE_S", 0.5)

    async def run():
        async with edges.world(tls=tls(authority, ssl.PROTOCOL_TLS_SERVER)) as world:
            with silent(world.edge.port, ["127.0.0.2"] * 3) as (nothing, half, begun):
                half.send(b"\x16\x03\x01")
                begun.send(client_hello(tls(authority, ssl.PROTOCOL_TLS_CLIENT)))
                async with asyncio.timeout(30):
                    while not all(map(ended, (nothing, half, begun))):
                        await asyncio.sleep(0.01)

    asyncio.run(run())


def client_hello(context: ssl.SSLContext) -> bytes:
    sent = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname=HOST).do_handshake()
    return sent.read()
