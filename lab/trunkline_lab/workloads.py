"""Jobs out of published jars, run on a cluster with YARN and checked: Hadoop's own, Mahout's and Cloud9's.

Every workload leaves HDFS as it found it.
"""

from __future__ import annotations

import collections
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import naive_bayes, page_rank, payload
from .jobs import TIMEOUT_S, Jobs

EXAMPLES = "org.apache.hadoop.examples"
TESTDFSIO = "org.apache.hadoop.fs.TestDFSIO"
MAHOUT = "org.apache.mahout"
TERA_ROW_BYTES = 100
DFSIO_FILES = 6
POINT_DIMENSIONS = 10
CLUSTERS, ITERATIONS = 3, 2


def tera_sort(jobs: Jobs, size: int) -> list[str]:
    """TeraGen of `size` bytes, TeraSort, and TeraValidate, whose word on the order is what counts."""
    rows = max(1, size // TERA_ROW_BYTES)
    jobs.run("teragen", f"{EXAMPLES}.terasort.TeraGen", "-Dmapreduce.job.maps=4", str(rows), "/tera/in")
    jobs.run("terasort", f"{EXAMPLES}.terasort.TeraSort", "-Dmapreduce.job.reduces=3", "/tera/in", "/tera/out")
    jobs.run("teravalidate", f"{EXAMPLES}.terasort.TeraValidate", "/tera/out", "/tera/report")
    report = jobs.read("/tera/report/part-r-*").decode()
    jobs.shell("-rm", "-r", "-skipTrash", "/tera")
    lines = report.split("\n")
    if [line for line in lines if line and not line.startswith("checksum\t")] or not report.strip():
        return [f"TeraValidate: {report.strip() or 'said nothing'}"]
    return []


def word_count(jobs: Jobs, size: int) -> list[str]:
    """WordCount of a text, compared with a count of our own."""
    text = jobs.scratch / f"words-{size}"
    words = _text(text, size)
    jobs.shell("-mkdir", "-p", "/words/in")
    jobs.shell("-put", str(text), "/words/in")
    jobs.run("wordcount", f"{EXAMPLES}.WordCount", "-Dmapreduce.job.reduces=2", "/words/in", "/words/out")
    lines = jobs.read("/words/out/part-r-*").decode().splitlines()
    jobs.shell("-rm", "-r", "-skipTrash", "/words")
    found = {word: int(count) for word, count in (line.split("\t") for line in lines)}
    return [] if found == words else [f"WordCount: {len(found)} words of {len(words)}, or other counts"]


def test_dfsio(jobs: Jobs, size: int) -> list[str]:
    """TestDFSIO's write and read of `size` bytes in six files."""
    each = f"{max(1, size // DFSIO_FILES)}B"
    words = ["-nrFiles", str(DFSIO_FILES), "-size", each, "-resFile", str(jobs.scratch / "TestDFSIO.log")]
    jobs.run("dfsio-write", TESTDFSIO, "-write", *words)
    jobs.run("dfsio-read", TESTDFSIO, "-read", *words)
    jobs.shell("-rm", "-r", "-skipTrash", "/benchmarks")
    return []


def k_means(jobs: Jobs, size: int) -> list[str]:
    """Mahout's K-means over a text of points, in two iterations.

    Each centre is the mean of its points, so that the centres, weighted by them, must have the mean of all points.
    """
    text, dump = jobs.scratch / f"points-{size}", jobs.scratch / "clusters"
    count, mean = _points(text, size)
    jobs.shell("-mkdir", "-p", "/kmeans/in")
    jobs.shell("-put", str(text), "/kmeans/in")
    jobs.run("kmeans-vectors", f"{MAHOUT}.clustering.conversion.InputDriver", "-i", "/kmeans/in", "-o", "/kmeans/data")
    words = ["-i", "/kmeans/data", "-c", "/kmeans/seeds", "-o", "/kmeans/out", "-k", str(CLUSTERS), "-cd", "0.0001"]
    jobs.run("kmeans", f"{MAHOUT}.clustering.kmeans.KMeansDriver", *words, "-x", str(ITERATIONS))
    last = ["-i", "/kmeans/out/clusters-*-final", "-o", str(dump)]
    jobs.cluster.client(f"{MAHOUT}.utils.clustering.ClusterDumper", *last, name="clusterdump", timeout_s=TIMEOUT_S)
    jobs.shell("-rm", "-r", "-skipTrash", "/kmeans")
    return [] if _means(dump.read_text(), count, mean) else [f"K-means: {dump.read_text()[:400]}"]


def _points(path: Path, size: int) -> tuple[int, list[float]]:
    """Writes points around three places, a line each; returns how many there are and their mean."""
    rng, sums, count, left = random.Random(size), [0.0] * POINT_DIMENSIONS, 0, size
    with path.open("w") as out:
        while left > 0:
            place = rng.choice((0, 10, 20))
            point = [round(place + rng.random(), 3) for _ in range(POINT_DIMENSIONS)]
            left -= out.write(" ".join(map(str, point)) + "\n")
            sums, count = [a + b for a, b in zip(sums, point, strict=True)], count + 1
    return count, [total / count for total in sums]


def _means(dump: str, count: int, mean: list[float]) -> bool:
    """Whether clusters, lines such as {"c":[0.4,0.5],"n":12}, hold all points and have their mean."""
    clusters = [json.loads(line) for line in dump.splitlines() if line.startswith("{")]
    found = [(int(cluster["n"]), cluster["c"]) for cluster in clusters]
    if sum(n for n, _ in found) != count:
        return False
    means = [sum(n * centre[d] for n, centre in found) / count for d in range(len(mean))]
    return all(abs(a - b) < 0.01 for a, b in zip(means, mean, strict=True))


@dataclass(frozen=True)
class Workload:
    """`run` gets the jobs and how many bytes of data to take (the paper: `paper_bytes`), and says what was wrong."""

    name: str
    paper_bytes: int
    run: Callable[[Jobs, int], list[str]]


WORKLOADS = (
    Workload("TestDFSIO", 10 * 10**9, test_dfsio),
    Workload("TeraSort", 10 * 10**9, tera_sort),
    Workload("WordCount", 3_300 * 10**6, word_count),
    Workload("PageRank", 380 * 10**6, page_rank.run),
    Workload("MahoutBayes", 190 * 10**6, naive_bayes.run),
    Workload("K-Means", 590 * 10**6, k_means),
)


def named(names: Sequence[str]) -> tuple[Workload, ...]:
    """The workloads of these names, all where there is no name; ValueError for a name that is none."""
    known = {workload.name: workload for workload in WORKLOADS}
    if strange := [name for name in names if name not in known]:
        raise ValueError(f"--jobs: no job {strange[0]!r}; there are {', '.join(known)}")
    return tuple(known[name] for name in names) or WORKLOADS


def _text(path: Path, size: int) -> dict[str, int]:
    """Writes a text of log lines and returns how often each word is in it."""
    payload.make_text(path, size)
    counts: collections.Counter[str] = collections.Counter()
    with path.open() as lines:
        for line in lines:
            counts.update(line.split())
    return dict(counts)
