//! `trunkline mirror switch …` while ports come, go, or can't have the program.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bridge::{Bridge, Controller, NOBODY, copies};
use crate::bridge_or_skip;
use crate::host::until;

/// Whether the controller was told of a port, and that it is so.
fn was_told_of_port(controller: &Controller, name: &str, up: bool) -> bool {
    controller.was_told(|request| {
        let is_so = |port: &Value| port["name"] == name && port["up"] == up;
        request["ports"]
            .as_array()
            .is_some_and(|ports| ports.iter().any(is_so))
    })
}

fn has_program(bridge: &Bridge, port: &str) -> bool {
    bridge.traffic_control(port).contains("mr_switch")
}

#[test]
fn a_port_that_can_not_have_the_program_keeps_it_from_no_other() {
    let bridge = bridge_or_skip!();
    let controller = Controller::start();
    bridge.configure(&controller.url, "");
    bridge.host.shell("tc", "qdisc add dev p2 ingress");
    let agent = bridge.agent();
    assert!(has_program(&bridge, "p1") && has_program(&bridge, "p3"));
    until("told", || was_told_of_port(&controller, "p2", false));
    assert!(was_told_of_port(&controller, "p1", true));
    let status = bridge.status();
    assert_eq!(status["without_program"], json!(["p2"]));
    let pins = bridge.host.path("bpf/switch").display().to_string();
    let shown = bridge.host.ok(&["switch", "status", "--pin", &pins]);
    assert!(shown.contains("without    p2: "), "{shown}");
    // A port that comes later has it all the same.
    bridge.port("br0", 4);
    until("attached", || has_program(&bridge, "p4"));
    bridge.host.shell("tc", "qdisc del dev p2 ingress");
    until("tried again", || has_program(&bridge, "p2"));
    until("told", || was_told_of_port(&controller, "p2", true));
    assert_eq!(bridge.status()["without_program"], json!([]));
    let log = agent.stop();
    let complaints = log.matches("interface p2: clsact refused").count();
    assert_eq!(complaints, 1, "{log}");
    bridge.off();
}

#[test]
fn a_bridge_none_of_whose_ports_can_have_the_program_is_not_served() {
    let bridge = bridge_or_skip!();
    bridge.configure(NOBODY, "");
    for port in ["p1", "p2", "p3"] {
        let words = format!("qdisc add dev {port} ingress");
        bridge.host.shell("tc", &words);
    }
    let run = ["switch", "run", "--config", "mirror.toml"];
    let said = bridge.host.fails(&run);
    assert!(said.contains("interface p1: clsact refused"), "{said}");
    assert!(said.contains("tc qdisc del dev p1 ingress"), "{said}");
    bridge.off();
}

#[test]
fn a_port_that_is_added_has_the_program_at_once() {
    let bridge = bridge_or_skip!();
    bridge.configure(NOBODY, "");
    let agent = bridge.agent();
    let began = Instant::now();
    let numbers = 10..16;
    for number in numbers.clone() {
        bridge.port("br0", number);
        until("attached", || has_program(&bridge, &format!("p{number}")));
    }
    // Looked at once a second, the bridge would take one for each.
    let second = Duration::from_secs(1);
    let took = began.elapsed();
    assert!(took < second * numbers.len() as u32 / 2, "{took:?}");
    agent.stop();
    bridge.off();
}

#[test]
fn what_is_copied_to_a_port_ends_when_it_leaves_the_bridge() {
    let bridge = bridge_or_skip!();
    let controller = Controller::start();
    bridge.configure(&controller.url, "");
    let agent = bridge.agent();
    let [p1, p2, p3] = ["p1", "p2", "p3"].map(|name| bridge.index(name));
    controller.say(|said| said.entries = vec![copies(p1, p2, p3)]);
    until("followed", || controller.is_followed());
    let entries = || bridge.status()["entries"].as_array().map(Vec::len);
    assert_eq!(entries(), Some(1));
    // With a controller it is asked for anew, and is back with the port.
    bridge.ip("link set p3 nomaster");
    until("asked for anew", || {
        controller.was_told(|request| request["seen"] == 0 && request["controller"] == "one")
    });
    until("not copied", || entries() == Some(0));
    bridge.ip("link set p3 master br0");
    until("copied again", || entries() == Some(1));
    agent.stop();
    // Without one it is gone all the same.
    bridge.configure(NOBODY, "");
    let agent = bridge.agent();
    assert_eq!(entries(), Some(1));
    bridge.ip("link set p3 nomaster");
    until("not copied", || entries() == Some(0));
    agent.stop();
    bridge.off();
}

#[test]
fn a_bridge_stays_the_switch_that_it_was_when_its_address_changes() {
    let bridge = bridge_or_skip!();
    let controller = Controller::start();
    bridge.configure(&controller.url, "");
    let is = |dpid: &str| {
        until(dpid, || {
            controller.was_told(|request| request["dpid"] == dpid)
        });
        assert!(controller.was_told(|request| request["dpid"] == dpid));
        assert!(!controller.was_told(|request| request["dpid"] != dpid));
        controller.forget();
    };
    let agent = bridge.agent();
    is("00000200000000b0");
    agent.stop();
    bridge.ip("link set br0 address 02:00:00:00:00:c0");
    controller.forget();
    let agent = bridge.agent();
    is("00000200000000b0");
    assert_eq!(bridge.status()["dpid"], "00000200000000b0");
    agent.stop();
    bridge.off();
    controller.forget();
    let agent = bridge.agent();
    is("00000200000000c0");
    agent.stop();
    bridge.off();
}
