"""What a process of a user without rights tries on the named network of a real cluster; each test is named after it.

It has a face of the router, as any host may where nothing says otherwise. The same in one JVM, and more of it, is in
the plug-in's AdversaryTest and HostileRecordsTest; docs/security.md has the whole list.
"""

import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from conftest import MIB, a_bed

from trunkline_lab import replicas
from trunkline_lab.procs import wait_until

pytestmark = pytest.mark.e2e

TOKENS = {"dfs.block.access.token.enable": "true"}
NOBODY = 65534
SEGMENT = 64512  # data bytes of a block's segment
SETTLES_S = 5  # a little more than a router takes rejects for those of an earlier Data
VERSION = 7  # of the preamble that a DataNode's record tells of


class Hostile:
    """hostile_peer.py, connected to a router."""

    def __init__(self, router):
        source = Path(__file__).with_name("hostile_peer.py").read_text()  # nobody may read what is ours
        who = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        self._popen = subprocess.Popen(
            ["/usr/bin/python3", "-I", "-c", source, router.listen.removeprefix("tcp://")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **who,
        )
        self._router = router
        self._address = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.leave()

    def leave(self):
        self._popen.kill()
        self._popen.communicate()

    def _do(self, what, **more):
        self._popen.stdin.write(json.dumps({"do": what, **more}) + "\n")
        self._popen.stdin.flush()
        said = self._popen.stdout.readline()
        assert said, "it has ended"
        return json.loads(said)

    def answer(self, prefix, **content):
        self._address = self._do("answer", prefix=prefix, **content)

    def names(self):
        return self._do("heard")["names"]

    def quiet(self):
        self._do("quiet")

    def answered(self):
        return self._do("heard")["answered"]

    def ask(self, name, ms=1000, **how):
        said = self._do("ask", name=name, ms=ms, **how)
        return None if said is None else bytes.fromhex(said)

    def plant(self, name, content):
        """Has the router's cache hold what it answers; where somebody was quicker, it says that he lies."""
        self.answer(name, content=content)

        def planted():
            return self.ask(name) == content.encode() or self.ask(name, past=True) == content.encode()

        wait_until(f"its answer for {name}", planted, 40, pause_s=SETTLES_S)

    def replay(self, name, other):
        said = self._do("replay", name=name, **{"as": other})
        return None if said is None else bytes.fromhex(said)

    def listen(self, host):
        return self._do("listen", host=host)

    def told(self):
        return [bytes.fromhex(told) for told in self._do("told")]

    def rejected(self):
        """What the router tells its operator of this face."""
        (face,) = [face for face in self._router.faces() if self._address in face["uri"]]
        return face["rejected"]


@pytest.fixture(scope="module", params=[False, True], ids=["open", "tokens"])
def secured(request):
    return request.param


@pytest.fixture(scope="module")
def bed(request, secured, plane, formatted):
    """One open cluster and one with block tokens, for all tests."""
    name = f"test_named_adversary-{'tokens' if secured else 'open'}"
    hadoop = request.config.getoption("hadoop")
    with a_bed(name, plane, formatted, extra=TOKENS if secured else {}, hadoop=hadoop) as bed:
        yield bed
        bed.assert_all_alive()


@pytest.fixture
def hostile(bed):
    with Hostile(bed.router) as peer:
        yield peer


only_open = pytest.mark.parametrize("secured", [False], ids=["open"], indirect=True)
only_tokens = pytest.mark.parametrize("secured", [True], ids=["tokens"], indirect=True)


def links(bed):
    return [face for face in bed.router.faces() if face["uri"].startswith("tcp")]


def pool(bed):
    return bed.cluster.jmx("Hadoop:service=NameNode,name=NameNodeInfo")["BlockPoolId"]


def block_name(bed, block):
    """The versioned name of a block."""
    identifier, stamp = re.fullmatch(r"blk_(\d+)_(\d+)", block.versioned).groups()
    return f"/hadoop/blocks/{pool(bed)}/{identifier}/v={stamp}"


def put(bed, data, path, tmp_path):
    source = tmp_path / "source"
    source.write_bytes(data)
    bed.cluster.put(source, path)


def test_answers_for_the_segments_of_a_write(bed, hostile, data, tmp_path):
    """With checksums that are right: only who knows the write can tell."""
    hostile.answer("/hadoop/blocks")
    put(bed, data, "/answered", tmp_path)
    assert hostile.answered() > 0
    bed.assert_whole("/answered", data, tmp_path)
    bed.assert_carried()


@only_open
def test_has_the_cache_hold_other_bytes_before_the_write(bed, hostile, data, tmp_path):
    """The next block's name can be told from the last one's; where there are tokens it has the write's key in it."""
    put(bed, data[:MIB], "/before", tmp_path)
    last = block_name(bed, replicas.blocks(bed.cluster, "/before")[-1])
    head, block, stamp = re.fullmatch(r"(.*)/(\d+)/v=(\d+)", last).groups()
    following = f"{head}/{int(block) + 1}/v={int(stamp) + 1}"
    hostile.answer("/hadoop/blocks")
    for segment in range(0, len(data) // SEGMENT, 100):
        assert b"forged!" in hostile.ask(f"{following}/seg={segment}", 5000)
    hostile.quiet()
    answered, hits = hostile.answered(), bed.router.cache_hits()
    put(bed, data, "/foreseen", tmp_path)
    assert block_name(bed, replicas.blocks(bed.cluster, "/foreseen")[0]) == following
    assert hostile.answered() == answered
    assert bed.router.cache_hits() > hits
    assert hostile.rejected() > 0
    bed.assert_whole("/foreseen", data, tmp_path)
    bed.assert_carried()


def test_reads_a_block_without_a_token(bed, secured, hostile, data, tmp_path):
    """In an open cluster anybody may; else nothing comes, and by the key id in a name nothing that can be read."""
    hostile.answer("/nothing")
    put(bed, data[: 4 * MIB], "/read", tmp_path)
    name = block_name(bed, replicas.blocks(bed.cluster, "/read")[0])
    plain = [f"{name}/32=manifest/seg=0", f"{name}/seg=0", f"{name}/seg=1"]
    got = [hostile.ask(f"{name.rpartition('/')[0]}/32=metadata", 5000, prefix=True)]
    got += [hostile.ask(asked, 5000) for asked in plain]
    if not secured:
        assert None not in got
        assert data[:4096] in got[2]
        return
    assert got == [None] * 4
    assert hostile.ask(f"{name}/32=content-key") is None
    sealed = {heard.rpartition("/")[0] for heard in hostile.names() if re.search(r"/32=0x\w+/seg=\d+$", heard)}
    assert sealed, "it was asked for a segment, and knows the key's id"
    for known in sealed:
        content = hostile.ask(f"{known}/seg=0", 5000)
        assert content is not None
        assert not any(data[at : at + 12] in content for at in range(0, SEGMENT, 512))


@only_tokens
def test_asks_again_for_a_key_that_somebody_was_given(bed, data, tmp_path):
    for path in ("/asked", "/other"):
        put(bed, data[: 4 * MIB], path, tmp_path)
    bed.router.kill()
    bed.router.start()  # it does not know any more who has which block, and asks all, the hostile one too
    wait_until("the DataNodes' faces", lambda: len(links(bed)) >= len(bed.cluster.datanodes), 60, pause_s=0.2)
    with Hostile(bed.router) as hostile:
        hostile.answer("/nothing")
        assert bed.read("/asked", tmp_path) == data[: 4 * MIB]
        name = next(name for name in hostile.names() if "/32=content-key/" in name)
        refused = bed.total("readers_refused")
        answers = [hostile.replay(name, name) for _ in range(2)]
        assert None not in answers
        assert answers[0] != answers[1], "each is sealed under a key of its own, which is made with the password"
        other = block_name(bed, replicas.blocks(bed.cluster, "/other")[0])
        assert hostile.replay(name, f"{other}/{'/'.join(name.split('/')[6:])}") is None
        wait_until("the refusal to be counted", lambda: bed.total("readers_refused") > refused, 10)


@only_tokens
def test_answers_for_a_datanode(bed, data, tmp_path):
    """It listens on the DataNode's own host, as any user of that may, and has told the router that others lie.

    A write that comes to it learns so, and asks past it, even if it has gone and left its answers in the cache.
    """
    written = data[: 20 * MIB]
    pieces = [written[at : at + 12] for at in range(0, len(written), 65_537)]
    for path, stays in (("/misled", True), ("/misled-later", False)):
        with Hostile(bed.router) as hostile:
            for datanode in bed.cluster.datanodes:
                record = {"version": VERSION, "served": stays, "address": "", "port": 0, "reason": "", "secured": True}
                if stays:
                    record["port"] = hostile.listen(datanode.address)
                name, content = f"/hadoop/datanodes/{datanode.transfer.replace(':', '/')}", json.dumps(record)
                hostile.plant(name, content)
            if not stays:
                hostile.leave()
                time.sleep(SETTLES_S)
            named = bed.total("named_writes")
            put(bed, written, path, tmp_path)
            assert bed.total("named_writes") > named, "by name after all"
            told = hostile.told() if stays else []
        assert any(told) == stays, "somebody was misled"
        for said in told:
            assert b"DFSClient" not in said
            assert not any(piece in said for piece in pieces)
        bed.assert_whole(path, written, tmp_path)
