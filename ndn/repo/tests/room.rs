//! Room that is reserved, ahead or because it was asked for: it is there for whom it was reserved, and no more of it than
//! that.

mod common;

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use common::large::{MIB, longest, options, published, writer};
use common::{SimDisk, name, noise, open, open_at};
use ndn_repo::FileWriter;
use ndn_repo::disk::Disk;

#[test]
fn a_disk_without_room_to_reserve_is_filled_block_by_block() {
    let disk = SimDisk::default();
    let repo = open(&disk).expect("a repository");
    disk.set_capacity(disk.used() + 16 * MIB as u64);
    let content = noise(5 * MIB, 5);
    let mut file = writer(&repo);
    for part in content.chunks(300_000) {
        file.write_all(part).expect("written");
        assert!(longest(&disk) < file.position() + MIB as u64);
    }
    assert!(published(&repo, file) == content);
}

#[test]
fn a_disk_with_some_room_gives_some_ahead() {
    let disk = SimDisk::default();
    let repo = open(&disk).expect("a repository");
    disk.set_capacity(disk.used() + 300 * MIB as u64);
    let content = noise(3 * MIB, 17);
    let mut file = writer(&repo);
    file.write_all(&content).expect("written");
    let ahead = longest(&disk) - file.position();
    assert!(
        (8 * MIB as u64..20 * MIB as u64).contains(&ahead),
        "{ahead}"
    );
    assert!(published(&repo, file) == content);
}

#[test]
fn who_may_not_have_so_much_has_less_and_leaves_others_theirs() {
    let disk = SimDisk::default();
    disk.keep_reserved();
    let repo = open(&disk).expect("a repository");
    disk.set_quota(disk.used() + 24 * MIB as u64);
    let content = noise(19 * MIB, 18);
    let mut file = writer(&repo);
    file.write_all(&content[..3 * MIB]).expect("written");
    let ahead = longest(&disk) - file.position();
    assert!(ahead > 8 * MIB as u64, "{ahead}");
    let mut other = repo.put(&name("/other"), &options()).expect("a writer");
    other.write_all(&content[..MIB]).expect("written");
    let other = other.finish().expect("whole");
    for part in content[3 * MIB..].chunks(300_000) {
        file.write_all(part).expect("it fits");
    }
    drop(other);
    assert!(published(&repo, file) == content);
}

/// Takes all room that there is, and more.
fn fill(disk: &SimDisk) {
    let file = disk.create(Path::new("filler")).expect("a file");
    let part = vec![0; 4096];
    for n in 0.. {
        if file.write_at(n * 4096, &part).is_err() {
            return;
        }
    }
}

#[test]
fn room_that_was_asked_for_is_not_given_to_others() {
    const END: usize = 4 * MIB;
    let content = noise(END, 19);
    let then: [fn(&mut FileWriter); 4] = [
        |_| {},
        |file| file.set_size(END as u64).expect("longer"),
        |file| file.write_at(0, b"x").expect("written"),
        |file| file.keep().expect("kept"),
    ];
    for then in then {
        let disk = SimDisk::default();
        disk.keep_reserved();
        let repo = open(&disk).expect("a repository");
        let mut file = writer(&repo);
        // It would stream from here on.
        file.write_all(&content[..2 * MIB]).expect("written");
        file.reserve(0..END as u64).expect("reserved");
        disk.set_capacity(disk.used() + 10 * MIB as u64);
        let others = disk.clone();
        disk.at_cut(move || fill(&others));
        then(&mut file);
        disk.at_cut(|| ());
        if !disk.files().iter().any(|path| path.ends_with("filler")) {
            fill(&disk);
        }
        for (n, part) in content.chunks(50_000).enumerate() {
            file.write_at(n as u64 * 50_000, part).expect("its own");
        }
        disk.set_capacity(1 << 40);
        assert!(published(&repo, file) == content);
    }
}

#[test]
fn room_that_was_asked_for_stays_when_what_was_reserved_ahead_goes() {
    let disk = SimDisk::default();
    disk.keep_reserved();
    let repo = open(&disk).expect("a repository");
    let mut file = writer(&repo);
    file.write_all(&noise(3 * MIB, 12)).expect("written");
    file.reserve(0..60 * MIB as u64).expect("reserved");
    file.keep().expect("kept");
    assert_eq!(longest(&disk), 3 * MIB as u64);
    assert!(disk.used() > 60 * MIB as u64);
    let staged = file.finish().expect("whole");
    assert!(disk.used() < 30 * MIB as u64, "{}", disk.used());
    repo.publish(vec![staged]).expect("published");
}

#[test]
fn room_that_can_not_be_reserved_as_a_whole_is_not_kept() {
    let disk = SimDisk::default();
    disk.keep_reserved();
    let repo = open(&disk).expect("a repository");
    let mut file = writer(&repo);
    file.write_all(b"written").expect("written");
    disk.set_capacity(disk.used() + 10 * MIB as u64);
    let used = disk.used();
    assert!(file.reserve(0..20 * MIB as u64).is_err());
    assert!(disk.used() < used + 4096);
    file.reserve(0..5 * MIB as u64).expect("reserved");
    assert!(published(&repo, file) == b"written");
}

#[test]
fn no_more_room_is_reserved_than_was_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let repo = open_at(folder.path()).expect("a repository");
    let mut file = writer(&repo);
    file.write_all(&noise(5000, 20)).expect("written");
    file.reserve(1 << 20..2 << 20).expect("reserved");
    let incoming = folder.path().join("incoming");
    let used: u64 = fs::read_dir(incoming)
        .expect("a folder")
        .map(|entry| entry.and_then(|e| e.metadata()).expect("there").blocks() * 512)
        .sum();
    assert!(used < 1536 << 10, "no more than was asked for: {used}");
    assert!(published(&repo, file) == noise(5000, 20));
}
