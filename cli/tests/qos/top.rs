//! `qos top`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{BIN, Running};
use crate::controller::{bench, controller};
use crate::server::Server;

#[test]
fn top_lists_the_busiest_first() {
    let server = Server::start(controller);
    let bench = bench();
    let said = bench.ok(&["qos", "top", "--once", "--controller", &server.url]);
    assert!(!said.contains('\x1b'), "{said:?}");
    let found: Vec<Vec<&str>> = said
        .lines()
        .map(|l| {
            l.split("  ")
                .map(str::trim)
                .filter(|w| !w.is_empty())
                .collect()
        })
        .collect();
    assert_eq!(
        found[1],
        ["spine1:1", "leaf1:to-spine1", "285.0 Mbit/s", "95%", "3"]
    );
    assert_eq!(
        found[2],
        ["leaf1:node1", "10.0.1.1", "99.0 Mbit/s", "-", "1"]
    );
    assert_eq!(
        found[3],
        ["leaf1:to-spine1", "spine1:1", "12.0 Mbit/s", "4%", "0"]
    );
    assert_eq!(
        found[6],
        [
            "leaf1:to-spine1",
            "shuffle",
            "49.0 Mbit/s",
            "50.0 Mbit/s",
            "300.0 Mbit/s",
            "DSCP",
            "28"
        ]
    );
    let said = bench.ok(&[
        "qos",
        "top",
        "--once",
        "--rows",
        "1",
        "--controller",
        &server.url,
    ]);
    assert!(said.contains("285.0") && !said.contains("99.0"), "{said}");
    assert!(
        server
            .asked()
            .iter()
            .any(|a| a.line.contains("/v1/queues?limit=1 "))
    );
    let facts = bench.json(&[
        "qos",
        "top",
        "--once",
        "--json",
        "--controller",
        &server.url,
    ]);
    assert_eq!(facts["links"][0]["to_a"]["share"], 0.95);
}

#[test]
fn top_goes_on_line_by_line_until_it_is_stopped() {
    let server = Server::start(controller);
    let child = Command::new(BIN)
        .args([
            "qos",
            "top",
            "--json",
            "--interval",
            "10ms",
            "--controller",
            &server.url,
        ])
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let mut running = Running(child);
    let output = running.0.stdout.take().expect("an output");
    let lines: Vec<String> = BufReader::new(output)
        .lines()
        .take(3)
        .map(|l| l.expect("a line"))
        .collect();
    for line in &lines {
        let facts: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(facts["queues"][0]["queue"], "shuffle");
    }
    assert_eq!(lines.len(), 3);
}
