"""What agents could not do is known for as long as it matters."""

from __future__ import annotations

import time

from trunkline_controller.controller import Controller, ControllerSettings
from trunkline_controller.net.topology import Dpid, PortNo
from trunkline_controller.queues.reports import Reports
from trunkline_controller.queues.wanted import PortQueues, PortReport, QueuesReport, QueuesWanted


def wanted(*names):
    return QueuesWanted(tuple(PortQueues(Dpid(1), PortNo(n), name, 10**9, 0, ()) for n, name in enumerate(names, 1)))


def report(**problems):
    return QueuesReport("rack1", "v", tuple(PortReport(Dpid(1), name, what) for name, what in problems.items()))


def said(reports, now):
    return {trouble.port: (trouble.since_s, trouble.problem) for trouble in reports.troubles(now)}


def test_a_problem_is_told_until_it_is_mended():
    reports, both = Reports(), wanted("a", "b")
    reports.take(report(a="no HTB", b="", stranger="x"), both, 1.0)
    assert said(reports, both) == {"a": (1.0, "no HTB")}
    reports.take(report(a="no u32", b="no HTB"), both, 2.0)
    assert said(reports, both) == {"a": (1.0, "no u32"), "b": (2.0, "no HTB")}
    reports.take(report(a=""), both, 3.0)
    assert said(reports, both) == {"b": (2.0, "no HTB")}


def test_a_problem_of_a_port_that_should_have_no_queues_any_more_is_over():
    reports, both = Reports(), wanted("a", "b")
    reports.take(report(a="no HTB", b="no HTB"), both, 1.0)
    assert said(reports, wanted("b")) == {"b": (1.0, "no HTB")}
    assert said(reports, both) == {"b": (1.0, "no HTB")}  # it would be reported again
    assert said(reports, QueuesWanted(())) == {}


def test_an_alert_of_an_agent_ends_when_its_port_should_have_no_queues_any_more(tmp_path):
    controller = Controller(ControllerSettings(tmp_path))
    try:
        planned = controller._queues._planned
        planned.wanted, planned._for = wanted("a"), (None, controller.topology())
        controller.queues_reported(report(a="no HTB"))
        controller._refresh()
        (alert,) = controller.status().alerts
        assert alert.what == "queues of port 0000000000000001/a: no HTB"
        assert "rack1" in alert.remedy
        assert alert.at_s <= time.time()
        planned.wanted = QueuesWanted(())  # as when the policy was cleared; no agent reports what it need not do
        controller._refresh()
        assert controller.status().alerts == ()
    finally:
        controller.stop()
