"""What Prometheus scrapes of mirrored pipelines, read when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from ..control import MirrorControl


class MirrorCollector(Collector):
    """Reads the controller's counts at each scrape."""

    def __init__(self, control: MirrorControl) -> None:
        self._control = control

    def collect(self) -> Iterator[Metric]:
        counts = self._control.mirror_counts()
        yield GaugeMetricFamily("trunkline_mirror_enabled", "1 if writes are mirrored", value=float(counts.enabled))
        pipelines = GaugeMetricFamily("trunkline_mirror_pipelines", "Pipelines announced by state", labels=["state"])
        for state, count in counts.by_state.items():
            pipelines.add_metric([state], count)
        yield pipelines
        yield GaugeMetricFamily("trunkline_mirror_agents", "Agents at DataNodes' hosts", value=float(counts.agents))
        yield GaugeMetricFamily(
            "trunkline_mirror_bridges", "Bridges that mirror", value=float(len(self._control.mirror_bridges()))
        )
        for name, says, count in (
            ("armed", "Pipelines that all switches had confirmed", counts.armed),
            ("closed", "Pipelines that were closed by their owners", counts.closed),
            ("superseded", "Pipelines that a newer generation or connection took the place of", counts.superseded),
            ("swept", "Pipelines that were removed as nobody renewed them", counts.swept),
            ("late", "Announcements that waited in vain for a pipeline with all its hops to be armed", counts.late),
        ):
            yield CounterMetricFamily(f"trunkline_mirror_{name}", says, value=float(count))
        refused = CounterMetricFamily(
            "trunkline_mirror_refused", "Announcements and pipelines that are not mirrored", labels=["reason"]
        )
        for why, count in sorted(counts.refused.items()):
            refused.add_metric([why], count)
        yield refused
        yield HistogramMetricFamily(
            "trunkline_mirror_arm_seconds",
            "From a pipeline's last hop until all switches had confirmed",
            buckets=list(counts.arm_times),
            sum_value=counts.arm_sum_s,
        )
