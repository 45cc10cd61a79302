//! `trunkline mount` and `repo run --mount` as a user runs them.

mod common;

use std::fs::{self, File};
use std::io::Write;
use std::process::Command;

use common::mounts::{MountPoint, can_mount, configure, xattr};
use common::{Bench, Running, noise, signal, until, wait};

/// A folder with a repository that is not mounted yet; `None` where nothing can be.
fn unmounted(bench: Bench) -> Option<(Bench, String, MountPoint)> {
    if !can_mount() {
        return None;
    }
    let config = configure(&bench);
    let at = MountPoint::new(&bench, "mnt");
    Some((bench, config, at))
}

fn mount(bench: &Bench, config: &str, at: &MountPoint) -> Running {
    let at_path = at.0.display().to_string();
    let (running, line) = bench.serve(&["mount", &at_path, "-c", config]);
    assert!(line.contains("until stopped"), "{line}");
    assert!(at.is_mounted());
    running
}

#[test]
fn files_go_through_and_a_signal_unmounts() {
    let Some((bench, config, at)) = unmounted(Bench::without_forwarder()) else {
        return;
    };
    let mut running = mount(&bench, &config, &at);
    let source = bench.file("a.bin", 2_000_000);
    let copied = Command::new("cp").arg(&source).arg(at.path("a")).status();
    assert!(copied.expect("run").success());
    let listed = bench.json(&["repo", "ls", "-c", &config, "--json"]);
    assert_eq!(
        listed[0]["name"], "/a",
        "the door is open while it is mounted"
    );
    bench.ok(&["repo", "put", "-c", &config, "/b", "a.bin"]);
    assert!(common::same(&source, &at.path("b")));

    let path = at.0.display().to_string();
    let (status, said) = bench.fails(&["mount", &path, "-c", &config]);
    assert_eq!(status, 1);
    assert!(
        said.contains("another repository uses this folder") && said.contains("repo run --config"),
        "{said}"
    );
    signal(&running.0, "TERM");
    assert_eq!(wait(&mut running.0), 0);
    assert!(!at.is_mounted());
    bench.ok(&["repo", "verify", "-c", &config]);

    // Unmounted by somebody else: the command ends.
    let mut running = mount(&bench, &config, &at);
    assert!(common::same(&source, &at.path("a")));
    let done = Command::new("umount").arg(&at.0).status();
    assert!(done.expect("run").success());
    assert_eq!(wait(&mut running.0), 0);
}

#[test]
fn what_was_synced_outlives_a_kill() {
    let Some((bench, config, at)) = unmounted(Bench::without_forwarder()) else {
        return;
    };
    let mut running = mount(&bench, &config, &at);
    fs::create_dir(at.path("d")).expect("made");
    let closed = noise(1_500_000);
    let mut file = File::create(at.path("d/closed")).expect("made");
    file.write_all(&closed).expect("written");
    drop(file);
    File::open(at.path("d/closed"))
        .and_then(|f| f.sync_all())
        .expect("synced");
    let open = noise(2_500_000);
    let mut writing = File::create(at.path("d/open")).expect("made");
    writing.write_all(&open).expect("written");
    writing.sync_all().expect("synced");
    let mut replaced = fs::OpenOptions::new()
        .append(true)
        .open(at.path("d/closed"))
        .expect("open");
    replaced.write_all(b"more").expect("written");
    replaced.sync_data().expect("synced");

    running.0.kill().expect("killed");
    wait(&mut running.0);
    assert!(writing.write_all(b"x").is_err());
    drop((writing, replaced));
    at.detach();

    let _running = mount(&bench, &config, &at);
    assert!(fs::read(at.path("d/open")).expect("read") == open);
    let found = fs::read(at.path("d/closed")).expect("read");
    assert!(found == [&closed[..], b"more"].concat());
    let versions = bench.json(&[
        "repo",
        "ls",
        "-c",
        &config,
        "/d/closed",
        "--versions",
        "--json",
    ]);
    assert_eq!(versions.as_array().map(Vec::len), Some(2));
    bench.ok(&["repo", "verify", "-c", &config]);
}

#[test]
fn what_is_written_is_on_the_network_once_it_is_closed() {
    let Some((bench, config, at)) = unmounted(Bench::start("")) else {
        return;
    };
    let path = at.0.display().to_string();
    let (mut running, line) = bench.serve(&["repo", "run", "--config", &config, "--mount", &path]);
    assert!(line.contains("serving /data"), "{line}");
    let source = bench.file("a.bin", 700_000);
    fs::create_dir(at.path("data")).expect("made");
    fs::copy(&source, at.path("data/a")).expect("copied");
    let key = bench.path("store/owner.key.pub").display().to_string();
    bench.ok(&["repo", "get", "/data/a", "-o", "b.bin", "--verify", &key]);
    assert!(common::same(&source, &bench.path("b.bin")));
    let signature = xattr(&at.path("data/a"), "user.ndn.signature");
    assert!(signature.starts_with("ed25519"), "{signature}");
    signal(&running.0, "TERM");
    assert_eq!(wait(&mut running.0), 0);
    until(|| !at.is_mounted());
}

#[test]
fn what_is_wrong_is_said() {
    let bench = Bench::without_forwarder();
    let config = configure(&bench);
    let (status, said) = bench.fails(&["mount", "mnt"]);
    assert!(status == 2 && said.contains("TRUNKLINE_REPO"), "{said}");
    if !can_mount() {
        return;
    }
    let (status, said) = bench.fails(&["mount", "none", "-c", &config]);
    assert!(
        status == 2 && said.contains("none: ") && said.contains("make the folder"),
        "{said}"
    );
}
