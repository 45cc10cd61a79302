"""Four writers on full links: that both planes have the same pipelines."""

from trunkline_lab.experiments import ndn_contended
from trunkline_lab.experiments.result import Result
from trunkline_lab.hostbytes import LinkBytes
from trunkline_lab.transfer import Cost


def test_pipelines_are_drawn_as_hdfs_does_and_are_the_same_each_time():
    datanodes = ["h3", "h5", "h8", "h12", "h13", "h16"]
    drawn = [ndn_contended.draw(datanodes, "h5", number) for number in range(50)]
    assert drawn == [ndn_contended.draw(datanodes[::-1], "h5", number) for number in range(50)]
    assert all(hosts[0] == "h5" and len(set(hosts)) == 3 for hosts in drawn)
    assert {host for hosts in drawn for host in hosts} == set(datanodes)
    assert {len(set(ndn_contended.draw(datanodes, "h1", number))) for number in range(50)} == {3}


def test_a_plane_with_other_pipelines_is_no_comparison():
    def seen(pipelines: dict[str, list[str]]) -> ndn_contended.Seen:
        return ndn_contended.Seen([1.0], Cost(1.0, {}, LinkBytes({}, {}), 0, {}), {}, 50.0, pipelines)

    result = Result("t", "about")
    one, other = {"/a": ["h1", "h2"], "/b": ["h1", "h3"]}, {"/a": ["h1", "h2"], "/b": ["h3", "h1"]}
    ndn_contended.same_pipelines({"tcp": seen(one), "ndn": seen(dict(one))}, result)
    assert result.faults == []
    ndn_contended.same_pipelines({"tcp": seen(one), "ndn": seen(other)}, result)
    assert result.faults == ["ndn: 1 pipelines of 2 are not those of tcp"]
