//! Simulated data centres from the command line.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn sim(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trunkline"))
        .arg("sim")
        .args(words)
        .arg("--quiet")
        .output()
        .expect("the command runs")
}

fn json(words: &[&str]) -> Value {
    let done = sim(words);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    serde_json::from_slice(&done.stdout).expect("JSON")
}

fn number(of: &Value, key: &str) -> u64 {
    of[key].as_u64().unwrap_or_else(|| panic!("{key} in {of}"))
}

#[test]
fn a_topology_with_yarn_is_taken_and_its_roles_are_named() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/topologies/jobs.toml");
    let file = file.to_str().expect("a path");
    let done = sim(&[
        "write",
        "--topology",
        file,
        "--blocks",
        "1",
        "--block-size",
        "1MiB",
    ]);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    assert!(
        said.contains("not simulated: resourcemanager, nodemanagers, historyserver"),
        "{said}"
    );
}

const SMALL: [&str; 13] = [
    "cache",
    "--hosts",
    "54",
    "--jobs",
    "4",
    "--data-sets",
    "2",
    "--blocks",
    "8",
    "--block-size",
    "1MiB",
    "--resources",
    "256KiB",
];

#[test]
fn jobs_reads_are_served_by_stores_of_both_policies() {
    let report = json(&[&SMALL[..], &["--json"]].concat());
    let runs = report["runs"].as_array().expect("runs");
    let policies: Vec<_> = runs.iter().map(|run| run["policy"].as_str()).collect();
    assert_eq!(policies, [Some("lru"), Some("s3-fifo")]);
    let tcp = &report["tcp"];
    assert_eq!(
        number(tcp, "taken_bytes"),
        4 * 8 * (1 << 20) + (number(&report, "reads") - 32) * (256 << 10)
    );
    for run in runs {
        assert_eq!(number(run, "taken_bytes"), number(tcp, "taken_bytes"));
        assert!(number(run, "given_bytes") < number(run, "taken_bytes"));
        assert!(number(run, "all_links_bytes") < number(tcp, "all_links_bytes"));
        let levels = run["levels"].as_array().expect("levels");
        let names: Vec<_> = levels.iter().filter_map(|l| l["name"].as_str()).collect();
        assert_eq!(names, ["hosts", "racks", "aggregation", "core"]);
        assert!(number(&levels[1], "hits") > 0);
    }
    let none = json(
        &[
            &SMALL[..],
            &["--store-hosts", "0", "--store-racks", "0"],
            &["--store-core", "0", "--policy", "lru", "--json"],
        ]
        .concat(),
    );
    let levels = none["runs"][0]["levels"].as_array().expect("levels");
    assert!(levels.iter().all(|level| number(level, "hits") == 0));
}

/// A read as a DataNode traces it: checksums are counted there.
fn line(second: u32, server: u32, reader: u32, block: u32, bytes: u64) -> String {
    format!(
        "2026-11-21 12:00:{second:02},123 DEBUG org.apache.hadoop.hdfs.server.datanode.DataNode.clienttrace: \
         src: /10.0.0.{server}:9866, dest: /10.0.0.{reader}:41012, volume: /data, bytes: {bytes}, op: HDFS_READ, \
         cliID: DFSClient_1, offset: 0, srvID: ab, blockid: BP-1-10.0.0.9-1700000000000:blk_{block}_1001, \
         duration(ns): 92\n"
    )
}

#[test]
fn a_clusters_reads_are_repeated() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.to_str().expect("a path").to_owned()
    };
    let bytes = 516 * 2048; // 1 MiB and its checksums
    let reads = [(0, 1, 2), (1, 1, 2), (2, 1, 3), (3, 1, 1)];
    let log = reads.map(|(second, server, reader)| line(second, server, reader, 7, bytes));
    let log = write("datanode.log", log.concat());
    let racks = write(
        "racks",
        "10.0.0.1 /a\n10.0.0.2 /b\n10.0.0.3 /b\n".to_owned(),
    );
    let words = ["cache", "--topology", "paper-16", "--trace", &log];
    let rest = ["--racks", &racks, "--policy", "lru", "--json"];
    let report = json(&[&words[..], &rest[..]].concat());
    assert_eq!(number(&report, "reads"), 4);
    let potential = &report["potential"];
    let mib = 1 << 20;
    assert_eq!(number(potential, "network_bytes"), 3 * mib);
    assert_eq!(number(potential, "node_bytes"), mib);
    assert_eq!(number(potential, "network_level_bytes"), 2 * mib);
    let run = &report["runs"][0];
    assert_eq!(number(run, "taken_bytes"), 4 * mib);
    // All that the potential says, and the DataNode's own host has what it gave before.
    assert_eq!(number(run, "given_bytes"), mib);
    // One rack for both of /b, on another router than that of /a.
    let rack = &run["levels"][1];
    assert_eq!(
        (rack["name"].as_str(), number(rack, "hits")),
        (Some("racks"), 17)
    );

    let small = ["--topology", "two-level", "--hosts", "4", "--rack", "1"];
    let done = sim(&[
        &["cache"][..],
        &small,
        &["--trace", &log, "--racks", &racks],
    ]
    .concat());
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(said.contains("no rack is left"), "{said}");

    let absurd = write("absurd.log", line(0, 1, 2, 7, 1 << 62));
    let done = sim(&["cache", "--trace", &absurd]);
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(said.contains("--trace"), "{said}");
}

const TIMES: [&str; 12] = [
    "time",
    "--topology",
    "two-level",
    "--hosts",
    "32",
    "--rack",
    "8",
    "--block-size",
    "8MiB",
    "--jobs",
    "2",
    "--no-racks",
];

#[test]
fn times_grow_with_oversubscription_and_planes_stand_side_by_side() {
    let report = json(&[&TIMES[..], &["--json"]].concat());
    assert_eq!(number(&report, "writers"), 32);
    assert_eq!(number(&report, "blocks"), 128);
    let runs = report["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 4 * 3);
    let of = |run: &Value, kind: &str| run[kind]["all_s"].as_f64().expect("seconds");
    for (at, run) in runs.iter().enumerate() {
        assert_eq!(run["oversubscription"], [1.0, 2.0, 4.0, 8.0][at / 3]);
        assert_eq!(run["plane"], ["tcp", "named", "mirror"][at % 3]);
        assert_eq!(run["by"], "shares");
    }
    for plane in 0..3 {
        for kind in ["writes", "jobs"] {
            let (wide, narrow) = (of(&runs[plane], kind), of(&runs[9 + plane], kind));
            assert!(
                narrow > 2.0 * wide,
                "{kind}: {narrow} s, and {wide} s at 1:1"
            );
        }
    }
    // A chain leaves racks twice where a tree leaves the writer's once.
    assert!(of(&runs[10], "writes") < 0.9 * of(&runs[9], "writes"));
    let again = json(&[&TIMES[..], &["--json"]].concat());
    assert_eq!(again["runs"][5]["writes"], runs[5]["writes"]);
}

#[test]
fn every_packet_is_simulated_beside_shares() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/topologies/paper-fig5.toml");
    let file = file.to_str().expect("a path");
    let words = ["time", "--topology", file, "--blocks-each", "2"];
    let rest = [
        "--block-size",
        "16MiB",
        "--jobs",
        "0",
        "--packets",
        "--json",
    ];
    let report = json(&[&words[..], &rest].concat());
    let runs = report["runs"].as_array().expect("runs");
    let kinds: Vec<_> = runs
        .iter()
        .map(|run| (run["plane"].as_str(), run["by"].as_str()))
        .collect();
    let shares = |plane| (Some(plane), Some("shares"));
    let packets = |plane| (Some(plane), Some("packets"));
    assert_eq!(
        kinds,
        [
            shares("tcp"),
            packets("tcp"),
            shares("named"),
            packets("named"),
            shares("mirror")
        ]
    );
    assert!(
        runs.iter()
            .all(|run| run["oversubscription"].is_null() && run["jobs"].is_null())
    );
    let seconds = |at: usize| {
        runs[at]["writes"]["writer_mean_s"]
            .as_f64()
            .expect("seconds")
    };
    let off = seconds(2) / seconds(3) - 1.0;
    assert!(
        off.abs() < 0.15,
        "{} s, and {} s by packets",
        seconds(2),
        seconds(3)
    );
}

#[test]
fn what_can_not_be_timed_is_named() {
    for (words, field) in [
        (&["--writers", "0", "--jobs", "0"][..], "--writers, --jobs"),
        (&["--writers", "1000"], "--writers"),
        (&["--tasks", "33"], "--tasks"),
        (&["--block-size", "0"], "--block-size"),
        (&["--replicas", "33"], "--replicas"),
        (&["--oversubscription", "1,0"], "--oversubscription"),
        (&["--writers", "0", "--packets"], "--packets"),
    ] {
        let done = sim(&[&TIMES[..7], words].concat());
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{said}");
        assert!(said.contains(field), "{said}");
    }
}
