"""Networks of the loopback: no two clusters get the same one."""

from __future__ import annotations

from trunkline_lab import network


def test_who_looks_at_the_same_moment_gets_another_network(monkeypatch):
    monkeypatch.setattr(network, "_addresses_in_use", set)  # neither sees what the other is about to use
    assert network.pick_loopback() != network.pick_loopback()


def test_a_network_on_which_somebody_speaks_is_left_alone(monkeypatch):
    first = network.pick_loopback()
    prefix, _, last = first.prefix.rpartition(".")
    following = f"{prefix}.{int(last) % 250 + 1}"
    monkeypatch.setattr(network, "_addresses_in_use", lambda: {f"{first.prefix}.1", f"{following}.1"})
    assert network.pick_loopback().prefix not in (first.prefix, following)
