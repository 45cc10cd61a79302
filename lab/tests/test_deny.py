"""Which advisories are stored, and what cargo-deny is told."""

from __future__ import annotations

from pathlib import Path

from trunkline_lab import deny, paths

LOCK = '[[package]]\nname = "rustls"\nversion = "0.23.0"\n\n[[package]]\nname = "fnv"\n'


def test_only_what_concerns_crates_of_the_lock_file_is_stored(tmp_path: Path):
    for name in ("crates/rustls/RUSTSEC-2024-0336.md", "crates/openssl/RUSTSEC-2023-0001.md", "rust/std/a.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("```toml\n```\n")
    found = list(deny.concerning(tmp_path, deny.crates(LOCK)))
    assert [path.name for path in found] == ["RUSTSEC-2024-0336.md"]


def test_stored_advisories_are_about_crates_of_this_tree():
    stored = {path.name for path in (deny.STORED / "crates").iterdir()}
    assert stored and stored <= deny.crates((paths.ROOT / "Cargo.lock").read_text())


def test_settings_name_where_databases_are(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(deny, "FETCHED", tmp_path / "advisories")
    deny.prepare()
    settings = (tmp_path / "advisories" / "deny.toml").read_text()
    assert f'db-path = "{tmp_path}/advisories"' in settings and "[licenses]" in settings
