"""What hosts send to the controller by way of switches, and how much of it is looked at."""

from trunkline_controller.net.topology import Dpid, End, PortNo
from trunkline_controller.openflow.lldp import Lldp
from trunkline_controller.packets import LLDP_PER_PORT, Packets

AT, ORIGIN = End(Dpid(1), PortNo(2)), End(Dpid(2), PortNo(3))


class Discovery:
    """Keeps what was heard."""

    def __init__(self) -> None:
        self.heard: list[tuple[End, End]] = []

    def lldp_heard(self, at: End, origin: End, now: float) -> None:
        self.heard.append((at, origin))


def test_a_port_that_floods_lldp_is_looked_at_as_often_as_one_may():
    discovery = Discovery()
    packets = Packets(None, discovery, LLDP_PER_PORT, None)
    frame = packets._lldp.frame(ORIGIN, "02:00:00:00:00:01", 0.0)
    forged = Lldp().frame(ORIGIN, "02:00:00:00:00:01", 0.0)
    seen = [packets.taken_in(None, 0, AT, forged, 0.0) for _ in range(1000)]
    assert not any(seen) and not discovery.heard
    assert not packets.taken_in(None, 0, AT, frame, 0.0), "its share is spent"
    assert packets.taken_in(None, 0, End(Dpid(1), PortNo(9)), frame, 0.0), "other ports have theirs"
    assert packets.taken_in(None, 0, AT, frame, 1.0)
    assert len(discovery.heard) == 2


def test_links_are_found_however_few_packets_of_a_port_are_looked_at():
    discovery = Discovery()
    packets = Packets(None, discovery, 1, None)
    for tenth in range(100):
        now = tenth / 10
        assert packets.taken_in(None, 0, AT, packets._lldp.frame(ORIGIN, "02:00:00:00:00:01", now), now)
