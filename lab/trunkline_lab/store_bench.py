"""`make bench ONLY=repo.store`: a file of a real HDFS read by name through `repo run --store`, beside `hdfs dfs -get`.

One cluster, whose DataNodes serve by name and by stock TCP alike; one repository for each kind of key, since segments
are signed when they are asked for, in batches or each. All stand at once, only one works.
"""

from __future__ import annotations

import statistics
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import paths, payload, planes, transfer
from .cluster import FSSHELL, Cluster
from .figures import Figure
from .procs import Process, Stage, wait_until
from .say import say

BYTES = 512 << 20
DATANODES = REPLICATION = 3
PLAIN, JUMBO = 8000, 60_000
PEER = "hdfs dfs -get, stock TCP, same run"


@dataclass
class Case:
    """A repository before the cluster, under its own name."""

    name: str
    key: str  # as `repo.key` has it; empty for the one that is made at the first use
    segment_bytes: int
    signatures: str = "batch"  # as `store.signatures` has it

    def start(self, cluster: Cluster, face: str, directory: Path) -> None:
        """Runs it; returns when it serves."""
        directory.mkdir(parents=True)
        if self.key.startswith("ecdsa:"):
            command = [str(paths.built(paths.TRUNKLINE)), "keygen", "ecdsa", self.key.removeprefix("ecdsa:")]
            subprocess.run(command, cwd=directory, stdout=subprocess.DEVNULL, check=True)
        config = directory / "repo.toml"
        config.write_text(
            f'[repo]\ndirectory = "store"\nface = "{face}"\nsegment_size = "{self.segment_bytes}"\n'
            + (f'key = "{self.key}"\n' if self.key else "")
            + f'[[serve]]\nprefix = "/{self.name}"\n[store]\nweb = "{cluster.http}"\nuser = "reader"\n'
            + f'signatures = "{self.signatures}"\n'
        )
        command = [str(paths.built(paths.TRUNKLINE)), "repo", "run", "--config", str(config)]
        process = cluster.stage.start(f"repo-{self.name}", "repo", [*command, "--store", f"hdfs://{cluster.rpc}"])
        wait_until("the repository", lambda: "serving" in process.log.read_text(), 20, process)

    def get(self, stage: Stage, face: str, directory: Path, target: Path) -> Process:
        """`trunkline get` of the file, each segment verified."""
        command = [str(paths.TRUNKLINE), "get", f"/{self.name}/file", "-o", str(target), "--face", face, "--json"]
        if self.key != "digest":
            own = self.key.removeprefix("ecdsa:") or "store/owner.key"
            command += ["--verify", str(directory / f"{own}.pub")]
        return stage.run(f"get-{self.name}", "client", command, timeout_s=300)


CASES = [
    Case("digest", "digest", PLAIN),
    Case("ed25519", "", PLAIN),
    Case("ecdsa", "ecdsa:owner", PLAIN),
    Case("each.ed25519", "", PLAIN, "each"),
    Case("each.ecdsa", "ecdsa:owner", PLAIN, "each"),
    Case("jumbo.digest", "digest", JUMBO),
    Case("jumbo.ed25519", "", JUMBO),
    Case("jumbo.each.ed25519", "", JUMBO, "each"),
    Case("jumbo.each.ecdsa", "ecdsa:owner", JUMBO, "each"),
]


def measure(directory: Path, runs: int) -> Iterator[Figure]:
    """Wall time and CPU time, of all hosts together."""
    directory.mkdir(parents=True)
    source, copy = directory / "published", directory / "copy"
    payload.make(source, BYTES)
    costs: dict[str, list[transfer.Cost]] = defaultdict(list)
    with transfer.rig("ndn", directory / "cluster", datanodes=DATANODES, cache_bytes=0) as rig:
        rig.put(source, "/file", REPLICATION, counts=False)
        router = rig.routers[0]
        face, stage = f"unix://{router.control}", rig.cluster.stage
        for case in CASES:
            case.start(rig.cluster, face, directory / case.name)
        stock = stock_get(rig.cluster, copy)
        for number in range(runs + 1):
            say(f"repo: store, {f'run {number} of {runs}' if number else 'warm-up'}")
            reads = {"": lambda: stage.run("get", "client", stock, timeout_s=300)}
            for case in CASES:
                reads[case.name] = lambda case=case: case.get(stage, face, directory / case.name, copy)
            for name, read in reads.items():
                cost = rig.measure(read)
                if payload.sha256(copy) != payload.sha256(source):
                    raise RuntimeError(f"repo: store {name}: the bytes read are not the bytes put")
                copy.unlink()
                if number:  # the first warms up and is not counted
                    costs[name].append(cost)
    wall = {name: statistics.median(cost.wall_s for cost in all_) for name, all_ in costs.items()}
    cpu = {
        name: statistics.median(sum(cost.cpu_s.values()) for cost in all_) / (BYTES / 1e9)
        for name, all_ in costs.items()
    }
    for case in CASES:
        name = f"repo.store.{case.name}"
        yield Figure(f"{name}.s", wall[case.name], "s", PEER, wall[""], runs)
        yield Figure(f"{name}.cpu", cpu[case.name], "CPU-s/GB", PEER, cpu[""], runs)


def stock_get(cluster: Cluster, target: Path) -> list[str]:
    """The command line of a client that knows no plug-in."""
    host, address = cluster.site.clients[0]
    stock = planes.tcp()
    conf = cluster.conf(f"{host}.stock", address, {}, stock)
    return cluster.java(conf, FSSHELL, "-get", "/file", str(target), plane=stock)
