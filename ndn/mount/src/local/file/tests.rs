//! What can't be brought about from outside at will.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use ndn_packet::{Name, SigningKey};
use ndn_repo::{FileInfo, PutOptions, Repo, RepoOptions, Staged};
use tempfile::TempDir;

use super::super::{Access, Local};
use super::{Draft, Keeping, OpenFile};
use crate::attr::Owner;
use crate::nodes::ROOT;

const BOTH: Access = Access {
    reads: true,
    writes: true,
};

struct Bench {
    repo: Repo,
    keeping: Arc<Keeping>,
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let key = SigningKey::DigestSha256;
        let repo = Repo::open(folder.path(), key, &RepoOptions::default());
        Self {
            repo: repo.expect("a repository"),
            keeping: Arc::new(Keeping {
                put: PutOptions::default(),
                versions: None,
            }),
            folder,
        }
    }

    fn stage(&self, content: &[u8]) -> Staged {
        let name = "/f".parse().expect("a name");
        let writer = self.repo.put(&name, &PutOptions::default());
        let mut file = writer.expect("a writer");
        file.write_all(content).expect("written");
        file.finish().expect("whole")
    }

    fn publish(&self, content: &[u8]) -> FileInfo {
        let published = self.repo.publish(vec![self.stage(content)]);
        published.expect("published").remove(0)
    }

    fn open(&self, info: &FileInfo) -> OpenFile {
        OpenFile::open(&self.repo, &self.keeping, info.clone())
    }

    fn local(&self) -> Local {
        let owner = Owner { uid: 0, gid: 0 };
        let store = self.folder.path().to_owned();
        let keeping = (*self.keeping).clone();
        Local::new(&self.repo, Name::new(), store, owner, keeping)
    }

    /// Sizes of the versions, the oldest first.
    fn sizes(&self) -> Vec<u64> {
        let versions = self.repo.versions(&"/f".parse().expect("a name"));
        let versions = versions.expect("read");
        versions.iter().map(|info| info.entry.size).collect()
    }

    fn remove(&self, info: &FileInfo) {
        let removed = self.repo.remove(&[(info.name.clone(), info.version)]);
        assert_eq!(removed.expect("removed"), 1);
    }
}

#[test]
fn a_version_that_goes_while_it_is_opened_gives_way_to_the_next() {
    let bench = Bench::new();
    let (old, new) = (bench.publish(b"old"), bench.publish(b"new"));
    let mut file = bench.open(&old);
    bench.remove(&old);
    file.make_ready().expect("there is another");
    assert_eq!(file.version(), Some(&new));

    let mut file = bench.open(&new);
    bench.remove(&new);
    let none = file.make_ready().expect_err("there is none");
    assert_eq!(none.code(), libc::ENOENT);
}

#[test]
fn what_could_not_be_published_before_it_was_removed_is_written_on() {
    let bench = Bench::new();
    let mut file = bench.open(&bench.publish(b"before"));
    file.draft = Some(Draft::Whole(bench.stage(b"written")));
    file.unlink();
    file.write(1, 7, b" more").expect("written");
    let mut seen = [0; 12];
    assert_eq!(file.read(0, &mut seen), Ok(12));
    assert_eq!(&seen, b"written more");
    file.publish().expect("nothing to do");
    assert_eq!(file.size(), 12);
    drop(file);
    let left = std::fs::read_dir(bench.folder.path().join("incoming"));
    assert_eq!(left.expect("a folder").count(), 0);
    assert_eq!(bench.repo.status().expect("status").files, 1);
}

/// Makes the file and opens it: its inode, and the handle.
fn make(local: &Local) -> (u64, u64) {
    let made = local.create(ROOT, OsStr::new("f"), 0o600, BOTH);
    let (attr, handle) = made.expect("made");
    (attr.ino.0, handle)
}

/// Size of the file as the next start finds it, were the power to fail now: what is not synced is there as well.
fn found_after_crash(store: &Path) -> Option<u64> {
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("store");
    let copied = Command::new("cp").arg("-r").args([store, &copy]).status();
    assert!(copied.expect("run").success());
    let key = SigningKey::DigestSha256;
    let repo = Repo::open(&copy, key, &RepoOptions::default()).expect("a repository");
    let found = repo.find(&"/f".parse().expect("a name"), None);
    found.expect("read").map(|info| info.entry.size)
}

#[test]
fn what_was_synced_and_removed_does_not_come_back() {
    let bench = Bench::new();
    let (local, store) = (bench.local(), bench.folder.path());
    let (_, handle) = make(&local);
    local.write(handle, 0, b"synced").expect("written");
    local.sync_file(handle).expect("synced");
    assert_eq!(found_after_crash(store), Some(6));
    local.unlink(ROOT, OsStr::new("f")).expect("removed");
    local.sync_now().expect("synced");
    assert_eq!(found_after_crash(store), None, "that is durable");
    local.write(handle, 6, b" more").expect("it is open");
    let mut seen = [0; 11];
    assert_eq!(local.read(handle, 0, &mut seen), Ok(11));
    assert_eq!(&seen, b"synced more");
}

/// The kernel tells that a handle is gone some time after its `close` has returned.
#[test]
fn a_handle_that_is_gone_late_publishes_nothing_of_others() {
    let bench = Bench::new();
    let local = bench.local();
    let (number, first) = make(&local);
    local.write(first, 0, b"first").expect("written");
    local.close(first).expect("published");
    let open = |cut| local.open(number, BOTH, cut).expect("open").0;
    let second = open(true);
    local.release(first);
    assert_eq!(bench.sizes(), [5], "not the empty file");
    local.write(second, 0, b"second").expect("written");
    local.close(second).expect("published");
    let third = open(false);
    local.write(third, 6, b" and more").expect("written");
    local.release(second);
    assert_eq!(bench.sizes(), [5, 6], "not what the third has only begun");
    local.close(third).expect("published");
    local.release(third);
    assert_eq!(bench.sizes(), [5, 6, 15]);
}

#[test]
fn what_a_handle_has_written_after_its_close_is_published_when_it_goes() {
    let bench = Bench::new();
    let local = bench.local();
    let (number, handle) = make(&local);
    let (other, _) = local.open(number, BOTH, false).expect("open");
    local.close(handle).expect("by one of those who share it");
    local.write(handle, 0, b"by the next").expect("written");
    local.close(handle).expect("by the next");
    assert_eq!(bench.sizes(), [0]);
    local.release(handle);
    assert_eq!(
        bench.sizes(),
        [0, 11],
        "another has it open, and writes nothing"
    );
    // Cut by its path: that has no handle.
    local.set_attr(number, Some(2), None, None).expect("cut");
    assert_eq!(bench.sizes(), [0, 11]);
    local.release(other);
    assert_eq!(bench.sizes(), [0, 11, 2], "by the last that could write");
}
