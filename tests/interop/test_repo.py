"""python-ndn as an independent encoder of the repo protocol: it signs commands in both forms there are, produces what
`trunkline repo run` inserts, and reads it back when it has stopped producing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import pytest
from conftest import Bench
from ndn.appv2 import NDNApp, pass_all
from ndn.encoding import Component, FormalName, Name, NameField, TlvModel, UintField, make_data, MetaInfo
from ndn.security import DigestSha256Signer, HmacSha256Signer
from ndn.types import InterestNack, InterestTimeout
from ndn.utils import gen_nonce_64, timestamp
from test_python_ndn import digest_is_right, run_app

FRESH_MS = 10
SECRET = "00112233445566778899aabbccddeeff"
BEGUN, DONE, GOES_ON, UNAUTHORIZED, NO_END = 100, 200, 300, 401, 405


class Parameter(TlvModel):
    """What a command is about, as repo-ng's protocol page has it."""

    name = NameField()
    start_block_id = UintField(204)
    end_block_id = UintField(205)
    process_id = UintField(206)


class Response(TlvModel):
    """What becomes of it."""

    process_id = UintField(206)
    status_code = UintField(208)
    start_block_id = UintField(204)
    end_block_id = UintField(205)
    insert_num = UintField(209)
    delete_num = UintField(210)


class Owner(HmacSha256Signer):
    """Signs commands with time and nonce."""

    def __init__(self, secret: str = SECRET) -> None:
        super().__init__("/owner/KEY", bytes.fromhex(secret))

    def write_signature_info(self, signature_info) -> None:  # type: ignore[no-untyped-def]
        super().write_signature_info(signature_info)
        signature_info.signature_time = timestamp()
        signature_info.signature_nonce = gen_nonce_64()


def outer(typ: int, inner: bytes) -> bytes:
    """An element around `inner`, which is short."""
    assert len(inner) < 253
    return bytes([typ, len(inner)]) + inner


def new_form(verb: str, parameter: Parameter) -> FormalName:
    """A signed Interest's name without its digest: parameters with their outer element."""
    return [*Name.from_str("/repo"), Component.from_str(verb.replace(" ", "%20")), component(201, parameter)]


def component(typ: int, parameter: Parameter) -> bytes:
    return Component.from_bytes(outer(typ, bytes(parameter.encode())))


def old_form(verb: str, parameter: Parameter) -> FormalName:
    """A command Interest from before signed Interests: four components at the end of the name; no outer element."""
    name = [
        *Name.from_str("/repo"),
        Component.from_str(verb.replace(" ", "%20")),
        Component.from_bytes(bytes(parameter.encode())),
        Component.from_bytes(timestamp().to_bytes(8, "big")),
        Component.from_bytes(os.urandom(8)),
        Component.from_bytes(bytes([0x16, 3, 0x1B, 1, 4])),
    ]
    signature = bytearray(32)
    Owner().write_signature_value(memoryview(signature), [memoryview(b"".join(bytes(c) for c in name))])
    return [*name, Component.from_bytes(bytes([0x17, 32]) + bytes(signature))]


async def send(app: NDNApp, form: Callable[[str, Parameter], FormalName], verb: str, parameter: Parameter) -> Response:
    """Sends a command and reads its response."""
    signed = {"app_param": b"", "signer": Owner()} if form is new_form else {}
    _, content, _ = await app.express(form(verb, parameter), pass_all, must_be_fresh=True, lifetime=4000, **signed)
    return read(bytes(content))


def read(content: bytes) -> Response:
    assert content[0] == 207 and content[1] == len(content) - 2, content.hex()
    return Response.parse(content[2:])


def parameter(name: str, start: int | None = None, end: int | None = None, process: int | None = None) -> Parameter:
    made = Parameter()
    made.name = Name.from_str(name)
    made.start_block_id = start
    made.end_block_id = end
    made.process_id = process
    return made


def start_repo(bench: Bench) -> None:
    (bench.folder / "owner").write_text(SECRET + "\n")
    config = bench.folder / "repo.toml"
    config.write_text(
        '[repo]\ndirectory = "store"\nkey = "hmac:owner"\nname = "/repo"\n[insert]\nstall = "1s"\n'
        '[[serve]]\nprefix = "/py"\n'
    )
    process = bench.start(str(bench.binary), "repo", "run", "--config", str(config), log="repo.log")
    bench.wait_for(lambda: b"serving" in (bench.folder / "repo.log").read_bytes(), process)


async def produce(app: NDNApp, prefix: str, count: int) -> dict[bytes, bytes]:
    """Serves segments until the prefix is taken back."""
    packets = {}
    for i in range(count):
        name = [*Name.from_str(prefix), Component.from_segment(i)]
        meta = MetaInfo(freshness_period=FRESH_MS, final_block_id=Component.from_segment(count - 1))
        packets[bytes(Name.to_bytes(name))] = bytes(make_data(name, meta, os.urandom(700), DigestSha256Signer()))

    def answer(name, _param, reply, _context) -> None:  # type: ignore[no-untyped-def]
        if (packet := packets.get(bytes(Name.to_bytes(name)))) is not None:
            reply(packet)

    app.attach_handler(prefix, answer)
    assert await app.register(prefix)
    return packets


async def outcome(app: NDNApp, form: Callable[[str, Parameter], FormalName], begun: Response) -> Response:
    """Checks an insertion until it is over."""
    for _ in range(100):
        told = await send(app, form, "insert check", parameter("/py", process=begun.process_id))
        if told.status_code != GOES_ON:
            return told
        await asyncio.sleep(0.05)
    raise AssertionError("the insertion never ends")


@pytest.mark.parametrize("form", [new_form, old_form])
def test_insert_check_delete(bench: Bench, form: Callable[[str, Parameter], FormalName]) -> None:
    start_repo(bench)

    async def work(app: NDNApp) -> None:
        packets = await produce(app, "/py/data/v=1", 40)
        begun = await send(app, form, "insert", parameter("/py/data/v=1", 0, 39))
        assert (begun.status_code, begun.insert_num) == (BEGUN, 0)
        done = await outcome(app, form, begun)
        assert (done.status_code, done.insert_num, done.end_block_id) == (DONE, 40, 39)
        app.detach_handler("/py/data/v=1")
        assert await app.unregister("/py/data/v=1")
        for i in range(40):
            name = [*Name.from_str("/py/data/v=1"), Component.from_segment(i)]
            _, content, context = await app.express(name, digest_is_right, must_be_fresh=True, lifetime=2000)
            assert bytes(content) in packets[bytes(Name.to_bytes(name))]
            assert context["meta_info"].final_block_id == Component.from_segment(39)
        gone = await send(app, form, "delete", parameter("/py/data/v=1", 0, 39, process=7))
        assert (gone.status_code, gone.delete_num, gone.process_id) == (DONE, 40, 7)
        await asyncio.sleep(3 * FRESH_MS / 1000)  # the router's content store answers for that long
        with pytest.raises((InterestNack, InterestTimeout)):
            name = [*Name.from_str("/py/data/v=1"), Component.from_segment(3)]
            await app.express(name, digest_is_right, must_be_fresh=True, lifetime=500)

    run_app(bench, work)


def test_refused(bench: Bench) -> None:
    start_repo(bench)

    async def work(app: NDNApp) -> None:
        name = new_form("insert", parameter("/py/x", 0, 1))
        stranger = Owner("ffeeddccbbaa99887766554433221100")
        for signer in (stranger, DigestSha256Signer(for_interest=True), HmacSha256Signer("/o", bytes.fromhex(SECRET))):
            _, content, _ = await app.express(name, pass_all, app_param=b"", signer=signer, must_be_fresh=True)
            assert read(bytes(content)).status_code == UNAUTHORIZED
        _, content, _ = await app.express(name, pass_all, must_be_fresh=True)
        assert read(bytes(content)).status_code == UNAUTHORIZED

    run_app(bench, work)
    told = bench.trunkline("repo", "status", "--config", str(bench.folder / "repo.toml"), "--json").stdout
    for counted in (b'"unsigned": 1', b'"wrong_signature": 2', b'"replayed": 1', b'"taken": 0'):
        assert counted in told, told


def test_a_producer_that_stops_leaves_nothing(bench: Bench) -> None:
    start_repo(bench)

    async def work(app: NDNApp) -> None:
        await produce(app, "/py/short", 5)
        begun = await send(app, new_form, "insert", parameter("/py/short", 10, 20))
        failed = await outcome(app, new_form, begun)
        assert failed.status_code == NO_END

    run_app(bench, work)
    told = bench.trunkline("repo", "status", "--config", str(bench.folder / "repo.toml"), "--json").stdout
    assert b'"packets": 0' in told, told
