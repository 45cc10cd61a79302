//! A controller under load, as its REST interface tells of it.

use serde_json::{Value, json};

use crate::common::Bench;
use crate::server::{Answer, Asked, fine, problem};

fn policy() -> Value {
    json!({
        "name": "paper",
        "queues": [
            {"name": "bulk", "number": 0, "dscp": 0, "priority": 5},
            {"name": "shuffle", "number": 1, "dscp": 10, "priority": 2},
        ],
        "port_classes": [{"name": "hosts", "rate_bit_s": 0, "shares": [
            {"queue": "bulk", "min_bit_s": 50_000_000, "max_bit_s": 300_000_000, "min_percent": null, "max_percent": null},
            {"queue": "shuffle", "min_bit_s": 0, "max_bit_s": 0, "min_percent": 40.0, "max_percent": null},
        ]}],
        "categories": {"replication": "bulk", "other": "bulk", "shuffle": "shuffle"},
        "rules": [{"category": "shuffle"}],
        "warnings": [{"line": 9, "what": "nothing is of category split", "remedy": "leave it out"}],
        "text": "name: paper\n",
    })
}

fn applied(version: u64, name: &str) -> Value {
    json!({"version": version, "name": name, "at_s": 1_790_000_000.0, "by": "127.0.0.1", "flows_changed": 84})
}

fn end(switch: &str, port: u32, name: &str) -> Value {
    json!({"dpid": "0000000000000011", "port": port, "switch_name": switch, "port_name": name})
}

fn load(bit_s: f64, share: Option<f64>, dropped: Option<u64>) -> Value {
    json!({"bit_s": bit_s, "rate_bit_s": 300_000_000, "share": share, "bytes": 1, "dropped_packets": dropped})
}

/// What a controller under load says.
pub fn controller(asked: &Asked) -> Answer {
    let path = asked.line.split(' ').nth(1).expect("a path");
    match path.split('?').next().expect("a path") {
        "/v1/policy/check" => fine(&policy()),
        "/v1/policy" if asked.line.starts_with("PUT") => {
            let mut done = applied(3, "paper");
            done["warnings"] = policy()["warnings"].clone();
            fine(&done)
        }
        "/v1/policy" if asked.line.starts_with("DELETE") => fine(&applied(4, "")),
        "/v1/policy" => fine(&json!({"policy": policy(), "applied": applied(3, "paper")})),
        "/v1/status" => fine(&json!({
            "role": "master", "switches": 6, "converged": true, "dynamic": false,
            "alerts": [{"at_s": 1.0, "what": "a loop", "remedy": "unplug one cable"}],
        })),
        "/v1/queues/totals" => fine(&json!({"queues": [
            {"queue": "bulk", "modes": {"dscp": 21, "unknown": 1}, "bit_s": 878e6, "dropped_packets": 7},
            {"queue": "shuffle", "modes": {"none": 1, "set_queue": 21}, "bit_s": 0.0, "dropped_packets": 0},
        ]})),
        "/v1/queues" if path.contains("mode=none&mode=unknown") => {
            let row = |queue, port, mode, why| {
                json!({
                    "at": end("leaf1", port, ""), "queue": queue, "mode": mode, "bit_s": 0.0, "min_bit_s": 0,
                    "max_bit_s": 0, "dropped_packets": 0, "why": why,
                })
            };
            fine(&json!({"total": 5, "queues": [
                row("bulk", 4, "unknown", "not yet probed"),
                row("bulk", 3, "none", "the port has no queue shuffle"),
                row("shuffle", 4, "unknown", "not yet probed"),
                row("shuffle", 3, "none", "the port has no queue shuffle"),
            ]}))
        }
        "/v1/queues" => fine(&json!({"total": 1, "queues": [{
            "at": end("leaf1", 1, "to-spine1"), "queue": "shuffle", "mode": "dscp", "bit_s": 49e6,
            "min_bit_s": 50_000_000, "max_bit_s": 300_000_000, "dropped_packets": 28,
        }]})),
        "/v1/links" => fine(&json!({"links": [
            {"a": end("leaf1", 1, "to-spine1"), "b": end("spine1", 1, ""), "addresses": [],
             "from_a": load(12e6, Some(0.04), Some(0)), "to_a": load(285e6, Some(0.95), Some(3))},
            {"a": end("leaf1", 3, "node1"), "b": null, "addresses": ["10.0.1.1"],
             "from_a": load(99e6, None, Some(1)), "to_a": null},
        ]})),
        _ => problem(
            404,
            &json!({"detail": "there is nothing", "remedy": "see /openapi.json"}),
        ),
    }
}

/// A folder with a policy to apply.
pub fn bench() -> Bench {
    let bench = Bench::without_forwarder();
    std::fs::write(bench.path("policy.yaml"), "name: paper\n").expect("a file");
    bench
}
