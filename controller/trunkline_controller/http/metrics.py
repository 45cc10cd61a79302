"""What Prometheus scrapes: the controller's state in counters and gauges, read when it is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client import Counter as PrometheusCounter
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import Scope

from ..control import Control, QueueMode
from ..net.topology import dpid_text

ROLES = ("master", "standby", "none")


class Requests:
    """Counts the server's answers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._answers = PrometheusCounter(
            "trunkline_http_requests",
            "HTTP requests answered",
            ("method", "path", "status"),
            registry=registry,
        )

    def count(self, scope: Scope, status: int) -> None:
        """Counts an answer. Paths are those of routes, so that strangers can't make more of them."""
        path = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in {"GET", "HEAD", "PUT", "POST", "DELETE"} else "other"
        self._answers.labels(method, path, str(status)).inc()


class NetworkCollector(Collector):
    """Reads the controller's snapshots at each scrape."""

    def __init__(self, control: Control) -> None:
        self._control = control

    def collect(self) -> Iterator[Metric]:
        yield from self._status()
        yield from self._policy()
        yield from self._ports()
        yield from self._queues()
        yield from self._flows()

    def _status(self) -> Iterator[Metric]:
        status = self._control.status()
        role = GaugeMetricFamily("trunkline_controller_role", "1 at the OpenFlow role held", labels=["role"])
        for name in ROLES:
            role.add_metric([name], float(status.role == name))
        yield role
        gauges = {
            "trunkline_controller_start_time_seconds": ("When the controller started, Unix time", status.started_s),
            "trunkline_controller_converged": ("1 if every connected switch has what it should", status.converged),
            "trunkline_controller_switches": ("Connected switches", status.switches),
            "trunkline_controller_links": ("Links between switches", status.links),
            "trunkline_controller_hosts": ("Hosts seen", status.hosts),
            "trunkline_controller_alerts": ("Things that an operator should mend", len(status.alerts)),
            "trunkline_dynamic_enabled": ("1 if dynamic control is on", status.dynamic),
        }
        for name, (says, value) in gauges.items():
            yield GaugeMetricFamily(name, says, value=float(value))
        yield CounterMetricFamily(
            "trunkline_dynamic_decisions", "Decisions of dynamic control", value=float(status.decisions)
        )

    def _policy(self) -> Iterator[Metric]:
        found = self._control.policy()
        yield GaugeMetricFamily(
            "trunkline_policy_version",
            "Version of the policy in force, 0 if none",
            value=found[1].version if found else 0,
        )
        if found:
            yield GaugeMetricFamily(
                "trunkline_policy_applied_time_seconds", "When it was put in force, Unix time", value=found[1].at_s
            )

    def _ports(self) -> Iterator[Metric]:
        labels = ["switch", "port"]
        sent = CounterMetricFamily("trunkline_port_sent_bytes", "Bytes that a port sent", labels=labels)
        received = CounterMetricFamily("trunkline_port_received_bytes", "Bytes that a port received", labels=labels)
        dropped = CounterMetricFamily("trunkline_port_dropped_packets", "Packets dropped at sending", labels=labels)
        rate = GaugeMetricFamily(
            "trunkline_port_capacity_bytes_per_second", "What a port may send, where it is known", labels=labels
        )
        for load in self._control.loads():
            port = [dpid_text(load.end.dpid), str(load.end.port)]
            sent.add_metric(port, load.sent_bytes)
            received.add_metric(port, load.received_bytes)
            dropped.add_metric(port, load.dropped_packets)
            if load.rate_bit_s > 0:
                rate.add_metric(port, load.rate_bit_s / 8)
        yield from (sent, received, dropped, rate)

    def _queues(self) -> Iterator[Metric]:
        labels = ["switch", "port", "queue"]
        sent = CounterMetricFamily("trunkline_queue_sent_bytes", "Bytes that a queue sent", labels=labels)
        dropped = CounterMetricFamily("trunkline_queue_dropped_packets", "Packets that a queue dropped", labels=labels)
        least = GaugeMetricFamily(
            "trunkline_queue_min_bytes_per_second", "What a queue is promised of its port", labels=labels
        )
        most = GaugeMetricFamily("trunkline_queue_max_bytes_per_second", "What a queue may take", labels=labels)
        modes: Counter[QueueMode] = Counter()
        for state in self._control.queues():
            queue = [dpid_text(state.end.dpid), str(state.end.port), state.queue]
            sent.add_metric(queue, state.sent_bytes)
            dropped.add_metric(queue, state.dropped_packets)
            least.add_metric(queue, state.min_bit_s / 8)
            most.add_metric(queue, state.max_bit_s / 8)
            modes[state.mode] += 1
        mode = GaugeMetricFamily(
            "trunkline_queues", "Queues of ports by how they take effect, as the probe found it", labels=["mode"]
        )
        for each in QueueMode:
            mode.add_metric([each.value], modes[each])
        yield from (sent, dropped, least, most, mode)

    def _flows(self) -> Iterator[Metric]:
        entries = GaugeMetricFamily(
            "trunkline_flow_entries", "Flow entries of the controller's on a switch", labels=["switch", "owner"]
        )
        octets = GaugeMetricFamily(
            "trunkline_category_bytes",
            "Bytes that a switch's present flow entries counted for a category",
            labels=["switch", "category"],
        )
        for totals in self._control.flow_totals():
            switch = dpid_text(totals.dpid)
            for name, count in sorted(totals.entries.items()):
                entries.add_metric([switch, name], count)
            for name, count in sorted(totals.category_bytes.items()):
                octets.add_metric([switch, name], count)
        yield from (entries, octets)
