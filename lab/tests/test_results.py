"""The documents that others read: out/demo.json and out/bench.json."""

import json

from trunkline_lab import demo, figures
from trunkline_lab.hostbytes import LinkBytes
from trunkline_lab.transfer import Cost, doubts_of_read, doubts_of_write

HOSTS = ["namenode", "dn1", "client"]


def cost(out: int, cache_hits: int = 0, **client: int) -> Cost:
    return Cost(1.5, {"client": 1.0}, LinkBytes({"client": out}, {"dn1": out}), cache_hits, {"client": client})


def run(plane: str) -> demo.Run:
    costs = [cost(1000), cost(10), cost(20, cache_hits=30, segments_read=25)]
    return demo.Run(plane, HOSTS, 1000, dict(zip(demo.PHASES, costs, strict=True)))


def test_the_demo_document_has_just_the_promised_keys():
    document = demo.as_json([run("tcp"), run("ndn")])
    assert set(document) == {"file_bytes", "replication", "planes"}
    common = {"write_s", "read_s", "host_bytes_out", "host_bytes_in", "sha256_ok"}
    assert set(document["planes"]["tcp"]) == common
    assert set(document["planes"]["ndn"]) == common | {"cache_hits"}
    assert document["planes"]["ndn"]["read_s"] == [1.5, 1.5]
    assert document["planes"]["ndn"]["host_bytes_out"] == {"namenode": 0, "dn1": 0, "client": 1030}
    assert document["planes"]["ndn"]["cache_hits"] == 25
    assert json.loads(json.dumps(document)) == document


def test_the_demo_table_can_be_made_of_one_plane_or_more():
    assert "second read" in demo.render([run("tcp")])
    assert "ndn saved" in demo.render([run("tcp"), run("ndn")])


def test_the_demo_has_a_column_for_ucx():
    runs = [run("tcp"), run("ndn"), run("ucx")]
    assert "ucx saved" in demo.render(runs)
    assert demo.as_json(runs)["planes"]["ucx"]["connects"] == 0


def test_a_bench_figure_compares_with_its_peer():
    entry = figures.Figure("a", 6.0, "Gbit/s", "NDNd", 1.5, 5).as_json()
    assert entry == {"name": "a", "value": 6.0, "unit": "Gbit/s", "peer": "NDNd", "peer_value": 1.5, "ratio": 4.0}
    assert figures.Figure("a", 6.0, "ns", "", None, 1).as_json()["ratio"] is None


def test_every_quoted_peer_has_a_name_and_a_figure():
    assert figures.peers()
    assert all(peer.peer and peer.value > 0 for peer in figures.peers().values())


def test_named_data_must_be_proved():
    size = 1000
    good = Cost(
        1, {}, LinkBytes(), 0, {"client": {"named_writes": 1, "bytes_published": 1008}, "dn1": {"bytes_pulled": 3024}}
    )
    assert doubts_of_write("ndn", good, size, 3) == []
    assert doubts_of_write("ndn", cost(1000), size, 3)[0] == "blocks written by name: 0, not 1"
    assert doubts_of_read("ndn", cost(0, bytes_read=1000), size) == []
    assert doubts_of_read("ndn", cost(0, bytes_read=999), size) == ["bytes read by name: 999, not 1000"]


def test_stock_tcp_must_have_written_all_replicas():
    whole = Cost(1, {}, LinkBytes({"client": 1000, "dn1": 2000}, {"dn1": 1000, "dn2": 2000}), 0, {})
    hosts = ["client", "dn1", "dn2"]
    assert doubts_of_write("tcp", whole, 1000, 3, hosts) == []
    assert doubts_of_write("tcp", whole, 1001, 3, hosts) == ["bytes out of and into hosts: 6000, not 6006"]
    assert doubts_of_write("tcp", cost(1000), 1000, 3) == []


def test_ucx_must_be_proved():
    size = 1000
    good = Cost(
        1,
        {},
        LinkBytes(),
        0,
        {"client": {"ucx_writes": 1, "ucx_bytes_sent": 1008}, "dn1": {"ucx_bytes_received": 3024}},
    )
    assert doubts_of_write("ucx", good, size, 3) == []
    assert doubts_of_write("ucx", cost(1000, ucx_writes=1, ucx_bytes_sent=1000), size, 3) == [
        "bytes received over UCX by the DataNodes: 0, not 3000"
    ]
    assert doubts_of_read("ucx", cost(0), size) == ["bytes received over UCX by the client: 0, not 1000"]


def test_bytes_that_no_socket_carried_are_added_by_host():
    links = LinkBytes({"client": 5}, {"dn1": 5}, unknown=1).carrying({"client": 100, "dn1": 1}, {"dn1": 100})
    assert links == LinkBytes({"client": 105, "dn1": 1}, {"dn1": 105}, unknown=1)


def test_a_fallback_is_told():
    fell_back = Cost(1, {}, LinkBytes(), 0, {"client": {"bytes_read": 1000, "fallback.no_plugin": 2}})
    assert fell_back.fallbacks() == {"client": {"fallback.no_plugin": 2}}
