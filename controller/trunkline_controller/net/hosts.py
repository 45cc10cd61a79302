"""Which host is where, and which addresses it has, from what hosts say; none may take what another one has.

Who is known first keeps its place and its addresses. Where another port or host claims them, and nothing tells that
they are free (the old port is down, say), the holder is asked, by ARP or neighbour solicitation: if it answers, it
keeps them and an alarm names both; if it does not, the claimant has them. What is remembered is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from .alarms import Alarms
from .frames import link_local
from .limits import Limits
from .topology import End, Host, Mac

REFUSED_S = 10.0  # after a lost claim; the holder is not asked again before
CONFLICT_KEPT_S = 60.0  # an alarm stands for so long after the last claim


EVERYBODY = Mac("ff:ff:ff:ff:ff:ff")
MAX_SOUGHT = 256


@dataclass(frozen=True)
class Probe:
    """To be asked of a host, or of everybody at a port: whether it is there, and has this address."""

    mac: Mac
    address: str
    at: End


@dataclass
class _Known:
    mac: Mac
    at: End
    placed: float  # since when it is there
    seen: float
    addresses: dict[str, float] = field(default_factory=dict)  # and when last seen
    value: Host | None = None  # as others see it; made when it is asked for

    def host(self) -> Host:
        if self.value is None:
            self.value = Host(self.mac, self.at, tuple(sorted(self.addresses)))
        return self.value


@dataclass
class _Claim:
    """Somebody says to have what another one has; None at `at`: nobody does, but the holder was silent for long."""

    holder: Mac
    claimant: Mac
    at: End | None
    decided_at: float


class HostTable:
    """`usable(end)`: hosts can be at this port. `connected(end)`: its switch can be told to ask them. `name(end)`: the
    port's name for people.
    """

    def __init__(
        self,
        limits: Limits,
        alarms: Alarms,
        usable: Callable[[End], bool],
        connected: Callable[[End], bool],
        name: Callable[[End], str],
    ) -> None:
        self._limits = limits
        self._alarms = alarms
        self._usable = usable
        self._connected = connected
        self._name = name
        self._hosts: dict[Mac, _Known] = {}
        self._at: dict[End, set[Mac]] = {}
        self._holder: dict[str, Mac] = {}  # by address
        self._claims: dict[str, _Claim] = {}  # by MAC or address; each is held by somebody, so there are not more
        self._refused: dict[str, float] = {}  # until when
        self._next_aging = 0.0
        self._taken: list[tuple[str, Mac]] = []
        self.changes = 0  # grows with each change

    def __len__(self) -> int:
        return len(self._hosts)

    def hosts(self) -> dict[Mac, Host]:
        return {mac: known.host() for mac, known in self._hosts.items()}

    def at(self, end: End) -> frozenset[Mac]:
        return frozenset(self._at.get(end, ()))

    def placed(self, end: End) -> list[float]:
        """Since when hosts are known at a port."""
        return [self._hosts[mac].placed for mac in self._at.get(end, ())]

    def holder(self, address: str) -> Host | None:
        mac = self._holder.get(address)
        return self._hosts[mac].host() if mac is not None else None

    def host(self, mac: Mac) -> Host | None:
        known = self._hosts.get(mac)
        return known.host() if known else None

    def seen(self, at: End, mac: Mac, address: str | None, now: float) -> list[Probe]:
        """A packet of a host came in at a port toward hosts."""
        known = self._hosts.get(mac)
        if known is None:
            if (known := self._add(at, mac, now)) is None:
                return []
        elif known.at != at:
            if self._usable(known.at):
                return self._claim(str(mac), known, mac, at, now, address=address)
            self._place(known, at, now)
        known.seen = now
        self._answered(str(mac), known, now)
        return self._address(known, address, now) if address else []

    def remembered(self, at: End, mac: Mac, now: float) -> None:
        """A switch still forwards to a host from before this controller's start."""
        if mac not in self._hosts:
            self._add(at, mac, now)

    def gone(self, end: End) -> None:
        """Another switch is at this port, so no host is."""
        for mac in list(self._at.get(end, ())):
            self._forget(self._hosts[mac])

    def taken(self) -> list[tuple[str, Mac]]:
        """Addresses that went from one host to another since the last call, and to whom."""
        taken, self._taken = self._taken, []
        return taken

    def sought(self, ends: Iterable[End]) -> list[Probe]:
        """Hosts whose port is gone may be at one of these, and say nothing by themselves: they are asked for there."""
        lost = [
            address
            for end, macs in self._at.items()
            if not self._usable(end)
            for mac in macs
            for address in list(self._hosts[mac].addresses)[:1]
        ]
        return [Probe(EVERYBODY, address, end) for end in ends for address in lost[:MAX_SOUGHT]][:MAX_SOUGHT]

    def tick(self, now: float) -> list[Probe]:
        """Decides claims that nobody answered; asks hosts that were silent for long."""
        for key, claim in list(self._claims.items()):
            if claim.decided_at <= now:
                del self._claims[key]
                self._decide(key, claim, now)
        self._refused = {key: until for key, until in self._refused.items() if until > now}
        if now < self._next_aging:
            return []
        self._next_aging = now + min(10.0, self._limits.host_timeout_s / 4)
        probes = []
        for known in [k for k in self._hosts.values() if now - k.seen > self._limits.host_timeout_s]:
            if known.addresses and self._usable(known.at):
                probes += self._claim(str(known.mac), known, known.mac, None, now)
            else:
                self._forget(known)
        return probes

    def _add(self, at: End, mac: Mac, now: float) -> _Known | None:
        if len(self._hosts) >= self._limits.max_hosts:
            self._alarms.sound(
                "hosts",
                f"{self._limits.max_hosts} hosts are known, the limit; further ones are not learned",
                "raise max_hosts, or find who makes up addresses",
                now,
                CONFLICT_KEPT_S,
            )
            return None
        if len(self._at.get(at, ())) >= self._limits.max_hosts_per_port:
            self._alarms.sound(
                f"hosts at {at}",
                f"{self._limits.max_hosts_per_port} hosts are known at port {self._name(at)}, the limit; further ones "
                "are not learned",
                "raise max_hosts_per_port, or find who makes up addresses there",
                now,
                CONFLICT_KEPT_S,
                of_hosts=True,
            )
            return None
        known = _Known(mac, at, now, now)
        self._hosts[mac] = known
        self._at.setdefault(at, set()).add(mac)
        self.changes += 1
        return known

    def _place(self, known: _Known, at: End, now: float) -> None:
        self._at[known.at].discard(known.mac)
        if not self._at[known.at]:
            del self._at[known.at]
        known.at, known.placed, known.value = at, now, None
        self._at.setdefault(at, set()).add(known.mac)
        self.changes += 1

    def _forget(self, known: _Known) -> None:
        for address in known.addresses:
            del self._holder[address]
        del self._hosts[known.mac]
        self._at[known.at].discard(known.mac)
        if not self._at[known.at]:
            del self._at[known.at]
        self._claims = {key: claim for key, claim in self._claims.items() if claim.holder != known.mac}
        self.changes += 1

    def _address(self, known: _Known, address: str, now: float) -> list[Probe]:
        holder = self._holder.get(address)
        if holder == known.mac:
            known.addresses[address] = now
            self._answered(address, known, now)
        elif holder is None:
            if len(known.addresses) >= self._limits.max_addresses_per_host:
                self._alarms.sound(
                    f"addresses of {known.mac}",
                    f"host {known.mac} at port {self._name(known.at)} has {len(known.addresses)} addresses, the limit; "
                    "further ones are not learned",
                    "raise max_addresses_per_host, or find out why it claims so many",
                    now,
                    CONFLICT_KEPT_S,
                    of_hosts=True,
                )
                return []
            self._give(address, known, now)
        elif self._usable(self._hosts[holder].at):
            return self._claim(address, self._hosts[holder], known.mac, known.at, now)
        else:
            self._take(address, now, known)
        return []

    def _give(self, address: str, known: _Known, now: float) -> None:
        self._holder[address] = known.mac
        known.addresses[address] = now
        known.value = None
        self.changes += 1

    def _take(self, address: str, now: float, known: _Known) -> None:
        holder = self._hosts[self._holder.pop(address)]
        del holder.addresses[address]
        holder.value = None
        if len(known.addresses) < self._limits.max_addresses_per_host:
            self._give(address, known, now)
            self._taken = [*self._taken[-MAX_SOUGHT:], (address, known.mac)]

    def _claim(
        self, key: str, holder: _Known, claimant: Mac, at: End | None, now: float, *, address: str | None = None
    ) -> list[Probe]:
        """`key`, a MAC or an address, is the holder's; somebody else claims it. Whom to ask, if anybody.

        `address` is the claimant's: a holder of the same MAC that none is known of has it, too, if it is the same host.
        Else it may be made up, so the holder is asked for one that most hosts have besides.
        """
        if key in self._refused and at is not None:
            self._conflict(key, holder, claimant, at, now)
        if key in self._claims or key in self._refused:
            return []
        address = key if key in holder.addresses else next(iter(holder.addresses), address)
        if address is None or not self._connected(holder.at):  # it can't be asked, so it keeps what it has
            if at is not None:
                self._refused[key] = now + REFUSED_S
                self._conflict(key, holder, claimant, at, now)
            return []
        self._claims[key] = _Claim(holder.mac, claimant, at, now + self._limits.probe_wait_s)
        asked = [Probe(holder.mac, address, holder.at)]
        if not holder.addresses:
            asked.append(Probe(holder.mac, str(link_local(holder.mac)), holder.at))
        return asked

    def _answered(self, key: str, holder: _Known, now: float) -> None:
        """The holder of what is claimed has shown itself."""
        claim = self._claims.pop(key, None)
        if claim is not None and claim.at is not None:
            self._refused[key] = now + REFUSED_S
            self._conflict(key, holder, claim.claimant, claim.at, now)

    def _decide(self, key: str, claim: _Claim, now: float) -> None:
        holder = self._hosts.get(claim.holder)
        if holder is None:
            return
        if claim.at is None:
            self._forget(holder)
        elif key == str(claim.holder):
            self._place(holder, claim.at, now)
            holder.seen = now
        elif (known := self._hosts.get(claim.claimant)) is not None and self._holder.get(key) == claim.holder:
            self._take(key, now, known)

    def _conflict(self, key: str, holder: _Known, claimant: Mac, at: End, now: float) -> None:
        if key == str(holder.mac):
            what = f"two hosts with MAC address {key}: at port {self._name(holder.at)} and at port {self._name(at)}"
        else:
            what = (
                f"two hosts with address {key}: {holder.mac} at port {self._name(holder.at)} and {claimant} at port "
                f"{self._name(at)}"
            )
        what += f"; the one at {self._name(holder.at)} keeps it"
        remedy = "give one of them another address, or disconnect it"
        self._alarms.sound(f"conflict {key}", what, remedy, now, CONFLICT_KEPT_S, of_hosts=True)
