"""The reports of JUnit's console, and what counts as a pass."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from trunkline_lab import hadoop_tests
from trunkline_lab.hadoop_tests import Result, acceptable, read_reports
from trunkline_lab.suite.count import of_hadoop

REPORT = """<testsuite>
<testcase name="good()" time="1.5"/>
<testcase name="left()" time="0"><skipped/></testcase>
<testcase name="bad()" time="2"><failure message="expected 1&#10;but 2" type="x"/></testcase>
<testcase name="worse()" time="2"><failure message="expected 1 but got:&#10;2&#10;3" type="x"/></testcase>
</testsuite>"""


def test_reports_are_added_up(tmp_path: Path) -> None:
    (tmp_path / "TEST-a.xml").write_text(REPORT)
    result = read_reports(tmp_path)
    assert (result.passed, result.failed, result.skipped) == (1, 2, 1)
    assert result.failures == ["bad(): expected 1", "worse(): expected 1 but got: 2"]
    assert result.seconds == 5.5


@pytest.mark.parametrize(
    ("failure", "method"),
    [
        ("new(): x", "new"),
        ("old: y", "old"),
        ("(class): ran no test", ""),
        ("[1] some, parameters: z", ""),
        ("e(String)[2]: z", "e(java.lang.String)"),
    ],
)
def test_methods_that_failed_are_known_by_name_in_both_junits(failure: str, method: str) -> None:
    assert hadoop_tests.method_of(failure) == method


@pytest.mark.parametrize(("failure", "excused"), [("a(): x", True), ("b(): x", False)])
def test_a_failure_that_tcp_has_too_is_not_the_planes(failure: str, excused: bool) -> None:
    ours = Result(passed=1, failed=1, failures=[failure], carried=1)
    results = {"T": {"ndn": ours, "tcp": Result(1, 1, failures=["a(): y"])}}
    hadoop_tests.excuse_alike(results["T"], "ndn")
    assert acceptable(results, "ndn") is excused
    assert (hadoop_tests.TCP_TOO in hadoop_tests.render(results, ["ndn", "tcp"])) is excused


@pytest.mark.parametrize(
    ("tcp_fails", "plane_fails", "verdict"),
    [
        ([True], [], hadoop_tests.TCP_TOO),
        ([False, True], [True], hadoop_tests.TCP_TOO),
        ([False, False], [True, False], hadoop_tests.PASSED_AGAIN),
        ([False] * 3, [True] * 3, None),
    ],
)
def test_what_failed_is_run_again_beside_tcp(monkeypatch, tcp_fails, plane_fails, verdict) -> None:
    outcomes = {"tcp": iter(tcp_fails), "ndn": iter(plane_fails)}

    def run_class(*words: object, methods: list[str]) -> Result:
        assert methods == ["a"]
        return Result(failed=int(next(outcomes[str(words[-1])])))

    monkeypatch.setattr(hadoop_tests, "run_class", run_class)
    result = Result(failed=2, failures=["a(): x", "(class): ran no test"], plane="ndn")
    hadoop_tests.run_again(None, Path(), [], "T", result)
    assert result.excused == ({"a(): x": verdict} if verdict else {})
    assert [next(left, None) for left in outcomes.values()] == [None, None]


@pytest.mark.parametrize("ends", [True, False])
def test_a_class_that_hung_is_run_once_more(monkeypatch, ends: bool) -> None:
    hung = f"{hadoop_tests.HUNG} after 12 minutes; at a place"
    runs = iter(
        [Result(failed=1, failures=[hung]), Result(2, carried=1) if ends else Result(failed=1, failures=[hung])]
    )
    monkeypatch.setattr(hadoop_tests, "run_class", lambda *_: next(runs))
    result = hadoop_tests.run_whole(None, Path(), [], "T", "ndn")
    assert (result.passed, hung in result.failures) == (2 if ends else 0, True)
    assert acceptable({"T": {"ndn": result}}, "ndn") is ends
    assert next(runs, None) is None


def test_a_class_that_ended_is_run_once(monkeypatch) -> None:
    runs = iter([Result(1, 1, failures=["a(): x"])])
    monkeypatch.setattr(hadoop_tests, "run_class", lambda *_: next(runs))
    assert hadoop_tests.run_whole(None, Path(), [], "T", "ndn").held == ["a(): x"]


DUMP = """\
Full thread dump OpenJDK 64-Bit Server VM
"main" #1 prio=5
\tat org.x.Old.one(Old.java:1)

Full thread dump OpenJDK 64-Bit Server VM

"other" #2 daemon
\tat org.x.Other.run(Other.java:2)

"main" #1 prio=5 os_prio=0
   java.lang.Thread.State: WAITING (parking)
\tat jdk.internal.misc.Unsafe.park(java.base@17.0.15/Native Method)
\t- parking to wait for  <0x1> (a Lock)
\tat org.x.Cluster.stop(Cluster.java:3)
\tat org.x.A.a(A.java:1)
\tat org.x.B.b(B.java:1)
\tat org.x.C.c(C.java:1)
\tat org.x.TestIt.testIt(TestIt.java:4)
\tat app//org.x.Launcher.main(Launcher.java:5)

"last" #3
\tat org.x.Last.run(Last.java:6)
"""


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (
            DUMP,
            "at jdk.internal.misc.Unsafe.park(java.base@17.0.15/Native Method) from org.x.Cluster.stop(Cluster.java:3)"
            " from org.x.A.a(A.java:1) from org.x.B.b(B.java:1) from org.x.TestIt.testIt(TestIt.java:4)",
        ),
        ("no dump", "at no known place"),
    ],
)
def test_where_a_class_hangs_is_read_from_its_last_thread_dump(log: str, said: str) -> None:
    assert hadoop_tests.main_thread(log, "org.x.TestIt") == said


def test_a_run_whose_blocks_went_another_way_is_no_pass() -> None:
    assert not acceptable({"T": {"ndn": Result(passed=3)}}, "ndn")
    assert acceptable({"T": {"ndn": Result(passed=3, carried=1)}}, "ndn")


def test_blocks_are_counted_by_the_planes_own_counter(tmp_path: Path) -> None:
    stats = tmp_path / "stats.json"
    stats.write_text('{"named_writes": 2, "ucx_writes": 3}\n{"ucx_writes": 4, "mirror_reported": 5}\n')
    assert [hadoop_tests.carried(plane, stats) for plane in hadoop_tests.PLANES] == [0, 2, 7, 5]
    assert hadoop_tests.carried("ucx", tmp_path / "none") == 0


def test_no_test_at_all_is_no_pass() -> None:
    assert not acceptable({"T": {"tcp": Result()}}, "tcp")


def test_unknown_class_is_named() -> None:
    jars = ["/nowhere/other.jar"]
    with pytest.raises(RuntimeError, match="tests jar"):
        hadoop_tests.find_classes(jars, ["TestA"])


HANDSHAKE = hadoop_tests.Known("ndn", "TestSafe", r"find(Key|Cipher)\(\)", "key.* is null", "looks for the handshake")


@pytest.mark.parametrize(
    ("plane", "name", "failure", "excused"),
    [
        ("ndn", "TestSafe", "findKey(): the key of x is null", True),
        ("ndn", "TestSafe", "findCipher(): key is null", True),
        ("ndn", "org.apache.TestSafe", "findKey(): key is null", True),
        ("ndn", "TestSafe", "findKey(): wrong bytes were read", False),  # a failure of another kind
        ("ndn", "TestSafe", "findKey(): test timed out", False),
        ("ndn", "TestSafe", "findKeyLater(): key is null", False),  # another method
        ("ndn", "TestSafe", "(class): ran no test; key is null", False),
        ("ndn", "TestSafer", "findKey(): key is null", False),  # another class
        ("ucx", "TestSafe", "findKey(): key is null", False),  # another plane
        ("tcp", "TestSafe", "findKey(): key is null", False),
    ],
)
def test_a_test_of_what_the_plane_leaves_out_is_excused_for_that_alone(
    monkeypatch: pytest.MonkeyPatch, plane: str, name: str, failure: str, excused: bool
) -> None:
    monkeypatch.setattr(hadoop_tests, "KNOWN", (HANDSHAKE,))
    result = Result(passed=1, failed=1, failures=[failure], plane=plane)
    hadoop_tests.excuse_known(name, result)
    assert result.excused == ({failure: HANDSHAKE.why} if excused else {})
    assert result.held == ([] if excused else [failure])


# As they were when the tests were run; each with one of another kind.
@pytest.mark.parametrize(
    ("name", "failure", "excused"),
    [
        (
            "TestEncryptedTransfer",
            'testLongLivedClientPipelineRecovery(String)[1]: Cannot read field "blockPoolId" because '
            '"this.val$encryptionKey" is null',
            True,
        ),
        ("TestEncryptedTransfer", "testLongLivedClientPipelineRecovery(String)[1]: java.io.EOFException", False),
        ("TestEncryptedTransfer", 'testEncryptedRead(): because "this.val$encryptionKey" is null', False),
        (
            "TestEncryptedTransfer",
            "testClientThatDoesNotSupportEncryption(String)[1]: Expected output to match "
            "/Failed to read expected encryption handshake from client at/ but got:  ==> expected: "
            "<true> but was: <false>",
            True,
        ),
        ("TestEncryptedTransfer", "testClientThatDoesNotSupportEncryption(String)[1]: java.io.EOFException", False),
        (
            "TestSaslDataTransfer",
            "testServerSaslNoClientSasl(): Should fail if SASL data transfer protection is not configured or not "
            "supported in client",
            True,
        ),
        ("TestSaslDataTransfer", "testServerSaslNoClientSasl(): expected: <true> but was: <false>", False),
        (
            "TestSaslDataTransfer",
            "testClientAndServerDoNotHaveCommonQop(): Expected java.io.IOException to be thrown, but nothing was "
            "thrown.",
            True,
        ),
        ("TestSaslDataTransfer", "testClientAndServerDoNotHaveCommonQop(): expected: <true> but was: <false>", False),
    ],
)
def test_what_is_known_of_hadoops_own_tests(name: str, failure: str, excused: bool) -> None:
    result = Result(passed=1, failed=1, failures=[failure], plane="ndn")
    hadoop_tests.excuse_known(name, result)
    assert bool(result.excused) is excused


def test_what_is_excused_is_shown_with_its_reason_and_counts_as_nothing() -> None:
    failure = "findKey(): key is null"
    result = Result(1, 1, failures=[failure], plane="ndn", carried=1, excused={failure: HANDSHAKE.why})
    count = of_hadoop("TestSafe", result)
    assert count.line() == "1 passed, 0 failed, 0 skipped"
    assert count.notes == [f"not held against ndn: TestSafe.{failure}: looks for the handshake"]
    assert f"ndn TestSafe.{failure} (looks for the handshake)" in hadoop_tests.render(
        {"TestSafe": {"ndn": result}}, ["ndn"]
    )


@pytest.mark.parametrize("why", [hadoop_tests.TCP_TOO, HANDSHAKE.why])
def test_a_class_of_which_nothing_passed_is_no_pass(why: str) -> None:
    result = Result(failed=1, failures=["a(): x"], plane="ndn", carried=1, excused={"a(): x": why})
    assert not acceptable({"T": {"ndn": result}}, "ndn")
    count = of_hadoop("T", result)
    assert count.failed == 1
    assert "failed: T: none of 1 passed" in count.notes


def test_every_known_failure_is_one_of_a_class_that_is_run() -> None:
    for known in hadoop_tests.KNOWN:
        assert known.plane in hadoop_tests.PLANES
        assert known.name in hadoop_tests.SECURED_CLASSES
        assert known.why


def test_a_test_class_stands_beside_its_settings_as_a_file(tmp_path: Path) -> None:
    jar = tmp_path / "hadoop-hdfs-3.5.0-tests.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("org/apache/TestA.class", b"cafe")
        archive.writestr("org/apache/TestB.class", b"babe")
    hadoop_tests.unpack_class([str(jar)], "org.apache.TestA", tmp_path / "conf")
    unpacked = [file for file in (tmp_path / "conf").rglob("*") if file.is_file()]
    assert unpacked == [tmp_path / "conf" / "org" / "apache" / "TestA.class"]


def test_how_a_failure_counts() -> None:
    excused = {"a(): x": hadoop_tests.TCP_TOO, "b(): x": hadoop_tests.PASSED_AGAIN}
    result = Result(passed=2, failed=3, failures=["a(): x", "b(): x", "c(): x"], excused=excused)
    count = of_hadoop("T", result)
    assert count.line() == "3 passed, 1 failed, 1 skipped"
    assert count.notes == [
        "skipped: T.a(): x: fails on stock TCP too",
        "passed when run again: T.b(): x",
        "failed: T.c(): x",
    ]
