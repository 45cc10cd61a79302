"""The file that `mirror.agents` names: which agents there may be, each with its own token; a host's with its addresses.

[dn1]
token_file = "dn1.token"
addresses = ["10.0.0.3", "2001:db8:0:3::/64"]

[rack-1]
token_file = "rack-1.token"
bridge = true
"""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..refusal import SettingsError, token
from .agents import MAX_AGENTS

SETTING = "mirror.agents"
MAX_BYTES = 1 << 20
MAX_NETWORKS = 64  # of one agent
_NAME = re.compile(r"[A-Za-z0-9._-]{1,255}")
_KEYS = {"token_file", "addresses", "bridge"}

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class PermittedAgent:
    """An agent that there may be, and where. `bridge`: of a Linux bridge that mirrors, which claims no address."""

    name: str
    token: bytes = field(repr=False)
    networks: tuple[Network, ...]
    bridge: bool = False

    def foreign(self, addresses: Iterable[str]) -> list[str]:
        """Those that it may not claim, of addresses as `ipaddress` writes them."""
        return sorted(text for text in addresses if not self._may_claim(text))

    def _may_claim(self, text: str) -> bool:
        address = ipaddress.ip_address(text)
        return any(address in network for network in self.networks)


def load(path: Path) -> Mapping[str, PermittedAgent]:
    """By name; token files are named from the file's own folder. Raises SettingsError."""
    found: dict[str, PermittedAgent] = {}
    owners: dict[bytes, str] = {}
    for name, table in _document(path).items():
        if not _NAME.fullmatch(name):
            raise _wrong(path, f"{name!r} can't be an agent's name", "write letters, digits and .-_, as agent.name has")
        found[name] = agent = _agent(path, name, table)
        if (other := owners.setdefault(agent.token, name)) != name:
            raise _wrong(path, f"{name} has the same token as {other}", "give each agent a token of its own")
    if len(found) > MAX_AGENTS:
        raise _wrong(path, f"has {len(found)} agents", f"{MAX_AGENTS} are the most that a controller takes")
    return found


def _document(path: Path) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            octets = file.read(MAX_BYTES + 1)
        if len(octets) > MAX_BYTES:
            raise _wrong(path, f"is longer than {MAX_BYTES} bytes", "name the file of agents")
        return tomllib.loads(octets.decode())
    except OSError as error:
        raise _wrong(path, str(error.strerror), "name a file that this program can read") from None
    except UnicodeDecodeError:
        raise _wrong(path, "is not UTF-8", "save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise _wrong(path, f"is not TOML: {error}", "mend that place") from None


def _agent(path: Path, name: str, table: object) -> PermittedAgent:
    if not isinstance(table, dict):
        raise _wrong(path, f"{name} is not a table", f"write [{name}], with token_file and addresses under it")
    if unknown := table.keys() - _KEYS:
        raise _wrong(path, f"{name}.{min(unknown)} is no setting", "there are token_file, addresses and bridge")
    token_file, addresses, bridge = table.get("token_file"), table.get("addresses"), table.get("bridge", False)
    if not isinstance(token_file, str) or not token_file:
        raise _wrong(path, f"{name}.token_file is no path", 'name the file with its token, as "/path"')
    if not isinstance(bridge, bool):
        raise _wrong(path, f"{name}.bridge is neither true nor false", "write true for a bridge's, or leave it out")
    if bridge:
        if addresses is not None:
            raise _wrong(path, f"{name} has addresses, and is a bridge's", "leave out addresses, or bridge = true")
        return PermittedAgent(name, token(f"{SETTING}: {name}", path.parent / token_file), (), bridge=True)
    if not isinstance(addresses, list) or not 1 <= len(addresses) <= MAX_NETWORKS:
        remedy = f'write 1 to {MAX_NETWORKS} of them, as ["10.0.0.3", "2001:db8::/64"]'
        raise _wrong(path, f"{name}.addresses is no list of addresses", remedy)
    networks = tuple(_network(path, name, text) for text in addresses)
    return PermittedAgent(name, token(f"{SETTING}: {name}", path.parent / token_file), networks)


def _network(path: Path, name: str, text: object) -> Network:
    try:
        return ipaddress.ip_network(text if isinstance(text, str) else "")
    except ValueError:
        what = f"{name}.addresses: {text!r} is neither an IP address nor a network"
        raise _wrong(path, what, "write one, as 10.0.0.3 or 2001:db8::/64; a network has no bits of hosts") from None


def _wrong(path: Path, what: str, remedy: str) -> SettingsError:
    return SettingsError(SETTING, f"{path}: {what}", remedy)
