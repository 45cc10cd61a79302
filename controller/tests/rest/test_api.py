"""Each path of the REST interface, and its description."""

from client import Client
from fake_control import MBIT, START_S, TEXT, FakeControl
from openapi_spec_validator import validate

from trunkline_controller.control import Alert, Decision
from trunkline_controller.flows.entry import Owner
from trunkline_controller.net.topology import Dpid, End, PortNo

LEAF1 = "0000000000000011"
LINK = "0000000000000011:1-0000000000000021:1"


def test_status_says_how_the_controller_does(client: Client, control: FakeControl):
    control.alerts = (Alert(START_S, "table CLASSIFY of leaf1 is full", "drop rules"),)
    found = client.get("/v1/status").json
    assert (found["role"], found["switches"], found["links"], found["hosts"]) == ("master", 6, 8, 12)
    assert found["alerts"] == [{"at_s": START_S, "what": "table CLASSIFY of leaf1 is full", "remedy": "drop rules"}]


def test_topology_names_switches_ports_links_and_hosts(client: Client):
    found = client.get("/v1/topology").json
    assert [switch["name"] for switch in found["switches"]] == ["leaf1", "leaf2", "leaf3", "leaf4", "spine1", "spine2"]
    assert found["switches"][0]["dpid"] == LEAF1
    assert (found["switches"][0]["openflow"], found["switches"][5]["openflow"]) == ("1.3", "1.5")
    assert found["links"][0]["id"] == LINK
    assert found["links"][0]["b"] == {
        "dpid": "0000000000000021",
        "port": 1,
        "switch_name": "spine1",
        "port_name": "to-leaf1",
    }
    assert found["hosts"][0]["addresses"] == ["10.0.1.1"]


def test_links_carry_loads_each_way(client: Client, control: FakeControl):
    control.busy = frozenset({End(Dpid(0x11), PortNo(1))})
    links = {link["id"]: link for link in client.get("/v1/links").json["links"]}
    assert len(links) == 8 + 12
    between, to_host = links[LINK], links[f"{LEAF1}:3"]
    assert (between["from_a"]["bit_s"], between["from_a"]["share"]) == (285 * MBIT, 0.95)
    assert between["to_a"]["bit_s"] != between["from_a"]["bit_s"]
    assert to_host["b"] is None
    assert (to_host["hosts"], to_host["addresses"]) == (["0a:00:00:00:01:01"], ["10.0.1.1"])
    assert to_host["to_a"]["bytes"] == 6_000_000


def test_a_link_without_a_known_rate_has_no_share(client: Client, control: FakeControl):
    control.loads = lambda: ()
    assert client.get("/v1/links").json["links"][0]["from_a"] is None


def test_flows_of_a_switch_say_whose_they_are(client: Client):
    client.put_policy(TEXT)
    found = client.get(f"/v1/switches/{LEAF1}/flows").json
    assert found["total"] == 14
    assert {flow["owner"] for flow in found["flows"]} == {"admit", "policy", "forward"}
    (policy,) = (flow for flow in found["flows"] if flow["owner"] == Owner.POLICY.name.lower())
    assert policy["match"] == {"eth_type": 0x800, "ip_proto": 6, "l4_src": 13562}
    assert policy["actions"] == [
        {"type": "set_queue", "queue": 1},
        {"type": "set_field", "field": "ip_dscp", "value": 10},
    ]
    assert (policy["goto"], policy["category"], policy["bytes"]) == ("forward", "shuffle", 13_000_000)


def test_flows_come_in_pages(client: Client):
    path = f"/v1/switches/{LEAF1}/flows"
    whole = client.get(path).json["flows"]
    pages = [client.get(f"{path}?limit=5&offset={at}").json["flows"] for at in (0, 5, 10, 15)]
    assert [len(page) for page in pages] == [5, 5, 3, 0]
    assert [flow for page in pages for flow in page] == whole


def test_flows_of_a_link_are_those_that_send_over_it(client: Client):
    ends = {flow["dpid"] for flow in client.get(f"/v1/links/{LINK}/flows").json["flows"]}
    assert ends == {LEAF1, "0000000000000021"}
    (to_host,) = client.get(f"/v1/links/{LEAF1}:3/flows").json["flows"]
    assert to_host["match"] == {"eth_dst": "0a:00:00:00:01:01"}


def test_what_is_not_there_is_said_with_the_way_out(client: Client):
    for path, remedy in {
        "/v1/switches/00000000000000ff/flows": "/v1/topology",
        "/v1/links/00000000000000ff:1-0000000000000100:1/flows": "/v1/links",
        "/v1/links/00000000000000ff:1/flows": "/v1/links",
        f"/v1/links/{LEAF1}:99/flows": "/v1/links",
        "/v1/links/nonsense/flows": "/v1/links",
        "/v1/policy/history/7": "/v1/policy/history",
        "/v1/nothing": "/openapi.json",
        "/nothing": "/openapi.json",
    }.items():
        answer = client.get(path)
        assert (answer.status, answer.headers["content-type"]) == (404, "application/problem+json"), path
        assert answer.json["status"] == 404
        assert remedy in answer.json["remedy"], path


def test_queues_are_filtered_and_summed(client: Client):
    assert client.get("/v1/queues").json == {"total": 0, "queues": []}
    client.put_policy(TEXT)
    all_of_them = client.get("/v1/queues").json
    assert all_of_them["total"] == (4 * 5 + 2 * 4) * 3
    rates = [queue["bit_s"] for queue in all_of_them["queues"]]
    assert rates == sorted(rates, reverse=True)
    port = client.get(f"/v1/queues?dpid={LEAF1}&port=2").json["queues"]
    assert {(queue["at"]["port_name"], queue["queue"]) for queue in port} == {
        ("to-spine2", name) for name in ("bulk", "shuffle", "control")
    }
    unknown = client.get("/v1/queues?mode=none&mode=unknown").json
    assert unknown["total"] == 7 * 3
    assert {(queue["mode"], queue["why"]) for queue in unknown["queues"]} == {("unknown", "not yet probed")}
    assert {queue["why"] for queue in client.get("/v1/queues?mode=dscp").json["queues"]} == {""}
    assert client.get("/v1/queues?mode=some").status == 422
    totals = {total["queue"]: total for total in client.get("/v1/queues/totals").json["queues"]}
    assert list(totals) == ["bulk", "shuffle", "control"]
    for name, total in totals.items():
        own = [queue for queue in all_of_them["queues"] if queue["queue"] == name]
        assert total["bit_s"] == sum(queue["bit_s"] for queue in own)
        assert total["busiest_bit_s"] == max(queue["bit_s"] for queue in own)
        assert sum(total["modes"].values()) == total["ports"] == 28
    assert totals["control"]["categories"] == ["namenode", "resourcemanager"]


def test_a_policy_is_checked_applied_shown_and_cleared(client: Client, control: FakeControl):
    assert client.get("/v1/policy").json == {"policy": None, "applied": None}
    checked = client.put_policy(TEXT, "/v1/policy/check")
    assert (checked.status, checked.json["name"]) == (200, "paper")
    assert control.in_force is None

    applied = client.put_policy(TEXT, User_Agent="trunkline/0.1.0").json
    assert applied.pop("warnings") == []
    assert (applied["version"], applied["name"], applied["by"]) == (1, "paper", "127.0.0.1, trunkline/0.1.0")
    shown = client.get("/v1/policy").json
    assert shown["applied"] == applied
    assert shown["policy"]["text"] == TEXT
    assert shown["policy"]["categories"]["replication"] == "bulk"
    assert shown["policy"]["rules"][1]["destination_role"] == "datanode"
    assert shown["policy"]["port_classes"][0]["shares"][1] == {
        "queue": "shuffle",
        "min_bit_s": 200 * MBIT,
        "max_bit_s": 300 * MBIT,
        "min_percent": None,
        "max_percent": None,
    }

    odd = client.put_policy(TEXT + "split: {}\n", "/v1/policy?name=a.yaml").json
    assert odd["warnings"] == [{"line": 3, "what": "nothing is of category split", "remedy": "leave it out"}]

    assert client.ask("DELETE", "/v1/policy").json["version"] == 3
    assert client.get("/v1/policy").json["policy"] is None
    history = client.get("/v1/policy/history").json
    assert [(entry["version"], entry["name"]) for entry in history["history"]] == [(3, ""), (2, "paper"), (1, "paper")]
    assert client.get("/v1/policy/history/1").json["text"] == TEXT


def test_a_wrong_policy_is_refused_with_every_problem(client: Client, control: FakeControl):
    for path in ("/v1/policy?name=mine.yaml", "/v1/policy/check?name=mine.yaml"):
        answer = client.put_policy("wrong", path)
        assert (answer.status, answer.headers["content-type"]) == (422, "application/problem+json")
        assert answer.json["problems"] == [
            {
                "file": "mine.yaml",
                "line": 2,
                "what": "queue 'fast' is not among the queues",
                "remedy": "name one of: bulk, shuffle, control",
            },
            {"file": "mine.yaml", "line": 7, "what": "minimum rates sum to 400 Mbit/s of 300", "remedy": "lower them"},
        ]
    assert control.applied == ()


def test_a_controller_that_stands_by_changes_nothing(client: Client, control: FakeControl):
    control.role = "standby"
    for answer in (client.put_policy(TEXT), client.ask("DELETE", "/v1/policy")):
        assert answer.status == 409
        assert answer.json["detail"] == "another controller is master"
        assert answer.json["remedy"] == "ask that one, or stop it"


def test_decisions_name_reducer_reason_and_queues(client: Client, control: FakeControl):
    assert client.get("/v1/decisions").json == {"dynamic": False, "total": 0, "decisions": []}
    control.dynamic = True
    control.made = tuple(
        Decision(START_S + n, "job_1", f"r{n}", "node1", "40% behind the median", "bulk", "shuffle") for n in (2, 1)
    )
    found = client.get("/v1/decisions?limit=1").json
    assert (found["dynamic"], found["total"], found["decisions"][0]["reducer"]) == (True, 2, "r2")


def test_health_and_the_page_are_served(client: Client):
    assert client.get("/healthz").json == {"status": "ok"}
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    again = client.get("/", If_None_Match=page.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    assert client.ask("HEAD", "/icon.svg").headers["content-type"] == "image/svg+xml"


def test_the_description_is_valid_openapi_and_tells_of_problems(client: Client):
    described = client.get("/openapi.json").json
    validate(described)
    apply = described["paths"]["/v1/policy"]["put"]
    assert "text/yaml" in apply["requestBody"]["content"]
    assert set(apply["responses"]) == {"200", "400", "401", "403", "409", "413", "415", "422"}
    assert "application/problem+json" in apply["responses"]["422"]["content"]
    assert "HTTPValidationError" not in described["components"]["schemas"]


def test_answers_are_as_described(client: Client, control: FakeControl):
    """Every GET without parameters answers, and the description has its path."""
    client.put_policy(TEXT)
    control.made = (Decision(START_S, "job_1", "r1", "node1", "behind", "bulk", "shuffle"),)
    described = client.get("/openapi.json").json
    plain = [path for path, item in described["paths"].items() if "get" in item and "parameters" not in item["get"]]
    assert {"/v1/status", "/v1/topology", "/v1/links", "/v1/policy", "/metrics", "/healthz"} <= set(plain)
    for path in [*plain, "/v1/queues", "/v1/decisions", "/v1/policy/history"]:
        assert client.get(path).status == 200, path
