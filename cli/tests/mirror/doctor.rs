//! What a host needs is found, and changed only when told to.

use serde_json::Value;

use crate::host::Host;
use crate::host_or_skip;

fn frto() -> String {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_frto");
    text.expect("a parameter").trim().to_owned()
}

fn asked(host: &Host, more: &[&str]) -> Value {
    let pins = host.pins();
    let words = [
        &[
            "doctor",
            "--json",
            "--interface",
            "eth0",
            "--pin",
            pins.to_str().expect("text"),
        ],
        more,
    ]
    .concat();
    let said = host.run(&words).stdout;
    serde_json::from_slice(&said).expect("JSON")
}

fn level(answer: &Value, check: &str) -> String {
    let findings = answer["findings"].as_array().expect("findings");
    let finding = findings.iter().find(|f| f["check"] == check);
    finding.unwrap_or_else(|| panic!("{check}: {answer}"))["level"]
        .as_str()
        .expect("a level")
        .to_owned()
}

#[test]
fn a_parameter_is_changed_only_when_told_to() {
    let host = host_or_skip!();
    std::fs::write("/proc/sys/net/ipv4/tcp_frto", "2").expect("a parameter of this namespace");
    let found = asked(&host, &[]);
    for check in [
        "kernel",
        "btf",
        "capabilities",
        "bpffs",
        "clsact",
        "program",
        "interface",
    ] {
        assert_eq!(level(&found, check), "ok", "{check}");
    }
    assert_eq!(level(&found, "tcp_frto"), "warning");
    assert_eq!(frto(), "2");
    let fixed = asked(&host, &["--fix"]);
    assert_eq!(level(&fixed, "tcp_frto"), "ok");
    assert_eq!(frto(), "0");
    let changes = fixed["changes"].as_array().expect("changes");
    assert!(
        changes
            .iter()
            .any(|c| c.as_str().is_some_and(|c| c.contains("tcp_frto"))),
        "{changes:?}"
    );
}

#[test]
fn routes_get_another_congestion_control() {
    let host = host_or_skip!();
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .expect("a list");
    if !available.split_whitespace().any(|name| name == "bbr") {
        println!(
            "skipped: routes with bbr: this kernel has none ({})",
            available.trim()
        );
        return;
    }
    host.shell(
        "ip",
        "route add 10.20.0.0/16 via 10.9.0.2 dev eth0 congctl bbr mtu 1400",
    );
    let found = asked(&host, &[]);
    assert_eq!(level(&found, "congestion_control"), "warning");
    asked(&host, &["--fix"]);
    let route = host.shell("ip", "route show 10.20.0.0/16");
    assert!(
        !route.contains("bbr") && route.contains("congctl") && route.contains("mtu 1400"),
        "{route}"
    );
    assert_eq!(level(&asked(&host, &[]), "congestion_control"), "ok");
}

#[test]
fn what_keeps_it_from_working_is_an_error() {
    let host = host_or_skip!();
    host.shell("ip", "link add down0 type veth peer name down1");
    let pins = host.path("nowhere");
    let pins = pins.to_str().expect("text");
    let said = host.fails(&[
        "doctor",
        "--interface",
        "down0",
        "--interface",
        "none0",
        "--pin",
        pins,
    ]);
    assert!(
        said.contains("this host: 3 of these keep mirrored replication from working"),
        "{said}"
    );
    let done = host.run(&[
        "doctor",
        "--interface",
        "down0",
        "--interface",
        "none0",
        "--pin",
        pins,
    ]);
    let text = String::from_utf8_lossy(&done.stdout);
    for expected in [
        "ip link set down0 up",
        "none0: no such interface",
        "in no BPF filesystem",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}
