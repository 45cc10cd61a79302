"""The `ports` of a policy file: classes of ports, and what each queue has of them."""

from __future__ import annotations

from collections.abc import Mapping

from .findings import Findings
from .model import PortClass, Queue, Share, Toward
from .tree import Node, shown
from .values import Rate, rate, rate_text

KEYS = ("toward", "ports", "glob", "rate", "queues")
LEAST_BIT_S = 16_000  # below this a packet of 1,500 bytes takes most of a second, and HTB in Open vSwitch rounds up
MAX_CLASSES = 64
MAX_GLOB = 100  # characters


def read(node: Node | None, queues: Mapping[str, Queue], findings: Findings) -> dict[str, PortClass]:
    """Classes by name; what is wrong is found, and left out."""
    classes: dict[str, PortClass] = {}
    given = findings.named(node, "ports", "hosts: { rate: 1gbit, queues: { … } }")
    if node is not None and len(given) > MAX_CLASSES:
        findings.wrong(node, f"there are {len(given)} port classes", f"{MAX_CLASSES} is the most")
    for name, key, value in given[:MAX_CLASSES]:
        found = _class(name, key, value, queues, findings)
        if found is None:
            continue
        twin = next((c for c in classes.values() if c.toward and c.toward == found.toward), None)
        if twin is not None:
            what = f"port class {name} is of ports toward {found.toward}, as {twin.name} at line {twin.line} is"
            findings.wrong(key, what, "name the ports of one of them (ports or glob)")
        classes[name] = found
    return classes


def _class(name: str, key: Node, value: Node, queues: Mapping[str, Queue], findings: Findings) -> PortClass | None:
    what = f"port class {shown(name)}"
    if value.pairs is None:
        findings.wrong(value, f"{what} is {value.kind()}", "write a mapping with rate and queues")
        return None
    fields = findings.fields(value, what, KEYS)
    toward, ports, glob = _which(name, key, what, fields, findings)
    port_rate = Rate()
    if (node := fields.get("rate")) is not None and not node.is_null and node.text != "auto":
        port_rate = findings.scalar(node, f"rate of {what}", lambda text: rate(text, percent=False)) or Rate()
        if 0 < port_rate.bit_s < LEAST_BIT_S:
            findings.wrong(node, f"rate of {what} is below {rate_text(LEAST_BIT_S)}", "give the port more")
    shares = _shares(what, fields.get("queues"), port_rate.bit_s, queues, findings)
    _sum(what, fields.get("queues") or key, port_rate.bit_s, shares, findings)
    return PortClass(name, port_rate.bit_s, shares, toward, ports, glob, key.line)


def _which(
    name: str, key: Node, what: str, fields: Mapping[str, Node], findings: Findings
) -> tuple[Toward | None, tuple[str, ...], str]:
    """Which ports: one of `toward`, `ports` and `glob`; classes called hosts and switches need none."""
    given = [k for k in ("toward", "ports", "glob") if k in fields]
    remedy = "give one of toward (hosts or switches), ports and glob"
    if len(given) > 1:
        findings.wrong(fields[given[1]], f"{what} has {' and '.join(given)}", remedy)
    if not given:
        if name in set(Toward):
            return Toward(name), (), ""
        findings.wrong(key, f"{what} does not say which ports it is of", remedy)
        return None, (), ""
    node = fields[given[0]]
    if given[0] == "toward":
        word = findings.one_of(node, f"toward of {what}", [str(t) for t in Toward])
        return Toward(word) if word else None, (), ""
    if given[0] == "ports":
        names = [findings.scalar(item, f"a port of {what}", _port_name) for item in findings.items(node)]
        if not names:
            findings.wrong(node, f"{what} names no port", "write names such as [s1/eth3]")
        return None, tuple(n for n in names if n), ""
    return None, (), findings.scalar(node, f"glob of {what}", _glob) or ""


def _port_name(text: str) -> str:
    if not 1 <= len(text) <= 255 or not text.isprintable() or text.count("/") > 1:
        raise ValueError("write the port's name, or <switch>/<port>")
    return text


def _glob(text: str) -> str:
    if not 1 <= len(text) <= MAX_GLOB or not text.isprintable():
        raise ValueError(f"write a pattern such as s1/eth* of at most {MAX_GLOB} characters")
    return text


def _shares(
    what: str, node: Node | None, port_bit_s: int, queues: Mapping[str, Queue], findings: Findings
) -> dict[str, Share]:
    """Each queue's share; a queue that is not mentioned has no minimum, and the port's rate as its maximum."""
    shares = {name: Share(0, port_bit_s, None, None if port_bit_s else 100.0) for name in queues}
    for name, key, value in findings.named(node, f"queues of {what}", "q0: { min: 10%, max: 100% }"):
        known = name in queues or findings.one_of(key, f"a queue of {what}", queues)
        share = _share(f"queue {shown(name)} of {what}", value, port_bit_s, findings)
        if known and share is not None:
            shares[name] = share
    return shares


def _share(what: str, node: Node, port_bit_s: int, findings: Findings) -> Share | None:
    if node.is_null:
        node = Node(node.line, pairs=())
    fields = findings.fields(node, what, ("min", "max"))
    given: dict[str, Rate] = {}
    for key in ("min", "max"):
        if key in fields:
            value = findings.scalar(fields[key], f"{key} of {what}", rate)
            if value is None:
                return None
            given[key] = value
    least, most = given.get("min", Rate()), given.get("max", Rate(percent=100.0))
    at = fields.get("max") or fields.get("min") or node
    if port_bit_s:
        share = Share(least.of(port_bit_s), most.of(port_bit_s))
        if share.min_bit_s > port_bit_s or ("max" in fields and share.max_bit_s > port_bit_s):
            findings.wrong(at, f"{what} has more than the port's {rate_text(port_bit_s)}", "give it less")
        elif share.max_bit_s < LEAST_BIT_S:
            findings.wrong(at, f"max of {what} is below {rate_text(LEAST_BIT_S)}", "give it more")
    else:
        share = Share(least.bit_s, most.bit_s, least.percent, most.percent)
        if most.percent is not None and most.percent == 0:
            findings.wrong(at, f"max of {what} is 0%", "give it more")
        elif most.percent is None and most.bit_s < LEAST_BIT_S:
            findings.wrong(at, f"max of {what} is below {rate_text(LEAST_BIT_S)}", "give it more")
    if _below(share, port_bit_s):
        findings.wrong(at, f"max of {what} is less than its min", "raise max or lower min")
    return share


def _below(share: Share, port_bit_s: int) -> bool:
    """Whether max is less than min, as far as the file alone tells."""
    if port_bit_s:
        return share.max_bit_s < share.min_bit_s
    if share.min_percent is not None and share.max_percent is not None:
        return share.max_percent < share.min_percent
    return share.min_percent is None and share.max_percent is None and share.max_bit_s < share.min_bit_s


def _sum(what: str, at: Node, port_bit_s: int, shares: Mapping[str, Share], findings: Findings) -> None:
    if port_bit_s:
        total = sum(share.min_bit_s for share in shares.values())
        if total > port_bit_s:
            sums = f"minimum rates of {what} sum to {rate_text(total)}, above the port's {rate_text(port_bit_s)}"
            findings.wrong(at, sums, "lower some of them")
        return
    percent = sum(share.min_percent or 0 for share in shares.values())
    if percent > 100:
        findings.wrong(at, f"minimum rates of {what} sum to {percent:g}%", "lower some of them")
