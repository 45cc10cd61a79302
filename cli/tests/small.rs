//! Ping, Hadoop's properties, and what the command says of itself.

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use common::{BIN, Bench, Running, same, signal, text, until, wait};

#[test]
fn pings_are_answered() {
    let bench = Bench::start("");
    let (mut server, said) = bench.serve(&["pingserver", "/host"]);
    assert!(said.contains("/host/ping"), "{said}");
    let facts = bench.json(&[
        "ping",
        "/host",
        "--count",
        "20",
        "--interval",
        "5ms",
        "--json",
    ]);
    assert_eq!(
        (
            facts["sent"].as_u64(),
            facts["received"].as_u64(),
            facts["lost"].as_u64()
        ),
        (Some(20), Some(20), Some(0))
    );
    assert!(facts["rtt_ms"]["p50"].as_f64().expect("a time") > 0.0);
    let told = bench.ok(&["ping", "/host", "-c", "2", "-i", "5ms", "-n", "40"]);
    assert!(
        told.contains("40: ") && told.contains("41: ") && told.contains("2 sent, 2 received"),
        "{told}"
    );
    signal(&server.0, "TERM");
    assert_eq!(wait(&mut server.0), 0);
}

#[test]
fn no_server_is_a_failure() {
    let bench = Bench::start("");
    let (code, said) = bench.fails(&["ping", "/nobody", "-c", "1", "-o", "500ms"]);
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("trunkline pingserver /nobody"), "{said}");
}

#[test]
fn hadoop_properties_in_three_forms() {
    let bench = Bench::without_forwarder();
    let facts = bench.json(&[
        "hadoop",
        "conf",
        "ndn",
        "--face",
        "tcp://10.0.0.1:6363",
        "--json",
    ]);
    let (core, hdfs) = (&facts["core-site.xml"], &facts["hdfs-site.xml"]);
    assert_eq!(core["trunkline.ndn.face"], "tcp://10.0.0.1:6363");
    assert_eq!(
        core["hadoop.rpc.socket.factory.class.default"],
        "io.trunkline.hadoop.TrunklineSocketFactory"
    );
    let xml = bench.ok(&["hadoop", "conf", "ndn", "--face", "tcp://10.0.0.1:6363"]);
    assert!(xml.contains("<name>trunkline.ndn.face</name>"), "{xml}");
    let lines = bench.ok(&["hadoop", "conf", "ndn", "--format", "properties"]);
    assert!(hdfs["dfs.client-write-packet-size"].is_string(), "{facts}");
    let own = |file: &serde_json::Value| file.as_object().expect("an object").clone();
    for (key, _) in own(core).into_iter().chain(own(hdfs)) {
        assert!(lines.contains(&format!("\n{key}=")), "{key}");
        assert!(xml.contains(&format!("<name>{key}</name>")), "{key}");
    }
    let (code, said) = bench.fails(&["hadoop", "conf", "ndn", "--face", "nowhere"]);
    assert_eq!(code, 2);
    assert!(
        said.contains("nowhere") && said.contains("unix:///path"),
        "{said}"
    );
    let large = |face| {
        [
            "hadoop",
            "conf",
            "ndn",
            "--large-segments",
            "--json",
            "--face",
            face,
        ]
    };
    let facts = bench.json(&large("unix:///run/trunkline/router.sock"));
    assert_eq!(
        facts["core-site.xml"]["trunkline.ndn.segment.bytes"],
        "516096"
    );
    let (code, said) = bench.fails(&large("udp://192.0.2.1"));
    assert_eq!(code, 2);
    assert!(said.contains("--large-segments"), "{said}");
    let url = "http://192.0.2.1:8181";
    let facts = bench.json(&["hadoop", "conf", "mirror", "--controller", url, "--json"]);
    let core = &facts["core-site.xml"];
    assert_eq!(core["trunkline.mirror.controller"], url);
    assert_eq!(core["trunkline.transport"], "mirror,tcp");
    let (code, said) = bench.fails(&["hadoop", "conf", "mirror", "--controller", "192.0.2.1"]);
    assert_eq!(code, 2);
    assert!(said.contains("http://127.0.0.1:8181"), "{said}");
}

#[test]
fn version_help_and_settings() {
    let version = Command::new(BIN)
        .arg("--version")
        .output()
        .expect("a process");
    assert_eq!(
        text(&version.stdout),
        concat!("trunkline ", env!("CARGO_PKG_VERSION"), "\n")
    );
    let nothing = Command::new(BIN).output().expect("a process");
    assert_eq!(nothing.status.code(), Some(2));
    let page = Command::new(BIN)
        .args(["fwd", "settings", "--markdown"])
        .output()
        .expect("a process");
    assert!(text(&page.stdout).contains("| `capacity` |"));
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let shell = format!("{BIN} fwd settings | head -n 1; exit ${{PIPESTATUS[0]}}");
    let done = Command::new("bash")
        .args(["-c", &shell])
        .output()
        .expect("a shell");
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert_eq!(text(&done.stderr), "");
}

#[test]
fn servers_outlive_their_forwarder() {
    let mut bench = Bench::start("");
    let file = bench.file("in", 300_000);
    let (mut pings, _) = bench.serve(&["pingserver", "/host"]);
    let (mut put, _) = bench.serve(&["put", "/file", "in", "--segment-size", "60000"]);
    for _ in 0..2 {
        bench.restart();
        until(|| {
            bench
                .run(&["ping", "/host", "-c", "1", "-o", "300ms"])
                .status
                .success()
        });
        until(|| {
            bench
                .run(&["get", "/file", "-o", "out", "--timeout", "1s"])
                .status
                .success()
        });
        assert!(same(&file, &bench.path("out")));
    }
    // One that waits for its forwarder is stopped as well.
    bench.stop();
    for server in [&mut pings.0, &mut put.0] {
        signal(server, "TERM");
        assert_eq!(wait(server), 0);
    }
}

#[test]
fn a_server_says_that_its_forwarder_went() {
    let mut bench = Bench::start("");
    let mut server = Running(
        bench
            .command(&["pingserver", "/host"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a process"),
    );
    let mut said = BufReader::new(server.0.stdout.take().expect("an output")).lines();
    said.next().expect("a line").expect("text");
    let mut told = BufReader::new(server.0.stderr.take().expect("an output")).lines();
    bench.restart();
    for words in ["connecting again", "connected again, /host/ping registered"] {
        let line = told.next().expect("a line").expect("text");
        assert!(
            line.contains(words) && line.contains(&bench.face()),
            "{line}"
        );
    }
}

#[test]
fn a_server_needs_a_forwarder_at_the_start() {
    let bench = Bench::without_forwarder();
    bench.file("in", 10);
    for arguments in [&["pingserver", "/host"][..], &["put", "/file", "in"]] {
        assert_eq!(bench.fails(arguments).0, 3);
    }
}
