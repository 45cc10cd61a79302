//! Files through a mount: written, read, changed, renamed and removed as programs expect.

mod common;

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use common::{errno, mounted, mounted_with, name, noise, publish, words, xattr};
use ndn_mount::MountOptions;
use ndn_repo::PutOptions;

#[test]
fn what_is_closed_is_a_version() {
    let Some(m) = mounted() else { return };
    let content = noise(3_000_001, 1);
    fs::write(m.path("a"), &content).expect("written");
    assert_eq!(m.published("/a"), Some(content.clone()));
    assert_eq!(fs::read(m.path("a")).expect("read"), content);
    let first = m.versions("/a");
    assert_eq!(first.len(), 1);

    fs::write(m.path("a"), b"second").expect("written");
    assert_eq!(fs::read(m.path("a")).expect("read"), b"second");
    let both = m.versions("/a");
    assert_eq!((both.len(), both[0]), (2, first[0]));
    let old = m.path(&format!("a@v={}", both[0]));
    assert_eq!(fs::read(&old).expect("read"), content);
    assert_eq!(fs::metadata(&old).expect("there").len(), 3_000_001);
    assert_eq!(errno(fs::write(&old, b"x")), libc::EROFS);
    assert_eq!(words(&m.root()), ["a"], "versions are not listed");

    assert_eq!(xattr(&m.path("a"), "user.ndn.name").as_deref(), Some("/a"));
    assert_eq!(
        xattr(&m.path("a"), "user.ndn.version"),
        Some(both[1].to_string())
    );
    assert_eq!(
        xattr(&m.path("a"), "user.ndn.versions"),
        Some(format!("{}\n{}\n", both[1], both[0]))
    );
    assert_eq!(
        xattr(&m.path("a"), "user.ndn.signature").as_deref(),
        Some("digest")
    );
    fs::remove_file(&old).expect("pruned");
    assert_eq!(m.versions("/a"), [both[1]]);
    assert_eq!(errno(fs::read(&old)), libc::ENOENT);
}

/// The kernel still believes that the file ends where it did.
#[test]
fn who_appends_does_so_to_what_others_have_published_since() {
    let Some(m) = mounted() else { return };
    let path = m.path("log");
    fs::write(&path, b"short").expect("written");
    assert_eq!(fs::metadata(&path).expect("there").len(), 5);
    publish(&m.repo, "/log", b"a longer one of somebody else's, ");
    let mut file = OpenOptions::new().append(true).open(&path).expect("open");
    file.write_all(b"and ").expect("written");
    file.write_all(b"more").expect("written");
    drop(file);
    let all = b"a longer one of somebody else's, and more";
    assert_eq!(m.published("/log").expect("there"), all);
}

#[test]
fn append_truncate_and_partial_writes() {
    let Some(m) = mounted() else { return };
    let path = m.path("f");
    let mut known = noise(2_500_000, 2);
    fs::write(&path, &known).expect("written");

    let mut file = OpenOptions::new().append(true).open(&path).expect("open");
    file.write_all(b"more").expect("written");
    drop(file);
    known.extend_from_slice(b"more");
    assert_eq!(m.published("/f"), Some(known.clone()));

    let file = OpenOptions::new().write(true).open(&path).expect("open");
    file.write_all_at(b"middle", 1_000_000).expect("written");
    known[1_000_000..1_000_006].copy_from_slice(b"middle");
    assert_eq!(
        fs::read(&path).expect("read"),
        known,
        "seen before the close"
    );
    assert_eq!(
        m.versions("/f").len(),
        2,
        "nothing is published before the close"
    );
    assert_eq!(
        xattr(&path, "user.ndn.signature").as_deref(),
        Some("unpublished")
    );
    drop(file);
    assert_eq!(m.published("/f"), Some(known.clone()));

    let file = OpenOptions::new().write(true).open(&path).expect("open");
    file.set_len(1_234_567).expect("cut");
    known.truncate(1_234_567);
    file.write_all_at(b"end", 1_300_000).expect("written");
    known.resize(1_300_000, 0);
    known.extend_from_slice(b"end");
    file.set_len(1_400_000).expect("longer");
    known.resize(1_400_000, 0);
    drop(file);
    assert_eq!(m.published("/f"), Some(known.clone()));
    assert_eq!(fs::read(&path).expect("read"), known);

    let cut = Command::new("truncate")
        .args(["-s", "10"])
        .arg(&path)
        .status();
    assert!(cut.expect("run").success());
    assert_eq!(m.published("/f").as_deref(), Some(&known[..10]));
}

#[test]
fn read_and_written_by_one_handle() {
    let Some(m) = mounted() else { return };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(m.path("rw"))
        .expect("made");
    file.write_all(b"0123456789").expect("written");
    file.seek(SeekFrom::Start(3)).expect("there");
    let mut seen = [0; 4];
    file.read_exact(&mut seen).expect("read");
    assert_eq!(&seen, b"3456");
    file.write_all_at(b"xx", 4).expect("written");
    file.read_exact_at(&mut seen, 3).expect("read");
    assert_eq!(&seen, b"3xx6");
    assert_eq!(file.metadata().expect("there").len(), 10);
    drop(file);
    assert_eq!(m.published("/rw").as_deref(), Some(&b"0123xx6789"[..]));
}

#[test]
fn large_files_are_read_changed_and_cut_while_they_are_written() {
    const PART: usize = 1 << 20;
    // Longer than what goes by the system's cache, and no multiple of anything.
    let mut known = noise(21_000_001, 8);
    let Some(m) = mounted() else { return };
    let path = m.path("large");
    let write = |file: &File, known: &[u8], from: usize| {
        for (n, part) in known[from..].chunks(PART).enumerate() {
            file.write_all_at(part, (from + n * PART) as u64)
                .expect("written");
        }
    };
    let file = File::create(&path).expect("made");
    write(&file, &known, 0);
    assert_eq!(file.metadata().expect("there").len(), known.len() as u64);
    // By another handle, before it is closed.
    assert!(fs::read(&path).expect("read") == known);
    let from = known.len();
    known.extend(noise(10_000_000, 9));
    write(&file, &known, from);
    drop(file);
    assert!(m.published("/large").expect("there") == known);

    // Cut to nothing, and written anew.
    let file = File::create(&path).expect("made");
    write(&file, &known, 0);
    file.write_all_at(b"changed", 12_345_678).expect("written");
    known[12_345_678..][..7].copy_from_slice(b"changed");
    let from = known.len();
    known.extend(noise(3_000_000, 10));
    write(&file, &known, from);
    assert!(fs::read(&path).expect("read") == known);
    file.set_len(30_000_000).expect("cut");
    known.truncate(30_000_000);
    drop(file);
    assert!(m.published("/large").expect("there") == known);

    // Synced in the middle, and once more appended to.
    let file = File::create(&path).expect("made");
    write(&file, &known[..15_000_000], 0);
    file.sync_all().expect("synced");
    write(&file, &known, 15_000_000);
    drop(file);
    assert!(m.published("/large").expect("there") == known);
    assert_eq!(m.versions("/large").len(), 3);
}

#[test]
fn a_shell_that_writes_by_many_programs() {
    let Some(m) = mounted() else { return };
    let script =
        "{ for i in 1 2 3 4 5; do /bin/echo line $i; done; } > lines; /bin/echo six >> lines";
    let done = Command::new("sh")
        .args(["-c", script])
        .current_dir(m.root())
        .status();
    assert!(done.expect("run").success());
    let wanted = "line 1\nline 2\nline 3\nline 4\nline 5\nsix\n";
    assert_eq!(fs::read_to_string(m.path("lines")).expect("read"), wanted);
    // The last close of the five is told to nobody: it may still be on its way.
    assert!(
        m.versions("/lines").len() <= 4,
        "{:?}",
        m.versions("/lines")
    );
    assert_eq!(m.published("/lines").as_deref(), Some(wanted.as_bytes()));
}

#[test]
fn copies_keep_mode_and_time() {
    let Some(m) = mounted() else { return };
    let source = m.folder.path().join("source");
    fs::write(&source, noise(300_000, 3)).expect("written");
    fs::set_permissions(&source, fs::Permissions::from_mode(0o751)).expect("set");
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    File::open(&source)
        .and_then(|f| f.set_modified(then))
        .expect("set");
    let copied = Command::new("cp")
        .arg("-p")
        .arg(&source)
        .arg(m.path("copy"))
        .status();
    assert!(copied.expect("run").success());
    let found = fs::metadata(m.path("copy")).expect("there");
    assert_eq!(found.mode() & 0o7777, 0o751);
    assert_eq!(found.modified().expect("a time"), then);
    assert_eq!(m.versions("/copy").len(), 1);

    fs::set_permissions(m.path("copy"), fs::Permissions::from_mode(0o600)).expect("set");
    assert_eq!(m.versions("/copy").len(), 1, "attributes make no version");
    let found = m.repo.find(&name("/copy"), None).expect("read");
    assert_eq!(found.expect("there").entry.mode & 0o7777, 0o600);
    assert_eq!(
        errno(std::os::unix::fs::chown(m.path("copy"), Some(12345), None)),
        libc::EPERM
    );
}

#[test]
fn folders() {
    let Some(m) = mounted() else { return };
    fs::create_dir_all(m.path("d/e")).expect("made");
    assert_eq!(errno(fs::create_dir(m.path("d"))), libc::EEXIST);
    assert_eq!(errno(fs::remove_dir(m.path("d"))), libc::ENOTEMPTY);
    fs::write(m.path("d/e/f"), b"x").expect("written");
    assert_eq!(errno(fs::remove_dir(m.path("d/e"))), libc::ENOTEMPTY);
    assert_eq!(words(&m.path("d")), ["e"]);
    assert_eq!(errno(fs::remove_file(m.path("d/e"))), libc::EISDIR);
    assert_eq!(errno(fs::remove_dir(m.path("d/e/f"))), libc::ENOTDIR);
    fs::remove_file(m.path("d/e/f")).expect("removed");
    assert_eq!(words(&m.path("d/e")), [""; 0], "it stays when it is empty");
    fs::remove_dir(m.path("d/e")).expect("removed");
    fs::remove_dir(m.path("d")).expect("removed");
    assert_eq!(words(&m.root()), [""; 0]);

    // One that is there only because of what is in it.
    publish(&m.repo, "/x/y/z", b"z");
    assert_eq!(words(&m.path("x")), ["y"]);
    fs::remove_file(m.path("x/y/z")).expect("removed");
    assert_eq!(words(&m.path("x")), ["y"], "it stays when it is empty");
}

#[test]
fn files_move() {
    let Some(m) = mounted() else { return };
    fs::write(m.path("a"), b"one").expect("written");
    fs::write(m.path("a"), b"two").expect("written");
    let versions = m.versions("/a");
    fs::create_dir(m.path("d")).expect("made");
    fs::rename(m.path("a"), m.path("d/b")).expect("renamed");
    assert_eq!(m.versions("/d/b"), versions, "versions go along");
    assert_eq!(m.published("/d/b").as_deref(), Some(&b"two"[..]));
    assert_eq!(words(&m.root()), ["d"]);

    // As editors save: the file that is replaced has one version more.
    fs::write(m.path("d/tmp"), b"three").expect("written");
    fs::rename(m.path("d/tmp"), m.path("d/b")).expect("renamed");
    assert_eq!(m.versions("/d/b").len(), 3);
    assert_eq!(fs::read(m.path("d/b")).expect("read"), b"three");
    let old = m.path(&format!("d/b@v={}", versions[0]));
    assert_eq!(fs::read(old).expect("read"), b"one");
    assert_eq!(words(&m.path("d")), ["b"]);

    assert_eq!(errno(fs::rename(m.path("none"), m.path("x"))), libc::ENOENT);
    assert_eq!(errno(fs::rename(m.path("d"), m.path("d/e"))), libc::EINVAL);
    assert_eq!(
        errno(fs::rename(m.path("d/b"), m.path("d"))),
        libc::ENOTEMPTY
    );
    fs::rename(m.path("d/b"), m.path("d/b")).expect("nothing happens");
}

#[test]
fn folders_move() {
    let Some(m) = mounted() else { return };
    fs::create_dir_all(m.path("from/empty")).expect("made");
    fs::create_dir_all(m.path("from/sub")).expect("made");
    for n in 0..20 {
        fs::write(m.path(&format!("from/sub/{n}")), format!("{n}")).expect("written");
    }
    let mut open = OpenOptions::new()
        .append(true)
        .open(m.path("from/sub/7"))
        .expect("open");
    open.write_all(b"+").expect("written");
    fs::create_dir(m.path("to")).expect("made");
    fs::rename(m.path("from"), m.path("to")).expect("in the place of an empty one");
    assert_eq!(words(&m.root()), ["to"]);
    assert_eq!(words(&m.path("to")), ["empty", "sub"]);
    assert_eq!(words(&m.path("to/sub")).len(), 20);
    open.write_all(b"+").expect("written");
    drop(open);
    assert_eq!(m.published("/to/sub/7").as_deref(), Some(&b"7++"[..]));
    assert_eq!(fs::read(m.path("to/sub/19")).expect("read"), b"19");
    fs::create_dir_all(m.path("full/x")).expect("made");
    assert_eq!(
        errno(fs::rename(m.path("to"), m.path("full"))),
        libc::ENOTEMPTY
    );
}

#[test]
fn an_open_file_outlives_its_name() {
    let Some(m) = mounted() else { return };
    let content = noise(1_500_000, 4);
    fs::write(m.path("a"), &content).expect("written");
    let reading = File::open(m.path("a")).expect("open");
    let mut writing = File::create(m.path("b")).expect("made");
    writing.write_all(b"bytes").expect("written");
    fs::remove_file(m.path("a")).expect("removed");
    fs::remove_file(m.path("b")).expect("removed");
    assert_eq!(words(&m.root()), [""; 0]);
    // Nothing of it is in any cache of the kernel's yet.
    let mut seen = vec![0; content.len()];
    reading.read_exact_at(&mut seen, 0).expect("read");
    assert!(seen == content);
    writing.write_all(b" more").expect("written");
    assert_eq!(writing.metadata().expect("there").len(), 10);
    drop((reading, writing));
    assert_eq!((m.versions("/a"), m.versions("/b")), (vec![], vec![]));

    // One that is replaced stays what it was for those who have it.
    fs::write(m.path("c"), b"old").expect("written");
    let reading = File::open(m.path("c")).expect("open");
    fs::write(m.path("d"), b"new").expect("written");
    fs::rename(m.path("d"), m.path("c")).expect("renamed");
    let mut seen = [0; 3];
    reading.read_exact_at(&mut seen, 0).expect("read");
    assert_eq!(&seen, b"old");
    assert_eq!(fs::read(m.path("c")).expect("read"), b"new");
}

#[test]
fn sparse_and_huge() {
    let Some(m) = mounted_with(&MountOptions {
        put: PutOptions {
            segment_bytes: 65_000,
            ..PutOptions::default()
        },
        ..MountOptions::default()
    }) else {
        return;
    };
    const HUGE: u64 = 300 << 20;
    let file = File::create(m.path("sparse")).expect("made");
    file.set_len(HUGE).expect("longer");
    file.write_all_at(b"end", HUGE - 3).expect("written");
    drop(file);
    let file = OpenOptions::new()
        .write(true)
        .open(m.path("sparse"))
        .expect("open");
    file.write_all_at(b"middle", HUGE / 2).expect("written");
    drop(file);
    let used: u64 = walk(&m.folder.path().join("store"))
        .iter()
        .map(|path| fs::metadata(path).expect("there").blocks() * 512)
        .sum();
    assert!(used < 40 << 20, "holes stay holes: {used} bytes");
    let file = File::open(m.path("sparse")).expect("open");
    let mut seen = [9; 8];
    file.read_exact_at(&mut seen, HUGE / 2 - 1).expect("read");
    assert_eq!(&seen, b"\0middle\0");
    assert_eq!(file.metadata().expect("there").len(), HUGE);
    assert_eq!(m.versions("/sparse").len(), 2);
}

fn walk(path: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(walk(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[test]
fn links_and_what_there_is_not() {
    let Some(m) = mounted() else { return };
    symlink("some/where", m.path("link")).expect("made");
    let target = fs::read_link(m.path("link")).expect("read");
    assert_eq!(target, Path::new("some/where"));
    fs::write(m.path("f"), b"x").expect("written");
    assert_eq!(errno(fs::hard_link(m.path("f"), m.path("g"))), libc::EPERM);
    assert_eq!(errno(fs::write(m.path("f@v=1"), b"x")), libc::EINVAL);
    assert_eq!(
        errno(fs::write(m.path(&"x".repeat(256)), b"x")),
        libc::ENAMETOOLONG
    );
    let odd = m.path("100% ä\n?");
    fs::write(&odd, b"odd").expect("written");
    assert_eq!(fs::read(&odd).expect("read"), b"odd");
    let set = rustix::fs::setxattr(
        m.path("f"),
        "user.ndn.name",
        b"x",
        rustix::fs::XattrFlags::empty(),
    );
    assert_eq!(set, Err(rustix::io::Errno::PERM));
}

#[test]
fn a_part_of_a_repository_and_so_many_versions() {
    let Some(m) = mounted_with(&MountOptions {
        root: name("/only/this"),
        versions: Some(2),
        ..MountOptions::default()
    }) else {
        return;
    };
    for n in 0..5 {
        fs::write(m.path("f"), format!("{n}")).expect("written");
    }
    assert_eq!(m.versions("/only/this/f").len(), 2);
    assert_eq!(fs::read(m.path("f")).expect("read"), b"4");
    fs::remove_file(m.path("f")).expect("removed");
    fs::remove_dir(m.path(".")).expect_err("the mount itself");
}

#[test]
fn nothing_can_be_changed_where_it_is_read_only() {
    let Some(mut m) = mounted() else { return };
    fs::write(m.path("f"), b"x").expect("written");
    m.unmount();
    m.mount_again(&MountOptions {
        read_only: true,
        ..MountOptions::default()
    });
    assert_eq!(fs::read(m.path("f")).expect("read"), b"x");
    assert_eq!(errno(fs::write(m.path("f"), b"y")), libc::EROFS);
    assert_eq!(errno(fs::remove_file(m.path("f"))), libc::EROFS);
}

#[test]
fn what_others_publish_is_seen() {
    let Some(m) = mounted() else { return };
    fs::write(m.path("f"), b"mine").expect("written");
    let old = File::open(m.path("f")).expect("open");
    publish(&m.repo, "/f", b"another's");
    assert_eq!(fs::read(m.path("f")).expect("read"), b"another's");
    drop(old);

    // Published by another while it is written here: what is closed last is the newest.
    let mut mine = File::create(m.path("f")).expect("open");
    mine.write_all(b"mine again").expect("written");
    publish(&m.repo, "/f", b"another's");
    drop(mine);
    assert_eq!(m.published("/f").as_deref(), Some(&b"mine again"[..]));
    assert_eq!(m.versions("/f").len(), 4);
}
