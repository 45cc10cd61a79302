"""Which queue stragglers are lifted into: never one that the policy lacks, or that is worse."""

import pytest

from trunkline_controller.jobs import target as targets
from trunkline_controller.jobs.target import NoTarget, Target, runs_tasks, target
from trunkline_controller.policy import classify
from trunkline_controller.policy.file import parse
from trunkline_controller.policy.model import Lift, Policy, PortClass, Queue, Role, Rule, Share

NODES = {Role.NODEMANAGER: ("10.0.0.1",)}
RULES = (Rule("shuffle", "tcp", source_port=13562),)


def policy(shares, *, priorities=(4, 4), categories=None, roles=NODES, rules=RULES):
    """Queues q0 and lifted, each with what `shares` gives it by class of ports."""
    queues = {"q0": Queue("q0", 0, 0, priorities[0]), "lifted": Queue("lifted", 1, 10, priorities[1])}
    classes = {name: PortClass(name, 0, of) for name, of in shares.items()}
    return Policy("p", queues, classes, categories or {"shuffle": "q0"}, rules, roles, "q0")


BETTER = {"hosts": {"q0": Share(10, 100), "lifted": Share(50, 100)}}


def test_a_better_queue_is_the_target():
    assert target(policy(BETTER), "lifted") == Target("q0", "lifted")
    assert target(policy(BETTER, categories={"other": "q0"}), "lifted") == Target("q0", "lifted")


def test_a_queue_that_is_served_earlier_is_better():
    same = {"hosts": {"q0": Share(10, 100), "lifted": Share(10, 100)}}
    assert target(policy(same, priorities=(4, 1)), "lifted")


@pytest.mark.parametrize(
    ("shares", "priorities", "message"),
    [
        ({"hosts": {"q0": Share(10, 100), "lifted": Share(10, 100)}}, (4, 4), "same everywhere"),
        (BETTER, (4, 5), "priority is 5"),
        ({"hosts": {"q0": Share(10, 100), "lifted": Share(5, 100)}}, (4, 1), "its minimum is lower"),
        ({"hosts": {"q0": Share(10, 100), "lifted": Share(10, 50)}}, (4, 1), "its maximum is lower"),
        ({"hosts": {"q0": Share(10, 0), "lifted": Share(10, 50)}}, (4, 1), "its maximum is lower"),
        ({"hosts": {"q0": Share(0, 0, 10, 50), "lifted": Share(0, 0, 10, 40)}}, (4, 1), "its maximum is lower"),
        ({"hosts": {"q0": Share(10, 100), "lifted": Share(0, 0, 10, 40)}}, (4, 1), "percentage"),
        ({**BETTER, "switches": {"q0": Share(10, 100)}}, (4, 1), "class switches have no share"),
    ],
)
def test_a_queue_that_is_not_better_everywhere_is_refused(shares, priorities, message):
    with pytest.raises(NoTarget, match=message) as refused:
        target(policy(shares, priorities=priorities), "lifted")
    assert refused.value.remedy


def test_a_queue_that_the_policy_lacks_is_refused_and_those_it_has_are_named():
    with pytest.raises(NoTarget, match=r"no queue 'fast'.*lifted, q0"):
        target(policy(BETTER), "fast")


def test_without_a_policy_there_is_no_target():
    with pytest.raises(NoTarget, match="no policy is in force"):
        target(None, "lifted")


def test_shuffles_that_are_in_the_queue_already_need_no_lift():
    with pytest.raises(NoTarget, match="already"):
        target(policy(BETTER, categories={"shuffle": "lifted"}), "lifted")


def test_only_the_policys_nodemanagers_run_tasks():
    named = policy(
        BETTER, roles={Role.NODEMANAGER: ("10.0.0.1", "10.1.0.0/28", "fd00::/64"), Role.CLIENT: ("10.0.0.9",)}
    )
    for address in ("10.0.0.1", "10.1.0.15", "fd00::7"):
        assert runs_tasks(named, address)
    for address in ("10.0.0.9", "10.1.0.16", "10.0.0.2", "h1", "", "fd01::1"):
        assert not runs_tasks(named, address)


FILE = """\
queues:
  q0: { number: 0, dscp: 0 }
  lifted: { number: 1, dscp: 11, priority: 1 }
default: q0
roles:
  nodemanager: [10.0.0.0/24]
"""


def of_file(text):
    return parse(text, "p.yaml", lambda names: {})


def warned(text, wanted="lifted"):
    found = targets.warnings(of_file(text), wanted, "p.yaml")
    assert all(problem.remedy for problem in found)
    return [(problem.line, problem.what.removeprefix("dynamic control lifts nothing: ")) for problem in found]


def test_a_file_that_does_not_name_shuffle_has_it_in_the_default_queue_and_it_is_lifted_from_there():
    policy = of_file(FILE)
    assert target(policy, "lifted") == Target("q0", "lifted")
    assert warned(FILE) == []
    lifts = classify.entries(policy, [Lift("shuffle", "10.0.0.7", "lifted")]) - classify.entries(policy)
    assert {(entry.match.l4_src, entry.match.l4_dst) for entry in lifts} == {(13562, None), (None, 13562)}


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (FILE + "services:\n  shuffle: []\n", 7, "policy p tells no shuffles from other traffic"),
        (FILE + "categories:\n  shuffle: {queue: q0, match: []}\n", 8, "policy p tells no shuffles from other traffic"),
        (FILE[: FILE.index("roles")], 1, "policy p names no NodeManager, and no other host's flows are lifted"),
        (FILE + "categories: {shuffle: lifted}\n", 7, "policy p has shuffles in queue 'lifted' already"),
        (FILE.replace("priority: 1", "priority: 7"), 3, "its priority is 7, after 4"),
        (FILE.replace("lifted", "fast"), 1, "policy p has no queue 'lifted', the one that [dynamic] queue names"),
    ],
)
def test_a_policy_under_which_nothing_can_be_lifted_is_warned_of_with_its_line(text, line, what):
    ((at, said),) = warned(text)
    assert (at, what in said) == (line, True), (at, said)


def test_a_host_whose_shuffles_the_policy_does_not_tell_cannot_be_lifted():
    policy = of_file(FILE + "categories: {shuffle: {queue: q0, match: [{port: 13562, source: 10.0.0.0/28}]}}\n")
    assert classify.may_lift(policy, "shuffle", "10.0.0.1")
    assert not classify.may_lift(policy, "shuffle", "10.0.0.200")
    assert not classify.may_lift(policy, "shuffle", "fd00::1")
    assert not classify.entries(policy, [Lift("shuffle", "10.0.0.200", "lifted")]) - classify.entries(policy)
