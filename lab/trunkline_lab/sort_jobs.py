"""Hadoop's own benchmark of sorting: RandomWriter, Sort and SortValidator, stock classes of its jars, each timed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from . import history
from .cluster import generic
from .jobs import Jobs

RANDOM_WRITER = "org.apache.hadoop.examples.RandomWriter"
SORT = "org.apache.hadoop.examples.Sort"
VALIDATOR = "org.apache.hadoop.mapred.SortValidator"  # of the tests' jar of hadoop-mapreduce-client-jobclient
SUCCESS = "SUCCESS! Validated the MapReduce framework's 'sort' successfully."
BYTES_PER_MAP = 50_000_000

_COUNTER = r"^\s*{}=(\d+)\s*$"


@dataclass(frozen=True)
class Sorted:
    """One Sort: its seconds, its job's id, the bytes of its output's files, and what is wrong with its counters.

    The bytes are the same whenever the same input is sorted by as many reducers: what differs between two outputs is
    the mark that each SequenceFile draws at random, not its length or where it stands.
    """

    took_s: float
    job: str
    written_bytes: int
    wrong: list[str]


def random_writer(jobs: Jobs, size: int, target: str) -> float:
    """Writes about `size` bytes of records with random keys and values; returns the job's seconds."""
    maps = max(1, round(size / BYTES_PER_MAP))
    given = {
        "mapreduce.randomwriter.totalbytes": size,
        "mapreduce.randomwriter.bytespermap": size // maps,
    }
    jobs.run("randomwriter", RANDOM_WRITER, *generic(given), target)
    return jobs.seconds()


def sort(jobs: Jobs, source: str, target: str, reduces: int, properties: Mapping[str, object] | None = None) -> Sorted:
    """Sorts what `random_writer` wrote; `properties` are the job's, beside its usual ones."""
    log = jobs.run("sort", SORT, *generic(properties or {}), "-r", str(reduces), source, target)
    read, written, size = (
        counter(log, name) for name in ("Map input records", "Reduce output records", "Bytes Written")
    )
    wrong = [] if read == written and read > 0 else [f"Sort read {read} records and wrote {written}"]
    return Sorted(jobs.seconds(), history.job_of(log), size, wrong)


def validate(jobs: Jobs, source: str, target: str) -> tuple[float, list[str]]:
    """SortValidator: the same records and bytes, each in the right reducer's file and in order."""
    log = jobs.run("validate", VALIDATOR, "-sortInput", source, "-sortOutput", target)
    said = SUCCESS in jobs.processes[-1].log.read_text(errors="replace") or SUCCESS in log
    return jobs.seconds(), [] if said else [f"SortValidator did not say {SUCCESS!r}"]


def counter(log: str, name: str) -> int:
    """A counter of a job as its client prints it; -1 where it does not."""
    found = re.findall(_COUNTER.format(re.escape(name)), log, re.M)
    return int(found[-1]) if found else -1
