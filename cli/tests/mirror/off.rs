//! `trunkline mirror off` against agents that start, run, or have ended without a word.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use rustix::fs::{FlockOperation, flock};
use serde_json::json;

use crate::controller::{Controller, end, second};
use crate::flows::connected;
use crate::host::until;
use crate::host_or_skip;

/// A port that nobody listens on.
const NOBODY: &str = "http://127.0.0.1:9";

#[test]
fn an_agent_that_starts_meanwhile_does_not_undo_it() {
    let host = host_or_skip!();
    let before = host.traffic_control();
    let controller = Controller::start();
    host.configure(&controller.url, "");
    let agent = host.agent();
    let (up, down, port, _keeps) = connected(&host);
    controller.list(vec![json!({
        "id": "led", "position": 1, "lead": true, "head": null, "send": null,
        "receive": {"source": end("10.9.0.2", port), "destination": end("10.9.0.1", 9866)},
    })]);
    until("an entry", || host.flows().len() == 1);
    agent.crash();
    // Its connection keeps it attached.
    host.age();
    let going = host
        .command(&host.off_words(&[]))
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    until("begun", || host.status()["off"] == true);
    let said = host.fails(&["run", "--config", "mirror.toml"]);
    assert!(
        said.contains("`trunkline mirror off` takes the programs off this host; wait for its end"),
        "{said}"
    );
    let said = host.fails(&host.off_words(&[]));
    assert!(said.contains("wait for its end"), "{said}");
    drop((up, down));
    let done = going.wait_with_output().expect("ended");
    assert!(done.status.success(), "{done:?}");
    assert_eq!(
        String::from_utf8_lossy(&done.stdout),
        "programs taken off eth0; pins removed\n"
    );
    assert_eq!(host.traffic_control(), before);
    assert!(!host.pins().exists());
}

/// Whatever the maps say: an agent that was about to start may have written there last.
#[test]
fn a_running_agent_goes_by_the_lock() {
    let host = host_or_skip!();
    host.configure(NOBODY, "");
    let mut agent = host.agent();
    let folder = host.pins().join("off");
    std::fs::create_dir(&folder).expect("a folder");
    let lock = std::fs::File::open(&folder).expect("open");
    flock(&lock, FlockOperation::NonBlockingLockExclusive).expect("locked");
    assert!(agent.ended(), "{}", agent.log());
    assert!(agent.log().contains("the agent ends"), "{}", agent.log());
    drop(lock);
    assert_eq!(host.status()["off"], true, "nothing new is sent virtually");
    host.off();
}

#[test]
fn the_controller_is_told_in_the_place_of_an_agent_that_has_crashed() {
    let host = host_or_skip!();
    let token = host.path("token");
    std::fs::write(&token, "a-token-of-this-host\n").expect("a file");
    std::fs::set_permissions(&token, PermissionsExt::from_mode(0o600)).expect("a mode");
    let controller = Controller::start();
    controller.list(vec![second("a")]);
    let named = format!("token_file = \"{}\"", token.display());
    host.configure(&controller.url, &named);
    let agent = host.agent();
    until("entries", || host.flows().len() == 2);
    agent.crash();
    assert!(!controller.was_told(|request| request["leaving"] == true));
    assert_eq!(
        host.ok(&host.off_words(&["--wait", "0s"])),
        "programs taken off eth0; pins removed\n"
    );
    let last = controller.last().expect("a request");
    assert_eq!(
        (&last["leaving"], &last["addresses"]),
        (&json!(true), &json!(["10.9.0.1"]))
    );
    assert!(
        controller.was_told(|request| request["leaving"] == false && request["run"] == last["run"])
    );
    let heads = controller.heads();
    let head = heads.last().expect("a request").to_lowercase();
    assert!(
        head.contains("authorization: bearer a-token-of-this-host\r\n"),
        "{head}"
    );
}

#[test]
fn off_waits_until_the_controller_sends_no_copies() {
    let host = host_or_skip!();
    let controller = Controller::with_lease(600.0);
    host.configure(&controller.url, "");
    let agent = host.agent();
    until("two answers", || {
        controller.was_told(|request| request["controller"] == "one")
    });
    agent.crash();
    host.configure(NOBODY, "");
    let said = host.fails(&host.off_words(&["--wait", "0s"]));
    assert!(
        said.contains("copies may still come for")
            && said.contains("the controller has not confirmed")
            && said.contains("connection refused"),
        "{said}"
    );
    assert!(said.contains("or with --force"), "{said}");
    let elsewhere = host.path("mirror.toml");
    let there = host.path("moved.toml");
    std::fs::rename(elsewhere, there).expect("renamed");
    let said = host.fails(&host.off_words(&["--wait", "0s"]));
    assert!(
        said.contains("mirror.toml") && said.contains("--config"),
        "{said}"
    );
    // The same where another configuration is named that is right.
    host.configure(&controller.url, "");
    std::fs::rename(host.path("mirror.toml"), host.path("right.toml")).expect("renamed");
    let words = host.off_words(&["--wait", "0s", "--config", "right.toml"]);
    assert_eq!(host.ok(&words), "programs taken off eth0; pins removed\n");
    assert!(controller.was_told(|request| request["leaving"] == true));
}

#[test]
fn off_ends_with_the_lease_of_a_controller_that_is_away() {
    let host = host_or_skip!();
    let controller = Controller::with_lease(0.5);
    controller.list(vec![second("a")]);
    host.configure(&controller.url, "");
    let agent = host.agent();
    until("two answers", || {
        controller.was_told(|request| request["controller"] == "one")
    });
    agent.crash();
    host.configure(NOBODY, "");
    assert_eq!(host.off(), "programs taken off eth0; pins removed\n");
    assert!(!controller.was_told(|request| request["leaving"] == true));
}

#[test]
fn what_an_agent_heard_when_it_left_is_kept() {
    let host = host_or_skip!();
    let controller = Controller::with_lease(600.0);
    host.configure(&controller.url, "");
    let agent = host.agent();
    until("two answers", || {
        controller.was_told(|request| request["controller"] == "one")
    });
    agent.stop();
    host.configure(NOBODY, "");
    host.ok(&host.off_words(&["--wait", "0s"]));
}

#[test]
fn a_run_that_the_controller_has_seen_leave_ends() {
    let host = host_or_skip!();
    let controller = Controller::start();
    host.configure(&controller.url, "");
    let mut agent = host.agent();
    until("a request", || controller.last().is_some());
    let run = controller.last().expect("a request")["run"].clone();
    controller.forget(&run);
    assert!(agent.ended(), "{}", agent.log());
    assert!(
        agent.log().contains("this run has left; the agent ends"),
        "{}",
        agent.log()
    );
    host.off();
}
