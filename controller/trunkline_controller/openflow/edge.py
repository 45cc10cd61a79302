"""All connected switches, and this controller's role toward them. Everything here runs on one asyncio loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from ..listener import Listener
from ..net.topology import Dpid, Port, PortNo, dpid_text
from . import messages, replies
from .connection import HANDSHAKE_S, Connection, Gone, OpenFlowError
from .leases import Lease, Role, senior
from .memory import Account, Budget
from .session import MAX_PORTS, Session

log = logging.getLogger(__name__)

IS_SLAVE = (1, 10)  # OFPET_BAD_REQUEST, OFPBRC_IS_SLAVE
ECHO_ANSWER_S = 1.0  # for the first of two connections that say to be of one switch


@dataclass(frozen=True)
class EdgeSettings:
    address: str = "127.0.0.1"
    port: int = 6653
    tls: ssl.SSLContext | None = None
    max_connections: int = 1024
    lease_s: int = 10
    max_memory_mib: int = 1024

    @property
    def renew_s(self) -> float:
        return self.lease_s / 3


class Network(Protocol):
    """Who is told of switches while this controller is their master. All calls are on the loop's thread."""

    def switch_ready(self, session: Session) -> None: ...

    def switch_gone(self, session: Session) -> None: ...

    def switch_released(self, session: Session) -> None:
        """Still connected, but another controller is its master now."""
        ...

    def port_changed(self, session: Session, port: Port) -> None: ...

    def port_removed(self, session: Session, number: PortNo) -> None: ...

    def packet_in(self, session: Session, table: int, in_port: int, data: bytes) -> None: ...

    def change_refused(self, session: Session) -> None: ...

    def role_changed(self, role: Role, why: str) -> None: ...

    def stranger(self, key: str, what: str, remedy: str) -> None:
        """Somebody connected who can't be served."""
        ...


class Edge:
    """Listens for switches from `start` to `stop`."""

    def __init__(self, settings: EdgeSettings, lease: Lease, network: Network) -> None:
        self.settings = settings
        self.lease = lease
        self.role = Role.NONE
        self.sessions: dict[Dpid, Session] = {}
        self._network = network
        self._connections: set[Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._listener: Listener | None = None
        self._look = asyncio.Event()
        self.memory = Budget(settings.max_memory_mib << 20, self._too_much_memory)
        self._greeting: dict[Connection, Session] = {}
        self._looks: dict[Connection, asyncio.Task[None]] = {}  # that go on

    async def start(self) -> None:
        """Raises OSError where the port can't be listened on."""
        loop = asyncio.get_running_loop()
        listen = self.settings
        self._listener = Listener(listen.address, listen.port, listen.max_connections, self._turned_away)
        timeouts = {"ssl_handshake_timeout": HANDSHAKE_S, "ssl_shutdown_timeout": HANDSHAKE_S} if listen.tls else {}
        self._server = await loop.create_server(
            lambda: Connection(self, self.memory), sock=self._listener, ssl=listen.tls, backlog=256, **timeouts
        )
        self._spawn(self._renewing())
        self._spawn(self._looking())

    @property
    def port(self) -> int:
        assert self._listener is not None
        return self._listener.getsockname()[1]

    async def stop(self) -> None:
        """Gives the leases back; flows stay as they are."""
        if self._server is not None:
            self._server.close()
        if self.role is Role.MASTER:
            held = [session.release(self.lease) for session in self.sessions.values() if session.managed]
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.gather(*held), 2.0)
        for task in self._tasks:
            task.cancel()
        for connection in list(self._connections):
            connection.close("this controller ends")

    # Of connections.

    def _turned_away(self, why: str) -> None:
        self._network.stranger(
            f"connections: {why}",
            f"port {self.port} for switches: {why}",
            "find who connects there and does not speak OpenFlow, or raise openflow.max_connections",
        )

    def began(self, connection: Connection) -> None:
        self._connections.add(connection)

    def connected(self, connection: Connection) -> None:
        if self._listener is not None:
            self._listener.handshake_over(connection.fileno(), is_trusted=True)
        self._spawn(self._greet(connection))

    def disconnected(self, connection: Connection, why: str) -> None:
        self._connections.discard(connection)
        session = self.sessions.get(connection.dpid)
        if session is None or session.connection is not connection:
            return
        del self.sessions[connection.dpid]
        log.info("switch %s (%s): disconnected: %s", session.name, dpid_text(session.dpid), why)
        if session.managed:
            session.end()
            self._network.switch_gone(session)
        session.gone()
        self._look.set()

    def refused(self, connection: Connection, why: str) -> None:
        self._connections.discard(connection)
        log.info("connection from %s ended before OpenFlow's handshake: %s", connection.address, why)

    def packet_in(self, connection: Connection, table: int, in_port: int, data: bytes) -> None:
        session = self._of(connection)
        if session is not None and session.managed:
            self._network.packet_in(session, table, in_port, data)

    def port_status(self, connection: Connection, description: bytes, removed: bool) -> None:
        session = self._of(connection) or self._greeting.get(connection)
        port = replies.port(connection.version, description)
        if session is None or port is None:
            return
        if removed:
            if session.port_removed(port.number) and session.managed:
                self._network.port_removed(session, port.number)
        elif not session.port_changed(port):
            self._too_many_ports(session)
        elif session.managed:
            self._network.port_changed(session, port)

    def _too_many_ports(self, session: Session) -> None:
        self._network.stranger(
            f"ports {session.dpid}",
            f"switch {session.name}, from {session.connection.address}, says to have more than {MAX_PORTS} ports; "
            "further ones are not used",
            "see that it is the switch it says to be",
        )

    def failed(self, connection: Connection, xid: int, error: OpenFlowError) -> None:
        session = self._of(connection)
        if session is not None:
            session.failed(xid, error)
            if (error.kind, error.code) == IS_SLAVE:
                self._look.set()
            self._network.change_refused(session)

    def role_lost(self, connection: Connection) -> None:
        self._look.set()

    def _too_much_memory(self, account: Account) -> None:
        """Who takes most gives way: who asks for little is served on."""
        most = next(connection for connection in self._connections if connection.memory is account)
        where = dpid_text(most.dpid) if most.dpid else "a switch without a datapath id yet"
        self._network.stranger(
            "memory",
            f"what switches sent, or do not read, takes {self.settings.max_memory_mib} MiB of memory, the limit; "
            f"{where}, from {most.address}, takes most of it ({account.held >> 20} MiB) and is disconnected",
            "look at that switch, or raise openflow.max_memory_mib",
        )
        most.close("it takes too much memory")

    def _of(self, connection: Connection) -> Session | None:
        session = self.sessions.get(connection.dpid)
        return session if session is not None and session.connection is connection else None

    # Of switches.

    async def _greet(self, connection: Connection) -> None:
        old = self.sessions.get(connection.dpid)
        if old is not None:
            if await _answers(old.connection):
                self._network.stranger(
                    f"twice {connection.dpid}",
                    f"a second switch with datapath id {dpid_text(connection.dpid)} connects, from "
                    f"{connection.address}; {old.name}, from {old.connection.address}, keeps it",
                    "give each switch a datapath id of its own (other-config:datapath-id)",
                )
                connection.close("another connected switch has its datapath id")
                return
            old.connection.close("the switch has connected anew")
            await asyncio.sleep(0)  # its end is told first
        session = self._greeting[connection] = Session(connection)
        try:
            await session.describe()
            await session.ask_role(messages.ROLE_NOCHANGE)
            await session.read_leases()
            if not connection.is_open or connection.dpid in self.sessions:
                connection.close("the switch has connected anew")
                return
            self.sessions[connection.dpid] = session
            if session.ports_refused:
                self._too_many_ports(session)
            log.info(
                "switch %s (%s): connected from %s, OpenFlow 1.%d, %d ports",
                session.name, dpid_text(session.dpid), connection.address, connection.version - 1, len(session.ports),
            )  # fmt: skip
            self._take_sides()
        except Exception as error:
            _give_up(connection, error)
        finally:
            del self._greeting[connection]
            if self._of(connection) is None:
                session.gone()

    async def _renewing(self) -> None:
        """Leases are renewed in time, whichever switch leaves whatever unanswered."""
        while True:
            await asyncio.sleep(self.settings.renew_s)
            for session in list(self.sessions.values()):
                if session.managed:
                    self._hold(session)

    async def _looking(self) -> None:
        """A round ends in time, too; a look that is still waited for then goes on beside the next ones."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._look.wait(), self.settings.renew_s)
            self._look.clear()
            try:
                for connection, session in [(one.connection, one) for one in self.sessions.values()]:
                    if connection not in self._looks:
                        self._looks[connection] = self._spawn(self._look_at(session))
                if self._looks:
                    await asyncio.wait(self._looks.values(), timeout=self.settings.renew_s)
                self._looks = {connection: task for connection, task in self._looks.items() if not task.done()}
                self._take_sides()
            except Exception:
                log.exception("a look at all switches failed; going on")

    async def _look_at(self, session: Session) -> None:
        try:
            if session.managed:
                await session.ask_role(messages.ROLE_NOCHANGE)
            await session.read_leases()
            if session.managed and session.role != messages.ROLE_MASTER and not senior(self.lease, session.leases):
                # A junior took it: before it knew of this one, or while this one stood still and kept no lease. It may
                # have changed the switch meanwhile.
                await self._master(session)
                await session.read()
                session.again()
        except Exception as error:
            _give_up(session.connection, error)

    def _hold(self, session: Session) -> None:
        session.connection.send(messages.add_flow(session.version, self.lease.entry(), self.settings.lease_s))

    def _take_sides(self) -> None:
        """Master where no senior holds a lease on any switch, else in standby; toward all switches alike."""
        found = [lease for session in self.sessions.values() for lease in session.leases]
        before = senior(self.lease, found)
        role = Role.NONE if not self.sessions else Role.STANDBY if before else Role.MASTER
        if role is not self.role:
            self.role = role
            why = f"controller {before.identity} is master" if before else "no other controller is master"
            self._network.role_changed(role, "no switch is connected" if role is Role.NONE else why)
        for session in list(self.sessions.values()):
            if role is Role.MASTER and not session.managed:
                self._spawn(self._manage(session, session.begin()))
            elif role is Role.STANDBY and session.managed:
                session.end()
                self._network.switch_released(session)
                self._spawn(self._stand_by(session, release=True))
            elif role is Role.STANDBY and session.role != messages.ROLE_SLAVE:
                self._spawn(self._stand_by(session, release=False))

    async def _stand_by(self, session: Session, release: bool) -> None:
        with contextlib.suppress(OSError, TimeoutError, ValueError):  # a look finds out who does not answer
            if release and not session.managed:
                await session.release(self.lease)
            await session.ask_role(messages.ROLE_NOCHANGE)
            if not session.managed:
                await session.ask_role(messages.ROLE_SLAVE, session.generation)

    async def _manage(self, session: Session, term: int) -> None:
        """Takes the role of master, reads what the switch has, and keeps it as it should be, for that term."""
        try:
            await self._master(session)
            self._hold(session)
            await session.read()
            if not session.is_in(term):
                return
            self._network.switch_ready(session)
            await session.run(term)
        except Gone:
            pass
        except Exception as error:
            _give_up(session.connection, error)

    async def _master(self, session: Session) -> None:
        for _ in range(3):
            try:
                await session.ask_role(messages.ROLE_MASTER, session.generation + 1)
                return
            except Gone:
                raise
            except OpenFlowError:  # stale: somebody else has asked since
                await session.ask_role(messages.ROLE_NOCHANGE)
        await session.ask_role(messages.ROLE_MASTER, session.generation + 1)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a task for the switches failed", exc_info=error)


def _give_up(connection: Connection, error: Exception) -> None:
    """Whatever one switch does is an end of its connection alone; it may connect anew."""
    if not isinstance(error, OSError | TimeoutError | ValueError):
        log.error("switch %s, from %s: unexpected", dpid_text(connection.dpid), connection.address, exc_info=error)
    connection.close(f"it does not answer as it should: {error or 'too late'}")


async def _answers(connection: Connection) -> bool:
    """Whether the connection is alive."""
    if not connection.is_open:
        return False
    try:
        await connection.request(messages.plain(connection.version, messages.BARRIER_REQUEST), ECHO_ANSWER_S)
    except (OSError, TimeoutError):
        return False
    return True
