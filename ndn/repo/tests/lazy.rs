//! Changes that wait for a sync.

mod common;

use std::io::Write;
use std::path::Path;

use common::{SimDisk, name, noise};
use ndn_packet::{Name, SigningKey};
use ndn_repo::{Change, PutOptions, Repo, RepoError, RepoOptions, Staged};

fn stage(repo: &Repo, name: &Name, version: u64, content: &[u8]) -> Staged {
    let options = PutOptions {
        version: Some(version),
        ..PutOptions::default()
    };
    let mut file = repo.put(name, &options).expect("a writer");
    file.write_all(content).expect("written");
    file.finish().expect("whole")
}

fn publishing(publish: Vec<Staged>) -> Change {
    Change {
        publish,
        ..Change::default()
    }
}

/// Files below a folder.
fn files_in(folder: &Path) -> usize {
    std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| if path.is_dir() { files_in(&path) } else { 1 })
        .sum()
}

#[test]
fn what_takes_another_s_place_is_synced_as_often_as_what_is_new() {
    let disk = SimDisk::default();
    let repo = common::open(&disk).expect("a repository").lazy();
    let a = name("/a");
    let syncs = |version, remove| {
        let change = Change {
            publish: vec![stage(&repo, &a, version, &noise(1000, version))],
            remove,
            ..Change::default()
        };
        repo.apply(change).expect("changed");
        let before = disk.syncs();
        repo.sync().expect("durable");
        disk.syncs() - before
    };
    syncs(1, vec![]);
    let new = syncs(2, vec![]);
    let replaced = syncs(3, vec![(a.clone(), 1), (a.clone(), 2)]);
    assert_eq!(replaced, new);
    let mut left = disk.files();
    left.retain(|path| path.starts_with("files") || path.starts_with("incoming"));
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn a_change_that_is_refused_leaves_nothing_to_the_next_sync() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = RepoOptions {
        small_bytes: 0,
        ..RepoOptions::default()
    };
    let open = || Repo::open(folder.path(), SigningKey::DigestSha256, &options).expect("opened");
    let repo = open().lazy();
    let (a, b) = (name("/a"), name("/b"));
    let twice = [1, 2].map(|seed| stage(&repo, &a, 5, &noise(1000, seed)));
    let [first, second] = twice;
    repo.apply(publishing(vec![first])).expect("published");
    let refused = repo
        .apply(publishing(vec![stage(&repo, &b, 1, b"b"), second]))
        .expect_err("that version is there");
    assert!(matches!(refused.error, RepoError::VersionExists { .. }));
    assert_eq!(repo.unsynced(), 1);
    repo.sync().expect("durable");

    // What was refused is still there to be published, or to be given up.
    let mut publish = refused.publish;
    publish.truncate(1);
    repo.apply(publishing(publish)).expect("published");
    repo.sync().expect("durable");
    drop(repo);
    let repo = open();
    assert_eq!(files_in(&folder.path().join("files")), 4, "two of each");
    assert_eq!(files_in(&folder.path().join("incoming")), 0);
    let reader = repo.open_file(&b, None).expect("a reader");
    let mut content = [0; 2];
    assert_eq!(reader.read_at(0, &mut content).expect("read"), 1);
    assert_eq!(content[0], b'b');

    let repo = repo.lazy();
    let (again, c) = (
        stage(&repo, &name("/c"), 1, b"c"),
        stage(&repo, &name("/d"), 1, b"d"),
    );
    drop(stage(&repo, &a, 6, b"given up"));
    let nowhere = ndn_repo::NewAttributes {
        name: name("/none"),
        version: 1,
        mode: 0,
        mtime_ns: 0,
    };
    let refused = repo
        .apply(Change {
            publish: vec![again, c],
            attributes: vec![nowhere],
            ..Change::default()
        })
        .expect_err("there is no such version");
    repo.sync().expect("durable");
    drop(refused);
    assert_eq!(files_in(&folder.path().join("files")), 4);
    assert_eq!(files_in(&folder.path().join("incoming")), 0);
}

#[test]
fn a_version_that_goes_while_it_is_opened_is_not_there() {
    let disk = SimDisk::default();
    let repo = common::open(&disk).expect("a repository");
    let staged = stage(&repo, &name("/f"), 1, b"content");
    repo.publish(vec![staged]).expect("published");
    let other = repo.clone();
    disk.at_open(move || {
        other.remove(&[(name("/f"), 1)]).expect("removed");
    });
    let gone = repo.open_file(&name("/f"), Some(1));
    assert!(matches!(gone, Err(RepoError::NotFound(_))), "{gone:?}");
}

/// The system reports a lost write once, and takes it for written from then on.
#[test]
fn what_the_disk_has_lost_is_not_said_to_be_durable_by_the_next_sync() {
    for small_bytes in [0, 65536] {
        let disk = SimDisk::default();
        let repo = common::open_with(&disk, small_bytes).expect("a repository");
        let lazy = repo.lazy();
        let (a, b) = (name("/a"), name("/b"));
        let publish = |repo: &Repo, name: &Name| {
            repo.apply(publishing(vec![stage(repo, name, 1, &noise(5000, 1))]))
        };
        publish(&lazy, &a).expect("published");
        disk.lose_sync();
        let first = lazy.sync().expect_err("a bad sector").to_string();
        assert!(first.contains("a bad sector"), "{first}");
        for _ in 0..2 {
            let again = lazy.sync().expect_err("it is lost").to_string();
            let told = again.contains("a bad sector") && again.contains("start this host again");
            assert!(told, "{again}");
        }
        let refused = publish(&repo, &b).expect_err("nothing is durable").error;
        assert!(refused.to_string().contains("a bad sector"), "{refused}");
        for seed in 0..20 {
            let found = disk.after_crash(seed);
            let repo = common::open_with(&found, small_bytes).expect("a repository");
            assert!(repo.open_file(&a, None).is_err(), "it never was durable");
            publish(&repo, &b).expect("the disk is well again");
        }
    }
}

#[test]
fn what_others_have_lost_is_no_matter() {
    const FILES: u64 = 12; // so many that all files of the disk are synced at once
    let disk = SimDisk::default();
    let repo = common::open(&disk).expect("a repository");
    disk.refuse_sync_all();
    let names: Vec<Name> = (0..2 * FILES).map(|n| name(&format!("/{n}"))).collect();
    let (durably, lazily) = names.split_at(FILES as usize);
    let staged = |names: &[Name]| {
        let stage = |name: &Name| stage(&repo, name, 1, &noise(5000, 1));
        publishing(names.iter().map(stage).collect())
    };
    repo.apply(staged(durably)).expect("one by one");
    let lazy = repo.lazy();
    lazy.apply(staged(lazily)).expect("published");
    lazy.sync().expect("one by one");
    for seed in 0..10 {
        let repo = common::open(&disk.after_crash(seed)).expect("a repository");
        for name in &names {
            repo.open_file(name, Some(1)).expect("it was durable");
        }
    }
}
