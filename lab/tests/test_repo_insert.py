"""The experiments of the repository paper: what their rows compare, and what they call a fault."""

import pytest

from trunkline_lab.experiments import repo_fig3, repo_insert, repo_table3
from trunkline_lab.experiments.repo_insert import Inserted
from trunkline_lab.experiments.result import Result, render
from trunkline_lab.repo_bench import Ran, run

GOOD = Inserted(
    1000,
    put=Ran(0.5, 20_000_000, 0.9, ""),
    copy=Ran(0.4, 1_000_000, 0.3, ""),
    mount=Ran(2.0, 30_000_000, 1.5, ""),
)


def test_the_papers_percent_become_seconds_and_bytes():
    cpu, time, memory = repo_table3.rows(GOOD)
    assert (cpu.paper, cpu.paper_tcp) == (63.0, 100.0)
    assert cpu.ours == pytest.approx(180) and cpu.tcp == pytest.approx(75)
    assert (time.paper, time.paper_tcp) == (pytest.approx(39.8 * 0.63), pytest.approx(2215.4))
    assert (cpu.mount, time.mount, memory.mount) == (pytest.approx(75), 1.5, 30)
    assert (memory.paper, memory.paper_tcp, memory.ours) == (pytest.approx(14), pytest.approx(10_780), 20)


def test_a_table_says_what_its_columns_are():
    result = Result("repo-fig3", "time", [repo_fig3.row(GOOD)], headings=repo_insert.HEADINGS)
    text = render(result.document())
    assert all(heading in text for heading in repo_insert.HEADINGS.values())
    assert "paper's NDN" not in text


def test_where_nothing_can_be_mounted_there_is_no_column_for_it():
    unmounted = Inserted(1000, GOOD.put, GOOD.copy)
    rows = [repo_fig3.row(unmounted), *repo_table3.rows(unmounted)]
    text = render(Result("repo-fig3", "time", rows, headings=repo_insert.HEADINGS).document())
    assert repo_insert.HEADINGS["ours"] in text and repo_insert.HEADINGS["mount"] not in text


def test_sizes_without_a_number_in_the_paper_have_none_in_the_table_or_the_plot():
    large = Inserted(3000, GOOD.put, GOOD.copy, GOOD.mount)
    row = repo_fig3.row(large)
    assert (row.what, row.paper, row.paper_tcp, row.ours, row.mount) == ("3 GB", None, None, 0.5, 2.0)
    assert [line.label for line in repo_fig3.plot("p", "t", [large]).lines] == [
        "ext4: cp and fsync",
        "trunkline repo put",
        "cp and fsync into trunkline mount",
    ]


def test_to_be_slower_than_the_paper_is_a_fault():
    result = Result("repo-fig3", "time")
    repo_insert.slower(GOOD, result)
    assert result.faults == []
    repo_insert.slower(Inserted(1000, Ran(40.0, 1, 1.0, ""), GOOD.copy, Ran(41.0, 1, 1.0, "")), result)
    assert result.faults == [
        "1 GB, repo put: 40.0 s, NDNFS had 39.8 s",
        "1 GB, mount: 41.0 s, NDNFS had 39.8 s",
    ]


def test_to_need_more_memory_than_a_repository_may_is_a_fault():
    result = Result("repo-table3", "memory")
    repo_insert.larger(GOOD, result)
    assert result.faults == []
    repo_insert.larger(Inserted(1000, GOOD.put, GOOD.copy, Ran(1.0, 80 << 20, 1.0, "")), result)
    assert result.faults == ["1 GB, mount: 80 MiB of memory, 64 are the most"]


def test_a_command_is_measured_with_its_children(tmp_path):
    ran = run(["sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done & wait; echo done"], tmp_path / "log")
    assert ran.output == "done\n" and ran.cpu_s > 0 and ran.rss_bytes > 0
