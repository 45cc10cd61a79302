//! Who is not there, does not want this caller, or is no controller; and arguments that are refused at once.

use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::thread;

use serde_json::json;

use crate::controller::{bench, controller};
use crate::server::{Answer, Asked, Server, problem};

#[test]
fn a_controller_that_is_not_there_is_told_with_the_way_out() {
    let bench = bench();
    // Servers of other tests are at 127.0.0.1, and could have the port as soon as it is free.
    let port = TcpListener::bind("127.0.0.9:0")
        .expect("a port")
        .local_addr()
        .expect("an address")
        .port();
    let url = format!("http://127.0.0.9:{port}");
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
