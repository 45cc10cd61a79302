//! `trunkline qos` against a server that answers as the controller does, or as something else does.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use common::{BIN, Bench, Running, text};
use serde_json::{Value, json};

/// A request as it came.
#[derive(Debug, Clone)]
struct Asked {
    line: String,
    head: String,
    body: String,
}

/// Status, type and body of an answer.
type Answer = (u16, &'static str, String);

/// A server on a free port that answers by a function and remembers what it was asked.
struct Server {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    fn start(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let memory = asked.clone();
        let answer = Arc::new(answer);
        // Lives as long as the test's process: nobody waits for it.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (memory, answer) = (memory.clone(), answer.clone());
                thread::spawn(move || serve(&stream, &memory, &*answer));
            }
        });
        Server { url, asked }
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("a lock").clone()
    }
}

fn serve(stream: &TcpStream, memory: &Mutex<Vec<Asked>>, answer: &dyn Fn(&Asked) -> Answer) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|n| n > 0) {
        let mut head = String::new();
        while reader.read_line(&mut head).is_ok_and(|n| n > 2) {}
        let length = head
            .lines()
            .find_map(|l| {
                l.to_lowercase()
                    .strip_prefix("content-length:")?
                    .trim()
                    .parse()
                    .ok()
            })
            .unwrap_or(0);
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let asked = Asked {
            line: line.trim().to_owned(),
            head,
            body: String::from_utf8(body).expect("text"),
        };
        memory.lock().expect("a lock").push(asked.clone());
        let (status, kind, body) = answer(&asked);
        let whole = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut writer = stream;
        if writer.write_all(whole.as_bytes()).is_err() {
            return;
        }
        line.clear();
    }
}

fn fine(value: &Value) -> Answer {
    (200, "application/json", value.to_string())
}

fn problem(status: u16, value: &Value) -> Answer {
    (status, "application/problem+json", value.to_string())
}

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
fn controller(asked: &Asked) -> Answer {
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

fn bench() -> Bench {
    let bench = Bench::without_forwarder();
    std::fs::write(bench.path("policy.yaml"), "name: paper\n").expect("a file");
    bench
}

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

#[test]
fn a_controller_that_is_not_there_is_told_with_the_way_out() {
    let bench = bench();
    let port = TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("an address")
        .port();
    let url = format!("http://127.0.0.1:{port}");
    for verb in [
        &["check", "policy.yaml"][..],
        &["apply", "policy.yaml"],
        &["show"],
        &["clear"],
        &["top"],
    ] {
        let arguments = [&["qos"], verb, &["--controller", &url]].concat();
        let (status, said) = bench.fails(&arguments);
        assert_eq!(status, 3, "{said}");
        assert_eq!(
            said,
            format!(
                "trunkline: controller at {url}: connection refused; start it with trunkline-controller, \
                 or name another with --controller or TRUNKLINE_CONTROLLER\n"
            )
        );
    }
}

#[test]
fn a_token_is_sent_and_asked_for() {
    let server = Server::start(|asked| {
        if asked
            .head
            .to_lowercase()
            .contains("authorization: bearer right-right-right-right\r\n")
        {
            controller(asked)
        } else {
            problem(
                401,
                &json!({"detail": "a bearer token is required", "remedy": "send it"}),
            )
        }
    });
    let bench = bench();
    let file = |name: &str, text: &str| {
        std::fs::write(bench.path(name), text).expect("a file");
        std::fs::set_permissions(bench.path(name), PermissionsExt::from_mode(0o600))
            .expect("a mode");
    };
    file("right", "right-right-right-right\n");
    file("wrong", "wrong-wrong-wrong-wrong\n");
    file("none", "\n");
    file("broken", "a\r\nX-Evil: 1");
    bench.ok(&[
        "qos",
        "show",
        "--controller",
        &server.url,
        "--token-file",
        "right",
    ]);
    for (arguments, way_out) in [
        (
            &[][..],
            "a bearer token is required; give it with --token-file",
        ),
        (
            &["--token-file", "wrong"],
            "the one of --token-file is not the controller's",
        ),
        (
            &["--token-file", "none"],
            "--token-file: none has no token; name the file",
        ),
        (
            &["--token-file", "broken"],
            "--token-file: broken has no token",
        ),
    ] {
        let whole = [&["qos", "show", "--controller", &server.url], arguments].concat();
        let (status, said) = bench.fails(&whole);
        assert_eq!(status, 2, "{said}");
        assert!(said.contains(way_out), "{said}");
    }
    let (status, said) = bench.fails(&[
        "qos",
        "show",
        "--controller",
        &server.url,
        "--token-file",
        "nowhere",
    ]);
    assert_eq!(status, 1);
    assert!(
        said.contains("nowhere: no such file or directory"),
        "{said}"
    );
}

#[test]
fn refusals_of_the_controller_keep_their_words() {
    let bench = bench();
    let server = Server::start(|_| {
        problem(
            409,
            &json!({"detail": "another controller is master", "remedy": "ask that one, or stop it"}),
        )
    });
    let (status, said) = bench.fails(&["qos", "apply", "policy.yaml", "--controller", &server.url]);
    assert_eq!(status, 1);
    assert!(
        said.ends_with(": another controller is master; ask that one, or stop it\n"),
        "{said}"
    );
}

#[test]
fn something_else_at_the_address_is_not_taken_for_a_controller() {
    let bench = bench();
    let answers: [fn(&Asked) -> Answer; 5] = [
        |_| (200, "text/html", "<h1>hello</h1>".into()),
        |_| (404, "text/html", "<h1>no</h1>".into()),
        |_| (302, "text/html", String::new()),
        |_| (200, "application/json", "{}".into()),
        |_| (200, "application/json", "[".repeat(100_000)),
    ];
    for answer in answers {
        let server = Server::start(answer);
        let (status, said) = bench.fails(&["qos", "show", "--controller", &server.url]);
        assert_eq!(status, 1, "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    // What is no HTTP at all.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n");
        }
    });
    let (status, said) = bench.fails(&["qos", "show", "--controller", &url]);
    assert_eq!((status, said.lines().count()), (3, 1), "{said}");
}

#[test]
fn wrong_arguments_are_refused_before_anything_is_asked() {
    let server = Server::start(controller);
    let bench = bench();
    std::fs::write(bench.path("long.yaml"), vec![b'a'; 256 * 1024 + 1]).expect("a file");
    std::fs::write(bench.path("binary.yaml"), b"name: \xff").expect("a file");
    std::fs::write(bench.path("empty.pem"), b"nothing").expect("a file");
    for (arguments, status, said) in [
        (
            &["check", "nowhere.yaml"][..],
            1,
            "nowhere.yaml: no such file or directory; check the path",
        ),
        (
            &["check", "long.yaml"],
            2,
            "long.yaml: is longer than 262144 bytes",
        ),
        (&["apply", "binary.yaml"], 2, "binary.yaml: is not UTF-8"),
        (&["show", "--ca", "empty.pem"], 2, "--ca: "),
        (&["top", "--rows", "0"], 2, "--rows"),
        (&["top", "--interval", "soon"], 2, "--interval"),
    ] {
        let whole = [&["qos"], arguments, &["--controller", &server.url]].concat();
        let (got, error) = bench.fails(&whole);
        assert_eq!(got, status, "{error}");
        assert!(error.contains(said), "{error}");
    }
    for url in ["127.0.0.1:8181", "ftp://a", "http://a/v1/"] {
        let (status, error) = bench.fails(&["qos", "show", "--controller", url]);
        assert_eq!(status, 2);
        assert!(
            error.contains("--controller") && error.contains("http://127.0.0.1:8181"),
            "{error}"
        );
    }
    let (status, error) = bench.fails(&[
        "qos",
        "show",
        "--ca",
        "empty.pem",
        "--controller",
        "https://127.0.0.1:1",
    ]);
    assert_eq!(status, 2);
    assert!(
        error.contains("--ca: empty.pem has no certificate"),
        "{error}"
    );
    assert_eq!(server.asked().len(), 0);
}
