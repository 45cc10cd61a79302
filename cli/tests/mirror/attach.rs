//! Programs come to an interface, stay there when the agent does not, and go without a trace.

use crate::controller::{Controller, second};
use crate::host::until;
use crate::host_or_skip;

/// A port that nobody listens on.
const NOBODY: &str = "http://127.0.0.1:9";

#[test]
fn off_puts_the_host_back_as_it_was() {
    let host = host_or_skip!();
    let before = host.traffic_control();
    host.configure(NOBODY, "");
    let agent = host.agent();
    let attached = host.traffic_control();
    for expected in [
        "clsact",
        "mr_ingress",
        "mr_egress",
        "pref 1 bpf",
        "direct-action",
    ] {
        assert!(attached.contains(expected), "{expected}: {attached}");
    }
    let status = host.status();
    assert_eq!(
        status["interfaces"],
        serde_json::json!([{"name": "eth0", "ingress": true, "egress": true}])
    );
    let log = agent.stop();
    assert!(
        log.contains("attached to eth0; agent test until stopped"),
        "{log}"
    );
    assert_eq!(
        host.traffic_control(),
        attached,
        "it stays when the agent does not"
    );
    assert_eq!(host.status()["agent"], false);
    assert_eq!(host.off(), "programs taken off eth0; pins removed\n");
    assert_eq!(host.traffic_control(), before);
    assert!(!host.pins().exists());
    assert_eq!(
        host.off(),
        "programs were at no interface; there were no pins\n"
    );
}

#[test]
fn what_others_have_at_the_interface_stays() {
    let host = host_or_skip!();
    host.shell("tc", "qdisc add dev eth0 clsact");
    host.shell(
        "tc",
        "filter add dev eth0 ingress pref 5 protocol ip u32 match ip dst 10.1.1.1/32 classid 1:1",
    );
    let before = host.traffic_control();
    host.configure(NOBODY, "");
    host.agent().stop();
    assert_ne!(host.traffic_control(), before);
    host.off();
    assert_eq!(host.traffic_control(), before);
}

#[test]
fn a_restart_after_a_crash_takes_over_what_is_there() {
    let host = host_or_skip!();
    let controller = Controller::start();
    controller.list(vec![second("a")]);
    host.configure(&controller.url, "");
    let agent = host.agent();
    until("entries", || host.flows().len() == 2);
    let attached = host.traffic_control();
    agent.crash();
    assert_eq!(host.traffic_control(), attached);
    assert_eq!(host.flows().len(), 2);
    let agent = host.agent();
    assert_eq!(
        host.traffic_control(),
        attached,
        "the programs are the same"
    );
    let log = agent.stop();
    assert!(
        log.contains("took over") && log.contains("flows=2"),
        "{log}"
    );
    assert!(
        !log.contains("attached to eth0\n") && !log.contains("replaced"),
        "{log}"
    );
    assert_eq!(host.flows().len(), 2);
    host.off();
}

#[test]
fn what_somebody_took_off_comes_back() {
    let host = host_or_skip!();
    host.configure(NOBODY, "");
    let agent = host.agent();
    let attached = host.traffic_control();
    host.shell("tc", "qdisc del dev eth0 clsact");
    until("attached again", || host.traffic_control() == attached);
    let log = agent.stop();
    assert!(log.contains("it was not as it should be"), "{log}");
    host.off();
}

/// As a virtual function that is taken away, or a driver that is loaded anew.
#[test]
fn an_interface_that_is_gone_keeps_no_other_from_what_comes_back() {
    let host = host_or_skip!();
    host.shell("ip", "link add eth1 type veth peer name far1");
    let file = host.configure(NOBODY, "");
    let text = std::fs::read_to_string(&file).expect("a configuration");
    let both = text.replace(r#"["eth0"]"#, r#"["eth1", "eth0"]"#);
    std::fs::write(&file, both).expect("a configuration");
    let agent = host.agent();
    let attached = host.traffic_control();
    host.shell("ip", "link delete eth1");
    host.shell("tc", "qdisc del dev eth0 clsact");
    until("attached again", || host.traffic_control() == attached);
    let log = agent.stop();
    assert!(log.contains("eth1"), "{log}");
    host.off();
}

#[test]
fn one_agent_has_the_pins_and_off_ends_it() {
    let host = host_or_skip!();
    let controller = Controller::start();
    host.configure(&controller.url, "");
    let mut agent = host.agent();
    let said = host.fails(&["run", "--config", "mirror.toml"]);
    assert!(
        said.contains("another agent runs with these pins; stop it"),
        "{said}"
    );
    host.off();
    assert!(agent.ended());
    let log = agent.log();
    assert!(log.contains("the agent ends"), "{log}");
    assert!(controller.was_told(|request| request["leaving"] == true));
    assert!(!host.pins().exists());
}

#[test]
fn without_a_bpf_filesystem_or_an_interface_it_says_so() {
    let host = host_or_skip!();
    let file = host.configure(NOBODY, "");
    let right = std::fs::read_to_string(&file).expect("the file");
    let with = |text: String| {
        std::fs::write(&file, text).expect("a file");
        host.fails(&["run", "--config", "mirror.toml"])
    };
    let elsewhere = host.path("elsewhere");
    let said = with(right.replace(
        &host.pins().display().to_string(),
        &elsewhere.display().to_string(),
    ));
    assert!(
        said.contains("not in a BPF filesystem; `mount -t bpf"),
        "{said}"
    );
    assert!(!elsewhere.exists());
    let said = with(right.replace("eth0", "eth7"));
    assert!(
        said.contains("interface eth7: no such interface; there are"),
        "{said}"
    );
    let said = with(right.replace("[agent]", "[agnet]"));
    assert!(
        said.contains("mirror.toml:1: unknown key `agnet`"),
        "{said}"
    );
    host.off();
}
