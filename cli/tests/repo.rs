//! `trunkline repo` as a user runs it.

mod common;

use std::fs;
use std::path::Path;

use common::{Bench, noise, same, signal, text, until, wait};
use serde_json::Value;

/// A repository in the bench's folder that serves `/data`.
fn configure(bench: &Bench, more: &str) -> String {
    let config = bench.path("repo.toml");
    fs::write(
        &config,
        format!("[repo]\ndirectory = \"store\"\n{more}\n[[serve]]\nprefix = \"/data\"\n"),
    )
    .expect("a configuration");
    config.display().to_string()
}

fn owner(bench: &Bench) -> String {
    bench.path("store/owner.key.pub").display().to_string()
}

#[test]
fn files_go_in_are_served_verified_and_removed() {
    let bench = Bench::start("");
    let config = configure(&bench, "");
    let file = bench.file("a.bin", 3_000_000);
    let put = bench.json(&["repo", "put", "-c", &config, "/data/a", "a.bin", "--json"]);
    assert_eq!(put["published"][0]["bytes"], 3_000_000);

    let (mut server, line) = bench.serve(&["repo", "run", "--config", &config]);
    assert!(line.contains("serving /data"), "{line}");
    let key = owner(&bench);
    let got = bench.json(&[
        "repo", "get", "/data/a", "-o", "b.bin", "--verify", &key, "--json",
    ]);
    assert_eq!(got["verified"], "key");
    assert!(same(&file, &bench.path("b.bin")));
    bench.ok(&["get", "/data/a", "-o", "c.bin"]);
    assert!(same(&file, &bench.path("c.bin")));

    // The running one takes files, too, and larger segments.
    let second = bench.json(&[
        "repo",
        "put",
        "-c",
        &config,
        "/data/a",
        "a.bin",
        "--segment-size",
        "60000",
        "--json",
    ]);
    assert_eq!(second["published"][0]["segments"], 50);
    let versions = bench.json(&[
        "repo",
        "ls",
        "-c",
        &config,
        "/data/a",
        "--versions",
        "--json",
    ]);
    assert_eq!(versions.as_array().map(Vec::len), Some(2));
    let old = versions[0]["version"].to_string();
    let status = bench.json(&["repo", "status", "-c", &config, "--json"]);
    assert_eq!(
        (&status["files"], &status["running"]),
        (&Value::from(2), &Value::from(true))
    );
    bench.ok(&["repo", "get", "/data/a", "-o", "new.bin", "--verify", &key]);
    bench.ok(&[
        "repo",
        "get",
        "/data/a",
        "-o",
        "old.bin",
        "--version",
        &old,
        "--verify",
        &key,
    ]);
    assert!(same(&file, &bench.path("new.bin")) && same(&file, &bench.path("old.bin")));

    let listed = bench.json(&[
        "repo",
        "ls",
        "/data",
        "--by-name",
        "--verify",
        &key,
        "--json",
    ]);
    assert_eq!(listed, serde_json::json!([{"name": "/data/a"}]));
    let shown = bench.ok(&["repo", "ls", "/data", "--by-name"]);
    assert!(shown.contains("/data/a"), "{shown}");

    bench.ok(&["repo", "rm", "-c", &config, "/data/a", "--keep", "1"]);
    let left = bench.json(&[
        "repo",
        "ls",
        "-c",
        &config,
        "/data/a",
        "--versions",
        "--json",
    ]);
    assert_eq!(left.as_array().map(Vec::len), Some(1));
    assert_ne!(left[0]["version"].to_string(), old);
    bench.ok(&["repo", "verify", "-c", &config]);
    bench.ok(&["repo", "compact", "-c", &config]);
    bench.ok(&["repo", "rm", "-c", &config, "/data/a"]);
    let (status, said) = bench.fails(&["repo", "rm", "-c", &config, "/data/a"]);
    assert!(
        status == 1 && said.contains("/data/a: not in this repository"),
        "{said}"
    );
    signal(&server.0, "TERM");
    assert_eq!(wait(&mut server.0), 0);
}

#[test]
fn a_wrong_key_is_refused() {
    let bench = Bench::start("");
    let config = configure(&bench, "");
    bench.file("a.bin", 100_000);
    bench.ok(&["repo", "put", "-c", &config, "/data/a", "a.bin"]);
    let _server = bench.serve(&["repo", "run", "--config", &config]);
    bench.ok(&["keygen", "ed25519", "other"]);
    let (status, said) = bench.fails(&[
        "repo",
        "get",
        "/data/a",
        "-o",
        "x",
        "--verify",
        "other.pub",
        "--timeout",
        "2s",
    ]);
    assert_eq!(status, 5, "{said}");
}

#[test]
fn a_folder_goes_in_and_is_listed() {
    let bench = Bench::without_forwarder();
    let config = configure(&bench, "segment_size = \"1000\"");
    fs::create_dir_all(bench.path("tree/sub dir")).expect("folders");
    fs::write(bench.path("tree/one"), b"1").expect("a file");
    fs::write(bench.path("tree/sub dir/two"), noise(2500)).expect("a file");
    bench.ok(&["repo", "put", "-c", &config, "/data", "tree"]);
    let rows = bench.json(&["repo", "ls", "-c", &config, "/data", "--json"]);
    let told: Vec<&str> = rows
        .as_array()
        .expect("rows")
        .iter()
        .filter_map(|r| r["folder"].as_str().or(r["name"].as_str()))
        .collect();
    assert_eq!(told, ["/data/one", "/data/sub%20dir"]);
    let shown = bench.ok(&["repo", "ls", "-c", &config, "/data/sub%20dir"]);
    assert!(shown.contains("2500  /data/sub%20dir/two"), "{shown}");
    let removed = bench.json(&["repo", "rm", "-c", &config, "/data", "-r", "--json"]);
    assert_eq!(removed["removed"], 2);
    assert_eq!(bench.ok(&["repo", "ls", "-c", &config]), "nothing\n");
}

#[test]
fn more_files_go_in_at_once_than_a_process_may_open() {
    let bench = Bench::without_forwarder();
    let config = configure(&bench, "");
    for n in 0..1100 {
        let folder = bench.path(&format!("tree/{}", n % 3));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join(n.to_string()), n.to_string()).expect("a file");
    }
    let command = bench.command(&["repo", "put", "-c", &config, "/data", "tree", "--json"]);
    let put = std::process::Command::new("sh")
        .current_dir(bench.path(""))
        .args(["-c", "ulimit -n 40; exec \"$0\" \"$@\""])
        .arg(command.get_program())
        .args(command.get_args())
        .output()
        .expect("a process");
    assert!(put.status.success(), "{}", text(&put.stderr));
    let told: Value = serde_json::from_slice(&put.stdout).expect("JSON");
    assert_eq!(told["published"].as_array().map(Vec::len), Some(1100));
    assert_eq!(told["published"][1099]["name"], "/data/2/998");
    let status = bench.json(&["repo", "status", "-c", &config, "--json"]);
    assert_eq!(status["files"], 1100);
}

#[test]
fn standard_input_is_a_file_of_unknown_size() {
    let bench = Bench::without_forwarder();
    let config = configure(&bench, "");
    let mut child = bench
        .command(&["repo", "put", "-c", &config, "/data/stdin", "-"])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("a process");
    let mut input = child.stdin.take().expect("an input");
    std::io::Write::write_all(&mut input, &noise(20_000)).expect("written");
    drop(input);
    assert_eq!(wait(&mut child), 0);
    let rows = bench.json(&["repo", "ls", "-c", &config, "/data", "--json"]);
    assert_eq!(rows[0]["bytes"], 20_000);
}

#[test]
fn damage_is_found_and_not_served() {
    let bench = Bench::start("");
    let config = configure(&bench, "");
    bench.file("a.bin", 100_000);
    bench.ok(&["repo", "put", "-c", &config, "/data/a", "a.bin"]);
    let content = find(&bench.path("store/files"), 100_000);
    let mut bytes = fs::read(&content).expect("content");
    bytes[50_000] ^= 1;
    fs::write(&content, bytes).expect("damaged");
    let (status, said) = bench.fails(&["repo", "verify", "-c", &config]);
    assert!(status == 5 && said.contains("1 damaged"), "{said}");
    let _server = bench.serve(&["repo", "run", "--config", &config]);
    let (status, said) = bench.fails(&["repo", "get", "/data/a", "-o", "x", "--timeout", "1s"]);
    assert_eq!(status, 4, "{said}");
    let told = bench.json(&["repo", "status", "-c", &config, "--json"]);
    assert!(told["damaged_answers"].as_u64() > Some(0), "{told}");
}

fn find(folder: &Path, size: u64) -> std::path::PathBuf {
    fs::read_dir(folder)
        .expect("a folder")
        .flat_map(|shard| fs::read_dir(shard.expect("an entry").path()).expect("a shard"))
        .map(|entry| entry.expect("an entry"))
        .find(|entry| entry.metadata().expect("facts").len() == size)
        .expect("the content")
        .path()
}

#[test]
fn an_interrupted_put_and_get_go_on() {
    let bench = Bench::start("");
    let config = configure(&bench, "");
    let file = bench.file("a.bin", 60_000_000);
    // A put that is killed leaves what has come.
    let mut killed = false;
    for _ in 0..50 {
        let mut child = bench
            .command(&["repo", "put", "-c", &config, "/data/a", "a.bin"])
            .spawn()
            .expect("a process");
        let incoming = bench.path("store/incoming");
        until(|| {
            child.try_wait().expect("a status").is_some()
                || fs::read_dir(&incoming).is_ok_and(|mut d| {
                    // The manifest of a third; the content has its room from the start.
                    d.any(|e| {
                        e.is_ok_and(|e| {
                            e.file_name().to_string_lossy().ends_with(".m")
                                && e.metadata().is_ok_and(|m| m.len() > 90_000)
                        })
                    })
                })
        });
        let _ = child.kill();
        killed = !child.wait().expect("a status").success();
        if killed {
            break;
        }
        bench.ok(&["repo", "rm", "-c", &config, "/data/a"]);
    }
    assert!(killed, "it was always faster");
    assert_eq!(bench.ok(&["repo", "ls", "-c", &config]), "nothing\n");
    let put = bench.json(&["repo", "put", "-c", &config, "/data/a", "a.bin", "--json"]);
    assert!(put["resumed_bytes"].as_u64() > Some(0), "{put}");

    let _server = bench.serve(&["repo", "run", "--config", &config]);
    let mut child = bench
        .command(&[
            "repo", "get", "/data/a", "-o", "b.bin", "--window", "fixed:1",
        ])
        .spawn()
        .expect("a process");
    let part = bench.path("b.bin.part");
    until(|| fs::metadata(&part).is_ok_and(|m| m.len() > 100_000));
    signal(&child, "INT");
    assert_eq!(wait(&mut child), 130);
    assert!(!bench.path("b.bin").exists());
    let got = bench.json(&["repo", "get", "/data/a", "-o", "b.bin", "--json"]);
    assert!(got["resumed_bytes"].as_u64() > Some(0), "{got}");
    assert!(same(&file, &bench.path("b.bin")));
    assert!(!part.exists() && !bench.path("b.bin.part.json").exists());
}

#[test]
fn two_repositories_on_a_folder_and_wrong_settings_are_refused() {
    let bench = Bench::start("");
    let config = configure(&bench, "");
    assert!(
        bench
            .ok(&["repo", "run", "--config", &config, "--check"])
            .contains("configuration is valid")
    );
    let _server = bench.serve(&["repo", "run", "--config", &config]);
    let second = bench.fails(&["repo", "run", "--config", &config]);
    assert!(
        second.1.contains("another repository uses this folder"),
        "{}",
        second.1
    );
    let wrong = configure(&bench, "segment_size = \"0\"");
    let (status, said) = bench.fails(&["repo", "run", "--config", &wrong]);
    assert!(status == 2 && said.contains("repo.segment_size"), "{said}");
    let none = bench.run(&["repo", "ls", "-c", "none.toml"]);
    assert_eq!(none.status.code(), Some(2), "{}", text(&none.stderr));
}

#[test]
fn a_repository_elsewhere_fetches_what_is_put_and_refuses_strangers() {
    let bench = Bench::start("");
    bench.ok(&["keygen", "ed25519", "alice"]);
    bench.ok(&["keygen", "ed25519", "mallory"]);
    fs::write(
        bench.path("trust.toml"),
        "[[key]]\npublic = \"alice.pub\"\nprefix = \"/data/alice\"\ndelete = true\n",
    )
    .expect("a policy");
    let config = configure(&bench, "name = \"/repo\"\ntrust = \"trust.toml\"");
    let _server = bench.serve(&["repo", "run", "--config", &config]);
    let file = bench.file("a.bin", 1_000_000);
    let owner = owner(&bench);
    let put = |name: &str, key: &str, owner: &str| {
        let key = format!("ed25519:{key}");
        let words = [
            "repo",
            "put",
            name,
            "a.bin",
            "--version",
            "7",
            "--to",
            "/repo",
            "--sign",
        ];
        bench.run(&[&words[..], &[&key, "--verify", owner]].concat())
    };
    // Whoever answers must be the repository.
    let forged = put("/data/alice/a", "alice", "mallory.pub");
    let said = text(&forged.stderr);
    assert_eq!(forged.status.code(), Some(5), "{said}");
    assert!(said.contains("signed by another key"), "{said}");
    let done = put("/data/alice/a", "alice", &owner);
    assert!(done.status.success(), "{}", text(&done.stderr));
    for (name, key) in [("/data/alice/b", "mallory"), ("/data/bob", "alice")] {
        let refused = put(name, key, &owner);
        assert_eq!(refused.status.code(), Some(1));
        assert!(
            text(&refused.stderr).contains("status 401"),
            "{}",
            text(&refused.stderr)
        );
    }
    // Nobody serves it any more but the repository.
    bench.ok(&["get", "--no-metadata", "/data/alice/a/v=7", "-o", "b.bin"]);
    assert!(same(&file, &bench.path("b.bin")));
    let told = bench.json(&["repo", "status", "-c", &config, "--json"]);
    assert_eq!(told["packets"], 125);
    assert_eq!(told["commands"]["wrong_signature"], 1);
    assert_eq!(told["commands"]["forbidden"], 1);
    bench.ok(&["repo", "verify", "-c", &config]);
    let rm = [
        "repo",
        "rm",
        "/data/alice/a",
        "--version",
        "7",
        "--to",
        "/repo",
        "--sign",
    ];
    let forged = bench.fails(&[&rm[..], &["ed25519:alice"]].concat());
    assert!(
        forged.0 == 5 && forged.1.contains("signed by another key"),
        "{}",
        forged.1
    );
    // It was carried out all the same: the key may do it.
    let again = bench.fails(&[&rm[..], &["ed25519:alice", "--verify", &owner]].concat());
    assert_eq!(again.0, 4, "{}", again.1);
    let told = bench.json(&["repo", "status", "-c", &config, "--json"]);
    assert_eq!(told["packets"], 0);
}

/// A put of `a.bin` as version 7 of `/data/a` to the repository that takes commands under `/repo`.
fn put_elsewhere(key: &str) -> [&str; 10] {
    [
        "repo",
        "put",
        "/data/a",
        "a.bin",
        "--to",
        "/repo",
        "--sign",
        key,
        "--version",
        "7",
    ]
}

/// Bytes of the logs that packets of elsewhere are in.
fn bytes_in_logs(bench: &Bench) -> u64 {
    let logs = fs::read_dir(bench.path("store/packets")).expect("logs");
    logs.map(|log| {
        log.expect("a log")
            .metadata()
            .map_or(0, |facts| facts.len())
    })
    .sum()
}

/// That what [`put_elsewhere`] has put is all there: 160 MB, in logs of less than so many bytes.
fn is_all_there(bench: &Bench, config: &str, log_bytes: u64) {
    bench.ok(&["get", "--no-metadata", "/data/a/v=7", "-o", "b.bin"]);
    assert!(same(&bench.path("a.bin"), &bench.path("b.bin")));
    let told = bench.json(&["repo", "status", "-c", config, "--json"]);
    assert_eq!(told["packets"], 20_000);
    let found = told["log_bytes"].as_u64().expect("bytes");
    assert!(found < log_bytes, "{found}");
}

#[test]
fn an_interrupted_put_to_a_repository_elsewhere_goes_on() {
    let bench = Bench::start("");
    let config = configure(&bench, "name = \"/repo\"");
    let _server = bench.serve(&["repo", "run", "--config", &config]);
    bench.file("a.bin", 160_000_000);
    let key = format!("ed25519:{}", bench.path("store/owner.key").display());
    let put = put_elsewhere(&key);
    let mut first = bench
        .command(&put)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("a process");
    until(|| bytes_in_logs(&bench) > 1_000_000);
    signal(&first, "INT");
    assert_eq!(wait(&mut first), 130);
    let said = std::io::read_to_string(first.stderr.take().expect("a pipe")).expect("text");
    assert!(said.contains("--version 7 to resume"), "{said}");
    let told = bench.json(&["repo", "status", "-c", &config, "--json"]);
    assert_eq!(told["packets"], 0, "what is not whole is not there");
    bench.ok(&put);
    // No packet is in the logs twice.
    is_all_there(&bench, &config, 165_000_000);
}

#[test]
fn a_put_to_a_repository_that_is_killed_meanwhile_goes_on() {
    let bench = Bench::start("");
    let config = configure(&bench, "name = \"/repo\"");
    let server = bench.serve(&["repo", "run", "--config", &config]);
    bench.file("a.bin", 160_000_000);
    let key = format!("ed25519:{}", bench.path("store/owner.key").display());
    let put = put_elsewhere(&key);
    let mut putting = bench.command(&put).spawn().expect("a process");
    until(|| bytes_in_logs(&bench) > 20_000_000);
    // By SIGKILL.
    drop(server);
    let _server = bench.serve(&["repo", "run", "--config", &config]);
    let told = bench.json(&["repo", "status", "-c", &config, "--json"]);
    assert_eq!(told["packets"], 0, "it was killed before all had come");
    assert_eq!(wait(&mut putting), 0);
    // What had come has not travelled again, but for the last of it.
    is_all_there(&bench, &config, 172_000_000);
}

#[test]
fn a_cluster_has_a_prefix_of_its_own() {
    let bench = Bench::start("");
    let config = configure(&bench, "name = \"/data/repo\"");
    bench.file("a.bin", 10);
    let url = "hdfs://namenode:8020/published";
    let run = ["repo", "run", "--config", &config, "--store", url];
    let refused = |more: &[&str]| bench.fails(&[&run[..], more].concat());
    let (status, said) = refused(&["--check"]);
    assert!(status == 2 && said.contains("store.prefix /data"), "{said}");
    let store = |prefix: &str| configure(&bench, &format!("[store]\nprefix = \"{prefix}\""));
    store("/elsewhere");
    let (status, said) = refused(&["--check"]);
    assert!(status == 2 && said.contains("add a [[serve]]"), "{said}");
    store("/data/cluster");
    bench.ok(&[&run[..], &["--check"]].concat());
    bench.ok(&["repo", "put", "-c", &config, "/data/cluster/a", "a.bin"]);
    let (status, said) = refused(&[]);
    assert!(
        status == 2 && said.contains("files or packets of its own under it"),
        "{said}"
    );
    let (status, said) = bench.fails(&["repo", "run", "--config", &config, "--store", "hdfs:/x"]);
    assert!(
        status == 2 && said.contains("hdfs://namenode:port/path"),
        "{said}"
    );
}

#[test]
fn packets_that_a_cluster_would_hide_are_not_taken() {
    let bench = Bench::start("");
    let config = configure(
        &bench,
        "name = \"/repo\"\n[store]\nprefix = \"/data/a\"\nweb = \"127.0.0.1:9\"",
    );
    bench.file("a.bin", 10);
    let run = ["repo", "run", "--config", &config];
    let with_store = [&run[..], &["--store", "hdfs://namenode:8020/x"]].concat();
    let server = bench.serve(&with_store);
    let key = format!("ed25519:{}", bench.path("store/owner.key").display());
    let (status, said) = bench.fails(&put_elsewhere(&key));
    assert!(
        status == 1 && said.contains("whether a cluster has this name"),
        "{said}"
    );
    drop(server);
    let server = bench.serve(&run);
    bench.ok(&put_elsewhere(&key));
    drop(server);
    let (status, said) = bench.fails(&with_store);
    assert!(
        status == 2 && said.contains("packets of its own under it"),
        "{said}"
    );
}
