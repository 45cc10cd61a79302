//! `trunkline mount --remote` as a user runs it: a repository in one process, its mount in another, a forwarder between them.

mod common;

use std::fs;
use std::io::Read;
use std::process::Command;

use common::mounts::{MountPoint, can_mount, configure, xattr};
use common::{Bench, Running, same, signal, text, wait};

/// A repository that is served, and a place to mount it; `None` where nothing can be mounted.
struct Served {
    at: MountPoint,
    config: String,
    repository: Running,
    bench: Bench,
}

fn served() -> Option<Served> {
    if !can_mount() {
        return None;
    }
    let bench = Bench::start("");
    let config = configure(&bench);
    let at = MountPoint::new(&bench, "mnt");
    let repository = serve(&bench, &config);
    Some(Served {
        at,
        config,
        repository,
        bench,
    })
}

fn serve(bench: &Bench, config: &str) -> Running {
    let (running, line) = bench.serve(&["repo", "run", "--config", config]);
    assert!(line.contains("serving /data"), "{line}");
    running
}

impl Served {
    fn mount(&self, more: &[&str]) -> Running {
        let key = self.bench.path("store/owner.key.pub").display().to_string();
        let at = self.at.0.display().to_string();
        let arguments = ["mount", &at, "--remote", "/data", "--verify", &key];
        let (running, line) = self.bench.serve(&[&arguments, more].concat());
        assert!(line.contains("until stopped"), "{line}");
        assert!(self.at.is_mounted());
        running
    }
}

/// The most memory that a process has had to itself, in MiB: files and memory that it shares are not counted.
fn own_mib(process: &Running) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.0.id())).expect("a status");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .expect("told");
    let kib: u64 = line
        .split_whitespace()
        .next()
        .and_then(|n| n.parse().ok())
        .expect("a number");
    kib / 1024
}

#[test]
fn a_large_file_comes_whole_in_little_memory() {
    let Some(s) = served() else { return };
    let source = s.bench.file("a.bin", 64 << 20);
    s.bench
        .ok(&["repo", "put", "-c", &s.config, "/data/d/a", "a.bin"]);
    let mut mount = s.mount(&["--cache", "8MiB"]);
    let target = s.bench.path("copy.bin");
    let copied = Command::new("cp")
        .arg(s.at.path("d/a"))
        .arg(&target)
        .status();
    assert!(copied.expect("run").success());
    assert!(same(&source, &target));
    let own = own_mib(&mount);
    assert!(own < 48, "{own} MiB, with a cache of 8");
    assert_eq!(xattr(&s.at.path("d/a"), "user.ndn.verified"), "key");
    signal(&mount.0, "TERM");
    assert_eq!(wait(&mut mount.0), 0);
    assert!(!s.at.is_mounted());
}

#[test]
fn a_repository_that_dies_is_an_error_and_comes_back() {
    let Some(mut s) = served() else { return };
    let source = s.bench.file("a.bin", 16 << 20);
    s.bench
        .ok(&["repo", "put", "-c", &s.config, "/data/a", "a.bin"]);
    let mut mount = s.mount(&["--timeout", "2s", "--cache", "1MiB"]);
    let mut file = fs::File::open(s.at.path("a")).expect("open");
    file.read_exact(&mut [0; 100_000]).expect("read");
    s.repository.0.kill().expect("killed");
    wait(&mut s.repository.0);
    file.read_to_end(&mut Vec::new()).expect_err("it is gone");
    let listed = Command::new("ls")
        .arg("-l")
        .arg(&s.at.0)
        .output()
        .expect("run");
    assert!(!listed.status.success(), "{}", text(&listed.stdout));

    // Nobody answers yet: it is unmounted all the same, and can't be mounted anew.
    signal(&mount.0, "TERM");
    drop(file);
    assert_eq!(wait(&mut mount.0), 0);
    let at = s.at.0.display().to_string();
    let again = ["mount", &at, "--remote", "/data", "--timeout", "1s"];
    let (status, said) = s.bench.fails(&again);
    assert!(
        status == 4 && said.contains("repository serves it"),
        "{said}"
    );

    s.repository = serve(&s.bench, &s.config);
    let _mount = s.mount(&["--timeout", "2s"]);
    s.repository.0.kill().expect("killed");
    wait(&mut s.repository.0);
    fs::read(s.at.path("a")).expect_err("it is gone");
    s.repository = serve(&s.bench, &s.config);
    assert!(same(&source, &s.at.path("a")));
    s.bench.restart();
    common::until(|| fs::metadata(s.at.path("a")).is_ok());
}

#[test]
fn what_is_wrong_is_said() {
    let Some(s) = served() else { return };
    let at = s.at.0.display().to_string();
    for (arguments, status, wanted) in [
        (&["--remote", "/data", "--cache", "1kB"][..], 2, "--cache"),
        (&["--remote", "/data", "--prefix", "/x"][..], 2, "--prefix"),
        (&["--verify", "digest"][..], 2, "--remote"),
        (
            &["--remote", "/data", "--face", "unix:///none"][..],
            3,
            "trunkline fwd run",
        ),
    ] {
        let (found, said) = s.bench.fails(&[&["mount", &at], arguments].concat());
        assert!(
            found == status && said.contains(wanted),
            "{arguments:?}: {found} {said}"
        );
    }
}
