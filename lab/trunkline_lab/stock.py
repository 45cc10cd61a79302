"""Stock Apache Hadoop, HBase and what else is on Maven Central: resolved once, then read from a list under .cache/."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from . import locks, paths
from .say import say

HADOOP = paths.LAB / "stock" / "pom.xml"
HBASE = paths.LAB / "hbase" / "pom.xml"
YARN = paths.LAB / "yarn" / "pom.xml"
VERSIONS = ("3.3.6", "3.4.3", "3.5.0")  # of Hadoop, that the plug-in's one jar is tested in
NEWEST = VERSIONS[-1]  # what everything runs on that is not told another
# WebHDFS of versions before 3.5 sets a class loader of the JDK open; without it a NameNode on Java 17 answers 500.
WEBHDFS_ON_JAVA_17 = ("--add-opens=java.base/java.lang=ALL-UNNAMED",)
DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath"


def classpath(scope: str = "runtime", pom: Path = HADOOP, hadoop: str = NEWEST) -> list[str]:
    """The jars that `pom` names, `scope` being "runtime" (daemons, shell) or "test" (with Hadoop's own tests).

    `hadoop` is one of VERSIONS; HBase and YARN come with the newest alone. Maven is asked only when the pom changed or
    a jar has gone; the answer is kept in .cache/hadoop/.
    """
    if hadoop not in VERSIONS:
        raise ValueError(f"no Hadoop {hadoop} here; there are {', '.join(VERSIONS)}")
    stamp = hashlib.sha256(pom.read_bytes()).hexdigest()[:16]
    listing = paths.CACHE / "hadoop" / f"{scope}-{hadoop}-{stamp}.classpath"
    with locks.held("maven"):
        return _read(listing) or _resolve(listing, scope, pom, hadoop)


def _read(listing: Path) -> list[str]:
    """The jars of a listing; none where there is no listing, or a jar of it has gone."""
    jars = listing.read_text().strip().split(":") if listing.exists() else []
    return jars if all(Path(jar).exists() for jar in jars) else []


def _resolve(listing: Path, scope: str, pom: Path, hadoop: str) -> list[str]:
    what = f"what {pom.relative_to(paths.ROOT)} names for Hadoop {hadoop} ({scope})"
    say(f"resolving {what} from Maven Central")
    listing.parent.mkdir(parents=True, exist_ok=True)
    fresh = listing.with_suffix(".new")
    done = subprocess.run(
        [
            *("mvn", "-q", "-B", "-f", str(pom), f"-Dhadoop.version={hadoop}"),
            *(DEPENDENCY_PLUGIN, f"-DincludeScope={scope}", f"-Dmdep.outputFile={fresh}"),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0 or not fresh.exists():
        raise RuntimeError(f"mvn could not resolve {what} (exit {done.returncode}):\n{done.stdout}{done.stderr}")
    fresh.rename(listing)
    return listing.read_text().strip().split(":")
