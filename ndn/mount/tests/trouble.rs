//! What goes wrong around a mount: full disks, bit rot, being unmounted in the middle of work, many files at once.

mod common;

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use common::{Mounted, can_mount, mounted, name, noise, open, words};
use ndn_mount::MountOptions;
use ndn_packet::Name;
use rustix::fs::{FallocateFlags, fallocate};

/// Held by each test: a command that another one starts closes, as it begins, what this process has open, and a mount
/// publishes what is closed. What is written to it after that is a version of its own, which needs room for both.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run(command: &str, arguments: &[&str]) {
    let done = Command::new(command).args(arguments).output();
    let done = done.expect("run");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{command} {arguments:?}: {said}");
}

/// A file system of few bytes in memory, gone when it is dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn new(path: &Path, bytes: u64) -> Self {
        fs::create_dir(path).expect("a folder");
        let size = format!("size={bytes}");
        let path_text = path.display().to_string();
        run("mount", &["-t", "tmpfs", "-o", &size, "none", &path_text]);
        SmallDisk(path.to_owned())
    }

    /// What lies on it, and what is free, for a test that fails.
    fn listing(&self) -> String {
        let (free, path) = ("df --output=avail -B1", self.0.display());
        let found = Command::new("sh")
            .arg("-c")
            .arg(format!(
                "{free} {path}; find {path} -type f -printf '%b x 512, %s bytes %p\\n'"
            ))
            .output()
            .expect("run");
        String::from_utf8_lossy(&found.stdout).into_owned()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        run("umount", &["-l", &self.0.display().to_string()]);
    }
}

/// A repository on a small disk, mounted.
fn mounted_small() -> Option<(Mounted, SmallDisk)> {
    if !can_mount() {
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let disk = SmallDisk::new(&folder.path().join("store"), 24 << 20);
    fs::create_dir(folder.path().join("mnt")).expect("a folder");
    let mut m = Mounted {
        repo: open(&folder.path().join("store")),
        mount: None,
        folder,
    };
    m.mount_again(&MountOptions::default());
    Some((m, disk))
}

#[test]
fn room_that_a_program_has_reserved_is_there_on_a_full_disk() {
    let _alone = alone();
    const LEN: usize = 3 << 20;
    let content = noise(LEN, 6);
    for flags in [FallocateFlags::empty(), FallocateFlags::KEEP_SIZE] {
        let Some((m, disk)) = mounted_small() else {
            return;
        };
        let file = File::create(m.path("f")).expect("made");
        // The beginning has room already.
        file.write_all_at(&content[..100_000], 0).expect("written");
        fallocate(&file, flags, 50_000, LEN as u64 - 50_000).expect("reserved");
        let filler = disk.0.join("filler");
        let full = fs::write(&filler, vec![1; 24 << 20]).expect_err("full");
        assert_eq!(full.raw_os_error(), Some(libc::ENOSPC));
        for (n, part) in content.chunks(100_000).enumerate() {
            file.write_all_at(part, n as u64 * 100_000)
                .unwrap_or_else(|e| panic!("part {n}, {flags:?}: {e}; {}", disk.listing()));
        }
        fs::remove_file(filler).expect("removed");
        drop(file);
        assert!(m.published("/f").expect("there") == content);
    }
}

#[test]
fn what_a_full_disk_has_taken_of_a_write_is_told() {
    let _alone = alone();
    let content = noise(20 << 20, 7);
    for in_order in [true, false] {
        let Some((m, disk)) = mounted_small() else {
            return;
        };
        let filler = disk.0.join("filler");
        fs::write(&filler, vec![1; 4 << 20]).expect("written");
        let file = File::create(m.path("f")).expect("made");
        if !in_order {
            file.write_all_at(&content[1..2], 1).expect("written");
        }
        let mut at = 0;
        // No part of anything.
        let full = loop {
            match file.write_at(&content[at..at + 300_001], at as u64) {
                Ok(n) => at += n,
                Err(error) => break error,
            }
        };
        assert_eq!(full.raw_os_error(), Some(libc::ENOSPC));
        fs::remove_file(filler).expect("removed");
        drop(file);
        let found = m.published("/f").expect("there is room again");
        assert_eq!(found.len(), at);
        assert!(found == content[..at]);
    }
}

#[test]
fn a_full_disk_loses_nothing() {
    let _alone = alone();
    let Some((m, disk)) = mounted_small() else {
        return;
    };
    let kept = noise(5_000_000, 1);
    fs::write(m.path("kept"), &kept).expect("written");
    let large = noise(6_000_000, 2);
    fs::write(m.path("ballast"), &large).expect("written");

    // It goes on where it stopped, once there is room.
    let content = noise(20_000_000, 3);
    let file = File::create(m.path("grows")).expect("made");
    let mut at = 0;
    let full = loop {
        let end = content.len().min(at + 100_000);
        match file.write_all_at(&content[at..end], at as u64) {
            Ok(()) if end == content.len() => panic!("it was not full"),
            Ok(()) => at = end,
            Err(error) => break error,
        }
    };
    assert_eq!(full.raw_os_error(), Some(libc::ENOSPC), "{full}");
    assert!(at > 5_000_000, "{at}");
    assert!(fs::read(m.path("kept")).expect("read") == kept);
    fs::remove_file(m.path("ballast")).expect("removed");
    let mut end = 0;
    for _ in 0..1000 {
        end = content.len().min(at + 3_000_000);
        if file.write_all_at(&content[at..end], at as u64).is_ok() {
            at = end;
            break;
        }
        // Its room comes back by the next sync.
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(at, end, "{}", disk.listing());
    drop(file);
    assert!(m.published("/grows").expect("there") == content[..at]);
    assert!(m.published("/kept").expect("there") == kept);
}

#[test]
fn what_the_disk_has_changed_is_never_read() {
    let _alone = alone();
    let Some(m) = mounted() else { return };
    let content = noise(1_000_000, 4);
    fs::write(m.path("f"), &content).expect("written");
    fs::write(m.path("whole"), &content).expect("written");
    let info = m
        .repo
        .find(&name("/f"), None)
        .expect("read")
        .expect("there");
    rot(&m, info.entry.content);
    let read = fs::read(m.path("f")).expect_err("damaged");
    assert_eq!(read.raw_os_error(), Some(libc::EIO));
    let file = File::open(m.path("f")).expect("open");
    let mut seen = [0; 1000];
    file.read_exact_at(&mut seen, 0)
        .expect("this part is whole");
    assert_eq!(seen, content[..1000]);
    // Nor copied into a new version.
    let mut appending = OpenOptions::new()
        .append(true)
        .open(m.path("f"))
        .expect("open");
    let written = appending.write_all(b"x");
    assert_eq!(
        written.expect_err("damaged").raw_os_error(),
        Some(libc::EIO)
    );
    drop(appending);
    // Nor signed under another name.
    let moved = fs::rename(m.path("f"), m.path("g")).expect_err("damaged");
    assert_eq!(moved.raw_os_error(), Some(libc::EIO));
    assert!(m.published("/g").is_none());
    assert_eq!(m.versions("/f").len(), 1);
    assert!(fs::read(m.path("whole")).expect("read") == content);
    fs::write(m.path("f"), b"anew").expect("written");
    assert_eq!(fs::read(m.path("f")).expect("read"), b"anew");
}

/// Flips a bit in the middle of a content file.
fn rot(m: &Mounted, content: u64) {
    let store = m.folder.path().join("store");
    let id = format!("{content:016x}");
    let path = [
        store.join("incoming").join(&id),
        store.join("files").join(&id[..2]).join(&id),
    ]
    .into_iter()
    .find(|path| path.exists())
    .expect("a content file");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .expect("open");
    let at = file.metadata().expect("there").len() / 2;
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("read");
    file.write_all_at(&[byte[0] ^ 1], at).expect("written");
}

#[test]
fn unmounted_under_load() {
    let _alone = alone();
    let Some(mut m) = mounted() else { return };
    let device = fs::metadata(m.root()).expect("there").dev();
    let stop = AtomicBool::new(false);
    let mount = m.mount.take().expect("mounted");
    let root = m.root();
    let acknowledged: Vec<(String, Vec<u8>)> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (root, stop) = (&root, &stop);
                scope.spawn(move || {
                    let mut done = Vec::new();
                    for n in 0.. {
                        let file_name = format!("{writer}-{n}");
                        let content = noise(50_000 * (n % 40 + 1), (writer * 1000 + n) as u64);
                        let Ok(mut file) = File::create(root.join(&file_name)) else {
                            break;
                        };
                        if file.metadata().map_or(0, |found| found.dev()) != device {
                            break; // The folder below: it is unmounted.
                        }
                        let written = content.chunks(70_000).try_for_each(|c| file.write_all(c));
                        if written.and_then(|()| file.sync_all()).is_err() {
                            break;
                        }
                        done.push((file_name, content));
                        if n > 400 || stop.load(Ordering::Relaxed) && n > 5 {
                            break;
                        }
                    }
                    done
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(700));
        mount.unmount().expect("unmounted");
        stop.store(true, Ordering::Relaxed);
        writers
            .into_iter()
            .flat_map(|writer| writer.join().expect("no panic"))
            .collect()
    });
    assert!(acknowledged.len() > 8, "{}", acknowledged.len());
    for (file, content) in &acknowledged {
        let found = m.published(&format!("/{file}"));
        assert!(found.as_ref() == Some(content), "{file}");
    }
    let report = m.repo.verify(&Name::new(), &mut |_| true).expect("read");
    assert_eq!(report.damaged, []);
    m.mount_again(&MountOptions::default());
    assert!(words(&m.root()).len() >= acknowledged.len());
}

#[test]
fn taken_away_by_somebody_else() {
    let _alone = alone();
    let Some(mut m) = mounted() else { return };
    let mut open = File::create(m.path("f")).expect("made");
    open.write_all(b"written").expect("written");
    run("umount", &["-l", &m.root().display().to_string()]);
    // What is mounted there since is none of ours.
    let other = noise(10, 1);
    let path_text = m.root().display().to_string();
    run(
        "mount",
        &["-t", "tmpfs", "-o", "size=65536", "none", &path_text],
    );
    fs::write(m.path("other"), &other).expect("written");
    m.unmount();
    assert!(fs::read(m.path("other")).expect("still there") == other);
    run("umount", &["-l", &path_text]);
    drop(open);
    assert_eq!(m.published("/f").as_deref(), Some(&b"written"[..]));
}

#[test]
fn many_small_files() {
    let _alone = alone();
    const FILES: usize = 3000;
    let Some(mut m) = mounted() else { return };
    fs::create_dir(m.path("many")).expect("made");
    for n in 0..FILES {
        fs::write(m.path(&format!("many/{n:05}")), format!("{n}")).expect("written");
    }
    let all: Vec<String> = (0..FILES).map(|n| format!("{n:05}")).collect();
    assert_eq!(words(&m.path("many")), all);
    for n in (0..FILES).step_by(97) {
        let read = fs::read_to_string(m.path(&format!("many/{n:05}")));
        assert_eq!(read.expect("read"), format!("{n}"));
    }
    m.unmount();
    m.mount_again(&MountOptions::default());
    assert_eq!(words(&m.path("many")), all);
    assert_eq!(fs::metadata(m.path("many/00042")).expect("there").len(), 2);
    fs::remove_dir_all(m.path("many")).expect("removed");
    assert_eq!(words(&m.root()), [""; 0]);
    m.unmount();
    assert_eq!(m.repo.status().expect("status").files, 0);
    let left = fs::read_dir(m.folder.path().join("store/incoming")).expect("there");
    assert_eq!(left.count(), 0);
}
