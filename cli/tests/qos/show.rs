//! `qos show`.

use serde_json::{Value, json};

use crate::controller::{bench, controller};
use crate::server::{Server, fine};

#[test]
fn what_is_in_force_is_shown() {
    let server = Server::start(controller);
    let bench = bench();
    let said = bench.ok(&["qos", "show", "--controller", &server.url]);
    let found: Vec<&str> = said.lines().collect();
    assert_eq!(
        found[0],
        "controller  master, 6 switches, all as they should be, dynamic control off"
    );
    assert_eq!(found[1], "to mend     a loop; unplug one cable");
    assert!(
        found[2].starts_with("policy      paper, version 3, put in force "),
        "{said}"
    );
    assert!(found[2].ends_with(" ago by 127.0.0.1"), "{said}");
    let bulk = found
        .iter()
        .find(|l| l.starts_with("bulk"))
        .expect("a queue");
    for fact in [
        "other, replication",
        "DSCP on 21 ports, not known on 1 port",
        "878.0 Mbit/s",
    ] {
        assert!(bulk.contains(fact), "{bulk}");
    }
    assert!(
        said.contains("no effect on 1 port, set_queue on 21 ports"),
        "{said}"
    );
    assert!(
        said.contains("50.0 Mbit/s to 300.0 Mbit/s") && said.contains("40% to all"),
        "{said}"
    );
    let (_, ports) = said.split_once("\nport ").expect("a table of ports");
    let rows: Vec<Vec<&str>> = ports
        .lines()
        .skip(1)
        .map(|l| {
            l.split("  ")
                .map(str::trim)
                .filter(|w| !w.is_empty())
                .collect()
        })
        .collect();
    assert_eq!(
        rows[..3],
        [
            vec!["leaf1:3", "no effect", "the port has no queue shuffle"],
            vec!["leaf1:4", "not known", "not yet probed"],
            vec!["and more: not all ports are listed"],
        ]
    );
    assert!(
        said.ends_with("run trunkline-controller agent at the switches' hosts\n"),
        "{said}"
    );
    let facts = bench.json(&["qos", "show", "--json", "--controller", &server.url]);
    assert_eq!(facts["applied"]["version"], 3);
    assert_eq!(facts["queues"][0]["modes"]["dscp"], 21);
    assert_eq!(facts["without_effect"][0]["why"], "not yet probed");
    // The address may stand in the environment.
    let done = bench
        .command(&["qos", "show"])
        .env("TRUNKLINE_CONTROLLER", &server.url)
        .output()
        .expect("a process");
    assert!(done.status.success());
}

#[test]
fn without_a_policy_show_says_how_to_have_one() {
    let server = Server::start(|asked| {
        if asked.line.contains("/v1/policy ") {
            fine(&json!({"policy": null, "applied": null}))
        } else if asked.line.contains("/v1/queues") {
            fine(&json!({"total": 0, "queues": []}))
        } else {
            controller(asked)
        }
    });
    let bench = bench();
    let said = bench.ok(&["qos", "show", "--controller", &server.url]);
    assert!(
        said.contains("policy      none: all traffic is treated alike; trunkline qos apply FILE"),
        "{said}"
    );
    assert_eq!(
        bench.json(&["qos", "show", "--json", "--controller", &server.url])["policy"],
        Value::Null
    );
}
