//! `qos check`, `apply` and `clear`.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::common::text;
use crate::controller::{bench, controller};
use crate::server::{Server, problem};

#[test]
fn a_policy_is_checked_and_put_in_force() {
    let server = Server::start(controller);
    let bench = bench();
    let said = bench.ok(&["qos", "check", "policy.yaml", "--controller", &server.url]);
    assert_eq!(
        said,
        "policy.yaml: policy paper is valid: 2 queues, 1 rule\n"
    );
    let facts = bench.json(&[
        "qos",
        "check",
        "policy.yaml",
        "--json",
        "--controller",
        &server.url,
    ]);
    assert_eq!(
        (&facts["valid"], &facts["policy"]["name"]),
        (&json!(true), &json!("paper"))
    );
    let said = bench.ok(&[
        "qos",
        "apply",
        "policy.yaml",
        "--controller",
        &format!("{}/", server.url),
    ]);
    assert_eq!(
        said,
        "paper: in force as version 3, 84 flow entries changed; \
         see trunkline qos show for what is in force\n"
    );
    let said = bench.ok(&["qos", "clear", "--controller", &server.url]);
    assert_eq!(
        said,
        "no policy is in force any more (version 4), 84 flow entries changed\n"
    );

    let asked = server.asked();
    let lines: Vec<&str> = asked.iter().map(|a| a.line.as_str()).collect();
    assert_eq!(
        lines,
        [
            "POST /v1/policy/check?name=policy.yaml HTTP/1.1",
            "POST /v1/policy/check?name=policy.yaml HTTP/1.1",
            "PUT /v1/policy?name=policy.yaml HTTP/1.1",
            "DELETE /v1/policy HTTP/1.1",
        ]
    );
    assert_eq!(asked[2].body, "name: paper\n");
    let head = asked[2].head.to_lowercase();
    assert!(
        head.contains("content-type: text/yaml; charset=utf-8\r\n"),
        "{head}"
    );
    assert!(head.contains("user-agent: trunkline/"), "{head}");
    assert!(!head.contains("authorization:"), "{head}");
}

#[test]
fn warnings_and_odd_names_pass() {
    let server = Server::start(controller);
    let bench = bench();
    std::fs::write(bench.path("a b&c=ü.yaml"), "name: paper\n").expect("a file");
    for verb in ["check", "apply"] {
        let done = bench.run(&["qos", verb, "a b&c=ü.yaml", "--controller", &server.url]);
        assert!(done.status.success());
        assert_eq!(
            text(&done.stderr),
            "a b&c=ü.yaml:9: warning: nothing is of category split; leave it out\n"
        );
    }
    assert_eq!(
        server.asked()[0].line,
        "POST /v1/policy/check?name=a%20b%26c%3D%C3%BC.yaml HTTP/1.1"
    );
    // From standard input.
    let mut child = bench
        .command(&["qos", "apply", "-", "--controller", &server.url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a process");
    child
        .stdin
        .take()
        .expect("an input")
        .write_all(b"name: piped\n")
        .expect("a pipe");
    assert!(child.wait_with_output().expect("an end").status.success());
    let last = server.asked().pop().expect("a request");
    assert_eq!(last.line, "PUT /v1/policy?name=standard%20input HTTP/1.1");
    assert_eq!(last.body, "name: piped\n");
}

#[test]
fn a_wrong_policy_is_told_line_by_line() {
    let server = Server::start(|_| {
        problem(
            422,
            &json!({"detail": "the policy has 2 problems", "remedy": "mend each", "problems": [
                {"file": "policy.yaml", "line": 2, "what": "queue 'fast' is not among the queues", "remedy": "name one of: bulk"},
                {"file": "policy.yaml", "line": 7, "what": "minimum rates sum to 400 of 300 Mbit/s", "remedy": "lower them"},
            ]}),
        )
    });
    let bench = bench();
    for verb in ["check", "apply"] {
        let (status, said) =
            bench.fails(&["qos", verb, "policy.yaml", "--controller", &server.url]);
        assert_eq!(status, 1);
        assert_eq!(
            said,
            "policy.yaml:2: queue 'fast' is not among the queues; name one of: bulk\n\
             policy.yaml:7: minimum rates sum to 400 of 300 Mbit/s; lower them\n\
             trunkline: policy.yaml: refused for 2 problems; mend each; nothing was changed\n"
        );
        let done = bench.run(&[
            "qos",
            verb,
            "policy.yaml",
            "--json",
            "--controller",
            &server.url,
        ]);
        assert_eq!(done.status.code(), Some(1));
        let facts: Value = serde_json::from_slice(&done.stdout).expect("JSON");
        assert_eq!(
            (&facts["valid"], &facts["problems"][1]["line"]),
            (&json!(false), &json!(7))
        );
    }
}
