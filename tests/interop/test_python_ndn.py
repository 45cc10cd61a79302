"""python-ndn as an independent witness: it registers prefixes with our forwarder, publishes for
`trunkline get`, fetches from `trunkline put`, and steers the forwarder with its own nfdc."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from conftest import Bench
from ndn.app import NDNApp as OldApp
from ndn.app_support import nfd_mgmt
from ndn.appv2 import NDNApp, pass_all
from ndn.encoding import Component, ContentType, Name
from ndn.security import DigestSha256Signer, sha256_digest_checker
from ndn.security.keychain import KeychainDigest
from ndn.transport.stream_face import UnixFace
from ndn.types import InterestNack, ValidResult

SIZE = 8000


async def digest_is_right(name, sig, _context) -> ValidResult:
    right = await sha256_digest_checker(name, sig)
    return ValidResult.PASS if right else ValidResult.FAIL


def run_app(bench: Bench, work: Callable[[NDNApp], Awaitable[None]]) -> None:
    """Runs `work` in a python-ndn application connected to the forwarder."""
    app = NDNApp(face=UnixFace(str(bench.socket_path)))
    failure: list[BaseException] = []

    async def after_start() -> None:
        try:
            await asyncio.wait_for(work(app), 60)
        except BaseException as error:
            failure.append(error)
        finally:
            app.shutdown()

    app.run_forever(after_start())
    if failure:
        raise failure[0]


async def trunkline(bench: Bench, *arguments: str) -> tuple[int, bytes, str]:
    process = await asyncio.create_subprocess_exec(
        str(bench.binary),
        *arguments,
        env=bench.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 50)
    assert process.returncode is not None
    return process.returncode, out, err.decode(errors="replace")


class Publisher:
    """Segments of an object, as python-ndn's own tools make them."""

    def __init__(self, app: NDNApp, name: str, content: bytes, with_metadata: bool) -> None:
        self.app = app
        self.name = Name.from_str(name)
        version = Component.from_version(1_700_000_000_000)
        self.versioned = [*self.name, version]
        count = (len(content) + SIZE - 1) // SIZE
        last = Component.from_segment(count - 1)
        self.packets = {
            bytes(Name.to_bytes([*self.versioned, Component.from_segment(i)])): app.make_data(
                [*self.versioned, Component.from_segment(i)],
                content[i * SIZE : (i + 1) * SIZE],
                signer=DigestSha256Signer(),
                freshness_period=10_000,
                final_block_id=last,
            )
            for i in range(count)
        }
        self.metadata = None
        if with_metadata:
            self.metadata = app.make_data(
                [*self.name, Component.from_str("32=metadata"), version, Component.from_segment(0)],
                Name.to_bytes(self.versioned),
                signer=DigestSha256Signer(),
                freshness_period=10,
                final_block_id=Component.from_segment(0),
            )

    async def serve(self) -> None:
        self.app.attach_handler(self.name, self.answer)
        assert await self.app.register(self.name)

    def answer(self, name, _param, reply, _context) -> None:
        packet = self.packets.get(bytes(Name.to_bytes(name)))
        if packet is None and self.metadata and Component.from_str("32=metadata") in name:
            packet = self.metadata
        if packet is not None:
            reply(packet)


@pytest.mark.parametrize("window", ["cubic", "aimd", "fixed:32"])
def test_get_from_python_ndn(bench: Bench, window: str) -> None:
    content = os.urandom(3_000_017)

    async def work(app: NDNApp) -> None:
        await Publisher(app, "/py/object", content, with_metadata=True).serve()
        code, out, err = await trunkline(bench, "get", "/py/object", "--window", window)
        assert code == 0, err
        assert hashlib.sha256(out).digest() == hashlib.sha256(content).digest()

    run_app(bench, work)


def test_get_without_metadata(bench: Bench) -> None:
    content = os.urandom(50_001)

    async def work(app: NDNApp) -> None:
        publisher = Publisher(app, "/py/plain", content, with_metadata=False)
        await publisher.serve()
        name = Name.to_str(publisher.versioned)
        code, out, err = await trunkline(bench, "get", "--no-metadata", name)
        assert code == 0, err
        assert out == content

    run_app(bench, work)


def test_get_refuses_a_broken_digest(bench: Bench) -> None:
    content = os.urandom(20_000)

    async def work(app: NDNApp) -> None:
        publisher = Publisher(app, "/py/broken", content, with_metadata=True)
        key = sorted(publisher.packets)[1]
        wire = bytearray(publisher.packets[key])
        wire[len(wire) // 2] ^= 1
        publisher.packets[key] = bytes(wire)
        await publisher.serve()
        target = bench.folder / "broken.bin"
        code, _, err = await trunkline(bench, "get", "/py/broken", "-o", str(target))
        assert code == 5, err
        assert "digest" in err or "signature" in err
        assert not target.exists()
        assert not list(bench.folder.glob("*.part*"))

    run_app(bench, work)


def test_get_of_a_nack_by_application(bench: Bench) -> None:
    async def work(app: NDNApp) -> None:
        name = Name.from_str("/py/none")
        metadata = [*name, Component.from_str("32=metadata"), Component.from_version(1), Component.from_segment(0)]

        def answer(_name, _param, reply, _context) -> None:
            reply(app.make_data(metadata, b"", signer=DigestSha256Signer(), content_type=ContentType.NACK))

        app.attach_handler(name, answer)
        assert await app.register(name)
        code, _, err = await trunkline(bench, "get", "/py/none")
        assert code == 4, err

    run_app(bench, work)


@pytest.mark.parametrize("segment_size", ["8000", "1000"])
def test_fetch_from_put(bench: Bench, segment_size: str) -> None:
    content = os.urandom(400_123)
    source = bench.folder / "source.bin"
    source.write_bytes(content)
    bench.serve("/tl/object", str(source), "--segment-size", segment_size)

    async def work(app: NDNApp) -> None:
        name = Name.from_str("/tl/object/32=metadata")
        meta_name, meta, _ = await app.express(
            name, digest_is_right, can_be_prefix=True, must_be_fresh=True, lifetime=4000
        )
        assert Component.get_type(meta_name[-1]) == Component.TYPE_SEGMENT
        assert Component.get_type(meta_name[-2]) == Component.TYPE_VERSION
        versioned = Name.from_bytes(bytes(meta))
        assert Name.is_prefix(Name.from_str("/tl/object"), versioned)
        parts = []
        segment = 0
        while True:
            data_name, part, context = await app.express(
                [*versioned, Component.from_segment(segment)], digest_is_right, lifetime=4000
            )
            assert Component.to_number(data_name[-1]) == segment
            assert len(part) <= int(segment_size)
            parts.append(bytes(part))
            if context["meta_info"].final_block_id == data_name[-1]:
                break
            segment += 1
        assert b"".join(parts) == content

    run_app(bench, work)


def test_own_tools_fetch_from_put(bench: Bench) -> None:
    source = bench.folder / "source.bin"
    source.write_bytes(os.urandom(100_001))
    bench.serve("/tl/tools", str(source), "--segment-size", "4000")
    target = bench.folder / "target.bin"
    tools = [sys.executable, "-m", "ndn.bin.tools"]
    done = subprocess.run(
        [*tools, "catchunks", "/tl/tools/32=metadata", "-f", "-o", str(target)],
        env=bench.environment,
        check=False,
        capture_output=True,
        timeout=60,
    )
    assert target.exists(), done.stdout.decode() + done.stderr.decode()
    assert target.read_bytes() == source.read_bytes()


def test_get_from_own_tools(bench: Bench) -> None:
    source = bench.folder / "source.txt"
    source.write_text("named data " * 5000)
    process = bench.start(
        sys.executable,
        "-u",
        "-m",
        "ndn.bin.tools",
        "putchunks",
        "/py/tools",
        str(source),
        log="putchunks.log",
    )
    bench.wait_for(lambda: b"Start serving" in (bench.folder / "putchunks.log").read_bytes(), process)
    bench.wait_for(lambda: b"/py/tools" in bench.trunkline("fwd", "route", "list").stdout)
    assert bench.trunkline("get", "/py/tools").stdout == source.read_bytes()


def test_old_style_command_registers(bench: Bench) -> None:
    """python-ndn's first API signs commands in the name, as NFD had it before signed Interests."""
    app = OldApp(face=UnixFace(str(bench.socket_path)), keychain=KeychainDigest())
    outcome: list[object] = []

    async def after_start() -> None:
        try:
            outcome.append(await app.register("/py/old", lambda *_: None))
            outcome.append(await trunkline(bench, "fwd", "route", "list", "--json"))
        finally:
            app.shutdown()

    app.run_forever(after_start())
    assert outcome[0] is True
    code, out, err = outcome[1]
    assert code == 0, err
    assert any(route["prefix"] == "/py/old" for route in json.loads(out)), out


def test_unregister_takes_the_route_away(bench: Bench) -> None:
    async def work(app: NDNApp) -> None:
        assert await app.register("/py/gone")
        assert await app.unregister("/py/gone") is not False
        with pytest.raises(InterestNack):
            await app.express("/py/gone/x", pass_all, lifetime=2000)

    run_app(bench, work)


def test_ping_answered_by_python_ndn(bench: Bench) -> None:
    async def work(app: NDNApp) -> None:
        def answer(name, _param, reply, _context) -> None:
            reply(app.make_data(name, b"pong", signer=DigestSha256Signer(), freshness_period=100))

        app.attach_handler("/py/host", answer)
        assert await app.register("/py/host")
        code, out, err = await trunkline(bench, "ping", "/py/host", "--count", "3", "--interval", "50ms", "--json")
        assert code == 0, err
        summary = json.loads(out)
        assert summary["sent"] == summary["received"] == 3

    run_app(bench, work)


def test_python_ndn_pings_pingserver(bench: Bench) -> None:
    process = bench.start(str(bench.binary), "pingserver", "/tl/host", log="pingserver.log")
    bench.wait_for(lambda: b"answering" in (bench.folder / "pingserver.log").read_bytes(), process)

    async def work(app: NDNApp) -> None:
        name, _, _ = await app.express("/tl/host/ping/12345", digest_is_right, must_be_fresh=True, lifetime=2000)
        assert Name.to_str(name) == "/tl/host/ping/12345"

    run_app(bench, work)


def nfdc(bench: Bench, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ndn.bin.nfdc", *arguments],
        env=bench.environment,
        check=False,
        capture_output=True,
        timeout=30,
    )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    return done.stdout.decode()


def test_nfdc_reads_the_datasets(bench: Bench) -> None:
    assert "trunkline" in nfdc(bench, "status")
    assert "unix://" in nfdc(bench, "face")
    assert "/localhost/nfd" in nfdc(bench, "route")
    assert "/localhost/nfd/strategy/" in nfdc(bench, "strategy")


def test_nfdc_chooses_a_strategy(bench: Bench) -> None:
    nfdc(bench, "Set-Strategy", "/py/multi", "/localhost/nfd/strategy/multicast")
    listed = json.loads(bench.trunkline("fwd", "strategy", "list", "--json").stdout)
    chosen = {entry["prefix"]: entry["strategy"] for entry in listed}
    assert "/localhost/nfd/strategy/multicast" in chosen["/py/multi"]


def test_datasets_parse_with_python_ndn(bench: Bench) -> None:
    async def work(app: NDNApp) -> None:
        async def dataset(name: str) -> bytes:
            _, content, _ = await app.express(name, pass_all, can_be_prefix=True, must_be_fresh=True, lifetime=2000)
            return bytes(content)

        assert await app.register("/py/dataset")
        status = nfd_mgmt.GeneralStatus.parse(await dataset("/localhost/nfd/status/general"))
        assert status.n_fib_entries > 0
        assert status.current_timestamp >= status.start_timestamp
        faces = nfd_mgmt.FaceStatusMsg.parse(await dataset("/localhost/nfd/faces/list"))
        ids = {face.face_id for face in faces.face_status}
        rib = nfd_mgmt.RibStatus.parse(await dataset("/localhost/nfd/rib/list"))
        mine = [e for e in rib.entries if Name.to_str(e.name) == "/py/dataset"]
        assert len(mine) == 1
        assert {route.face_id for route in mine[0].routes} <= ids
        fib = nfd_mgmt.FibStatus.parse(await dataset("/localhost/nfd/fib/list"))
        assert any(Name.to_str(e.name) == "/py/dataset" for e in fib.entries)
        info = nfd_mgmt.CsInfo.parse(await dataset("/localhost/nfd/cs/info"))
        assert info is not None

    run_app(bench, work)


def test_logs_are_quiet(bench: Bench) -> None:
    """A whole session leaves no warning in the forwarder's log."""
    source = Path(bench.folder / "s.bin")
    source.write_bytes(b"x" * 30_000)
    bench.serve("/tl/quiet", str(source))
    assert bench.trunkline("get", "/tl/quiet").stdout == source.read_bytes()
    log = (bench.folder / "fwd.log").read_text()
    assert "WARN" not in log and "ERROR" not in log and "panicked" not in log, log
