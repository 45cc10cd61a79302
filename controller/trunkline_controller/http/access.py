"""Who is let in: a browser must have come here by a name of ours and not on behalf of somebody else's page, and where
there is a token, whoever asks about the network must know it. Pure: headers in, a refusal out. `tokens` has whose token
it is."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Headers = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Refusal:
    """Why a request is not answered: the HTTP status, what is wrong, the way out."""

    status: int
    what: str
    remedy: str


def refusal(headers: Headers, scheme: str, hosts: Iterable[str]) -> Refusal | None:
    """Guards against DNS rebinding and cross-site requests. `hosts` are names that this server goes by."""
    host = _single(headers, b"host")
    name = _host_name(host) if host is not None else None
    if name is None or not _is_ours(name, hosts):
        return Refusal(
            403,
            f"the Host header {host or ''!r} names another server",
            "ask by IP address or localhost, or add the name to http.hosts in the controller's configuration",
        )
    foreign = Refusal(
        403,
        "the request comes from another site's page",
        "use the controller's own page, or a program that sends no Origin header",
    )
    if _all(headers, b"origin") and _single(headers, b"origin") != f"{scheme}://{host}":
        return foreign
    site, mode, destination = (_single(headers, b"sec-fetch-" + word) for word in (b"site", b"mode", b"dest"))
    followed_link = mode == "navigate" and destination == "document"
    if site in {"cross-site", "same-site"} and not followed_link:
        return foreign
    return None


def bearer(headers: Headers) -> bytes | None:
    """The bearer token that the request carries."""
    given = _all(headers, b"authorization")
    if len(given) != 1:
        return None
    kind, _, secret = given[0].partition(b" ")
    return secret.strip() if kind.lower() == b"bearer" else None


def _all(headers: Headers, name: bytes) -> list[bytes]:
    return [value for key, value in headers if key == name]


def _single(headers: Headers, name: bytes) -> str | None:
    """The value of a header that came once."""
    values = _all(headers, name)
    return values[0].decode("latin-1") if len(values) == 1 else None


def _host_name(authority: str) -> str | None:
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::\d{1,5})?", authority)
    return (found.group(1) or found.group(2)) if found else None


def _is_ours(name: str, hosts: Iterable[str]) -> bool:
    """An address can't be rebound; a name can, unless it is known."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name.lower() == "localhost" or name.lower() in {host.lower() for host in hosts}
    return True
