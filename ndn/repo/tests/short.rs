//! Writes that find room for a part: what is told is what was taken.

mod common;

use std::io::{ErrorKind, Write};

use common::{SimDisk, name, noise, open};
use ndn_repo::{FileWriter, PutOptions, Repo};

const MIB: usize = 1 << 20;

fn writer(repo: &Repo) -> FileWriter {
    let options = PutOptions {
        stream_from: u64::MAX,
        ..PutOptions::default()
    };
    repo.put(&name("/f"), &options).expect("a writer")
}

fn published(repo: &Repo, mut file: FileWriter) -> Vec<u8> {
    let staged = file.try_finish().expect("whole");
    let info = repo.publish(vec![staged]).expect("published").remove(0);
    let reader = repo.open_file(&info.name, None).expect("there");
    reader.verify(&mut |_| true).expect("as it was put");
    let mut content = vec![0; info.entry.size as usize];
    reader.read_at(0, &mut content).expect("read");
    content
}

#[test]
fn who_is_refused_has_given_nothing() {
    let disk = SimDisk::default();
    let repo = open(&disk).expect("a repository");
    let content = noise(MIB + 90, 1);
    let mut file = writer(&repo);
    file.write_all(&content[..MIB - 10]).expect("taken");
    disk.set_capacity(disk.used());
    for _ in 0..2 {
        let full = file.write_some_at(MIB as u64 - 10, &content[MIB - 10..]);
        assert_eq!(full.expect_err("full").kind(), ErrorKind::StorageFull);
        assert_eq!(file.position(), MIB as u64 - 10);
    }
    disk.set_capacity(1 << 40);
    file.write_all(&content[MIB - 10..]).expect("taken");
    assert!(published(&repo, file) == content);
}

#[test]
fn of_a_write_that_fits_in_part_the_part_is_told() {
    let content = noise(4 * MIB, 2);
    // In order, and after bytes out of order, which are not hashed as they come.
    for begun in [&b""[..], b"begun"] {
        let disk = SimDisk::default();
        let repo = open(&disk).expect("a repository");
        let mut file = writer(&repo);
        if !begun.is_empty() {
            file.write_at(1, &begun[1..]).expect("written");
            file.write_at(0, &begun[..1]).expect("written");
        }
        disk.set_capacity(disk.used() + 5 * MIB as u64 / 2);
        let at = file.position();
        let n = file.write_some_at(at, &content).expect("a part");
        assert!((2 * MIB..4 * MIB).contains(&n), "{n}");
        assert_eq!(file.position(), at + n as u64);
        let next = file.write_some_at(at + n as u64, &content[n..]);
        assert_eq!(next.expect_err("full").kind(), ErrorKind::StorageFull);
        assert_eq!(file.position(), at + n as u64);
        disk.set_capacity(1 << 40);
        assert!(published(&repo, file) == [begun, &content[..n]].concat());
    }
}

#[test]
fn what_is_taken_is_told_though_its_manifest_finds_no_place() {
    let disk = SimDisk::default();
    let repo = open(&disk).expect("a repository");
    // More than threads that hash have in hand.
    let content = noise(12 * MIB, 3);
    let mut file = writer(&repo);
    file.write_all(&content[..MIB]).expect("written");
    // Of the manifest alone this is to come.
    disk.break_at(9000);
    file.write_all(&content[MIB..])
        .expect("the content is there");
    assert!(file.try_finish().is_err());
    disk.mend();
    assert!(published(&repo, file) == content);
}

#[test]
fn nothing_of_a_write_that_failed_is_left_in_a_gap() {
    let disk = SimDisk::default();
    let repo = open(&disk).expect("a repository");
    let mut file = writer(&repo);
    file.write_at(1, b"b").expect("written");
    file.write_at(0, b"a").expect("written");
    disk.break_in_part();
    assert!(file.write_at(2, b"lost").is_err());
    file.write_at(5, b"c").expect("written");
    disk.break_in_part();
    assert!(file.write_at(6, b"lost").is_err());
    file.set_size(8).expect("longer");
    assert_eq!(published(&repo, file), b"ab\0\0\0c\0\0");
}
