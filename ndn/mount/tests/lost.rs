//! What a mount tells of bytes that it had taken when the disk refuses them, and what becomes of such files.

mod common;

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use common::bad_disk::{BadDisk, Refused};
use common::{Mounted, can_mount, errno, noise};
use ndn_mount::MountOptions;
use ndn_packet::SigningKey;
use ndn_repo::{Repo, RepoOptions};

const MIB: usize = 1 << 20;
/// Past where files go by the system's cache.
const BAD: usize = 9 * MIB + 5;

fn mounted() -> Option<(Mounted, Arc<Refused>)> {
    if !can_mount() {
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("mnt")).expect("a folder");
    let disk = BadDisk::open(&folder.path().join("store"));
    let refused = disk.refused.clone();
    let key = SigningKey::DigestSha256;
    let repo = Repo::open_on(Arc::new(disk), key, &RepoOptions::default());
    let mut mounted = Mounted {
        repo: repo.expect("a repository"),
        mount: None,
        folder,
    };
    mounted.mount_again(&MountOptions::default());
    Some((mounted, refused))
}

/// As a program that ends: it hears what `close` says of a handle that others have, too.
fn close(file: &File) -> i32 {
    // SAFETY: the descriptor is open; the new one is closed here and used by nobody else.
    let said = unsafe { libc::close(libc::dup(file.as_raw_fd())) };
    match said {
        0 => 0,
        _ => std::io::Error::last_os_error().raw_os_error().unwrap_or(0),
    }
}

fn write(file: &File, content: &[u8]) {
    write_from(file, content, 0);
}

fn write_from(file: &File, content: &[u8], from: usize) {
    for (n, part) in content[from..].chunks(MIB).enumerate() {
        let at = (from + n * MIB) as u64;
        file.write_all_at(part, at).expect("taken");
    }
}

#[test]
fn who_goes_on_after_a_loss_is_told() {
    let Some((m, refused)) = mounted() else {
        return;
    };
    let content = noise(11 * MIB, 1);
    refused.content_at.store(BAD as u64, Ordering::Relaxed);
    let file = File::create(m.path("f")).expect("made");
    write(&file, &content[..10 * MIB]);
    assert_eq!(close(&file), libc::EIO, "the first of two programs");
    refused.content_at.store(u64::MAX, Ordering::Relaxed);
    let at = 10 * MIB as u64;
    let next = file.write_all_at(&content[10 * MIB..], at);
    assert_eq!(errno(next), libc::EIO, "the second");
    assert_eq!(errno(file.set_len(at)), libc::EIO);
    assert_eq!(errno(file.sync_all()), libc::EIO);
    assert_eq!(close(&file), libc::EIO);
    drop(file);
    assert_eq!(m.versions("/f"), []);

    // Another begins with nothing.
    fs::write(m.path("f"), &content).expect("written");
    assert!(m.published("/f").expect("there") == content);
    assert_eq!(m.versions("/f").len(), 1);
}

#[test]
fn what_is_lost_can_be_started_over() {
    let Some((m, refused)) = mounted() else {
        return;
    };
    let content = noise(10 * MIB, 2);
    for (uri, is_closed, is_opened) in [
        ("/f", false, false),
        ("/g", true, false),
        ("/h", true, true),
        ("/i", false, true),
    ] {
        let path = m.path(&uri[1..]);
        fs::write(&path, b"before").expect("written");
        refused.content_at.store(BAD as u64, Ordering::Relaxed);
        let mut file = File::create(&path).expect("made");
        write(&file, &content);
        match is_closed {
            true => assert_eq!(close(&file), libc::EIO),
            false => assert_eq!(errno(file.sync_all()), libc::EIO),
        }
        refused.content_at.store(u64::MAX, Ordering::Relaxed);
        match is_opened {
            true => drop(File::create(&path).expect("cut")),
            false => file.set_len(0).expect("cut"),
        }
        file.write_all(b"anew").expect("written");
        assert_eq!(close(&file), 0);
        drop(file);
        assert_eq!(m.published(uri).as_deref(), Some(&b"anew"[..]), "{uri}");
    }
}

#[test]
fn a_program_among_others_hears_of_its_loss() {
    let Some((m, refused)) = mounted() else {
        return;
    };
    let content = noise(10 * MIB, 3);
    let file = File::create(m.path("f")).expect("made");
    write(&file, &content[..MIB]);
    assert_eq!(close(&file), 0);
    refused.content_at.store(BAD as u64, Ordering::Relaxed);
    write_from(&file, &content, MIB);
    assert_eq!(close(&file), libc::EIO);
    drop(file);
    assert_eq!(m.published("/f").map(|found| found.len()), Some(MIB));
}

#[test]
fn what_was_refused_at_the_end_is_published_later() {
    let Some((m, refused)) = mounted() else {
        return;
    };
    let content = noise(10 * MIB, 4);
    for (uri, len, is_synced) in [
        ("/f", 1000, true),
        ("/g", 1000, false),
        ("/h", 10 * MIB, true),
    ] {
        let file = File::create(m.path(&uri[1..])).expect("made");
        file.write_all_at(&content[..len], 0).expect("written");
        if is_synced {
            file.sync_all().expect("synced");
        }
        refused.manifests.store(true, Ordering::Relaxed);
        assert_eq!(close(&file), libc::EDQUOT);
        drop(file);
        assert_eq!(m.versions(uri), []);
        refused.manifests.store(false, Ordering::Relaxed);
        let found = (0..200).find_map(|_| {
            std::thread::sleep(Duration::from_millis(50));
            m.published(uri)
        });
        assert!(found.expect("published") == content[..len], "{uri}");
    }
}

#[test]
fn what_was_synced_and_refused_outlives_the_mount() {
    let Some((mut m, refused)) = mounted() else {
        return;
    };
    let synced = noise(3 * MIB, 5);
    let file = File::create(m.path("f")).expect("made");
    write(&file, &synced);
    file.sync_all().expect("synced");
    refused.manifests.store(true, Ordering::Relaxed);
    assert_eq!(close(&file), libc::EDQUOT);
    drop(file);
    drop(m.mount.take().expect("mounted").unmount());
    let Mounted { repo, folder, .. } = &mut m;
    let empty = tempfile::tempdir().expect("a folder");
    *repo = common::open(empty.path());
    let again = common::open(&folder.path().join("store"));
    m.repo = again;
    assert!(m.published("/f").expect("there") == synced);
}
