"""PageRank as MapReduce: Cloud9's, over a graph whose links follow Zipf's law, compared with one of our own making."""

from __future__ import annotations

import itertools
import math
import random
from bisect import bisect
from pathlib import Path

from .jobs import Jobs

CLOUD9 = "edu.umd.cloud9.example.pagerank"
ITERATIONS = 2
PARTITIONS = 4
JUMP = 0.15  # Cloud9's
MOST_LINKS = 20  # of a node
DANGLING = 20  # one node of so many links nowhere

Graph = list[list[int]]  # the nodes that each links to


def run(jobs: Jobs, size: int) -> list[str]:
    """Two iterations over a graph of `size` bytes of text; each is a job that passes rank on and one that evens it out.

    Cloud9's commands end well whatever became of their jobs, so that the ranks alone tell.
    """
    text = jobs.scratch / f"graph-{size}"
    graph = make_graph(text, size)
    nodes = str(len(graph))
    jobs.shell("-mkdir", "-p", "/pagerank/in")
    jobs.shell("-put", str(text), "/pagerank/in")
    words = ["-input", "/pagerank/in", "-output", "/pagerank/records", "-numNodes", nodes]
    jobs.run("pagerank-records", f"{CLOUD9}.BuildPageRankRecords", *words)
    words = ["-input", "/pagerank/records", "-output", "/pagerank/iter0000", "-numNodes", nodes]
    jobs.run("pagerank-partition", f"{CLOUD9}.PartitionGraph", *words, "-numPartitions", str(PARTITIONS))
    words = ["-base", "/pagerank", "-start", "0", "-end", str(ITERATIONS), "-numNodes", nodes, "-useCombiner"]
    jobs.run("pagerank", f"{CLOUD9}.RunPageRankBasic", *words)
    last = f"/pagerank/iter{ITERATIONS:04}"
    jobs.run(
        "pagerank-top", f"{CLOUD9}.FindMaxPageRankNodes", "-input", last, "-output", "/pagerank/top", "-top", nodes
    )
    found = parse(jobs.read("/pagerank/top/part-r-*").decode())
    jobs.shell("-rm", "-r", "-skipTrash", "/pagerank")
    return differences(found, ranks(graph, ITERATIONS))


def make_graph(path: Path, size: int) -> Graph:
    """Writes a graph of about `size` bytes, a node and the nodes it links to on each line; low numbers are popular."""
    count = max(2, size // 60)  # a line of ten links or so
    popular = list(itertools.accumulate(1 / (rank + 1) for rank in range(count)))
    rng, graph, left = random.Random(size), [], size
    with path.open("w") as out:
        for node in range(count):
            wanted = 0 if node % DANGLING == DANGLING - 1 or left <= 0 else rng.randint(1, MOST_LINKS)
            links = {bisect(popular, rng.random() * popular[-1]) for _ in range(wanted)}
            graph.append(sorted(link for link in links if link < count))
            left -= out.write(" ".join(map(str, (node, *graph[-1]))) + "\n")
    return graph


def ranks(graph: Graph, iterations: int) -> list[float]:
    """PageRank of each node after some iterations from equal ranks; what has no link to follow goes to all nodes."""
    rank = [1 / len(graph)] * len(graph)
    for _ in range(iterations):
        passed = [0.0] * len(graph)
        for node, links in enumerate(graph):
            for link in links:
                passed[link] += rank[node] / len(links)
        lost = (1 - sum(passed)) / len(graph)
        rank = [JUMP / len(graph) + (1 - JUMP) * (mass + lost) for mass in passed]
    return rank


def parse(text: str) -> dict[int, float]:
    """Ranks by node from lines of a node, a tab and the logarithm of its rank."""
    lines = (line.split("\t") for line in text.splitlines())
    return {int(node): math.exp(float(logarithm)) for node, logarithm in lines}


def differences(found: dict[int, float], wanted: list[float]) -> list[str]:
    """What is wrong with ranks that were computed in single precision."""
    if set(found) != set(range(len(wanted))):
        return [f"PageRank: {len(found)} nodes, not {len(wanted)}"]
    far = [node for node, rank in enumerate(wanted) if abs(found[node] - rank) > 1e-3 * rank]
    if far:
        return [f"PageRank: {len(far)} of {len(wanted)} ranks, such as node {far[0]}'s, are not what they should be"]
    return []
