//! A repository elsewhere, mounted: read by name over a forwarder, each byte verified, whatever its producer does.

mod common;

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::Duration;

use common::world::{Conduct, World, forget};
use common::{errno, name, noise, publish, publish_as, words, xattr};
use ndn_endpoint::VerifyPolicy;
use ndn_mount::{Mount, MountError, RemoteError, RemoteOptions};
use ndn_packet::SigningKey;
use ndn_repo::PutOptions;

#[test]
fn folders_files_and_versions() {
    let Some(mut w) = World::new() else { return };
    let first = publish(&w.repo, "/data/d/e/f", b"one");
    let second = publish(&w.repo, "/data/d/e/f", b"second");
    publish(&w.repo, "/data/odd%20%C3%A4%25", b"odd");
    publish(&w.repo, "/data/empty", b"");
    let link = PutOptions {
        mode: libc::S_IFLNK | 0o777,
        ..PutOptions::default()
    };
    publish_as(&w.repo, "/data/d/link", b"e/f", &link);
    w.mount();
    assert_eq!(words(&w.path("")), ["d", "empty", "odd ä%"]);
    assert_eq!(words(&w.path("d")), ["e", "link"]);
    assert_eq!(words(&w.path("d/e")), ["f"]);
    let kinds: Vec<_> = fs::read_dir(w.path("d"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry"))
        .map(|entry| {
            (
                entry.file_name(),
                entry.file_type().expect("a kind").is_symlink(),
            )
        })
        .collect();
    assert_eq!(kinds, [("e".into(), false), ("link".into(), true)]);
    assert_eq!(fs::read(w.path("d/link")).expect("read"), b"second");
    assert_eq!(fs::read(w.path("odd ä%")).expect("read"), b"odd");
    assert_eq!(fs::read(w.path("empty")).expect("read"), b"");

    let old = w.path(&format!("d/e/f@v={first}"));
    assert_eq!(fs::read(&old).expect("read"), b"one");
    assert_eq!(fs::metadata(&old).expect("there").len(), 3);
    assert_eq!(errno(fs::read(w.path("d/e/f@v=5"))), libc::ENOENT);
    assert_eq!(errno(fs::read(w.path("d/e/g@v=5"))), libc::ENOENT);
    assert_eq!(errno(fs::read(w.path("none"))), libc::ENOENT);

    let f = w.path("d/e/f");
    assert_eq!(xattr(&f, "user.ndn.name").as_deref(), Some("/data/d/e/f"));
    assert_eq!(xattr(&f, "user.ndn.version"), Some(second.to_string()));
    assert_eq!(xattr(&old, "user.ndn.version"), Some(first.to_string()));
    let versions = format!("{second}\n{first}\n");
    assert_eq!(xattr(&f, "user.ndn.versions"), Some(versions));
    let signature = xattr(&f, "user.ndn.signature").expect("told");
    assert!(signature.starts_with("ed25519"), "{signature}");
    assert_eq!(xattr(&f, "user.ndn.verified").as_deref(), Some("key"));

    for done in [
        fs::write(&f, b"x"),
        fs::write(w.path("new"), b"x"),
        fs::remove_file(&f),
        fs::create_dir(w.path("new")),
        fs::remove_dir(w.path("d")),
        fs::rename(&f, w.path("g")),
    ] {
        assert_eq!(errno(done), libc::EROFS);
    }
}

#[test]
fn read_in_any_order() {
    let Some(mut w) = World::new() else { return };
    let content = noise(9_000_001, 1);
    publish(&w.repo, "/data/f", &content);
    // Less than a tenth of it is kept.
    w.mount_with(RemoteOptions {
        cache_bytes: 1 << 20,
        ..w.options()
    });
    let file = File::open(w.path("f")).expect("open");
    let mut at = 7;
    for n in 0..300 {
        at = (at * 1_103_515_245 + 12_345) % content.len();
        let len = (n * 997 % 50_000).min(content.len() - at);
        let mut seen = vec![0; len];
        file.read_exact_at(&mut seen, at as u64).expect("read");
        assert!(seen == content[at..at + len], "{len} bytes at {at}");
    }
    assert_eq!(file.read_at(&mut [0; 9], 9_000_001).expect("read"), 0);
    let mut whole = Vec::new();
    (&file).read_to_end(&mut whole).expect("read");
    assert!(whole == content);

    let readers: Vec<_> = (0..4)
        .map(|_| {
            let path = w.path("f");
            std::thread::spawn(move || fs::read(path).expect("read"))
        })
        .collect();
    for reader in readers {
        assert!(reader.join().expect("no panic") == content);
    }
    mapped(&file, &content);
}

/// What a mapping of the file shows.
fn mapped(file: &File, content: &[u8]) {
    // SAFETY: a new mapping of a file that stays open and is not written; it is given back below, once.
    unsafe {
        let start = libc::mmap(
            std::ptr::null_mut(),
            content.len(),
            libc::PROT_READ,
            libc::MAP_PRIVATE,
            file.as_raw_fd(),
            0,
        );
        assert_ne!(start, libc::MAP_FAILED);
        let seen = std::slice::from_raw_parts(start.cast::<u8>(), content.len());
        assert!(seen == content);
        libc::munmap(start, content.len());
    }
}

#[test]
fn segments_of_a_byte_each_are_a_file() {
    let Some(mut w) = World::new() else { return };
    let options = PutOptions {
        segment_bytes: 1,
        ..PutOptions::default()
    };
    let content = noise(5000, 6);
    publish_as(&w.repo, "/data/f", &content, &options);
    w.mount();
    assert!(fs::read(w.path("f")).expect("read") == content);
}

#[test]
fn what_is_forged_is_never_read() {
    let Some(mut w) = World::new() else { return };
    let content = noise(400_000, 2);
    let version = publish(&w.repo, "/data/f", &content);
    publish(&w.repo, "/data/d/g", b"g");
    w.mount();
    let file = File::open(w.path("f")).expect("open");
    let segment = name("/data/f").append_version(version).append_segment(30);
    w.conduct(Conduct::ForgeUnder(segment));
    let mut seen = [0; 1000];
    assert_eq!(errno(file.read_exact_at(&mut seen, 30 * 8000)), libc::EIO);
    assert_eq!(errno(fs::read(w.path("f"))), libc::EIO);
    w.conduct(Conduct::Answer);
    assert!(fs::read(w.path("f")).expect("read") == content);

    w.conduct(Conduct::ForgeUnder(name("/data/d/32=ls")));
    assert_eq!(errno(fs::read_dir(w.path("d"))), libc::EIO);
    w.conduct(Conduct::Answer);
    assert_eq!(words(&w.path("d")), ["g"]);
    forget();
    w.conduct(Conduct::ForgeUnder(name("/data/d/g/32=metadata")));
    assert_eq!(errno(fs::read(w.path("d/g"))), libc::EIO);
    forget();
    // It is shown, but nothing is told of it.
    assert_eq!(words(&w.path("d")), ["g"]);
    assert_eq!(errno(fs::metadata(w.path("d/g"))), libc::EIO);
}

#[test]
fn a_list_is_held_against_its_digest_without_a_key_too() {
    let Some(mut w) = World::new() else { return };
    publish(&w.repo, "/data/d/f", b"f");
    w.mount_with(RemoteOptions {
        verify: VerifyPolicy::default(),
        ..w.options()
    });
    w.conduct(Conduct::ForgeSegmentsUnder(name("/data/d/32=ls")));
    assert_eq!(errno(fs::read_dir(w.path("d"))), libc::EIO);
    w.conduct(Conduct::Answer);
    assert_eq!(words(&w.path("d")), ["f"]);
}

#[test]
fn a_file_of_which_nobody_tells_hides_no_others() {
    let Some(mut w) = World::new() else { return };
    publish(&w.repo, "/data/d/f", b"f");
    publish(&w.repo, "/data/d/g", b"g");
    w.mount();
    w.conduct(Conduct::SilenceUnder(name("/data/d/g/32=metadata")));
    assert_eq!(words(&w.path("d")), ["f", "g"]);
    assert_eq!(fs::read(w.path("d/f")).expect("read"), b"f");
}

#[test]
fn another_key_is_believed_by_nobody() {
    let Some(mut w) = World::new() else { return };
    publish(&w.repo, "/data/f", b"x");
    let pkcs8 = SigningKey::generate_ed25519().expect("a key");
    let other = SigningKey::ed25519_from_pkcs8(&pkcs8).expect("a key");
    let options = RemoteOptions {
        verify: VerifyPolicy::Signed(other.verifier()),
        ..w.options()
    };
    let Err(MountError::Remote { error, .. }) = Mount::remote(&w.path(""), options) else {
        panic!("it was mounted");
    };
    assert!(matches!(error, RemoteError::Unverified(_)), "{error}");
    // Digests alone say nothing of whose it is.
    w.mount_with(RemoteOptions {
        verify: VerifyPolicy::default(),
        ..w.options()
    });
    assert_eq!(fs::read(w.path("f")).expect("read"), b"x");
    assert_eq!(
        xattr(&w.path("f"), "user.ndn.verified").as_deref(),
        Some("digest")
    );
}

#[test]
fn who_does_not_answer_makes_calls_fail_and_may_come_back() {
    let Some(mut w) = World::new() else { return };
    let content = noise(3_000_000, 3);
    publish(&w.repo, "/data/f", &content);
    w.mount();
    let mut file = File::open(w.path("f")).expect("open");
    let mut seen = vec![0; 100_000];
    file.read_exact(&mut seen).expect("read");
    w.conduct(Conduct::Silence);
    let mut rest = Vec::new();
    assert_eq!(errno(file.read_to_end(&mut rest)), libc::ETIMEDOUT);
    assert_eq!(errno(fs::read_dir(w.path(""))), libc::ETIMEDOUT);
    assert_eq!(errno(fs::metadata(w.path("f"))), libc::ETIMEDOUT);
    w.conduct(Conduct::Answer);
    assert!(fs::read(w.path("f")).expect("read") == content);

    // Gone altogether: the forwarder says that there is no way.
    publish(&w.repo, "/data/g", &content);
    forget();
    let file = File::open(w.path("g")).expect("open");
    w.producer = None;
    let is_away = |errno| [libc::EHOSTUNREACH, libc::ETIMEDOUT].contains(&errno);
    assert!(is_away(errno(file.read_exact_at(&mut seen, 0))));
    forget();
    assert!(is_away(errno(fs::metadata(w.path("g")))));
    w.serve();
    file.read_exact_at(&mut seen, 0).expect("read");
    assert!(seen == content[..100_000]);
    assert_eq!(words(&w.path("")), ["f", "g"]);
}

#[test]
fn one_segment_that_stays_away_keeps_no_other_back() {
    let Some(mut w) = World::new() else { return };
    let content = noise(2_000_000, 4);
    let version = publish(&w.repo, "/data/f", &content);
    w.mount();
    let segment = name("/data/f").append_version(version).append_segment(100);
    w.conduct(Conduct::SilenceUnder(segment));
    let file = File::open(w.path("f")).expect("open");
    let mut seen = vec![0; 4096];
    assert_eq!(
        errno(file.read_exact_at(&mut seen, 800_000)),
        libc::ETIMEDOUT
    );
    file.read_exact_at(&mut seen, 1_200_000).expect("read");
    assert!(seen == content[1_200_000..][..4096]);
    file.read_exact_at(&mut seen, 0).expect("read");
    assert!(seen == content[..4096]);
}

#[test]
fn unmounted_while_nobody_answers() {
    let Some(mut w) = World::new() else { return };
    publish(&w.repo, "/data/f", &noise(1_000_000, 5));
    w.mount_with(RemoteOptions {
        timeout: Duration::from_secs(3600),
        ..w.options()
    });
    let file = File::open(w.path("f")).expect("open");
    w.conduct(Conduct::Silence);
    let waiting = std::thread::spawn(move || errno(file.read_exact_at(&mut [0; 10], 500_000)));
    std::thread::sleep(Duration::from_millis(200));
    w.mount
        .take()
        .expect("mounted")
        .unmount()
        .expect("unmounted");
    assert_ne!(waiting.join().expect("no panic"), 0);
    assert_eq!(words(&w.path("")), [""; 0]);
}

#[test]
fn a_new_version_leaves_the_open_one_as_it_was() {
    let Some(mut w) = World::new() else { return };
    publish(&w.repo, "/data/f", b"old content");
    w.mount();
    let old = File::open(w.path("f")).expect("open");
    publish(&w.repo, "/data/f", b"new");
    forget();
    assert_eq!(fs::read(w.path("f")).expect("read"), b"new");
    let mut seen = [0; 11];
    old.read_exact_at(&mut seen, 0).expect("read");
    assert_eq!(&seen, b"old content");
    assert_eq!(old.metadata().expect("there").len(), 11);
    assert_ne!(
        old.metadata().expect("there").ino(),
        fs::metadata(w.path("f")).expect("there").ino()
    );
}
