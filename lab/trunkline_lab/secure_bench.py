"""Puts into a cluster with `dfs.encrypt.data.transfer`, and gets from it: by name, sealed once by the writer, beside
Hadoop's own encryption, by which each hop decrypts and encrypts anew; puts also beside the same by name in an open
cluster. By name it is done twice: as docs/security.md has it set up, by the Unix socket of the host's own router and
with a segment for each packet; and by TCP to a router, as from a host that has none ("tcp"). What is got has just been
put, so that the router's cache and the DataNodes' page caches may have it. Then a folder of small files is read by
name, protected and not: each block costs an exchange of its own before its first byte.

Asked for by name alone: the same puts and gets with a router on each host, and TLS between them and their rack's
("hosts").
"""

from __future__ import annotations

import shutil
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from . import host_routers, paths, payload, planes, transfer
from .cluster import Properties
from .figures import Figure
from .say import say

PREFIX = "secure."
HOSTS_PREFIX = "secure.hosts."
REPLICATION = 3
DATANODES = 4
WARM_UPS = 4  # not counted; JVMs compile in them
PAIRS = 8  # more puts of what is sealed and what is open: they differ by less than one put from the next
SMALL_FILES, SMALL_BYTES = 1000, 16 << 10
SMALL_WARM_UPS = 2
NDN_HOSTS = "ndn-hosts"
ENCRYPTED: Properties = {
    "dfs.block.access.token.enable": "true",
    "dfs.encrypt.data.transfer": "true",
    # The quicker of Hadoop's two ways by far: without it data is encrypted by RC4 or 3DES.
    "dfs.encrypt.data.transfer.cipher.suites": "AES/CTR/NoPadding",
}


@dataclass(frozen=True)
class Case:
    """A client's properties at one of the clusters."""

    label: str
    cluster: str
    properties: Properties = field(default_factory=dict, hash=False)


SEALED, OPEN = Case("sealed", "sealed"), Case("open", "open")
SEALED_TCP, OPEN_TCP = Case("sealed tcp", "sealed-tcp"), Case("open tcp", "open-tcp")
SEALED_HOSTS = Case("sealed", "sealed-hosts")
OURS = {SEALED: OPEN, SEALED_TCP: OPEN_TCP}  # what is protected, and the same in an open cluster
CLUSTERS: dict[str, tuple[str, Properties]] = {
    "encrypted": ("tcp", ENCRYPTED),
    "sealed": (planes.NDN_LOCAL, ENCRYPTED | planes.RESOLVER),
    "open": (planes.NDN_LOCAL, {}),
    "sealed-tcp": ("ndn", ENCRYPTED | planes.RESOLVER),
    "open-tcp": ("ndn", {}),
    "sealed-hosts": (NDN_HOSTS, ENCRYPTED | planes.RESOLVER),
}


@dataclass(frozen=True)
class Peer:
    """What is held against a case, and how much of its seconds and CPU seconds is wanted at most."""

    label: str
    words: str
    wall: float
    cpu: float


TUNED_ALIKE = "Hadoop's own encryption (AES/CTR), packets and buffers as large"
OPEN_CLUSTER = "by name in an open cluster"
PUT_PEERS = (
    Peer("encrypted", TUNED_ALIKE, 0.75, 0.90),
    Peer("encrypted default", "Hadoop's own encryption (AES/CTR), as shipped", 0.62, 0.80),
    Peer("open", OPEN_CLUSTER, 1.03, 1.08),
)
GET_PEERS = (Peer("encrypted", TUNED_ALIKE, 0.75, 0.95),)
SMALL_PEERS = (Peer("open", OPEN_CLUSTER, 1.10, 1.10),)


Costs = dict[str, list[transfer.Cost]]


def measure(size: int, runs: int) -> Iterator[Figure]:
    """By name with one router; all clusters stand at once, only one works."""
    cases = (*OURS, *OURS.values())
    with _rigs(["encrypted", *(case.cluster for case in cases)]) as rigs:
        puts, gets = _by_turns((*_encrypted(), *cases), rigs, size, runs)
        pairs = _more_puts(cases, rigs, size, puts)
        small = _small_files({case: rigs[case.cluster] for case in cases}, paths.OUT / "bench", runs)
    yield from figures("put.r3", [peer for peer in PUT_PEERS if peer.words != OPEN_CLUSTER], puts, runs)
    yield from figures("put.r3", [peer for peer in PUT_PEERS if peer.words == OPEN_CLUSTER], pairs, runs + PAIRS)
    yield from figures("get", GET_PEERS, gets, runs)
    yield from figures("small_files", SMALL_PEERS, small, runs)


def measure_hosts(size: int, runs: int) -> Iterator[Figure]:
    """By name with a router on each host."""
    with _rigs(["encrypted", SEALED_HOSTS.cluster]) as rigs:
        puts, gets = _by_turns((*_encrypted(), SEALED_HOSTS), rigs, size, runs)
    for work, peers, costs in (("put.r3", PUT_PEERS, puts), ("get", GET_PEERS, gets)):
        for peer in peers:
            if peer.words != OPEN_CLUSTER:
                yield from _figures(f"{HOSTS_PREFIX}{work}", SEALED_HOSTS, peer, costs, runs)


def _encrypted() -> tuple[Case, Case]:
    """Hadoop's own encryption, with packets and buffers as large as ours and as shipped."""
    tuned = Case("encrypted", "encrypted", planes.tuned_alike("ndn"))
    return tuned, Case("encrypted default", "encrypted")


@contextmanager
def _rigs(names: Sequence[str]) -> Iterator[dict[str, transfer.Rig]]:
    """Clusters by their names."""
    with ExitStack() as stack:
        rigs = {}
        for name in names:
            plane, extra = CLUSTERS[name]
            rig = transfer.rig(
                plane,
                paths.OUT / "bench" / f"secure-{name}",
                datanodes=DATANODES,
                cache_bytes=256 << 20,
                extra=extra,
                set_up=host_routers.set_up if plane == NDN_HOSTS else planes.set_up,
            )
            rigs[name] = stack.enter_context(rig)
        yield rigs


def _by_turns(cases: Sequence[Case], rigs: dict[str, transfer.Rig], size: int, runs: int) -> tuple[Costs, Costs]:
    """What puts and gets of one file cost, by the cases' labels."""
    directory = paths.OUT / "bench"
    source, copy = directory / "input", directory / "copy"
    payload.make(source, size)
    puts: Costs = defaultdict(list)
    gets: Costs = defaultdict(list)
    for number in range(1 - WARM_UPS, runs + 1):
        for turn in range(len(cases)):  # each is first as often as last
            case = cases[(turn + number) % len(cases)]
            say(f"secure {case.label}: put and get, {'warm-up' if number < 1 else f'run {number} of {runs}'}")
            rig = rigs[case.cluster]
            put = rig.put(source, "/file", REPLICATION, properties=case.properties, counts=number > 0)
            transfer.proven(rig.plane, put, size, REPLICATION, rig.hosts)
            if case.cluster.startswith("sealed") and not put.client("secured_connections"):
                raise RuntimeError(f"{case.label}: no connection of the client was secured")
            copy.unlink(missing_ok=True)
            get = rig.get("/file", copy, properties=case.properties, counts=number > 0)
            if doubts := transfer.doubts_of_read(rig.plane, get, size):
                raise RuntimeError(f"{case.label}: {'; '.join(doubts)}")
            if number in (1, runs) and payload.sha256(copy) != payload.sha256(source):
                raise RuntimeError(f"{case.label}: the bytes read are not the bytes written")
            rig.remove("/file")
            if number > 0:
                puts[case.label].append(put)
                gets[case.label].append(get)
    return puts, gets


def _more_puts(cases: Sequence[Case], rigs: dict[str, transfer.Rig], size: int, puts: Costs) -> Costs:
    """What `puts` has of the cases, and more puts by turns without gets between them."""
    source = paths.OUT / "bench" / "input"
    more: Costs = {case.label: list(puts[case.label]) for case in cases}
    for number in range(1, PAIRS + 1):
        for turn in range(len(cases)):
            case = cases[(turn + number) % len(cases)]
            say(f"secure {case.label}: put, {number} of {PAIRS} more")
            rig = rigs[case.cluster]
            put = rig.put(source, "/file", REPLICATION, properties=case.properties)
            more[case.label].append(transfer.proven(rig.plane, put, size, REPLICATION, rig.hosts))
            rig.remove("/file")
    return more


def _small_files(rigs: dict[Case, transfer.Rig], directory: Path, runs: int) -> Costs:
    """One client reads a folder of small files; what it cost, by the cases' labels."""
    source, copy = directory / "small", directory / "small-copy"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir()
    whole = directory / "small-whole"
    payload.make(whole, SMALL_FILES * SMALL_BYTES)
    content = whole.read_bytes()
    pieces = {f"{n:04d}": content[n * SMALL_BYTES : (n + 1) * SMALL_BYTES] for n in range(SMALL_FILES)}
    for name, piece in pieces.items():
        (source / name).write_bytes(piece)
    for case, rig in rigs.items():
        say(f"secure {case.label}: put of {SMALL_FILES} files of {SMALL_BYTES >> 10} KiB")
        rig.cluster.put(source, "/small", "-t", "4", replication=REPLICATION)
    costs: Costs = defaultdict(list)
    for number in range(1 - SMALL_WARM_UPS, runs + 1):
        for case in list(rigs)[:: 1 if number % 2 else -1]:
            say(f"secure {case.label}: small files, {'warm-up' if number < 1 else f'run {number} of {runs}'}")
            shutil.rmtree(copy, ignore_errors=True)
            cost = rigs[case].get("/small", copy, counts=number > 0)
            if doubts := transfer.doubts_of_read("ndn", cost, len(content)):
                raise RuntimeError(f"{case.label}: {'; '.join(doubts)}")
            if any((copy / name).read_bytes() != piece for name, piece in pieces.items()):
                raise RuntimeError(f"{case.label}: the bytes read are not the bytes written")
            if number > 0:
                costs[case.label].append(cost)
    return costs


def figures(work: str, peers: Sequence[Peer], costs: Costs, runs: int) -> Iterator[Figure]:
    """Medians of what is sealed over each of the peers, and what both are."""
    for ours, open_case in OURS.items():
        for peer in peers:
            held = replace(peer, label=open_case.label) if peer.words == OPEN_CLUSTER else peer
            yield from _figures(f"{PREFIX}{work}", ours, held, costs, runs)


def _figures(prefix: str, case: Case, peer: Peer, costs: Costs, runs: int) -> Iterator[Figure]:
    def median(label: str, what: str) -> float:
        return statistics.median(cost.wall_s if what == "wall" else sum(cost.cpu_s.values()) for cost in costs[label])

    name = f"{prefix}.{case.label}_over_{peer.label}".replace(" ", "_")
    for what, unit, most in (("wall", "s", peer.wall), ("cpu", "CPU-s", peer.cpu)):
        ours, theirs = median(case.label, what), median(peer.label, what)
        wanted = f"wanted: at most this; {peer.words}, same run"
        yield Figure(f"{name}.{what}", ours / theirs, "ratio", wanted, most, runs)
        yield Figure(f"{name}.{what}_each", ours, unit, f"{peer.words}, same run", theirs, runs)
