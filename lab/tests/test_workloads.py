"""Data that jobs are given and how their results are judged, without a daemon."""

import math
import struct

import pytest

from trunkline_lab import naive_bayes, page_rank, workloads
from trunkline_lab.jobs import Jobs


def test_jobs_are_chosen_by_name():
    assert workloads.named([]) == workloads.WORKLOADS
    assert [w.name for w in workloads.named(["PageRank", "TeraSort"])] == ["PageRank", "TeraSort"]
    with pytest.raises(ValueError, match=r"--jobs: no job 'pagerank'; there are TestDFSIO, .*MahoutBayes"):
        workloads.named(["pagerank"])


def test_a_graph_is_what_its_file_says(tmp_path):
    graph = page_rank.make_graph(tmp_path / "graph", 60_000)
    lines = [list(map(int, line.split())) for line in (tmp_path / "graph").read_text().splitlines()]
    assert [line[0] for line in lines] == list(range(len(graph)))
    assert [line[1:] for line in lines] == graph
    assert 30_000 < (tmp_path / "graph").stat().st_size < 90_000
    assert any(not links for links in graph) and max(link for links in graph for link in links) < len(graph)
    popular = sum(link == 0 for links in graph for link in links)
    assert popular > 10 * sum(link == len(graph) - 1 for links in graph for link in links)


def test_ranks_of_a_small_graph():
    # Of three nodes 0 and 1 link to each other and 1 to 2, which links nowhere.
    rank = page_rank.ranks([[1], [0, 2], []], 1)
    lost = 1 / 3 / 3
    assert rank == pytest.approx(
        [0.05 + 0.85 * (1 / 6 + lost), 0.05 + 0.85 * (1 / 3 + lost), 0.05 + 0.85 * (1 / 6 + lost)]
    )
    assert sum(page_rank.ranks([[1], [0, 2], []], 7)) == pytest.approx(1)


def test_wrong_and_missing_ranks_are_told():
    wanted = [0.25, 0.75]
    found = page_rank.parse(f"1\t{math.log(0.75)}\n0\t{math.log(0.25)}\n")
    assert page_rank.differences(found, wanted) == []
    assert page_rank.differences({**found, 0: 0.26}, wanted) == [
        "PageRank: 1 of 2 ranks, such as node 0's, are not what they should be"
    ]
    assert page_rank.differences({1: 0.75}, wanted) == ["PageRank: 1 nodes, not 2"]


def read_text(data, at):
    """A Hadoop Text at an offset, and where it ends; by the words of WritableUtils.readVInt."""
    first = struct.unpack_from("b", data, at)[0]
    if first >= -112:
        return data[at + 1 : at + 1 + first].decode(), at + 1 + first
    size = -first - 112
    length = int.from_bytes(data[at + 1 : at + 1 + size], "big")
    begin = at + 1 + size
    return data[begin : begin + length].decode(), begin + length


def test_documents_are_a_sequence_file_with_a_class_each(tmp_path):
    count = naive_bayes.write_documents(tmp_path / "documents", 20_000)
    data = (tmp_path / "documents").read_bytes()
    assert data[:4] == b"SEQ\x06"
    key_class, at = read_text(data, 4)
    value_class, at = read_text(data, at)
    assert key_class == value_class == "org.apache.hadoop.io.Text"
    assert data[at : at + 6] == bytes(6)
    sync, at = data[at + 6 : at + 22], at + 22
    found, syncs = {}, 0
    while at < len(data):
        length = struct.unpack_from(">i", data, at)[0]
        if length == -1:
            assert data[at + 4 : at + 20] == sync
            syncs, at = syncs + 1, at + 20
            continue
        key, key_end = read_text(data, at + 8)
        value, end = read_text(data, key_end)
        assert struct.unpack_from(">i", data, at + 4)[0] == key_end - at - 8
        assert end == at + 8 + length
        found[key], at = value, end
    assert len(found) == count and syncs > 3
    assert sum(map(len, found.values())) >= 20_000
    words = found["/class1/1"].split()
    assert all(word.startswith(("classb", "w")) for word in words) and any(w.startswith("classb") for w in words)


@pytest.mark.parametrize("length", [0, 127, 128, 255, 256, 70_000])
def test_lengths_of_texts(length):
    assert read_text(naive_bayes.text(b"x" * length), 0) == ("x" * length, len(naive_bayes.text(b"x" * length)))


def test_a_classifiers_word_is_counted():
    log = "Correctly Classified Instances          :  {:10d}\t   99%\nIncorrectly Classified Instances : {:10d}\t 1%\n"
    assert naive_bayes.doubts(log.format(99, 1), 100) == []
    assert naive_bayes.doubts(log.format(90, 10), 100) == ["naive Bayes: 10 of 100 documents taken for another class"]
    assert naive_bayes.doubts("", 100) == ["naive Bayes: 0 documents classified, not 100"]


class Recorded(Jobs):
    """Takes down what would be run; jobs say and leave what they are told to."""

    def __init__(self, scratch, log="", output=b""):
        super().__init__(cluster=None, scratch=scratch)
        self.commands, self._log, self._output = [], log, output

    def run(self, step, main, *arguments):
        self.commands.append((step, main.rpartition(".")[2], *arguments))
        return self._log

    def shell(self, *words):
        self.commands.append(words)

    def read(self, path):
        self.commands.append(("-cat", path))
        return self._output


def test_steps_of_page_rank_hand_on_what_the_one_before_made(tmp_path):
    graph = page_rank.make_graph(tmp_path / "again", 3_000)
    ranks = page_rank.ranks(graph, page_rank.ITERATIONS)
    top = "".join(f"{node}\t{math.log(rank)}\n" for node, rank in enumerate(ranks))
    jobs = Recorded(tmp_path, output=top.encode())
    assert page_rank.run(jobs, 3_000) == []
    by_step = {command[0]: command for command in jobs.commands}
    nodes = str(len(graph))
    assert by_step["pagerank-records"][2:] == (
        "-input",
        "/pagerank/in",
        "-output",
        "/pagerank/records",
        "-numNodes",
        nodes,
    )
    assert by_step["pagerank-partition"][3:6] == ("/pagerank/records", "-output", "/pagerank/iter0000")
    assert by_step["pagerank-top"][2:4] == ("-input", "/pagerank/iter0002")
    assert jobs.commands[-1] == ("-rm", "-r", "-skipTrash", "/pagerank")


def test_steps_of_naive_bayes_hand_on_what_the_one_before_made(tmp_path):
    count = naive_bayes.write_documents(tmp_path / "again", 3_000)
    jobs = Recorded(tmp_path, log=f"Correctly Classified Instances : {count}\nIncorrectly Classified Instances : 0\n")
    assert naive_bayes.run(jobs, 3_000) == []
    steps = [command[0] for command in jobs.commands]
    assert steps == ["-mkdir", "-put", "bayes-vectors", "bayes", "bayes-test", "-rm"]
    train, test = jobs.commands[3], jobs.commands[4]
    assert train[train.index("-o") + 1] == test[test.index("-m") + 1] == "/bayes/model"
    assert train[train.index("-li") + 1] == test[test.index("-l") + 1] == "/bayes/labels"
