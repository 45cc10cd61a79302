"""What cargo-deny finds about the crates that Trunkline is built of: licences, where they come from, and advisories.

The newest advisories are fetched where there is a network. Elsewhere those in `lab/advisories` have to do, a copy of
what concerns the crates in Cargo.lock.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from . import paths

VERSION = "0.20.2"
ROOT = paths.ROOT / ".cache" / "cargo-deny"
PROGRAM = ROOT / "bin" / "cargo-deny"
INSTALL = ["cargo", "install", "--quiet", "--locked", "cargo-deny", "--version", VERSION, "--root", str(ROOT)]
SETTINGS = paths.ROOT / "deny.toml"
STORED = paths.LAB / "advisories"
FETCHED = paths.ROOT / ".cache" / "advisories"
# As cargo-deny names a clone of https://github.com/RustSec/advisory-db in the folder of all databases.
CLONE = "advisory-db-3157b0e258782691"
# It reads the manifests of all platforms' crates; a build has downloaded those of its own alone.
CRATES = ["cargo", "fetch", "--quiet", "--locked"]
FETCH = [str(PROGRAM), "--config", str(FETCHED / "deny.toml"), "fetch", "db"]


def check(*, offline: bool) -> list[str]:
    """The command that checks everything; `offline` by what is there."""
    return [str(PROGRAM), *(["--offline"] if offline else []), "--config", str(FETCHED / "deny.toml"), "check"]


def prepare() -> None:
    """Has the settings name where databases are, which they can't say as a path from the tree."""
    FETCHED.mkdir(parents=True, exist_ok=True)
    settings = SETTINGS.read_text().replace("[advisories]\n", f'[advisories]\ndb-path = "{FETCHED}"\n', 1)
    (FETCHED / "deny.toml").write_text(settings)


def use_stored() -> None:
    """Puts the stored advisories where cargo-deny looks for its clone of the database, which has to be of git."""
    clone = FETCHED / CLONE
    shutil.rmtree(clone, ignore_errors=True)
    shutil.copytree(STORED, clone)
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "stored advisories"]):
        who = ["-c", "user.name=Trunkline", "-c", "user.email=trunkline@localhost"]
        subprocess.run(["git", "-C", str(clone), *who, *words], check=True, stdin=subprocess.DEVNULL)


def crates(lock: str) -> set[str]:
    """The names of crates in a Cargo.lock."""
    return set(re.findall(r'^name = "([^"]+)"$', lock, re.MULTILINE))


def concerning(database: Path, names: set[str]) -> Iterator[Path]:
    """A database's advisories about these crates."""
    for crate in sorted((database / "crates").iterdir()):
        if crate.name in names:
            yield from sorted(crate.glob("*.md"))


def store(database: Path, where: Path = STORED) -> int:
    """Copies what concerns this tree's crates; returns how many advisories that are."""
    shutil.rmtree(where / "crates", ignore_errors=True)
    found = list(concerning(database, crates((paths.ROOT / "Cargo.lock").read_text())))
    for advisory in found:
        copy = where / advisory.relative_to(database)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(advisory, copy)
    return len(found)


if __name__ == "__main__":
    print(f"{store(Path(sys.argv[1]))} advisories")
