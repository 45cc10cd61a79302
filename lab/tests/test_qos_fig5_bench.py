"""How `qos-fig5` runs and checks one Sort, with a controller and jobs that only tell what they were asked."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from trunkline_lab import history, sort_jobs
from trunkline_lab.experiments import qos_fig5
from trunkline_lab.experiments.qos_conditions import ALONE, CONTROLLED, LIFTED, Seen
from trunkline_lab.experiments.result import Result
from trunkline_lab.history import Shuffle
from trunkline_lab.net import topology_file

DECISIONS = [{"to_queue": "q0"}, {"to_queue": "q1"}]  # newest first, as the controller tells them


class Controller:
    """Notes what it is asked for; its queues take effect at once."""

    def __init__(self):
        self.did, self.sent = [], 0

    def restart(self, settings):
        self.did.append(("restart", settings))

    def apply(self, text):
        self.did.append(("apply", text))

    def clear(self):
        self.did.append(("clear",))

    def modes(self):
        return ["dscp"]

    def decisions(self):
        return list(DECISIONS)

    def queues(self):
        self.sent += 25_000_000
        at = {"dpid": "1", "port": 1}
        return [{"at": at, "number": 1, "sent_bytes": self.sent, "max_bit_s": 200_000_000, "categories": ["shuffle"]}]


class Trace:
    """A link half busy."""

    def __init__(self, *_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def use(self):
        return {("s1", "s2"): [(1.0, 95.0), (2.0, 10.0)]}

    def processors_use(self):
        return 40.0


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """A bench whose Sorts are told by `bench.found`, and whose shuffles by `bench.shuffles`."""
    controller = Controller()
    cluster = SimpleNamespace(directory=tmp_path)
    center = SimpleNamespace(controller=controller, fabric=None, stage=None)
    made = qos_fig5.Bench(
        SimpleNamespace(center=center, cluster=cluster, topology=topology_file.named("qos-fig5")), Result("t", "")
    )
    made.found = sort_jobs.Sorted(2.0, "job_1_0001", 1000, [])
    made.shuffles = [Shuffle("r1", "h2", 5.0), Shuffle("r2", "h4", 30.0)]
    made.crossed, made.properties = [], []

    def sort(_jobs, _source, _target, _reduces, properties):
        made.properties.append(properties)
        return made.found

    @contextmanager
    def crossing(hosts):
        made.crossed.append(hosts)
        yield

    monkeypatch.setattr(sort_jobs, "sort", sort)
    monkeypatch.setattr(sort_jobs, "validate", lambda *_: (7.0, ["SortValidator did not say so"]))
    monkeypatch.setattr(history, "shuffles", lambda *_: made.shuffles)
    monkeypatch.setattr(qos_fig5, "LinkTrace", Trace)
    monkeypatch.setattr(made, "_cross_traffic", crossing)
    made._jobs.shell = lambda *_: None
    return made


def test_a_sort_is_measured_under_its_policy_and_the_policy_ends(bench):
    seen = Seen()
    bench.sort(400.0, LIFTED, seen, validated=False)
    assert [did[0] for did in bench._controller.did] == ["apply", "clear"]
    assert bench.crossed == [("h8", "h9")]
    assert (seen.seconds, seen.processors, seen.fullest, seen.queues) == ([2.0], [40.0], [50.0], [50.0])
    assert not seen.shuffles
    assert not bench._result.faults
    assert bench._result.detail["modes"] == {"3": ["dscp"]}


def test_with_control_decisions_and_the_stragglers_shuffle_are_kept(bench):
    seen = Seen()
    bench.sort(400.0, CONTROLLED, seen, validated=False)
    assert [did[0] for did in bench._controller.did] == ["restart", "apply", "clear", "restart"]
    assert bench._controller.did[0][1]["dynamic"]["enabled"]
    assert bench._controller.did[-1][1] == {}
    assert seen.decisions == [[{"to_queue": "q1"}, {"to_queue": "q0"}]]
    assert (seen.lifted("q1"), seen.shuffles) == (1, [30.0])
    assert bench.properties[0]["mapreduce.task.progress-report.interval"] == "1000"
    bench.shuffles.pop()
    bench.sort(400.0, CONTROLLED, seen, validated=False)
    assert bench._result.faults == [f"400 MB, {CONTROLLED.about}: no reducer ran on h4"]


def test_what_is_wrong_with_an_output_is_a_fault_under_its_condition(bench):
    bench.sort(400.0, ALONE, Seen(), validated=True)
    assert bench._result.faults == [f"400 MB, {ALONE.about}: SortValidator did not say so"]
    bench._result.faults.clear()
    bench.found = sort_jobs.Sorted(2.0, "job_1_0002", 999, ["Sort read 2 records and wrote 1"])
    bench.sort(400.0, LIFTED, Seen(), validated=False)
    assert bench._result.faults == [
        f"400 MB, {LIFTED.about}: Sort read 2 records and wrote 1",
        f"400 MB, {LIFTED.about}: Sort's output has 999 bytes, the first one's 1000",
    ]
    bench._result.faults.clear()
    bench.sort(40.0, LIFTED, Seen(), validated=False)
    assert bench._result.faults == [f"40 MB, {LIFTED.about}: Sort read 2 records and wrote 1"]
