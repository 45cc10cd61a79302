//! A router of several workers, as processes see it.

mod common;

use std::net::TcpListener;
use std::process::Stdio;

use common::{Bench, noise, signal, until, wait};

fn bench(workers: usize) -> Bench {
    Bench::start(&format!("[workers]\ncount = {workers}\n"))
}

fn status(bench: &Bench) -> serde_json::Value {
    bench.json(&["fwd", "status", "--json"])
}

fn number(value: &serde_json::Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// Objects go in and come out whole, are cached once, and a reader that is killed leaves nothing.
#[test]
fn objects_arrive_whole_and_are_counted() {
    for workers in [2, 4] {
        let bench = bench(workers);
        let files: Vec<String> = (0..6).map(|n| format!("in{n}")).collect();
        let mut servers = Vec::new();
        for (n, file) in files.iter().enumerate() {
            bench.file(file, 300_000 + n);
            let name = format!("/objects/{n}");
            servers.push(bench.serve(&["put", &name, file, "--freshness", "1min"]));
        }
        for round in 0..2 {
            for (n, file) in files.iter().enumerate() {
                let out = format!("out{round}-{n}");
                bench.ok(&["get", &format!("/objects/{n}"), "-o", &out, "-q"]);
                let got = std::fs::read(bench.path(&out)).expect("a file");
                assert!(got == noise(300_000 + n), "{file} by {workers} workers");
            }
        }
        let said = status(&bench);
        let segments: u64 = (0..6).map(|n| (300_000u64 + n).div_ceil(8000)).sum();
        let store = &said["content_store"];
        assert!(number(&store["hits"]) >= segments, "{said}");
        assert!(number(&store["entries"]) >= segments, "{said}");

        // A reader waits for who never answers, and is killed: what it has asked for is forgotten by all workers.
        let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
        let uri = format!("tcp4://{}", silent.local_addr().expect("an address"));
        bench.ok(&["fwd", "route", "add", "/silent", &uri]);
        let pending = |bench: &Bench| number(&status(bench)["pit_entries"]);
        let mut waiting: Vec<_> = (0..8)
            .map(|n| {
                let prefix = format!("/silent/{n}");
                let mut ping = bench.command(&["ping", &prefix, "-o", "60s"]);
                ping.stdout(Stdio::null()).spawn().expect("a process")
            })
            .collect();
        // That for the status is one of them.
        until(|| pending(&bench) > 8);
        for process in &mut waiting {
            signal(process, "KILL");
            wait(process);
        }
        until(|| pending(&bench) <= 1);

        drop(servers);
        let erased = bench.json(&["fwd", "cs", "erase", "/objects", "--json"]);
        assert!(number(&erased["erased"]) >= segments, "{erased}");
        let store = &status(&bench)["content_store"];
        // What management has answered is not cached.
        assert_eq!(number(&store["entries"]), 0, "{store}");
    }
}

/// Routes come and go with those who register them, and are the same for all names.
#[test]
fn pings_follow_the_routes() {
    for workers in [2, 4] {
        let bench = bench(workers);
        for round in 0..3 {
            let prefixes: Vec<String> = (0..5).map(|n| format!("/p{n}/q")).collect();
            let servers: Vec<_> = prefixes
                .iter()
                .map(|prefix| bench.serve(&["pingserver", prefix]))
                .collect();
            for prefix in &prefixes {
                let ping = [
                    "ping",
                    prefix,
                    "--count",
                    "5",
                    "--interval",
                    "10ms",
                    "--json",
                ];
                let said = bench.json(&ping);
                assert_eq!(
                    (number(&said["sent"]), number(&said["received"])),
                    (5, 5),
                    "{prefix} by {workers} workers, round {round}: {said}"
                );
            }
            let routes = bench.json(&["fwd", "route", "list", "--json"]);
            let text = routes.to_string();
            assert!(
                prefixes.iter().all(|prefix| text.contains(prefix)),
                "{text}"
            );
            drop(servers);
            until(|| {
                let routes = bench.json(&["fwd", "route", "list", "--json"]).to_string();
                !prefixes.iter().any(|prefix| routes.contains(prefix))
            });
        }
        let said = status(&bench);
        assert!(number(&said["satisfied_interests"]) >= 75, "{said}");
    }
}

/// A signal ends all threads.
#[test]
fn it_ends_as_a_whole() {
    let mut bench = bench(4);
    bench.ok(&["fwd", "status"]);
    signal(bench.forwarder(), "TERM");
    assert_eq!(wait(bench.forwarder()), 0, "{}", bench.log());
    assert!(!bench.socket().exists());
}
