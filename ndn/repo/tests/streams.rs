//! Large files whose size nobody knows, as a mount's: whatever is done to them, what is published is what was written.

mod common;

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use common::large::{MIB, longest, options, published, writer};
use common::{Rng, SimDisk, name, noise, open, open_at};
use ndn_packet::Name;
use ndn_repo::disk::Disk;
use ndn_repo::{FileWriter, PutOptions};

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
    let repo = open_at(folder.path()).expect("a repository");
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
    let repo = open_at(folder.path()).expect("a repository");
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

/// What the next start finds published, after a crash in this moment.
fn found_after_crash(disk: &SimDisk) -> Option<Vec<u8>> {
    let repo = open(&disk.after_crash(1)).expect("a repository");
    let info = repo.find(&name("/large"), None).expect("looked up")?;
    let reader = repo.open_file(&info.name, None).expect("there");
    reader.verify(&mut |_| true).expect("whole");
    let mut content = vec![0; info.entry.size as usize];
    reader.read_at(0, &mut content).expect("read");
    Some(content)
}

fn incoming(disk: &SimDisk) -> usize {
    let files = disk.files();
    files.iter().filter(|p| p.starts_with("incoming")).count()
}

#[test]
fn what_could_not_be_cut_is_not_synced_but_cut_another_time() {
    let disk = SimDisk::default();
    let repo = open(&disk).expect("a repository");
    let content = noise(3 * MIB + 777, 8);
    let mut file = writer(&repo);
    file.write_all(&content).expect("written");
    disk.refuse_cuts(true);
    for _ in 0..3 {
        assert!(file.keep().is_err(), "a crash would publish what is beyond");
        assert_eq!(found_after_crash(&disk), None);
    }
    disk.refuse_cuts(false);
    file.keep().expect("kept");
    assert_eq!(longest(&disk), content.len() as u64);
    assert!(found_after_crash(&disk).expect("published") == content);
    file.write_all(b"more").expect("written");
    assert!(published(&repo, file) == [&content[..], b"more"].concat());
}

#[test]
fn what_could_not_be_cut_at_the_end_is_cut_when_it_is_tried_again() {
    let disk = SimDisk::default();
    let repo = open(&disk).expect("a repository");
    let content = noise(2 * MIB + 5, 9);
    let mut file = writer(&repo);
    file.write_all(&content).expect("written");
    disk.refuse_cuts(true);
    assert!(file.try_finish().is_err());
    assert!(!file.is_lost());
    disk.refuse_cuts(false);
    assert!(published(&repo, file) == content);
}

#[test]
fn a_block_that_waits_is_written_where_it_belongs() {
    let disk = SimDisk::default();
    let repo = open(&disk).expect("a repository");
    let options = PutOptions {
        stream_from: 3 * MIB as u64,
        ..options()
    };
    let content = noise(4 * MIB, 10);
    let mut file = repo.put(&name("/large"), &options).expect("a writer");
    file.write_all(&content[..4 * MIB - 1]).expect("written");
    // Neither the manifest's entries nor the block that is to stream can be written.
    disk.break_at(150);
    disk.break_at(3 * MIB as u64 + 10);
    disk.refuse_cuts(true);
    assert!(file.write_all(&content[4 * MIB - 1..]).is_err());
    assert_eq!(file.position(), 4 * MIB as u64 - 1);
    disk.mend();
    disk.refuse_cuts(false);
    let rest = [&content[4 * MIB - 1..], b"more"].concat();
    file.write_at(4 * MIB as u64 - 1, &rest).expect("written");
    assert!(published(&repo, file) == [&content[..], b"more"].concat());
}

#[test]
fn where_no_more_can_be_reserved_it_goes_on_by_the_cache() {
    let disk = SimDisk::default();
    let repo = open(&disk).expect("a repository");
    let part = noise(MIB, 11);
    // Never, and no more after it streamed.
    for streamed in [0, 33] {
        let mut file = writer(&repo);
        for _ in 0..streamed {
            file.write_all(&part).expect("written");
        }
        disk.refuse_streams(true);
        for _ in streamed..streamed + 3 {
            file.write_all(&part).expect("written");
        }
        assert_eq!(longest(&disk), file.position());
        disk.refuse_streams(false);
        assert!(published(&repo, file) == part.repeat(streamed + 3));
    }
}

#[test]
fn what_was_synced_outlives_a_manifest_that_can_not_be_written() {
    let disk = SimDisk::default();
    let repo = open(&disk).expect("a repository");
    let content = noise(2 * MIB + 99, 13);
    for tried_again in [false, true] {
        let mut file = writer(&repo);
        file.write_all(&content).expect("written");
        file.keep().expect("kept");
        disk.break_at(9000);
        if tried_again {
            assert!(file.try_finish().is_err() && file.try_finish().is_err());
            file.keep().expect("it is kept already");
            assert!(found_after_crash(&disk).expect("published") == content);
            disk.mend();
            assert!(published(&repo, file) == content);
            continue;
        }
        assert!(file.finish().is_err());
        disk.mend();
        assert!(found_after_crash(&disk).expect("published") == content);
    }
    let mut file = writer(&repo);
    file.write_all(&content).expect("written");
    let before = incoming(&disk);
    disk.break_at(9000);
    assert!(file.finish().is_err());
    assert_eq!(incoming(&disk), before - 2, "it was never synced");
}

#[test]
fn what_was_synced_and_is_forgotten_does_not_come_back() {
    let disk = SimDisk::default();
    let repo = open(&disk).expect("a repository");
    let content = noise(2 * MIB + 3, 21);
    let mut file = writer(&repo);
    file.write_all(&content).expect("written");
    file.keep().expect("kept");
    assert!(found_after_crash(&disk).expect("published") == content);
    file.forget().expect("forgotten");
    assert_eq!(found_after_crash(&disk), None);
    file.keep().expect("kept");
    let mut staged = file.finish().expect("whole");
    assert!(found_after_crash(&disk).expect("published") == content);
    staged.forget().expect("forgotten");
    assert_eq!(found_after_crash(&disk), None);
}

#[test]
fn nothing_is_kept_of_what_can_not_go_on() {
    let disk = SimDisk::default();
    let repo = open(&disk).expect("a repository");
    let mut file = writer(&repo);
    file.write_all(&noise(3 * MIB, 14)).expect("written");
    file.suspend().expect("nothing to do");
    assert_eq!(incoming(&disk), 0);
}

#[test]
fn a_real_disk_gets_back_what_was_reserved_and_its_cache() {
    let folder = tempfile::tempdir().expect("a folder");
    let repo = open_at(folder.path()).expect("a repository");
    let files = || {
        let found = fs::read_dir(folder.path().join("incoming")).expect("a folder");
        found.map(|entry| entry.expect("an entry").path())
    };
    let mut file = writer(&repo);
    file.write_all(&noise(5 * MIB, 15)).expect("written");
    let sizes = || files().map(|path| fs::metadata(path).expect("there"));
    if sizes().all(|found| found.len() <= 5 * MIB as u64) {
        println!("skipped: this file system reserves no room");
        return;
    }
    assert!(is_written_direct(folder.path()).is_none_or(|direct| direct));
    file.keep().expect("kept");
    assert_ne!(is_written_direct(folder.path()), Some(true));
    file.write_all(&noise(5 * MIB, 16)).expect("written");
    let staged = file.finish().expect("whole");
    for found in sizes() {
        let (used, needed) = (found.blocks() * 512, found.len());
        assert!(used <= needed + (16 << 10), "{used} for {needed} bytes");
    }
    drop(staged);
}

/// Whether a file in the folder is open for writes past the system's cache; nothing where the file system has none of these.
fn is_written_direct(folder: &Path) -> Option<bool> {
    let mut probe = OpenOptions::new();
    probe.write(true).create(true).custom_flags(libc::O_DIRECT);
    drop(probe.open(folder.join("probe")).ok()?);
    let open = fs::read_dir("/proc/self/fd").expect("open files");
    Some(open.flatten().any(|fd| {
        let is_here = fs::read_link(fd.path()).is_ok_and(|to| to.starts_with(folder));
        let info = Path::new("/proc/self/fdinfo").join(fd.file_name());
        let info = fs::read_to_string(info).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|f| i32::from_str_radix(f.trim(), 8).ok());
        is_here && flags.is_some_and(|f| f & libc::O_DIRECT != 0)
    }))
}
