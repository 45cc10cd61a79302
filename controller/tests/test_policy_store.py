"""The policy in force survives restarts, and what goes wrong with the disk is said and loses nothing."""

from __future__ import annotations

import errno
import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trunkline_controller.control import Applied
from trunkline_controller.policy import store
from trunkline_controller.policy.store import PolicyStore, Stored, StoreError


def applied(version, text="default: q0\n"):
    return Applied(version, f"p{version}", 1.5 * version, "ann", text, 7)


def test_what_was_saved_is_read(tmp_path):
    kept = PolicyStore(tmp_path / "made")
    assert kept.load() == Stored()
    kept.save(True, [applied(2, "näher: ☃"), applied(1)])
    found = PolicyStore(tmp_path / "made").load()
    assert found == Stored(True, (applied(2, "näher: ☃"), applied(1)))
    assert found.policy == applied(2, "näher: ☃")
    assert found.next_version == 3


def test_a_policy_that_was_cleared_is_not_in_force_but_in_the_history(tmp_path):
    PolicyStore(tmp_path).save(False, [applied(3), applied(2)])
    found = PolicyStore(tmp_path).load()
    assert found.policy is None
    assert [entry.version for entry in found.history] == [3, 2]


def test_the_history_is_bounded_by_count_and_bytes(tmp_path):
    kept = PolicyStore(tmp_path)
    kept.save(True, [applied(n) for n in range(100, 0, -1)])
    assert len(kept.load().history) == store.MAX_HISTORY
    kept.save(True, [applied(n, "#" * (1 << 20)) for n in range(9, 0, -1)])
    assert [entry.version for entry in kept.load().history] == [9, 8]


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b"null", b"\xff", b'{"format": 2}', b'{"format": 1, "in_force": 1, "history": []}',
     b'{"format": 1, "in_force": true, "history": [{"version": "x"}]}', b"[" * 100_000],
)  # fmt: skip
def test_a_damaged_file_is_set_aside_and_the_one_before_is_taken(tmp_path, damage):
    kept = PolicyStore(tmp_path)
    kept.save(True, [applied(1)])
    kept.save(True, [applied(2), applied(1)])
    (tmp_path / store.FILE).write_bytes(damage)
    found = kept.load()
    assert found.policy == applied(1)
    assert "set aside" in found.problem
    assert "the policy before it is in force" in found.problem
    assert (tmp_path / store.DAMAGED).read_bytes() == damage
    kept.save(True, [applied(3)])
    assert kept.load() == Stored(True, (applied(3),))


def test_damaged_files_alone_leave_no_policy_and_say_so(tmp_path):
    (tmp_path / store.FILE).write_bytes(b"{")
    found = PolicyStore(tmp_path).load()
    assert found.policy is None
    assert "no policy is in force until one is applied" in found.problem


def test_a_truncated_file_of_any_length_is_survived(tmp_path):
    kept = PolicyStore(tmp_path)
    kept.save(True, [applied(1)])
    kept.save(True, [applied(2), applied(1)])
    whole = (tmp_path / store.FILE).read_bytes()
    for length in range(len(whole)):
        (tmp_path / store.FILE).write_bytes(whole[:length])
        assert kept.load().policy == applied(1)


def test_a_controller_killed_between_the_renames_finds_the_policy_before(tmp_path):
    kept = PolicyStore(tmp_path)
    kept.save(True, [applied(1)])
    kept.save(True, [applied(2), applied(1)])
    (tmp_path / store.FILE).unlink()
    assert kept.load().policy == applied(1)


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_is_said_and_what_was_there_still_is(tmp_path, monkeypatch, call):
    kept = PolicyStore(tmp_path)
    kept.save(True, [applied(1)])

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, call, full)
        with pytest.raises(StoreError, match="No space left on device; make room"):
            kept.save(True, [applied(2), applied(1)])
    assert kept.load() == Stored(True, (applied(1),))
    assert not (tmp_path / "policy.json.new").exists()


def test_a_directory_that_is_a_file_is_said(tmp_path):
    (tmp_path / "state").write_text("")
    with pytest.raises(StoreError, match="apply again"):
        PolicyStore(tmp_path / "state").save(True, [applied(1)])
    assert PolicyStore(tmp_path / "state").load().policy is None


ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.just(10**400), st.floats(), st.text(max_size=9), st.just("\ud800"),
    st.just([]), st.just({}), st.just([{}]),
)  # fmt: skip
KEYS = ["format", "in_force", "history", *(f"history.{field}" for field in vars(applied(1)))]


@given(st.one_of(st.binary(max_size=40), st.lists(st.tuples(st.sampled_from(KEYS), ODD), max_size=3)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_file_holds_a_controller_starts_and_writes_the_next(tmp_path, damage):
    kept = PolicyStore(tmp_path)
    kept.save(True, [applied(1)])
    if isinstance(damage, bytes):
        (tmp_path / store.FILE).write_bytes(damage)
    else:
        document = json.loads((tmp_path / store.FILE).read_bytes())
        entry = document["history"][0]
        for key, value in damage:
            entry[key.removeprefix("history.")] = value
            if "." not in key:
                document[key] = value
        (tmp_path / store.FILE).write_text(json.dumps(document))
    found = kept.load()
    assert found.policy is not None or found.problem or not found.in_force
    kept.save(True, [applied(found.next_version), *found.history])
    assert kept.load().policy == applied(found.next_version)
