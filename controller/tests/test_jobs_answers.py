"""What REST answers, as they were given, say of reducers."""

import json
from pathlib import Path

import pytest

from trunkline_controller.jobs import answers

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
