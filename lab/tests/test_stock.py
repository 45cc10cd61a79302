"""The versions of Hadoop that are tested, and how a cluster of any of them is set up."""

import re
from xml.etree import ElementTree

import pytest

from trunkline_lab import planes, stock
from trunkline_lab.cluster import Cluster
from trunkline_lab.network import Loopback
from trunkline_lab.procs import Stage


def test_the_pom_has_what_the_tests_of_each_version_need():
    pom = stock.HADOOP.read_text()
    assert f"<hadoop.version>{stock.NEWEST}</hadoop.version>" in pom
    chosen = re.findall(r"<name>hadoop.version</name><value>([\d.]+)</value>", pom)
    assert chosen == [version for version in stock.VERSIONS if version != stock.NEWEST]


def test_another_version_is_refused():
    with pytest.raises(ValueError, match=r"there are 3\.3\.6"):
        stock.classpath(hadoop="2.10.2")


def test_a_busy_datanode_is_not_passed_over(tmp_path):
    """Where there are as many replicas as DataNodes, a block would have one fewer."""
    cluster = Cluster(Stage(tmp_path), tmp_path, Loopback("127.99.1").site(3), planes.tcp(), jars=["none"])
    site = ElementTree.parse(tmp_path / "conf" / cluster.namenode_host / "hdfs-site.xml")
    properties = {row.findtext("name"): row.findtext("value") for row in site.iter("property")}
    assert properties["dfs.namenode.redundancy.considerLoad"] == "false"
