//! A mount of a repository elsewhere whose answers are late or do not come: who waits for what, and for how long.

mod common;

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::world::{Conduct, TIMEOUT, World};
use common::{errno, name, noise, publish, publish_as, words};
use ndn_endpoint::VerifyPolicy;
use ndn_mount::RemoteOptions;
use ndn_packet::Name;
use ndn_repo::{PutOptions, manifest_name};
use rustix::process::{Pid, Signal, kill_process};

/// Longer than any test takes.
const NEVER: Duration = Duration::from_secs(3600);

/// Waits until `is_so`, which it must be some time.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Lets a program that waits end by a signal, which it must.
fn end(program: &mut Child) {
    assert!(program.try_wait().expect("a child").is_none(), "it waits");
    // Not SIGINT: what a script starts in the background is born ignoring it.
    kill_process(Pid::from_child(program), Signal::TERM).expect("a process");
    let mut ended = None;
    until("the signal ends it", || {
        ended = program.try_wait().expect("a child");
        ended.is_some()
    });
    let by = ended.and_then(|status| status.signal());
    assert_eq!(by, Some(Signal::TERM.as_raw()));
}

#[test]
fn reads_that_are_ended_by_a_signal_keep_nobody_waiting() {
    let Some(mut w) = World::new() else { return };
    // As many calls as a mount answers at once.
    let files: Vec<_> = (0..16)
        .map(|n| {
            let name = name(&format!("/data/silent/{n}"));
            let version = publish(&w.repo, &name.to_string(), &noise(10_000, n));
            (n, name.append_version(version).append_segment(0))
        })
        .collect();
    publish(&w.repo, "/data/other", b"other");
    w.mount_with(RemoteOptions {
        // No manifest is asked for when a file is opened.
        verify: VerifyPolicy::default(),
        timeout: NEVER,
        remember: NEVER,
        ..w.options()
    });
    assert_eq!(words(&w.path("")), ["other", "silent"]);
    let silent = w.path("silent");
    assert_eq!(words(&silent).len(), files.len());
    w.conduct(Conduct::SilenceUnder(name("/data/silent")));
    let read = |(n, segment): &(u64, Name)| {
        let mut cat = Command::new("cat");
        cat.arg(silent.join(n.to_string())).stdout(Stdio::null());
        let child = cat.spawn().expect("cat");
        until("it is asked for", || w.times_asked(segment) > 0);
        child
    };
    let mut readers: Vec<Child> = files.iter().map(read).collect();
    readers.iter_mut().for_each(end);
    let other = w.path("other");
    let reads = std::thread::spawn(move || fs::read(other).expect("read"));
    until("another file is read", || reads.is_finished());
    assert_eq!(reads.join().expect("no panic"), b"other");
}

#[test]
fn a_read_past_the_page_cache_is_ended_by_a_signal() {
    let Some(mut w) = World::new() else { return };
    let version = publish(&w.repo, "/data/f", &noise(10_000, 6));
    w.mount_with(RemoteOptions {
        verify: VerifyPolicy::default(),
        timeout: NEVER,
        remember: NEVER,
        ..w.options()
    });
    assert_eq!(words(&w.path("")), ["f"]);
    w.conduct(Conduct::Silence);
    // The kernel waits with its end until the call is answered.
    let mut dd = Command::new("dd");
    dd.arg(format!("if={}", w.path("f").display()));
    dd.arg("iflag=direct").stdout(Stdio::null());
    let mut dd = dd.stderr(Stdio::null()).spawn().expect("dd");
    let segment = name("/data/f").append_version(version).append_segment(0);
    until("it is asked for", || w.times_asked(&segment) > 0);
    end(&mut dd);
}

#[test]
fn what_comes_slowly_comes() {
    let Some(mut w) = World::new() else { return };
    let content = noise(2_000_000, 2);
    publish(&w.repo, "/data/f", &content);
    w.mount();
    // So that each read is one call, whatever its length.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(w.path("f"))
        .expect("open");
    let each = Duration::from_millis(30);
    w.conduct(Conduct::Slow(each));
    let read = |from: usize, len: usize| {
        let mut seen = vec![0; len];
        file.read_exact_at(&mut seen, from as u64)
            .map(|()| assert!(seen == content[from..from + len]))
    };
    // What the second waits for comes after all that the first has asked for: in more time than nothing may come.
    let far = 1_000_000;
    assert!(each * (far as u32 / 8000) > TIMEOUT * 2);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| read(0, far));
        std::thread::sleep(each * 4);
        let second = scope.spawn(|| read(far, 50_000));
        first.join().expect("no panic").expect("read");
        second.join().expect("no panic").expect("read");
    });
}

#[test]
fn the_same_is_asked_once_by_all_who_want_it() {
    let Some(mut w) = World::new() else { return };
    publish(&w.repo, "/data/d/f", b"f");
    w.mount_with(RemoteOptions {
        remember: NEVER,
        ..w.options()
    });
    w.conduct(Conduct::Slow(Duration::from_millis(200)));
    std::thread::scope(|scope| {
        for n in 0..8 {
            let path = w.path(&format!("d/none{n}"));
            scope.spawn(|| assert_eq!(errno(fs::metadata(path)), libc::ENOENT));
        }
    });
    let listing = name("/data/d/32=ls/32=metadata");
    // A question may be asked again on a slow machine, but not by each of the eight.
    let times = w.times_asked(&listing);
    assert!((1..4).contains(&times), "asked {times} times");
}

#[test]
fn a_manifest_is_fetched_once_by_all_who_open_its_file() {
    let Some(mut w) = World::new() else { return };
    // Segments with room for one digest: its manifest has as many, more than are asked for at first.
    let options = PutOptions {
        segment_bytes: 32,
        ..PutOptions::default()
    };
    let version = publish_as(&w.repo, "/data/f", &noise(30 * 32, 5), &options);
    w.mount_with(RemoteOptions {
        // What is asked again on a slow machine is answered in its turn, before what nobody has had.
        timeout: Duration::from_secs(60),
        remember: NEVER,
        ..w.options()
    });
    assert_eq!(words(&w.path("")), ["f"]);
    w.conduct(Conduct::Slow(Duration::from_millis(50)));
    let manifest = manifest_name(&name("/data/f").append_version(version));
    let (begin, end) = (manifest.append_segment(0), manifest.append_segment(29));
    let path = w.path("f");
    let open = || drop(File::open(&path).expect("open"));
    std::thread::scope(|scope| {
        scope.spawn(open);
        until("its end is asked for", || w.times_asked(&end) > 0);
        // What it begins with has come: nobody asks for it again who has not been asking.
        let times = w.times_asked(&begin);
        assert!(times > 0);
        open();
        assert_eq!(w.times_asked(&begin), times);
    });
}

#[test]
fn nobody_waits_for_what_is_listed_beside_his_file() {
    let Some(mut w) = World::new() else { return };
    publish(&w.repo, "/data/d/f", b"f");
    publish(&w.repo, "/data/d/g", b"g");
    w.mount_with(RemoteOptions {
        // Longer than the test waits for the other file.
        timeout: Duration::from_secs(60),
        remember: NEVER,
        ..w.options()
    });
    let silent = name("/data/d/g/32=metadata");
    w.conduct(Conduct::SilenceUnder(silent.clone()));
    let (folder, other) = (w.path("d"), w.path("d/f"));
    std::thread::scope(|scope| {
        let lists = scope.spawn(|| words(&folder));
        until("it is asked for", || w.times_asked(&silent) > 0);
        let reads = scope.spawn(|| fs::read(&other).expect("read"));
        until("the other is read", || reads.is_finished());
        assert!(!lists.is_finished(), "nothing was told of the silent one");
        w.conduct(Conduct::Answer);
        assert_eq!(reads.join().expect("read"), b"f");
        assert_eq!(lists.join().expect("listed"), ["f", "g"]);
    });
}

#[test]
fn files_are_opened_read_and_closed_by_many_at_once() {
    let Some(mut w) = World::new() else { return };
    let content = noise(400_000, 3);
    publish(&w.repo, "/data/f", &content);
    w.mount_with(RemoteOptions {
        cache_bytes: 1 << 16,
        ..w.options()
    });
    std::thread::scope(|scope| {
        for reader in 0..6 {
            let (path, content) = (w.path("f"), &content);
            scope.spawn(move || {
                for n in 0..60 {
                    let at = (reader * 61 + n * 7919) * 997 % (content.len() - 5000);
                    let file = File::open(&path).expect("open");
                    // Nothing is kept by the system either.
                    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)
                        .expect("advice");
                    let mut seen = [0; 5000];
                    file.read_exact_at(&mut seen, at as u64).expect("read");
                    assert!(seen == content[at..at + 5000]);
                }
            });
        }
    });
}

#[test]
fn who_has_a_file_open_reads_on_while_it_is_unmounted() {
    let Some(mut w) = World::new() else { return };
    let content = noise(3_000_000, 4);
    publish(&w.repo, "/data/f", &content);
    w.mount();
    let file = File::open(w.path("f")).expect("open");
    let mount = w.mount.take().expect("mounted");
    let ending = std::thread::spawn(move || mount.unmount());
    until("it is unmounted", || words(&w.path("")).is_empty());
    let mut seen = vec![0; 10_000];
    file.read_exact_at(&mut seen, 2_500_000).expect("read");
    assert!(seen == content[2_500_000..][..10_000]);
    drop(file);
    ending.join().expect("no panic").expect("unmounted");
}
