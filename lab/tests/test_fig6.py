"""What no network can go below, computed by hand for the paper's topology."""

from trunkline_lab.experiments.ndn_fig6 import tree_bytes
from trunkline_lab.net import topology_file

FIG5 = topology_file.named("paper-fig5")


def test_a_block_goes_once_over_each_link_of_its_tree():
    # h3-r1, r1-h4; h3-r1, r1-r5, r5-r2, r2-h5, r2-h6: the first three links carry both replicas' bytes once.
    assert tree_bytes(FIG5, "h3", [(100, ["h3", "h4"])]) == (200, 200)
    assert tree_bytes(FIG5, "h3", [(100, ["h5", "h6"])]) == (300, 500)


def test_a_replica_beside_its_writer_costs_nothing():
    assert tree_bytes(FIG5, "h3", [(100, ["h3"])]) == (0, 0)


def test_blocks_add_up():
    assert tree_bytes(FIG5, "h3", [(100, ["h3", "h4"]), (10, ["h5"])]) == (220, 240)
