"""Hadoop's own benchmark of sorting: RandomWriter, Sort and SortValidator, stock classes of its jars, each timed."""

from __future__ import annotations

import re

from .jobs import Jobs

RANDOM_WRITER = "org.apache.hadoop.examples.RandomWriter"
SORT = "org.apache.hadoop.examples.Sort"
VALIDATOR = "org.apache.hadoop.mapred.SortValidator"  # of the tests' jar of hadoop-mapreduce-client-jobclient
SUCCESS = "SUCCESS! Validated the MapReduce framework's 'sort' successfully."
BYTES_PER_MAP = 50_000_000

_COUNTER = r"^\s*{}=(\d+)\s*$"


def random_writer(jobs: Jobs, size: int, target: str) -> float:
    """Writes about `size` bytes of records with random keys and values; returns the job's seconds."""
    maps = max(1, round(size / BYTES_PER_MAP))
    given = {
        "mapreduce.randomwriter.totalbytes": size,
        "mapreduce.randomwriter.bytespermap": size // maps,
    }
    jobs.run("randomwriter", RANDOM_WRITER, *_generic(given), target)
    return jobs.seconds()


def sort(jobs: Jobs, source: str, target: str, reduces: int) -> tuple[float, list[str]]:
    """Sorts what `random_writer` wrote; returns the job's seconds, and what is wrong with its counters."""
    log = jobs.run("sort", SORT, "-r", str(reduces), source, target)
    read, written = (counter(log, name) for name in ("Map input records", "Reduce output records"))
    wrong = [] if read == written and read > 0 else [f"Sort read {read} records and wrote {written}"]
    return jobs.seconds(), wrong


def validate(jobs: Jobs, source: str, target: str) -> tuple[float, list[str]]:
    """SortValidator: the same records and bytes, each in the right reducer's file and in order."""
    log = jobs.run("validate", VALIDATOR, "-sortInput", source, "-sortOutput", target)
    said = SUCCESS in jobs.processes[-1].log.read_text(errors="replace") or SUCCESS in log
    return jobs.seconds(), [] if said else [f"SortValidator did not say {SUCCESS!r}"]


def counter(log: str, name: str) -> int:
    """A counter of a job as its client prints it; -1 where it does not."""
    found = re.findall(_COUNTER.format(re.escape(name)), log, re.M)
    return int(found[-1]) if found else -1


def _generic(properties: dict[str, object]) -> list[str]:
    return [word for key, value in properties.items() for word in ("-D", f"{key}={value}")]
