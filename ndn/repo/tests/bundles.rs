//! Small versions lie together: each is there as any other is, and costs no file of its own.

mod common;

use std::io::Write;
use std::path::Path;

use common::{SimDisk, ask, name, noise, open_with};
use ndn_packet::Name;
use ndn_repo::{Change, PutOptions, Repo, RepoError};

const SMALL: u32 = 5000;

fn put(repo: &Repo, object: &str, content: &[u8]) -> u64 {
    let mut file = repo
        .put(&name(object), &PutOptions::default())
        .expect("a writer");
    file.write_all(content).expect("written");
    let staged = vec![file.finish().expect("whole")];
    repo.publish(staged).expect("published")[0].version
}

fn content(repo: &Repo, object: &str) -> Vec<u8> {
    let reader = repo.open_file(&name(object), None).expect("a reader");
    let mut bytes = vec![0; reader.size() as usize];
    reader.read_at(0, &mut bytes).expect("read");
    bytes
}

/// Files in a folder of the disk.
fn files(disk: &SimDisk, folder: &str) -> usize {
    let files = disk.files();
    files.iter().filter(|path| path.starts_with(folder)).count()
}

#[test]
fn what_is_published_lazily_is_seen_by_everybody_at_once() {
    let disk = SimDisk::default();
    let owner = open_with(&disk, SMALL).expect("a repository");
    let repo = owner.lazy();
    put(&repo, "/d/a/before", b"before");
    repo.sync().expect("durable");
    // Each look is the first since something was published.
    let version = put(&repo, "/d/e/f", b"one");
    let found = owner.find(&name("/d/e/f"), None).expect("read");
    assert_eq!(found.expect("there").version, version);
    assert_eq!(owner.folder(&name("/d/e")).expect("read"), Some(0));
    assert_eq!(owner.folder(&name("/d/e/f")).expect("read"), None);
    assert_eq!(owner.folder(&name("/d/ef")).expect("read"), None);
    put(&repo, "/d/e/f", b"two");
    assert_eq!(owner.versions(&name("/d/e/f")).expect("read").len(), 2);
    put(&repo, "/d/e/g", b"three");
    assert_eq!(owner.list(&name("/d/e"), None, 9).expect("read").len(), 2);
    put(&repo, "/d/e/h", b"four");
    assert_eq!(content(&owner, "/d/e/h"), b"four");
    let version = put(&repo, "/d/e/i", b"five");
    let segment = name("/d/e/i").append_version(version).append_segment(0);
    let data = ask(&owner, &segment, false).expect("read").expect("there");
    assert_eq!(data.content_slice(), b"five");
    put(&repo, "/d/e/j", b"six");
    assert_eq!(repo.unsynced(), 6);
    // Others than the last are in the tables by now; a version may not be there twice wherever it is.
    let twice = PutOptions {
        version: Some(version),
        ..PutOptions::default()
    };
    assert!(owner.put(&name("/d/e/i"), &twice).is_err());
    let mut count = 0;
    owner
        .walk(&Name::new(), &mut |_| {
            count += 1;
            Ok(())
        })
        .expect("read");
    assert_eq!(count, 7);
    repo.sync().expect("durable");
    assert_eq!(repo.unsynced(), 0);
}

#[test]
fn many_small_versions_are_one_file() {
    let disk = SimDisk::default();
    let repo = open_with(&disk, SMALL).expect("a repository").lazy();
    for n in 0..1500 {
        put(&repo, &format!("/many/{n}"), &noise(n % 700, n as u64));
    }
    put(&repo, "/large", &noise(SMALL as usize + 1, 1));
    put(&repo, "/largest_small", &noise(SMALL as usize, 2));
    repo.sync().expect("durable");
    drop(repo);
    let repo = open_with(&disk, SMALL).expect("a repository");
    assert_eq!(files(&disk, "files"), 2);
    assert_eq!(files(&disk, "incoming"), 0);
    assert_eq!(files(&disk, "bundles"), 1);
    let report = repo.verify(&Name::new(), &mut |_| true).expect("read");
    assert_eq!(report.damaged, []);
    for n in 0..1500 {
        assert!(content(&repo, &format!("/many/{n}")) == noise(n % 700, n as u64));
    }
}

#[test]
fn a_flipped_bit_is_found() {
    let disk = SimDisk::default();
    let repo = open_with(&disk, SMALL).expect("a repository");
    put(&repo, "/f", &noise(1000, 1));
    drop(repo);
    let bundle = disk.files();
    let bundle = bundle.iter().find(|path| path.starts_with("bundles"));
    let bundle = bundle.expect("it is there").clone();
    for bit in [0, 4321, 7999] {
        disk.flip(&bundle, bit);
        let repo = open_with(&disk, SMALL).expect("a repository");
        let report = repo.verify(&Name::new(), &mut |_| true).expect("read");
        assert_eq!(report.damaged.len(), 1, "bit {bit}");
        // Nor is it signed under another name.
        let file = repo.find(&name("/f"), None).expect("read").expect("there");
        let linked = repo.link(&file, &name("/g"), None);
        assert!(
            matches!(linked, Err(RepoError::Damaged { .. })),
            "bit {bit}"
        );
        drop(repo);
        disk.flip(&bundle, bit);
    }
}

#[test]
fn who_reads_a_small_version_goes_on_when_it_is_removed_and_its_room_comes_back() {
    let disk = SimDisk::default();
    let repo = open_with(&disk, SMALL).expect("a repository").lazy();
    for n in 0..100 {
        put(&repo, &format!("/many/{n}"), &noise(2000, n));
    }
    repo.sync().expect("durable");
    let reader = repo.open_file(&name("/many/7"), None).expect("a reader");
    let remove = (0..90)
        .map(|n| repo.find(&name(&format!("/many/{n}")), None))
        .map(|found| found.expect("read").expect("there"))
        .map(|info| (info.name, info.version))
        .collect();
    repo.apply(Change {
        remove,
        ..Change::default()
    })
    .expect("removed");
    repo.sync().expect("durable");
    let mut left = disk.files();
    left.retain(|path| path.starts_with("bundles"));
    assert_eq!(left, [Path::new("bundles/00000001")], "ten were moved");
    let mut bytes = vec![0; 2000];
    assert_eq!(reader.read_at(0, &mut bytes).expect("read"), 2000);
    assert!(bytes == noise(2000, 7));
    for n in 90..100 {
        assert!(content(&repo, &format!("/many/{n}")) == noise(2000, n));
    }
}

#[test]
fn a_small_version_that_grows_gets_files_of_its_own() {
    let disk = SimDisk::default();
    let repo = open_with(&disk, SMALL).expect("a repository");
    let whole = noise(20_000, 3);
    for (object, order) in [("/in-order", [0, 1, 2]), ("/in-disorder", [2, 0, 1])] {
        let mut file = repo
            .put(&name(object), &PutOptions::default())
            .expect("a writer");
        for part in order {
            let range = [0..4000, 4000..9000, 9000..20_000][part].clone();
            file.write_at(range.start as u64, &whole[range])
                .expect("written");
        }
        repo.publish(vec![file.finish().expect("whole")])
            .expect("published");
        assert!(content(&repo, object) == whole, "{object}");
    }
    assert_eq!(files(&disk, "files"), 4);
    assert_eq!(files(&disk, "bundles"), 0);
    // And one that is cut to little again has them still.
    let mut file = repo
        .put(&name("/cut"), &PutOptions::default())
        .expect("a writer");
    file.write_at(0, &whole).expect("written");
    file.set_size(100).expect("cut");
    repo.publish(vec![file.finish().expect("whole")])
        .expect("published");
    assert!(content(&repo, "/cut") == whole[..100]);
}
