//! `put` and `get` through a real forwarder process.

mod common;

use std::io::{Read, Write};
use std::process::Stdio;

use common::{Bench, same, signal, text, until, wait};
use ndn_packet::sha256;

#[test]
fn ten_megabytes_arrive_whole() {
    let bench = Bench::start("");
    let source = bench.file("source", 10_000_000);
    let (_put, said) = bench.serve(&["put", "/t/object", "source", "--json"]);
    let facts: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(
        (facts["bytes"].as_u64(), facts["segments"].as_u64()),
        (Some(10_000_000), Some(1250))
    );
    for window in ["cubic", "aimd", "fixed:100"] {
        let report = bench.json(&[
            "get",
            "/t/object",
            "-o",
            "copy",
            "--window",
            window,
            "--json",
        ]);
        assert_eq!(report["bytes"], 10_000_000);
        assert_eq!(
            (report["segments"].as_u64(), report["verified"].as_str()),
            (Some(1250), Some("digest"))
        );
        assert!(
            report["name"]
                .as_str()
                .expect("a name")
                .starts_with("/t/object/v=")
        );
        let (ours, theirs) = (
            std::fs::read(&source).expect("read"),
            std::fs::read(bench.path("copy")).expect("read"),
        );
        assert_eq!(sha256(&ours), sha256(&theirs), "{window}");
        std::fs::remove_file(bench.path("copy")).expect("removed");
    }
    let versioned = facts["versioned"].as_str().expect("a name");
    bench.ok(&["get", "--no-metadata", versioned, "-o", "copy", "-q"]);
    assert!(same(&source, &bench.path("copy")));
    assert_eq!(
        bench.entries(),
        ["copy", "fwd.log", "fwd.sock", "fwd.toml", "source"]
    );
}

#[test]
fn jumbo_segments_pass_between_our_own() {
    let bench = Bench::start("");
    let source = bench.file("source", 5_000_000);
    let (_put, _) = bench.serve(&["put", "/t/jumbo", "source", "--segment-size", "64512"]);
    let report = bench.json(&["get", "/t/jumbo", "-o", "copy", "--json"]);
    assert_eq!(
        report["segments"].as_u64(),
        Some(5_000_000_u64.div_ceil(64512))
    );
    assert!(same(&source, &bench.path("copy")));
}

#[test]
fn transfers_go_over_tcp_and_udp_too() {
    let port = common::free_port();
    let bench = Bench::start(&format!(
        "[[face]]\nlisten = \"tcp://127.0.0.1:{port}\"\n[[face]]\nlisten = \"udp://127.0.0.1:{port}\"\n\
         [management]\nlocalhop = true\n[content_store]\ncapacity = 0\n"
    ));
    bench.file("source", 3_000_000);
    for (how, segment) in [
        ("tcp", "8000"),
        ("udp", "8000"),
        ("tcp", "64512"),
        ("udp", "64512"),
    ] {
        let face = format!("{how}://127.0.0.1:{port}");
        let name = format!("/t/{how}/{segment}");
        let put = [
            "put",
            &name,
            "source",
            "--face",
            &face,
            "--segment-size",
            segment,
        ];
        let (_put, _) = bench.serve(&put);
        for get in [&face, &bench.face()] {
            bench.ok(&["get", &name, "-o", "copy", "--face", get, "-q"]);
            assert!(
                same(&bench.path("source"), &bench.path("copy")),
                "{name} {get}"
            );
        }
    }
}

#[test]
fn management_over_udp_says_where_to_manage() {
    let port = common::free_port();
    let bench = Bench::start(&format!("[[face]]\nlisten = \"udp://127.0.0.1:{port}\"\n"));
    let (code, said) = bench.fails(&[
        "fwd",
        "status",
        "--face",
        &format!("udp://127.0.0.1:{port}"),
    ]);
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("from its own host"), "{said}");
}

#[test]
fn jumbo_segments_are_refused_where_they_do_not_pass() {
    let bench = Bench::start("jumbo = false\n");
    bench.file("source", 100_000);
    let (code, said) = bench.fails(&["put", "/t/jumbo", "source", "--segment-size", "64512"]);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("takes 8800") && said.contains("less"),
        "{said}"
    );
    let (_put, _) = bench.serve(&["put", "/t/plain", "source"]);
    bench.ok(&["get", "/t/plain", "-q", "-o", "copy"]);
    assert!(same(&bench.path("source"), &bench.path("copy")));
}

#[test]
fn standard_input_and_output() {
    let bench = Bench::start("");
    let mut put = common::Running(
        bench
            .command(&["put", "/t/pipe", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process"),
    );
    let content = common::noise(300_001);
    put.0
        .stdin
        .take()
        .expect("an input")
        .write_all(&content)
        .expect("written");
    let mut first = [0; 7];
    put.0
        .stdout
        .as_mut()
        .expect("an output")
        .read_exact(&mut first)
        .expect("a line");
    assert_eq!(&first, b"serving");
    let got = bench.run(&["get", "/t/pipe"]);
    assert!(got.status.success(), "{}", text(&got.stderr));
    assert!(got.stdout == content);
    assert!(text(&got.stderr).contains("verified: digest"));
}

#[test]
fn a_reader_that_goes_ends_get_quietly() {
    let bench = Bench::start("");
    bench.file("source", 3_000_000);
    let (_put, _) = bench.serve(&["put", "/t/head", "source"]);
    let mut get = common::Running(
        bench
            .command(&["get", "/t/head"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a process"),
    );
    let mut first = [0; 100];
    let mut output = get.0.stdout.take().expect("an output");
    output.read_exact(&mut first).expect("bytes");
    drop(output);
    assert_eq!(wait(&mut get.0), 141);
    let mut said = String::new();
    get.0
        .stderr
        .as_mut()
        .expect("an error output")
        .read_to_string(&mut said)
        .expect("text");
    assert_eq!(said, "");
}

#[test]
fn an_empty_file_is_an_object_too() {
    let bench = Bench::start("");
    bench.file("empty", 0);
    let (_put, _) = bench.serve(&["put", "/t/empty", "empty"]);
    bench.ok(&["get", "/t/empty", "-o", "copy"]);
    assert_eq!(std::fs::read(bench.path("copy")).expect("a file"), b"");
}

#[test]
fn keys_sign_and_verify() {
    let bench = Bench::start("");
    bench.file("source", 20_000);
    for kind in ["hmac", "ecdsa", "ed25519"] {
        bench.ok(&["keygen", kind, kind]);
        bench.ok(&["keygen", kind, &format!("{kind}-other")]);
        let name = format!("/t/signed/{kind}");
        let (_put, _) = bench.serve(&["put", &name, "source", "--sign", &format!("{kind}:{kind}")]);
        let (right, wrong) = match kind {
            "hmac" => (String::from("hmac:hmac"), String::from("hmac:hmac-other")),
            _ => (format!("{kind}.pub"), format!("{kind}-other.pub")),
        };
        bench.ok(&["get", &name, "-o", "copy", "--verify", &right]);
        bench.ok(&["get", &name, "-o", "copy", "--verify", "none"]);
        assert!(same(&bench.path("source"), &bench.path("copy")), "{kind}");
        std::fs::remove_file(bench.path("copy")).expect("removed");
        for verify in [wrong.as_str(), "digest"] {
            let (code, said) = bench.fails(&["get", &name, "-o", "copy", "--verify", verify]);
            assert_eq!(code, 5, "{kind} {verify}: {said}");
            assert!(said.contains("key sha256:"), "{said}");
        }
        assert!(!bench.path("copy").exists());
    }
}

#[test]
fn nothing_published_is_said_soon() {
    let bench = Bench::start("");
    let (code, said) = bench.fails(&["get", "/t/none", "-o", "copy"]);
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("/t/none"), "{said}");
    assert_eq!(bench.entries(), ["fwd.log", "fwd.sock", "fwd.toml"]);
}

#[test]
fn an_interrupted_get_leaves_nothing_behind() {
    let bench = Bench::start("");
    bench.file("source", 200_000);
    let (put, _) = bench.serve(&["put", "/t/stuck", "source"]);
    // A producer that stands still: the transfer hangs where it is.
    signal(&put.0, "STOP");
    let mut get = common::Running(
        bench
            .command(&["get", "/t/stuck", "-o", "copy"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("a process"),
    );
    until(|| bench.entries().iter().any(|name| name.ends_with(".part")));
    signal(&get.0, "INT");
    assert_eq!(wait(&mut get.0), 130);
    signal(&put.0, "CONT");
    assert!(
        !bench.entries().iter().any(|name| name.contains("copy")),
        "{:?}",
        bench.entries()
    );
}

#[test]
fn put_ends_at_a_signal_and_takes_its_route_along() {
    let bench = Bench::start("");
    bench.file("source", 1000);
    for name in ["TERM", "INT"] {
        let (mut put, _) = bench.serve(&["put", "/t/gone", "source"]);
        assert!(bench.ok(&["fwd", "route", "list"]).contains("/t/gone"));
        signal(&put.0, name);
        assert_eq!(wait(&mut put.0), 0, "{name}");
        until(|| !bench.ok(&["fwd", "route", "list"]).contains("/t/gone"));
    }
}

#[test]
fn a_changed_file_ends_put() {
    let bench = Bench::start("");
    bench.file("source", 100_000);
    let (mut put, _) = bench.serve(&["put", "/t/changed", "source"]);
    bench.file("source", 100_001);
    let (code, _) = bench.fails(&["get", "/t/changed", "--timeout", "2s"]);
    assert_eq!(code, 4);
    assert_eq!(wait(&mut put.0), 1);
}

#[test]
fn a_forwarder_that_goes_is_named() {
    let mut bench = Bench::start("");
    let mut ping = common::Running(
        bench
            .command(&["ping", "/t/lost", "-i", "20ms"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a process"),
    );
    let mut first = [0; 7];
    ping.0
        .stdout
        .as_mut()
        .expect("an output")
        .read_exact(&mut first)
        .expect("a line");
    signal(bench.forwarder(), "KILL");
    assert_eq!(wait(&mut ping.0), 3);
    let mut said = String::new();
    ping.0
        .stderr
        .as_mut()
        .expect("an error output")
        .read_to_string(&mut said)
        .expect("text");
    assert!(said.contains("fwd.sock"), "{said}");
}

#[test]
fn wrong_arguments_are_named() {
    let bench = Bench::start("");
    bench.file("source", 100_000);
    for (arguments, words) in [
        (&["put", "/t/x", "missing"][..], ["missing", "no such file"]),
        (
            &["put", "/t/x", "source", "--segment-size", "66550"],
            ["--segment-size", "makes packets of"],
        ),
        (
            &["put", "/t/x", "source", "--segment-size", "0"],
            ["--segment-size", "65000"],
        ),
        (
            &["put", "/t/x", "source", "--sign", "hmac:nokey"],
            ["nokey", "no such file"],
        ),
        (
            &["put", "/t/x", "source", "--sign", "rsa:k"],
            ["--sign", "ed25519"],
        ),
        (&["put", "t//x", "source"], ["t//x", "component"]),
        (
            &["get", "/t/x", "--verify", "nokey"],
            ["nokey", "no such file"],
        ),
        (&["get", "/t/x", "--window", "fast"], ["--window", "cubic"]),
        (
            &["get", "/t/x", "-o", "no/such/folder/f"],
            ["no/such/folder", "no such file"],
        ),
        (
            &["get", "/t/x", "--face", "gopher://x"],
            ["gopher", "unix:///path"],
        ),
    ] {
        let (code, said) = bench.fails(arguments);
        assert!(code == 1 || code == 2, "{arguments:?}: {code} {said}");
        for word in words {
            assert!(said.contains(word), "{arguments:?}: {said}");
        }
    }
}
