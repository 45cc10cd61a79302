//! Files that are open while their versions go: who has them goes on, before and after the first read.

mod common;

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{Mounted, mounted, mounted_with, name, publish, words};
use ndn_mount::MountOptions;
use ndn_repo::FileInfo;

/// All that a handle reads, of which the kernel has nothing yet.
fn read(mut file: &File) -> Vec<u8> {
    let mut seen = Vec::new();
    file.read_to_end(&mut seen).expect("read");
    seen
}

/// Removes the newest version as others do who have the repository: the mount is not told.
fn remove_newest(m: &Mounted, uri: &str) {
    let version = *m.versions(uri).last().expect("a version");
    let removed = m.repo.remove(&[(name(uri), version)]);
    assert_eq!(removed.expect("removed"), 1);
}

/// As a program that ends: another one has the same handle.
fn close(file: &File) {
    // SAFETY: the descriptor is open; the new one is closed here and used by nobody else.
    let said = unsafe { libc::close(libc::dup(file.as_raw_fd())) };
    assert_eq!(said, 0);
}

/// Lets the end of a handle, which the mount hears of after the program, have its effect. Where it is later than that, less
/// is tested.
fn handle_ends() {
    std::thread::sleep(Duration::from_millis(50));
}

/// A file that was opened to be read while another handle wrote it, which has published it since.
fn read_while_written(m: &Mounted, file: &str, content: &[u8]) -> File {
    let mut writing = File::create(m.path(file)).expect("made");
    writing.write_all(content).expect("written");
    let reading = File::open(m.path(file)).expect("open");
    drop(writing);
    reading
}

#[test]
fn what_is_moved_while_it_is_open_is_read_though_its_version_goes() {
    let Some(m) = mounted() else { return };
    fs::create_dir(m.path("d")).expect("made");
    for file in ["a", "b", "over", "d/c"] {
        fs::write(m.path(file), file).expect("written");
    }
    let opened = ["a", "b", "d/c"].map(|file| File::open(m.path(file)).expect("open"));
    let written = read_while_written(&m, "e", b"e");
    fs::rename(m.path("a"), m.path("a2")).expect("to a free name");
    fs::rename(m.path("b"), m.path("over")).expect("over another");
    fs::rename(m.path("d"), m.path("d2")).expect("a folder");
    fs::rename(m.path("e"), m.path("e2")).expect("one that was written");
    for uri in ["/a2", "/over", "/d2/c", "/e2"] {
        remove_newest(&m, uri);
    }
    let seen = opened.each_ref().map(read);
    assert_eq!(seen, [&b"a"[..], b"b", b"d/c"]);
    assert_eq!(read(&written), b"e");
}

/// What is written while its folder, or itself, is moved is under the new name, and nothing is left under the old one.
#[test]
fn what_is_written_while_it_is_moved_goes_along() {
    const MOVES: usize = 60;
    for (from, to) in [("d", "e"), ("d/f", "d/g")] {
        let Some(m) = mounted() else { return };
        fs::create_dir(m.path("d")).expect("made");
        let mut file = File::create(m.path("d/f")).expect("made");
        let stop = AtomicBool::new(false);
        let written = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut written = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    file.write_all(b"x").expect("written");
                    close(&file);
                    written += 1;
                }
                drop(file);
                written
            });
            let moved = (0..MOVES).try_for_each(|n| {
                let (from, to) = if n % 2 == 0 { (from, to) } else { (to, from) };
                fs::rename(m.path(from), m.path(to))
            });
            stop.store(true, Ordering::Relaxed);
            moved.expect("renamed");
            writer.join().expect("no panic")
        });
        handle_ends();
        let size = fs::metadata(m.path("d/f")).expect("there").len();
        assert_eq!(size, written);
        let mut names = Vec::new();
        let mut add = |info: &FileInfo| {
            names.push(info.name.to_string());
            Ok(())
        };
        m.repo.walk(&name("/"), &mut add).expect("read");
        names.dedup();
        assert_eq!(names, ["/d/f"], "moved between {from} and {to}");
    }
}

#[test]
fn what_is_moved_stays_the_version_that_it_was() {
    let Some(m) = mounted() else { return };
    fs::write(m.path("f"), b"mine").expect("written");
    let opened = File::open(m.path("f")).expect("open");
    publish(&m.repo, "/f", b"another's, and longer");
    fs::rename(m.path("f"), m.path("g")).expect("renamed");
    assert_eq!(read(&opened), b"mine");
    assert_eq!(
        fs::read(m.path("g")).expect("read"),
        b"another's, and longer"
    );
}

#[test]
fn a_version_that_is_removed_by_its_word_is_read_by_those_who_have_it() {
    let Some(m) = mounted() else { return };
    let reading = read_while_written(&m, "f", b"content");
    let version = m.versions("/f")[0];
    fs::remove_file(m.path(&format!("f@v={version}"))).expect("removed");
    assert_eq!(m.versions("/f"), []);
    reading
        .set_permissions(Permissions::from_mode(0o600))
        .expect("set");
    assert_eq!(read(&reading), b"content");
}

#[test]
fn a_version_that_is_removed_by_its_word_is_written_on() {
    let Some(m) = mounted() else { return };
    let mut file = File::create(m.path("f")).expect("made");
    file.write_all(b"one").expect("written");
    close(&file);
    let version = m.versions("/f")[0];
    fs::remove_file(m.path(&format!("f@v={version}"))).expect("removed");
    file.write_all(b" two").expect("written");
    close(&file);
    drop(file);
    assert_eq!(fs::read(m.path("f")).expect("read"), b"one two");
}

#[test]
fn what_others_remove_before_the_first_read_is_read() {
    let Some(m) = mounted() else { return };
    let reading = read_while_written(&m, "f", b"content");
    remove_newest(&m, "/f");
    assert_eq!(read(&reading), b"content");

    // By the handle that has written it.
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    let file = options.open(m.path("g")).expect("made");
    (&file).write_all(b"content").expect("written");
    close(&file);
    remove_newest(&m, "/g");
    let mut again = [0; 7];
    file.read_exact_at(&mut again, 0).expect("read");
    assert_eq!(&again, b"content");

    // One that another had published while it was written became another version.
    let mut writing = File::create(m.path("h")).expect("made");
    writing.write_all(b"mine").expect("written");
    let reading = File::open(m.path("h")).expect("open");
    publish(&m.repo, "/h", b"another's");
    drop(writing);
    remove_newest(&m, "/h");
    assert_eq!(read(&reading), b"mine");
}

#[test]
fn pruning_takes_nothing_from_those_who_have_it() {
    let Some(m) = mounted_with(&MountOptions {
        versions: Some(1),
        ..MountOptions::default()
    }) else {
        return;
    };
    let first = read_while_written(&m, "f", b"first");
    fs::write(m.path("g"), b"second").expect("written");
    fs::rename(m.path("g"), m.path("f")).expect("replaced");
    fs::write(m.path("f"), b"third").expect("written");
    assert_eq!(m.versions("/f").len(), 1);
    assert_eq!(read(&first), b"first");
}

#[test]
fn what_is_written_and_has_no_name_any_more_stays_until_the_last_handle_goes() {
    let Some(m) = mounted() else { return };
    fs::write(m.path("other"), b"other").expect("written");
    for (file, before) in [
        ("new", None),
        ("there", Some(b"before")),
        ("replaced", None),
    ] {
        if let Some(before) = before {
            fs::write(m.path(file), before).expect("written");
        }
        let first = File::create(m.path(file)).expect("made");
        first.write_all_at(b"first", 0).expect("written");
        let mut options = OpenOptions::new();
        let second = options.read(true).write(true).open(m.path(file));
        let second = second.expect("open");
        let third = File::open(m.path(file)).expect("open");
        match file {
            "replaced" => fs::rename(m.path("other"), m.path(file)).expect("replaced"),
            _ => fs::remove_file(m.path(file)).expect("removed"),
        }
        drop(first);
        handle_ends();
        second.write_all_at(b" second", 5).expect("written");
        assert_eq!(read(&third), b"first second", "{file}");
        second.set_len(8).expect("cut");
        drop(second);
        handle_ends();
        let third_sees = third.metadata().expect("there").len();
        assert_eq!(third_sees, 8, "{file}");
        drop(third);
    }
    assert_eq!(fs::read(m.path("replaced")).expect("read"), b"other");
    assert_eq!(words(&m.root()), ["replaced"]);
    let incoming = m.folder.path().join("store/incoming");
    for _ in 0..200 {
        // Nobody is told when the last handle is gone.
        m.repo.sync().expect("synced");
        if fs::read_dir(&incoming).expect("a folder").count() == 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("what nobody has stays");
}
