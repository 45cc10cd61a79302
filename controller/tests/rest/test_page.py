"""The controller's page in a real browser: Chromium, driven as a person would use it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest
from browser import Page
from client import TOKEN, Client
from fake_control import START_S, TEXT, FakeControl, leaf_spine
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from test_mirror_routes import hop, post

from trunkline_controller.control import Alert, Decision
from trunkline_controller.http import HttpServer
from trunkline_controller.mirror.agents import AgentState
from trunkline_controller.net.topology import Dpid, End, Host, Link, Mac, PortNo, Topology

pytestmark = pytest.mark.browser

LINK = "0000000000000011:1-0000000000000021:1"
HOSTILE = '<img src=x onerror="document.title=1">'


def test_a_person_sees_the_network_and_chooses_a_link(page: Page, client: Client, control: FakeControl):
    control.busy = frozenset({End(Dpid(0x11), PortNo(1))})
    control.dynamic = True
    control.made = (Decision(START_S, "job_7", "reduce 3", "node4", "41% behind the median", "bulk", "shuffle"),)
    control.alerts = (Alert(START_S, "hosts with one address: 10.0.1.1", "give one of them another"),)
    client.put_policy(TEXT)
    page.open(client.server.url)
    page.until(lambda: len(page.all("#drawing .switch")) == 6)
    assert len(page.all("#drawing .link")) == 8 + 12
    assert len(page.all("#drawing .host")) == 12
    # A load is told by number, width and colour.
    page.until(lambda: "95%" in page.named(LINK).text)
    lane = page.one(f'[data-id="{LINK}"] .lane')
    assert lane.get_attribute("data-heat") == "4"
    other = page.one('[data-id="0000000000000012:1-0000000000000021:2"] .lane')
    assert float(lane.get_attribute("stroke-width")) > float(other.get_attribute("stroke-width"))
    assert "285 Mbit/s, 95% of 300 Mbit/s" in page.named(LINK).get_attribute("aria-label")
    # All else on one sheet.
    assert [card.text for card in page.all("#queues h3")] == [
        "bulk queue 0, DSCP 0",
        "shuffle queue 1, DSCP 10",
        "control queue 2, DSCP 46",
    ]
    assert "by DSCP marks: 21 ports" in page.one("#queues").text
    assert "not known: 7 ports" in page.one("#queues").text
    assert "paper in force as version 1" in page.one("#policy-body").text
    assert "50 \N{EN DASH} 300 Mbit/s" in page.one("#policy-body").text
    assert "reduce 3" in page.one("#decisions").text
    assert "bulk → shuffle" in page.one("#decisions").text
    assert "41% behind the median" in page.one("#decisions").text
    assert "give one of them another" in page.one("#alerts").text
    assert not page.one("#details").is_displayed()

    page.script(
        f"document.querySelector('[data-id=\"{LINK}\"] .hit').dispatchEvent(new MouseEvent('click', {{bubbles: true}}))"
    )
    page.until(lambda: "leaf1 (to-spine1) → spine1" in page.one("#details").text)
    page.until(lambda: "Flows that send over it (12)" in page.one("#details").text)
    assert "Queues of leaf1, to-spine1" in page.one("#details").text
    assert "to 10.0.2.1 ⇒ to one of group 1" in page.one("#details").text
    assert page.named(LINK).get_attribute("aria-pressed") == "true"
    # The choice stands in the address, so that it can be handed on.
    address = page.driver.current_url
    page.driver.get("about:blank")
    page.driver.get(address)
    page.until(lambda: "leaf1 ⇄ spine1" in page.one("#details-title").text)
    page.one("#close").click()
    page.until(lambda: not page.one("#details").is_displayed())
    assert page.complaints() == []


def test_files_of_policies_are_shown(page: Page, client: Client):
    for name in ("first", "second"):
        client.put_policy(f"name: {name}\nmarker: of {name}\n")
    client.ask("DELETE", "/v1/policy")
    client.put_policy("name: third\n")
    page.open(client.server.url)
    page.until(lambda: "third in force as version 4" in page.one("#policy-body").text)
    heads = [item.text.split(" ")[:2] for item in page.all("#history li")]
    assert heads == [["4.", "third"], ["3.", "cleared"], ["2.", "second"], ["1.", "first"]]
    page.one("#history li:last-child summary").click()
    page.until(lambda: page.one("#history pre").text == "name: first\nmarker: of first")
    page.one("#policy-body summary").click()
    assert page.one("#policy-body pre").text == "name: third"
    assert page.complaints() == []


def test_a_keyboard_is_enough(page: Page, client: Client):
    client.put_policy(TEXT)
    page.open(client.server.url)
    page.until(lambda: page.all("#drawing .link"))
    page.one("body").send_keys(Keys.TAB)
    assert page.focused().get_attribute("id") == "skip"
    page.focused().send_keys(Keys.TAB)
    assert page.focused().get_attribute("id") == "choose"
    page.focused().send_keys(Keys.TAB)
    assert page.focused().get_attribute("data-id") == LINK
    halo = "return getComputedStyle(document.activeElement.querySelector('.halo')).stroke"
    focused = page.script(halo)
    page.focused().send_keys(Keys.ARROW_RIGHT)
    second = page.focused().get_attribute("data-id")
    assert second == "0000000000000011:2-0000000000000022:1"
    assert page.script(halo) == focused != "rgba(0, 0, 0, 0)"
    assert (
        page.script(f"return getComputedStyle(document.querySelector('[data-id=\"{LINK}\"] .halo')).stroke") != focused
    )
    page.focused().send_keys(Keys.ENTER)
    page.until(lambda: page.focused().get_attribute("id") == "details-title")
    assert page.one("#details-title").text == "leaf1 ⇄ spine2"
    page.until(lambda: "Not known whether they have effect: not yet probed" in page.one("#details").text)
    assert page.script("return document.getElementById('live').textContent") == "leaf1 ⇄ spine2: chosen"
    page.focused().send_keys(Keys.ESCAPE)
    page.until(lambda: page.focused().get_attribute("data-id") == second)
    page.focused().send_keys(Keys.END)
    assert page.focused().get_attribute("class") == "switch"
    page.focused().send_keys(" ")
    page.until(lambda: page.one("#details-title").text == "spine2")
    page.until(lambda: "Flow entries (" in page.one("#details").text)
    # From a switch on to one of its links.
    page.one("#details table button").send_keys(Keys.ENTER)
    page.until(lambda: page.one("#details-title").text == "leaf1 ⇄ spine2")
    # And without the drawing at all.
    Select(page.one("#choose")).select_by_visible_text("leaf2 ⇄ 10.0.2.3")
    page.until(lambda: page.one("#details-title").text == "leaf2 ⇄ 10.0.2.3")
    unnamed = page.script(
        "return [...document.querySelectorAll('button, input, select, a, [role=button], summary')].filter("
        "(e) => !e.textContent.trim() && !e.ariaLabel && !e.labels?.length).map((e) => e.outerHTML)"
    )
    assert unnamed == []
    assert page.complaints() == []


def test_what_changes_is_shown_and_focus_stays(page: Page, client: Client, control: FakeControl):
    page.open(client.server.url)
    page.until(lambda: page.all("#drawing .link"))
    assert "No policy is in force" in page.one("#policy-body").text
    page.script(f"document.querySelector('[data-id=\"{LINK}\"]').focus()")
    control.busy = frozenset({End(Dpid(0x11), PortNo(1))})
    page.until(lambda: "95%" in page.named(LINK).text)
    assert page.focused().get_attribute("data-id") == LINK
    client.put_policy(TEXT)
    page.until(lambda: "paper in force" in page.one("#policy-body").text)
    page.until(
        lambda: page.script("return document.getElementById('live').textContent") == "Policy paper was put in force"
    )
    # A switch comes: the drawing is another, the choice and focus are not.
    page.focused().send_keys(Keys.ENTER)
    page.until(lambda: page.one("#details").is_displayed())
    page.script(f"document.querySelector('[data-id=\"{LINK}\"]').focus()")
    control.known = replace(
        control.known,
        switches=MappingProxyType(
            {**control.known.switches, Dpid(0x99): replace(control.known.switches[Dpid(0x11)], name="new")}
        ),
    )
    page.until(lambda: len(page.all("#drawing .switch")) == 7)
    assert page.focused().get_attribute("data-id") == LINK
    assert page.named(LINK).get_attribute("aria-pressed") == "true"
    control.alerts = (Alert(START_S, "table CLASSIFY of leaf1 is full", "drop rules"),)
    page.until(lambda: page.one("#alerts").is_displayed())
    page.until(lambda: "table CLASSIFY" in str(page.script("return document.getElementById('live').textContent")))
    assert page.complaints() == []


def test_mirrored_writes_are_listed_and_their_way_is_marked(page: Page, client: Client, control: FakeControl):
    page.open(client.server.url)
    page.until(lambda: "No agent is there" in page.one("#mirrors-body").text)
    assert "trunkline mirror run" in page.one("#mirrors-body").text
    control.agents = (AgentState("dn2", ("10.0.1.2", "fd00::2"), 1, 0.5), AgentState("dn7", ("10.0.3.1",), 0, 2.5))
    for position in (1, 2, 3):
        post(client, hop(position))
    for dpid in range(0x11, 0x23):
        control.pipelines.confirmed(dpid, control.pipelines.waiting(dpid), 0.0015)
    post(client, hop(2, block=2, client="DFSClient_2", source={"address": "10.0.3.1", "port": 5}))
    page.until(lambda: len(page.all("#mirrors tbody tr")) == 2)
    assert [item.text for item in page.all("#mirrors .agents li")] == ["dn2 1 pipeline", "dn7"]
    rows = {row.text.split()[0]: row.text for row in page.all("#mirrors tbody tr")}
    assert "10.0.1.1 → 10.0.1.2 → 10.0.2.1 → 10.0.2.2" in rows["1073741825"]
    assert "armed in 1.5 ms" in rows["1073741825"]
    assert "? → 10.0.3.1 → 10.0.2.1 → ?" in rows["2"]
    assert "waits for 2 connections: 1, 3" in rows["2"]
    # By keyboard alone: chosen, marked in the drawing, said to those who listen, kept while all is drawn anew.
    block = "#mirrors [data-mirror$='~1073741825~1001']"
    page.script(f'document.querySelector("{block}").focus()')
    page.focused().send_keys(Keys.ENTER)
    (ways,) = (m["links"] for m in client.get("/v1/mirrors").json["mirrors"] if m["block"] == 1073741825)

    def marked() -> set[str]:
        return {link.get_attribute("data-id") for link in page.all("#drawing .link.way")}

    page.until(lambda: marked() == set(ways))
    said = "Block 1073741825: 6 links on its way, marked in the drawing"
    assert page.script("return document.getElementById('live').textContent") == said
    assert page.one(block).get_attribute("aria-pressed") == "true"
    assert "on the way of the chosen block" in page.named(ways[0]).get_attribute("aria-label")
    post(client, hop(1, block=3, source={"address": "10.0.4.1", "port": 6}))
    page.until(lambda: len(page.all("#mirrors tbody tr")) == 3)
    assert page.focused().get_attribute("data-mirror").endswith("~1073741825~1001")
    # A link may be chosen besides, and the address has both.
    page.script(f"document.querySelector('[data-id=\"{LINK}\"]').focus()")
    page.focused().send_keys(Keys.ENTER)
    page.until(lambda: page.one("#details").is_displayed())
    assert marked() == set(ways)
    address = page.driver.current_url
    page.driver.get("about:blank")
    page.driver.get(address)
    page.until(lambda: marked() == set(ways) and page.one("#details").is_displayed())
    page.one("body").send_keys(Keys.ESCAPE)
    page.until(lambda: not page.one("#details").is_displayed())
    assert marked() == set(ways)
    page.one("body").send_keys(Keys.ESCAPE)
    page.until(lambda: marked() == set())
    page.one(block).send_keys(Keys.ENTER)
    page.until(lambda: marked() == set(ways))
    page.one(block).send_keys(Keys.ENTER)
    page.until(lambda: marked() == set())
    # It ends.
    for mirror in client.get("/v1/mirrors").json["mirrors"]:
        client.ask("DELETE", f"/v1/mirrors/{mirror['id']}")
    page.until(lambda: "No write is announced now" in page.one("#mirrors-body").text)
    assert page.complaints() == []


def test_why_a_write_is_not_mirrored_is_told_and_off_is_not_shown(page: Page, client: Client, control: FakeControl):
    control.agents = (AgentState(HOSTILE, (HOSTILE,), 0, 0.5),)
    for position in (1, 2):
        post(client, hop(position))
    post(client, hop(3, destination={"address": "10.9.9.9", "port": 9866}))
    page.open(client.server.url)
    page.until(lambda: "no host with address 10.9.9.9 is known" in page.one("#mirrors tbody").text)
    assert "not mirrored" in page.one("#mirrors tbody").text
    assert HOSTILE in page.one("#mirrors .agents").text
    control.mirrors_enabled = False
    page.until(lambda: not page.one("#mirrors").is_displayed())
    assert page.complaints() == []


def test_names_that_mean_harm_do_none(page: Page, client: Client, control: FakeControl):
    known = leaf_spine(HOSTILE + "{}")
    mac = Mac("0a:00:00:00:01:01")
    evil_port = replace(known.switches[Dpid(0x11)].ports[PortNo(1)], name=HOSTILE)
    leaf = known.switches[Dpid(0x11)]
    leaf = replace(leaf, ports=MappingProxyType({**leaf.ports, PortNo(1): evil_port}))
    control.known = Topology(
        MappingProxyType({**known.switches, Dpid(0x11): leaf}),
        known.links,
        MappingProxyType({**known.hosts, mac: replace(known.hosts[mac], addresses=(HOSTILE,))}),
    )
    control.alerts = (Alert(START_S, HOSTILE, HOSTILE),)
    control.made = (Decision(START_S, *[HOSTILE] * 6),)
    client.put_policy(f"name: {HOSTILE}\n<script>document.title = 2</script>\n", User_Agent=HOSTILE)
    page.open(f"{client.server.url}#link={LINK}")
    page.until(lambda: HOSTILE in page.one("#details-title").text)
    page.until(lambda: HOSTILE in page.one("#details h3").text)
    page.until(lambda: HOSTILE in page.one("#policy-body strong").text)
    page.one("#policy-body summary").click()
    page.one("#history summary").click()
    page.until(lambda: "<script>" in page.one("#history pre").text)
    for place in ("#alerts", "#decisions-body", "#policy-body", "#history"):
        assert HOSTILE in page.one(place).text, place
    page.until(lambda: any(HOSTILE[:8] in box.text for box in page.all("#drawing .switch")))
    assert page.all("main img, main script, #alerts img") == []
    assert page.driver.title == "Network"
    page.driver.get(client.server.url + "#link=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&switch=%27%22%5D")
    page.until(lambda: page.all("#drawing .link"))
    assert page.complaints() == []


def test_it_fits_a_telephone(page: Page, client: Client, control: FakeControl):
    client.put_policy(TEXT)
    page.resize(400, 800)
    page.open(f"{client.server.url}#link={LINK}")
    page.until(lambda: "Flows that send over it" in page.one("#details").text)
    assert page.script("return document.documentElement.scrollWidth") <= 400
    # The panel comes right after the drawing, not beside it.
    drawing, details, queues = (page.one(selector).rect for selector in ("#topology", "#details", "#queues"))
    assert drawing["y"] + drawing["height"] <= details["y"]
    assert details["y"] + details["height"] <= queues["y"]
    page.resize(1280, 900)
    page.until(lambda: page.one("#details").rect["x"] > page.one("#topology").rect["x"] + 400)
    assert page.script("return document.documentElement.scrollWidth") <= 1280
    colours = set()
    for scheme in ("light", "dark"):
        page.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        colours.add(page.script("return getComputedStyle(document.body).backgroundColor"))
    assert len(colours) == 2


def test_empty_states_say_what_to_do(page: Page, client: Client, control: FakeControl):
    known, control.known = control.known, Topology()
    page.open(client.server.url)
    page.until(lambda: "ovs-vsctl set-controller" in page.one("#nothing").text)
    assert not page.one("#drawing").is_displayed()
    assert "trunkline qos apply" in page.one("#queues").text
    assert "trunkline qos apply" in page.one("#policy-body").text
    assert "None has been put in force" in page.one("#history").text
    assert "turn it on" in page.one("#decisions").text
    control.dynamic = True
    page.until(lambda: "It is on" in page.one("#decisions").text)
    control.known = known
    page.until(lambda: len(page.all("#drawing .switch")) == 6)
    assert not page.one("#nothing").is_displayed()
    assert page.complaints() == []


def test_a_token_is_asked_for_and_kept_for_the_tab(page: Page, serve: Callable[..., Client], token_file: Path):
    client = serve(token_file=token_file)
    page.open(client.server.url)
    page.until(lambda: page.one("#login").is_displayed())
    page.one("#token").send_keys("wrong-wrong-wrong-wrong", Keys.ENTER)
    page.until(lambda: "not this controller's token" in page.one("#login-why").text)
    page.until(lambda: page.one("#token").get_property("value") == "")
    page.one("#token").send_keys(TOKEN, Keys.ENTER)
    page.until(lambda: len(page.all("#drawing .switch")) == 6)
    assert not page.one("#login").is_displayed()
    page.driver.refresh()
    page.until(lambda: len(page.all("#drawing .switch")) == 6)
    assert page.script("return [localStorage.length, document.cookie, location.href.includes('token')]") == [
        0,
        "",
        False,
    ]
    assert all("401" in complaint for complaint in page.complaints())


def test_a_controller_that_is_gone_is_told_and_found_again(
    page: Page, serve: Callable[..., Client], control: FakeControl
):
    client = serve()
    page.open(client.server.url)
    page.until(lambda: page.all("#drawing .link"))
    client.server.stop()
    page.until(lambda: "does not answer; what is shown is from" in page.one("#lost").text)
    assert page.all("#drawing .link") != []
    again = HttpServer(
        control, replace(client.server.settings, port=int(page.driver.current_url.split(":")[2].strip("/")))
    )
    again.start()
    try:
        page.until(lambda: not page.one("#lost").is_displayed())
    finally:
        again.stop()


@pytest.mark.parametrize("shape", ["ring", "alone", "unknown", "crowd", "twins"])
def test_any_topology_can_be_drawn(page: Page, client: Client, control: FakeControl, shape: str):
    plain = leaf_spine()
    hosts = dict(plain.hosts)
    links = set(plain.links)
    spine1, spine2 = End(Dpid(0x21), PortNo(60)), End(Dpid(0x22), PortNo(60))
    if shape == "ring":
        links = {
            Link.between(End(Dpid(0x11 + n), PortNo(50)), End(Dpid(0x11 + (n + 1) % 4), PortNo(51))) for n in range(4)
        }
        links |= {Link.between(spine1, spine2), Link.between(spine1, End(Dpid(0x11), PortNo(52)))}
    elif shape == "alone":
        links = set()
    elif shape == "unknown":  # its switch has gone, though the link and a host are still known
        links.add(Link.between(spine1, End(Dpid(0x77), PortNo(1))))
        hosts[Mac("0a:00:00:00:77:01")] = Host(Mac("0a:00:00:00:77:01"), End(Dpid(0x77), PortNo(2)))
        links.add(Link.between(spine1, replace(spine1, port=PortNo(61))))
    elif shape == "crowd":
        for n in range(100):
            mac = Mac(f"0a:00:00:01:00:{n:02x}")
            hosts[mac] = Host(mac, End(Dpid(0x11), PortNo(10 + n)), (f"10.9.0.{n}",))
    else:
        links |= {
            Link.between(replace(spine1, port=PortNo(60 + n)), replace(spine2, port=PortNo(60 + n))) for n in range(3)
        }
    control.known = Topology(plain.switches, frozenset(links), MappingProxyType(hosts))
    page.open(client.server.url)
    page.until(lambda: len(page.all("#drawing .switch")) == 6)
    boxes = page.script(
        "return [...document.querySelectorAll('#drawing rect')].map((r) => [r.x, r.y].map((v) => v.baseVal.value))"
    )
    assert len({tuple(box) for box in boxes}) == len(boxes)
    broken = page.script(
        "return [...document.querySelectorAll('#drawing *')].filter((e) => [...e.attributes].some("
        "(a) => /NaN|undefined|Infinity/.test(a.value))).map((e) => e.outerHTML)"
    )
    assert broken == []
    if shape == "crowd":
        page.one("#drawing .hosts").send_keys(Keys.ENTER)
        page.until(lambda: len(page.all("#details table button")) == 105)
    assert page.complaints() == []
