"""Configuration of YARN, phases of jobs and the results page, without a daemon."""

import json
from xml.etree import ElementTree

import pytest

from trunkline_lab import jobs, workloads, yarn
from trunkline_lab.cluster import write_conf
from trunkline_lab.experiments import results_page
from trunkline_lab.net import data_center, topology_file
from trunkline_lab.net.topology import Roles, TopologyError

JOBS = topology_file.named("jobs")
LOG = """\
2026-11-21 19:40:01,100 INFO  mapreduce.Job: Running job: job_1_0001
2026-11-21 19:40:05,200 INFO  mapreduce.Job:  map 0% reduce 0%
2026-11-21 19:40:07,300 INFO  mapreduce.Job:  map 50% reduce 0%
2026-11-21 19:40:08,400 INFO  mapreduce.Job:  map 100% reduce 0%
2026-11-21 19:40:09,500 INFO  mapreduce.Job:  map 100% reduce 100%
"""


def site(path):
    return {p.findtext("name"): p for p in ElementTree.parse(path).getroot().iter("property")}


def test_each_property_stands_where_it_is_read_last(tmp_path):
    given = (
        "fs.defaultFS",
        "dfs.replication",
        "yarn.x",
        "mapreduce.x",
        "yarn.app.mapreduce.am.x",
        "trunkline.ndn.face",
    )
    write_conf(tmp_path, dict.fromkeys(given, "1"))
    assert set(site(tmp_path / "core-site.xml")) == {"fs.defaultFS", "trunkline.ndn.face"}
    assert set(site(tmp_path / "hdfs-site.xml")) == {"dfs.replication"}
    assert set(site(tmp_path / "mapred-site.xml")) == {"mapreduce.x", "yarn.app.mapreduce.am.x"}
    assert set(site(tmp_path / "yarn-site.xml")) == {"yarn.x"}


def test_a_job_cannot_bring_its_submitters_router(tmp_path):
    write_conf(tmp_path, {"trunkline.ndn.face": "tcp://10.0.0.1:6363", "fs.defaultFS": "hdfs://nn"})
    found = site(tmp_path / "core-site.xml")
    assert found["trunkline.ndn.face"].findtext("final") == "true"
    assert found["fs.defaultFS"].findtext("final") is None


def test_racks_are_written_as_hadoop_and_the_cache_analysis_read_them(tmp_path):
    properties = data_center.rack_properties(JOBS, tmp_path)
    lines = (tmp_path / "racks.txt").read_text().splitlines()
    assert properties["net.topology.table.file.name"] == str(tmp_path / "racks.txt")
    assert len(lines) == len(JOBS.hosts)
    assert f"{JOBS.address('h4')} /r2" in lines


def test_hosts_with_tasks_beside_a_datanode_have_a_forwarder():
    assert data_center.shared_hosts(JOBS) == ("h2", "h3", "h4", "h5", "h6", "h7")
    assert data_center.shared_hosts(topology_file.named("paper-fig5")) == ("h3",)


def test_a_disk_nine_tenths_full_is_good_enough_for_containers():
    place = data_center.yarn_place(JOBS)
    assert place is not None
    found = yarn.properties(place, [])
    # Asked once even where the checker is off: what is above it is no directory for containers.
    assert found["yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage"] == "100"


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        (Roles("h1", ("h2",), ("h1",), resourcemanager="h1"), "YARN needs a resourcemanager and nodemanagers"),
        (Roles("h1", ("h2",), ("h1",), nodemanagers=("h2",)), "YARN needs a resourcemanager and nodemanagers"),
        (Roles("h1", ("h2",), ("h1",), historyserver="h1"), "a historyserver needs both"),
        (Roles("h1", ("h2",), ("h1",), "h1", ("h9",)), "'h9' is no host"),
        (Roles(resourcemanager="h1", nodemanagers=("h2",)), "needs a namenode and datanodes"),
    ],
)
def test_roles_of_yarn_are_checked(roles, message):
    with pytest.raises(TopologyError, match=message):
        JOBS.with_roles(roles)


def test_phases_are_read_off_what_the_client_logs():
    assert jobs.phases_of("sort", LOG) == [
        jobs.Phase("sort map", "2026-11-21 19:40:05,200"),
        jobs.Phase("sort reduce", "2026-11-21 19:40:08,400"),
    ]
    assert jobs.phases_of("sort", "nothing") == []


def test_the_text_of_words_has_the_size_and_the_counts_it_says(tmp_path):
    counts = workloads._text(tmp_path / "text", 100_003)
    assert (tmp_path / "text").stat().st_size == 100_003
    assert sum(counts.values()) == len((tmp_path / "text").read_text().split())


def test_the_results_page_has_tables_plots_machine_and_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(results_page, "DIRECTORY", tmp_path)
    row = {"what": "x", "unit": "MB", "paper": 2.0, "tcp": 4.0, "ours": 1.0, "paper_tcp": None, "limit": None}
    document = {
        "experiment": "ndn-table2", "about": "about", "ok": True, "rows": [row], "took_s": 1.0, "faults": [],
        "notes": ["a note"], "plots": ["ndn-table2"], "machine": "2 x processor", "commit": "abc", "at": "now",
    }  # fmt: skip
    (tmp_path / "ndn-table2.json").write_text(json.dumps(document))
    (tmp_path / "ndn-cache-terasort.json").write_text(
        json.dumps({**document, "experiment": "ndn-cache-terasort", "jobs": ["TeraSort"], "plots": []})
    )
    (tmp_path / "ndn-table2-tiny.json").write_text(json.dumps({**document, "experiment": "ndn-table2-tiny"}))
    (tmp_path / "ndn-table2.svg").write_text("<svg/>")
    (tmp_path / "ndn-table2-tiny.svg").write_text("<svg/>")
    found = results_page.write(tmp_path / "docs" / "results.md")
    page = (tmp_path / "docs" / "results.md").read_text()
    assert "| x | MB | 2 | 4 | 1 |" in page
    assert "2 x processor; commit abc" in page
    assert "## ndn-cache-terasort" in page and "tiny" not in page
    assert "ndn-fig6" in found["missing"] and "ndn-cache" not in found["missing"]
    assert [p.name for p in (tmp_path / "docs" / "results").iterdir()] == ["ndn-table2.svg"]


def test_an_experiment_without_a_result_here_keeps_its_section_of_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(results_page, "DIRECTORY", tmp_path)
    document = {
        "experiment": "ndn-table2", "about": "of today", "ok": True, "rows": [], "took_s": 1.0, "faults": [],
        "notes": [], "plots": [], "machine": "2 x processor", "commit": "abc", "at": "now",
    }  # fmt: skip
    (tmp_path / "ndn-table2.json").write_text(json.dumps(document))
    page = tmp_path / "results.md"
    page.write_text(
        "# The papers' tables\n\n## ndn-table2\nof old.\n\n## ndn-fig6\na table.\n\n"
        "## ndn-cache\nwhole.\n\n## ndn-cache-terasort\none job.\n\n## gone\nx\n\nNot run yet: ndn-fig10.\n"
    )
    found = results_page.write(page)
    text = page.read_text()
    assert "of today" in text and "of old" not in text
    assert "## ndn-fig6\na table.\n\n## ndn-cache\nwhole.\n\n## ndn-cache-terasort\none job.\n" in text
    assert "gone" not in text and text.count("Not run yet") == 1
    assert found["kept"] == ["ndn-fig6", "ndn-cache"] and "ndn-fig10" in found["missing"]
    results_page.write(page)
    assert page.read_text() == text


def test_centres_must_hold_all_points_and_have_their_mean(tmp_path):
    count, mean = workloads._points(tmp_path / "points", 5_000)
    points = [[float(x) for x in line.split()] for line in (tmp_path / "points").read_text().splitlines()]
    assert len(points) == count
    halves = [points[: count // 2], points[count // 2 :]]
    lines = [
        json.dumps(
            {"identifier": "VL-1", "n": len(half), "c": [sum(column) / len(half) for column in zip(*half, strict=True)]}
        )
        for half in halves
    ]
    assert workloads._means("\n".join(lines), count, mean)
    assert not workloads._means(lines[0], count, mean)
    assert not workloads._means("\n".join(lines[:1] * 2), count, mean)
