"""docs/names.md says what is spoken: whoever builds a peer goes by its numbers."""

import re

from trunkline_lab import paths

PAGE = (paths.ROOT / "docs" / "names.md").read_text()


def spoken(pattern: str, *source: str) -> set[str]:
    return set(re.findall(pattern, paths.ROOT.joinpath(*source).read_text()))


def test_the_version_of_control_connections():
    java = "hadoop/plugin/src/main/java/io/trunkline/hadoop/ndn/wire/Preamble.java"
    ours = spoken(r"byte VERSION = (\d+);", java)
    assert set(re.findall(r"\| 4 \| version, (\d+)", PAGE)) == set(re.findall(r'\{"version": (\d+)', PAGE)) == ours


def test_the_version_of_content_keys():
    ours = spoken(r"const VERSION: u8 = (\d+);", "hadoop/native/src/content_key.rs")
    assert set(re.findall(r"\| 0 \| version, (\d+): of this exchange", PAGE)) == ours


def test_the_labels_of_keys():
    sources = ("seal.rs", "content_key.rs", "session.rs")
    ours = set().union(*(spoken(r'b"(trunkline [a-z]+[ a-z,]*\d)"', "hadoop/native/src", name) for name in sources))
    told = set(re.findall(r"`info` = `(trunkline [^`]*)`", PAGE))
    assert told and told <= ours
