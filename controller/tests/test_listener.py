"""How many connections there may be, and whose place another takes."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import pytest

from trunkline_controller.listener import Listener

GIVE_UP_S = 60.0


class Door:
    """A listener, and connections from addresses of the loopback network."""

    def __init__(self, most: int) -> None:
        self.why: list[str] = []
        self.listener = Listener("127.0.0.1", 0, most, self.why.append)
        self.listener.listen()
        self._opened: list[socket.socket] = []

    def comes(self, host: str = "127.0.0.1") -> tuple[socket.socket, socket.socket]:
        """A connection's ends: theirs and ours. Raises ConnectionAbortedError where it is turned away."""
        theirs = socket.create_connection(self.listener.getsockname()[:2], GIVE_UP_S, (host, 0))
        self._opened.append(theirs)
        ours, _ = self.listener.accept()
        self._opened.append(ours)
        return theirs, ours

    def close(self) -> None:
        for one in (*self._opened, self.listener):
            one.close()


@pytest.fixture
def door() -> Iterator[type[Door]]:
    with contextlib.ExitStack() as stack:

        class Closing(Door):
            def __init__(self, most: int) -> None:
                super().__init__(most)
                stack.callback(self.close)

        yield Closing


def has_ended(theirs: socket.socket) -> bool:
    theirs.settimeout(0.0)
    try:
        return theirs.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_a_place_is_free_again_when_a_connection_ends(door):
    door = door(8)
    for _ in range(20):
        _, ours = door.comes()
        assert door.listener.open == {"127.0.0.1": 1}
        ours.close()
        ours.close()
        assert (door.listener.open, door.listener.taken) == ({}, 0)


def test_one_address_has_a_quarter_of_all_places(door):
    door = door(8)
    for _ in range(2):
        door.comes("127.0.0.2")
    with pytest.raises(ConnectionAbortedError):
        door.comes("127.0.0.2")
    assert "127.0.0.2 has 2 connections" in door.why[0]
    door.comes("127.0.0.3")


def test_connections_that_are_trusted_do_not_count_for_their_address(door):
    door = door(8)
    for _ in range(8):
        _, ours = door.comes()
        door.listener.handshake_over(ours.fileno(), is_trusted=True)
    assert (door.listener.open, door.listener.taken) == ({}, 8)
    with pytest.raises(ConnectionAbortedError):
        door.comes("127.0.0.2")
    assert "8 connections, the limit" in door.why[0]
    ours.close()
    assert door.listener.taken == 7
    door.comes("127.0.0.2")


def test_where_all_places_are_taken_the_oldest_amid_its_handshake_of_the_busiest_address_gives_way(door):
    door = door(8)
    known, ours = door.comes("127.0.0.2")
    door.listener.handshake_over(ours.fileno())
    first, _ = door.comes("127.0.0.3")
    waiting = [door.comes(f"127.0.0.{host}")[0] for host in (2, 4, 4, 5, 5, 6)]
    door.comes("127.0.0.7")
    assert [has_ended(one) for one in (known, first, *waiting)] == [False] * 3 + [True] + [False] * 4
    assert door.listener.taken == 8
    assert door.listener.open["127.0.0.4"] == 1


def test_a_place_that_was_given_up_is_not_counted_again_when_its_connection_is_closed(door):
    door = door(1)
    _, first = door.comes("127.0.0.2")
    _, second = door.comes("127.0.0.3")
    assert door.listener.taken == 1
    first.close()
    assert (door.listener.open, door.listener.taken) == ({"127.0.0.3": 1}, 1)
    second.close()
    assert (door.listener.open, door.listener.taken) == ({}, 0)


def test_handshakes_that_take_too_long_are_ended_and_no_others(door):
    door = door(8)
    known, ours = door.comes()
    door.listener.handshake_over(ours.fileno())
    late, _ = door.comes()
    door.listener.end_late(3600.0)
    assert not has_ended(late)
    door.listener.end_late(-1.0)
    assert has_ended(late)
    assert not has_ended(known)
    assert door.listener.taken == 1
