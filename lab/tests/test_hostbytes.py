"""The kernel's counters, given to hosts: bound sockets, unbound ones, ended ones, and those within one host."""

import os
import socket
import threading

import pytest

from trunkline_lab.hostbytes import HostBytes
from trunkline_lab.network import pick_loopback


@pytest.fixture
def net():
    return pick_loopback()


def exchange(server: str, client: str | None, up: int, down: int) -> None:
    """One connection from `client` (None leaves it unbound) to `server`, closed at once on both ends."""
    with socket.socket() as listener:
        listener.bind((server, 0))
        listener.listen()

        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                receive(peer, up)
                peer.sendall(bytes(down))

        thread = threading.Thread(target=serve)
        thread.start()
        with socket.socket() as sock:
            if client:
                sock.bind((client, 0))
            sock.connect(listener.getsockname())
            sock.sendall(bytes(up))
            receive(sock, down)
        thread.join()


def receive(sock: socket.socket, count: int) -> None:
    while count:
        count -= len(sock.recv(min(count, 65536)))


def test_short_connections_of_bound_sockets_are_counted_on_both_ends(net):
    a, b = net.address(1), net.address(2)
    with HostBytes(net.cidr, {a: "a", b: "b"}, list) as meter:
        before = meter.read()
        for _ in range(20):
            exchange(a, b, up=100_000, down=300)
        count = meter.read() - before
    # The SYN and FIN are not payload; the kernel counts the SYN as one byte acknowledged, not as one sent.
    assert 2_000_000 <= count.out["b"] <= 2_000_100
    assert 2_000_000 <= count.into["a"] <= 2_000_100
    assert 6_000 <= count.out["a"] <= 6_100
    assert count.unknown == 0
    assert count.total(["a", "b"]) == sum(count.out.values()) + sum(count.into.values())


def test_an_unbound_socket_is_told_by_the_process_that_holds_it(net):
    a = net.address(1)
    with HostBytes(net.cidr, {a: "a"}, lambda: [(os.getpid(), "me")]) as meter:
        with socket.socket() as listener:
            listener.bind((a, 0))
            listener.listen()
            with socket.create_connection(listener.getsockname()) as sock:
                peer, _ = listener.accept()
                with peer:
                    sock.sendall(bytes(5000))
                    receive(peer, 5000)
                    meter.read()
        count = meter.read()
    assert count.out["me"] == 5000
    assert count.into["a"] == pytest.approx(5000, abs=2)


def test_a_socket_of_nobody_is_reported_not_hidden(net):
    a = net.address(1)
    with HostBytes(net.cidr, {a: "a"}, list) as meter:
        exchange(a, None, up=700, down=0)
        count = meter.read()
    assert count.unknown == pytest.approx(700, abs=2)


def test_traffic_within_a_host_is_not_on_its_link(net):
    a = net.address(1)
    with HostBytes(net.cidr, {a: "a"}, list) as meter:
        exchange(a, a, up=10_000, down=10_000)
        count = meter.read()
    assert count.total(["a"]) == 0


def test_other_networks_are_not_seen(net):
    with HostBytes(net.cidr, {}, list) as meter:
        exchange("127.0.0.1", None, up=10_000, down=0)
        assert meter.read().unknown == 0
