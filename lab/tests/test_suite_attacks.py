"""The attacks of docs/security.md, and what a run of the suite says of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from trunkline_lab import paths
from trunkline_lab.suite import attacks

PAGE = """# Security
| attack | test |
|---|---|
| reads a [block](a.md) | `a/tests/b.rs: reads_a_block`, `ReadTest.reads`, `.readsAgain` (the password) |
| writes | `WriteTest`, all of it; `a/b.rs` |
| waits | `WaitTest.waits` |

| other | table |
| no attack | `OtherTest` |
"""


def page(tmp_path: Path) -> Path:
    path = tmp_path / "security.md"
    path.write_text(PAGE)
    return path


def test_rows_name_their_tests(tmp_path: Path):
    assert attacks.listed(page(tmp_path)) == [
        attacks.Attack("reads a block", ("reads_a_block", "ReadTest.reads", "ReadTest.readsAgain")),
        attacks.Attack("writes", ("WriteTest",)),
        attacks.Attack("waits", ("WaitTest.waits",)),
    ]


def test_a_run_says_what_it_has_tried(tmp_path: Path):
    passed = ["ab::reads_a_block", "io.x.ReadTest.reads(String)[1]", "io.x.WriteTest.one", "io.x.WaitTest.other"]
    assert attacks.report(passed, page(tmp_path)) == [
        "attack: reads a block: 2 of 3 tests passed",
        "attack: writes: 1 of 1 tests passed",
        "attacks not tried: waits",
    ]


def test_a_run_of_something_else_says_nothing(tmp_path: Path):
    assert attacks.report(["io.x.OtherTest.one"], page(tmp_path)) == []


def test_each_test_that_the_page_names_is_there():
    listed = attacks.listed()
    assert len(listed) > 20
    files = subprocess.run(
        ["git", "ls-files", "*.rs", "*.py", "*.java"], cwd=paths.ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    java = {Path(file).stem: paths.ROOT / file for file in files if file.endswith("Test.java")}
    rest = "\n".join((paths.ROOT / file).read_text() for file in files if not file.endswith(".java"))
    for attack in listed:
        for test in attack.tests:
            name, _, case = test.partition(".")
            found = f"void {case}(" in java[name].read_text() if case else name in java
            assert found or f"fn {test}(" in rest or f"def {test}(" in rest, f"{attack.what}: {test}"
