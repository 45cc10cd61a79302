"""What REST answers, as they were given, say of reducers."""

import contextlib
import copy
import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline_controller.jobs import answers
from trunkline_controller.jobs.hosts import Hosts
from trunkline_controller.jobs.lifting import Stragglers
from trunkline_controller.jobs.progress import JobProgress
from trunkline_controller.jobs.target import Target

DATA = Path(__file__).parent / "data" / "jobs"


def recorded(name):
    return (DATA / name).read_bytes()


def test_a_list_of_one_may_be_written_as_that_one():
    one = {"id": "application_1_1", "applicationType": "MAPREDUCE"}
    written = [json.dumps({"apps": {"app": app}}).encode() for app in (one, [one])]
    assert answers.applications(written[0]) == answers.applications(written[1])
    assert answers.applications(written[0])[0].job == "job_1_1"


def test_a_spark_task_that_runs_counts_its_blocks_under_whichever_name():
    """Task 18 runs and has fetched all its blocks, four from other hosts and two from its own."""
    (stage,) = answers.stages(recorded("spark-3.5.1-stages.json"))
    assert (stage.stageId, stage.attemptId, stage.shuffleReadBytes) == (3, 0, 462_777)
    job = answers.of_spark("sort", answers.spark_tasks(recorded("spark-3.5.1-task-list.json")))
    assert [(one.name, one.fetched, one.shuffling) for one in job.reducers] == [
        ("task 18.0", 1.0, False),
        ("task 19.0", 1.0, False),
        ("task 20.0", 1.0, False),
    ]
    assert {one.host for one in job.reducers} == {"192.0.2.2"}
    assert job.reducers[0].began_s == pytest.approx(1795449471.169)


def test_a_spark_task_that_has_fetched_half_is_half_way():
    listed = json.loads(recorded("spark-3.5.1-task-list.json"))
    pushed = listed[0]["taskMetrics"]["shuffleReadMetrics"]["shufflePushReadMetrics"]
    pushed["localMergedBlocksFetched"], pushed["remoteMergedChunksFetched"] = 2, 1
    job = answers.of_spark("sort", answers.spark_tasks(json.dumps(listed).encode()))
    assert (job.reducers[0].fetched, job.reducers[0].shuffling) == (0.5, True)


def test_a_spark_stage_that_reads_no_shuffle_has_no_reducers():
    listed = [
        {key: value for key, value in task.items() if key != "taskMetrics"}
        for task in json.loads(recorded("spark-3.5.1-task-list.json"))
    ]
    assert answers.of_spark("sort", answers.spark_tasks(json.dumps(listed).encode())).reducers == ()


@pytest.mark.parametrize("value", [-1, "6", 1.5, 10**30, None])
def test_a_spark_count_that_cannot_be_is_refused(value):
    listed = json.loads(recorded("spark-3.5.1-task-list.json"))
    listed[0]["taskMetrics"]["shuffleReadMetrics"]["remoteBlocksFetched"] = value
    with pytest.raises(ValueError, match="remoteBlocksFetched"):
        answers.spark_tasks(json.dumps(listed).encode())


def test_a_spark_launch_time_that_is_none_is_refused():
    listed = json.loads(recorded("spark-3.5.1-task-list.json"))
    listed[0]["launchTime"] = "yesterday"
    with pytest.raises(ValueError, match="yesterday"):
        answers.of_spark("sort", answers.spark_tasks(json.dumps(listed).encode()))


@pytest.mark.parametrize("digit", ["\N{ARABIC-INDIC DIGIT THREE}", "\N{FULLWIDTH DIGIT THREE}"])
def test_ids_are_of_the_digits_that_hadoop_writes(digit):
    with pytest.raises(ValueError, match="pattern"):
        answers.applications(json.dumps({"apps": {"app": [{"id": f"application_{digit}_1"}]}}).encode())


def counters(value):
    counted = [{"name": "REDUCE_SHUFFLE_BYTES", "value": value}]
    return {"jobTaskAttemptCounters": {"taskAttemptCounterGroup": [{"counter": counted}]}}


def test_a_count_of_bytes_beyond_javas_is_refused():
    """A job's own program says it; as a number for people it would not do."""
    assert answers.shuffled_bytes(json.dumps(counters(2**63 - 1)).encode()) == 2**63 - 1
    assert answers.shuffled_bytes(json.dumps(counters(-1)).encode()) is None
    for value in (2**63, 10**400):
        with pytest.raises(ValueError, match="value"):
            answers.shuffled_bytes(json.dumps(counters(value)).encode())


APPLICATIONS = {"apps": {"app": [{"id": "application_1_0001", "applicationType": "MAPREDUCE"}]}}
TASKS = {"tasks": {"task": [{"id": f"task_1_0001_r_{n}", "state": "RUNNING", "progress": 9.5} for n in range(2)]}}
ATTEMPT = {
    "state": "RUNNING", "progress": 5.0, "startTime": 1_795_449_471_169, "nodeHttpAddress": "10.0.0.4:8042",
}  # fmt: skip
ATTEMPTS = {"taskAttempts": {"taskAttempt": [{"id": f"attempt_1_0001_r_{n}_0"} | ATTEMPT for n in range(4)]}}
STAGES = json.loads(recorded("spark-3.5.1-stages.json"))
SPARK = json.loads(recorded("spark-3.5.1-task-list.json"))
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 200),
    st.sampled_from([2**53, 2**63, 2**64, 10**400, -(2**63)]),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["SUCCESS", "fd00::7%\x1b[2J:8042", "10.0.0.4:1", "1-1-1T1:1:1.1GMT", "\ud800", "h\n"]),
    st.just([]),
    st.just({}),
)


def places(value, path=()):
    """Of everything in a value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def altered(value):
    """The value as JSON, with other things at some of its places."""
    known = [path for path in places(value) if path]

    def put(changes):
        whole = copy.deepcopy(value)
        for path, new in changes:
            with contextlib.suppress(KeyError, IndexError, TypeError):  # what was around it is gone
                part = whole
                for key in path[:-1]:
                    part = part[key]
                part[path[-1]] = new
        return json.dumps(whole).encode()

    return st.lists(st.tuples(st.sampled_from(known), ODD), min_size=1, max_size=4).map(put)


@given(
    st.one_of(
        st.binary(max_size=60),
        *map(altered, (APPLICATIONS, TASKS, ATTEMPTS, counters(7), STAGES, SPARK)),
    )
)
@settings(max_examples=500)
def test_no_answer_gets_further_than_a_refusal_or_what_a_reducer_can_be(body):
    found = []
    for read in (answers.applications, answers.tasks, answers.stages, answers.shuffled_bytes):
        with contextlib.suppress(ValueError):
            read(body)
    with contextlib.suppress(ValueError):
        found.append(JobProgress("job", tuple(map(answers.of_attempt, answers.attempts(body)))))
    with contextlib.suppress(ValueError):
        found.append(answers.of_spark("stage", answers.spark_tasks(body)))
    machine = Stragglers()
    for progress in found:
        for reducer in progress.reducers:
            assert 0 <= reducer.fetched <= 1
            assert math.isfinite(reducer.began_s)
        machine.observe(0, progress)
    for decision in machine.step(0, 0, Target("q0", "lifted"), lambda name: next(iter(Hosts().addresses(name)), None)):
        assert decision.why.isprintable()
        assert decision.host.isprintable()


@given(st.one_of(st.text(max_size=40), st.sampled_from(["fd00::7%\x1b[2J", "[fe80::1%eth0]", "10.0.0.1", "::1"])))
def test_a_hosts_address_is_one_for_every_switch(name):
    for address in Hosts().addresses(name):
        assert set(address) <= set("0123456789abcdef:.")
