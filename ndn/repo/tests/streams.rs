//! Large files whose size nobody knows, as a mount's: whatever is done to them, what is published is what was written.

mod common;

use std::io::{ErrorKind, Write};

use common::{Rng, SimDisk, name, noise, open};
use ndn_packet::{Name, SigningKey};
use ndn_repo::disk::Disk;
use ndn_repo::{FileWriter, PutOptions, Repo, RepoOptions};

const MIB: usize = 1 << 20;

/// They stream from the second block on.
fn options() -> PutOptions {
    PutOptions {
        segment_bytes: 8000,
        stream_from: MIB as u64,
        ..PutOptions::default()
    }
}

fn writer(repo: &Repo) -> FileWriter {
    repo.put(&name("/large"), &options()).expect("a writer")
}

/// Publishes, and reads it back: every byte, its signature, and the size of its file.
fn published(repo: &Repo, file: FileWriter) -> Vec<u8> {
    let staged = file.finish().expect("whole");
    let info = repo.publish(vec![staged]).expect("published").remove(0);
    let reader = repo
        .open_file(&info.name, Some(info.version))
        .expect("there");
    reader.verify(&mut |_| true).expect("as it was put");
    let mut content = vec![0; info.entry.size as usize];
    assert_eq!(
        reader.read_at(0, &mut content).expect("read"),
        content.len()
    );
    content
}

/// The longest content file that is not yet published.
fn longest(disk: &SimDisk) -> u64 {
    let incoming = disk
        .files()
        .into_iter()
        .filter(|path| path.starts_with("incoming"));
    let sizes = incoming.map(|path| disk.open(&path).and_then(|f| f.size()).expect("a size"));
    sizes.max().expect("a file")
}

#[test]
fn room_is_reserved_ahead_and_given_back() {
    let disk = SimDisk::default();
    let repo = open(&disk).expect("a repository");
    let content = noise(3 * MIB + 12_345, 1);
    let mut file = writer(&repo);
    file.write_all(&content[..MIB]).expect("written");
    assert_eq!(longest(&disk), MIB as u64);
    file.write_all(&content[MIB..]).expect("written");
    assert!(longest(&disk) > 8 * MIB as u64, "it streams");
    let staged = file.finish().expect("whole");
    assert_eq!(longest(&disk), content.len() as u64);
    drop(staged);
    assert!(!disk.files().iter().any(|path| path.starts_with("incoming")));
}

#[test]
fn at_every_length_it_ends_where_it_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let repo = Repo::open(
        folder.path(),
        SigningKey::DigestSha256,
        &RepoOptions::default(),
    );
    let repo = repo.expect("a repository");
    let content = noise(3 * MIB + 5000, 2);
    for len in [0, 1, 511, 512, 4095, 4096, 4097, 5000].map(|n| 3 * MIB + n) {
        let mut file = writer(&repo);
        // Not as large as a block, and no part of one.
        for part in content[..len].chunks(100_001) {
            file.write_all(part).expect("written");
        }
        assert!(published(&repo, file) == content[..len], "{len}");
    }
}

#[test]
fn read_and_rewritten_and_cut_while_it_streams() {
    let folder = tempfile::tempdir().expect("a folder");
    let repo = Repo::open(
        folder.path(),
        SigningKey::DigestSha256,
        &RepoOptions::default(),
    );
    let repo = repo.expect("a repository");
    let source = noise(8 * MIB, 3);
    for seed in 1..=24 {
        let mut rng = Rng(seed);
        let (mut file, mut model) = (writer(&repo), Vec::new());
        // Most of them stay in order for long.
        let calm = 4 + 20 * (seed % 3);
        while model.len() < 5 * MIB {
            let n = [1, 4096, 70_000, 131_072, MIB][rng.below(5) as usize];
            let part = &source[rng.below((source.len() - n) as u64) as usize..][..n];
            let somewhere = rng.below(model.len() as u64 + 1) as usize;
            match rng.below(calm) {
                0 => {
                    let mut read = vec![0; 50_000];
                    let there = file.read_at(somewhere as u64, &mut read).expect("read");
                    let end = model.len().min(somewhere + read.len());
                    assert!(read[..there] == model[somewhere..end], "seed {seed}");
                }
                1 if rng.below(4) == 0 => {
                    file.write_at(somewhere as u64, part).expect("written");
                    let end = model.len().max(somewhere + part.len());
                    model.resize(end, 0);
                    model[somewhere..somewhere + part.len()].copy_from_slice(part);
                }
                2 if rng.below(4) == 0 => {
                    file.set_size(somewhere as u64).expect("cut");
                    model.truncate(somewhere);
                }
                3 if rng.below(2) == 0 => file.keep().expect("kept"),
                _ => {
                    file.write_at(model.len() as u64, part).expect("written");
                    model.extend_from_slice(part);
                }
            }
            assert_eq!(file.position(), model.len() as u64);
        }
        assert!(published(&repo, file) == model, "seed {seed}");
    }
}

#[test]
fn a_full_disk_is_told_before_anything_is_given_up() {
    let disk = SimDisk::default();
    disk.keep_reserved();
    let repo = open(&disk).expect("a repository");
    let content = noise(6 * MIB, 4);
    let mut file = writer(&repo);
    file.write_all(&content[..2 * MIB]).expect("written");
    // Nothing but what is reserved.
    disk.set_capacity(disk.used());
    let reserved = longest(&disk) as usize;
    assert!(reserved < 100 * MIB, "{reserved}");
    let (mut at, zeros) = (2 * MIB, vec![0; MIB]);
    let full = loop {
        let part = content.get(at..at + MIB).unwrap_or(&zeros);
        match file.write_all(part) {
            Ok(()) => at += MIB,
            Err(error) => break error,
        }
    };
    assert_eq!(full.kind(), ErrorKind::StorageFull, "{full}");
    assert!(at >= reserved - MIB, "what was reserved was there: {at}");
    let taken = file.position() as usize;
    assert!(file.write_all(&zeros).is_err(), "still full");
    assert_eq!(file.position() as usize, taken);
    let mut read = vec![1; MIB];
    disk.set_capacity(1 << 40);
    assert_eq!(file.read_at(MIB as u64, &mut read).expect("read"), MIB);
    assert!(read == content[MIB..2 * MIB]);
    file.write_all(b"the end").expect("there is room again");
    let found = published(&repo, file);
    assert!(found[..6 * MIB] == content);
    assert!(found[6 * MIB..taken].iter().all(|b| *b == 0));
    assert_eq!(&found[taken..], b"the end");
}

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
fn what_could_not_be_written_is_told_and_never_published() {
    let elsewhere: [fn(&mut FileWriter) -> bool; 4] = [
        |file| file.write_at(5, b"elsewhere").is_err(),
        |file| file.set_size(7).is_err(),
        |file| file.read_at(0, &mut [0]).is_err(),
        |file| file.keep().is_err(),
    ];
    for then in elsewhere {
        let disk = SimDisk::default();
        let repo = open(&disk).expect("a repository");
        let mut file = writer(&repo);
        let content = noise(4 * MIB, 6);
        file.write_all(&content[..2 * MIB]).expect("written");
        disk.break_at(3 * MIB as u64 - 5);
        // Another thread finds out.
        let _ = file.write_all(&content[2 * MIB..]);
        assert!(then(&mut file));
        assert!(file.finish().is_err());
        assert_eq!(repo.find(&name("/large"), None).expect("looked up"), None);
        assert!(!disk.files().iter().any(|path| path.starts_with("incoming")));
        repo.verify(&Name::new(), &mut |_| true).expect("read");
    }
}

#[test]
fn only_so_many_stream_at_once() {
    let disk = SimDisk::default();
    let repo = open(&disk).expect("a repository");
    let content = noise(2 * MIB + 1, 7);
    let streaming = |disk: &SimDisk| {
        let sizes = disk
            .files()
            .into_iter()
            .map(|path| disk.open(&path).and_then(|f| f.size()));
        sizes
            .filter(|size| size.as_ref().is_ok_and(|s| *s > 8 * MIB as u64))
            .count()
    };
    let many: Vec<FileWriter> = (0..6)
        .map(|n| {
            let mut file = repo
                .put(&name(&format!("/{n}")), &options())
                .expect("a writer");
            file.write_all(&content).expect("written");
            file
        })
        .collect();
    assert_eq!(streaming(&disk), 4);
    for file in many {
        assert!(published(&repo, file) == content);
    }
    let mut file = writer(&repo);
    file.write_all(&content).expect("written");
    assert_eq!(streaming(&disk), 1);
    assert!(published(&repo, file) == content);
}
