//! The power fails at every single change that a repository makes to its disk: what was acknowledged is there and
//! verifies, what was not is gone or whole, nothing else is touched.

mod common;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Write;

use common::{SimDisk, name, noise};
use ndn_packet::Name;
use ndn_repo::{Change, PutOptions, Repo, RepoError, Result, Staged};

thread_local! {
    /// Bytes of versions that lie together in the repositories of a test.
    static SMALL_BYTES: Cell<u32> = const { Cell::new(0) };
}

fn open(disk: &SimDisk) -> Result<Repo> {
    common::open_with(disk, SMALL_BYTES.get())
}

/// What must be there: content by name and version; what may be there or not; and of what there must be one or the other.
#[derive(Default)]
struct Known {
    there: BTreeMap<(Name, u64), Vec<u8>>,
    maybe: BTreeMap<(Name, u64), Vec<u8>>,
    either: Vec<[(Name, u64); 2]>,
}

fn put(repo: &Repo, known: &mut Known, files: &[(&str, usize)]) -> Result<()> {
    let mut staged = Vec::new();
    for (object, size) in files {
        let object = name(object);
        let content = noise(*size, *size as u64);
        let options = PutOptions {
            segment_bytes: 100,
            size: Some(*size as u64),
            mtime_ns: Some(1),
            ..PutOptions::default()
        };
        let mut file = repo.put(&object, &options)?;
        let version = file.versioned().last().and_then(|c| c.as_version());
        let at = file.position() as usize;
        file.write_all(&content[at..])
            .map_err(|error| RepoError::Io {
                path: "a file".into(),
                error,
            })?;
        staged.push(file.finish()?);
        known
            .maybe
            .insert((object, version.expect("a version")), content);
    }
    repo.publish(staged)?;
    known.there.append(&mut known.maybe);
    Ok(())
}

fn remove(repo: &Repo, known: &mut Known, object: &str) -> Result<()> {
    let object = name(object);
    let doomed: Vec<_> = known
        .there
        .keys()
        .filter(|(n, _)| *n == object)
        .cloned()
        .collect();
    for key in &doomed {
        let content = known.there.remove(key).expect("known");
        known.maybe.insert(key.clone(), content);
    }
    repo.remove(&doomed)?;
    known.maybe.clear();
    Ok(())
}

/// Puts, replaces and removes, and stops in the middle of a last put.
fn live(disk: &SimDisk, known: &mut Known) -> Result<()> {
    let repo = open(disk)?;
    put(&repo, known, &[("/a", 250)])?;
    put(&repo, known, &[("/b/1", 99), ("/b/2", 100), ("/b/3", 101)])?;
    remove(&repo, known, "/a")?;
    put(&repo, known, &[("/b/1", 350)])?;
    drop(repo);
    let repo = open(disk)?;
    remove(&repo, known, "/b/2")?;
    let many: Vec<String> = (0..9).map(|i| format!("/many/{i}")).collect();
    let many: Vec<(&str, usize)> = many.iter().map(|n| (n.as_str(), 10)).collect();
    put(&repo, known, &many)?;
    repo.compact()?;
    put(&repo, known, &[("/last", 999)])
}

/// A large file is written by the threads that hash it.
fn live_streaming(disk: &SimDisk, known: &mut Known) -> Result<()> {
    let repo = open(disk)?;
    put(&repo, known, &[("/a", 250)])?;
    put(&repo, known, &[("/large", 2_150_000)])
}

/// As a file system does it: changes are seen at once and durable by the next sync, files are kept before they are
/// published.
fn live_lazily(disk: &SimDisk, known: &mut Known) -> Result<()> {
    let owner = open(disk)?;
    let repo = owner.lazy();
    put_lazily(&repo, known, &[("/a", 250), ("/b", 99)])?;
    put_lazily(&repo, known, &[("/a", 120)])?;
    sync(&repo, known)?;
    let versions: Vec<_> = known
        .there
        .keys()
        .filter(|k| k.0 == name("/a"))
        .cloned()
        .collect();
    for key in &versions {
        let content = known.there.remove(key).expect("known");
        known.maybe.insert(key.clone(), content);
    }
    repo.remove(&versions)?;
    assert_eq!(repo.find(&name("/a"), None)?, None, "seen at once");

    // Kept while it is written; then published, which must not lose it.
    let mut file = repo.put(&name("/draft"), &short())?;
    let version = file.version();
    let content = noise(777, 5);
    file.write_at(300, &content[300..]).map_err(failed)?;
    file.write_at(0, &content[..300]).map_err(failed)?;
    let key = (name("/draft"), version);
    known.maybe.insert(key.clone(), content.clone());
    file.keep()?;
    known.there.insert(key, content);
    put_lazily(&repo, known, &[("/c", 10)])?;
    repo.publish(vec![file.finish()?])?;
    // A change that is durable at once takes along all that was changed before.
    put(&owner, known, &[("/d", 5)])?;
    acknowledge(known, "/a");
    let many: Vec<String> = (0..9).map(|i| format!("/many/{i}")).collect();
    let many: Vec<(&str, usize)> = many.iter().map(|n| (n.as_str(), 10)).collect();
    put_lazily(&repo, known, &many)?;
    sync(&repo, known)?;
    let mut file = repo.put(&name("/last"), &short())?;
    let content = noise(500, 6);
    file.write_all(&content).map_err(failed)?;
    let key = (name("/last"), file.version());
    known.maybe.insert(key.clone(), content.clone());
    file.keep()?;
    known.there.insert(key, content);
    // The process ends here without a word.
    std::mem::forget(file);
    Ok(())
}

/// Small versions are put, given other names, changed and removed, until a bundle is mostly dead room and what is left in it is
/// moved; then there are others.
fn live_in_bundles(disk: &SimDisk, known: &mut Known) -> Result<()> {
    let owner = open(disk)?;
    let repo = owner.lazy();
    let many: Vec<String> = (0..12).map(|i| format!("/many/{i}")).collect();
    let sizes: Vec<(&str, usize)> = many.iter().map(|n| (n.as_str(), 90)).collect();
    put_lazily(&repo, known, &sizes)?;
    put_lazily(
        &repo,
        known,
        &[("/from", 99), ("/stays", 150), ("/large", 5000)],
    )?;
    sync(&repo, known)?;
    let from = repo.find(&name("/from"), None)?.expect("it is there");
    let to = repo.link(&from, &name("/to"), None)?;
    let content = known.there[&(from.name, from.version)].clone();
    known.maybe.insert(key(&to), content);
    let renamed = replacing(&repo, known, "/from", to)?;
    repo.apply(renamed).map_err(|not| not.error)?;
    repo.sync()?;
    replaced(known);
    for object in &many[..10] {
        remove(&owner, known, object)?;
    }
    drop((repo, owner));
    let repo = open(disk)?.lazy();
    put_lazily(&repo, known, &[("/new", 80)])?;
    let doomed = known.there.keys().find(|key| key.0 == name("/many/10"));
    let doomed = doomed.expect("it is there").clone();
    let content = known.there.remove(&doomed).expect("known");
    known.maybe.insert(doomed.clone(), content);
    repo.remove(std::slice::from_ref(&doomed))?;
    repo.sync()?;
    known.maybe.remove(&doomed);
    known.there.append(&mut known.maybe);
    put_lazily(&repo, known, &[("/last", 10)])?;
    repo.compact()?;
    known.there.append(&mut known.maybe);
    put_lazily(&repo, known, &[("/never", 10)])
}

/// A large file whose size nobody knows: it is kept while it is written, changed, and published.
fn live_streaming_on(disk: &SimDisk, known: &mut Known) -> Result<()> {
    let repo = open(disk)?.lazy();
    let options = PutOptions {
        segment_bytes: 500,
        stream_from: 1 << 20,
        ..PutOptions::default()
    };
    let content = noise(2_300_000, 8);
    let mut file = repo.put(&name("/large"), &options)?;
    file.write_all(&content).map_err(failed)?;
    let key = (name("/large"), file.version());
    let staged = file.finish()?;
    known.maybe.insert(key, content.clone());
    repo.publish(vec![staged])?;
    sync(&repo, known)?;
    let mut file = repo.put(&name("/kept"), &options)?;
    file.write_all(&content).map_err(failed)?;
    let key = (name("/kept"), file.version());
    known.maybe.insert(key.clone(), content.clone());
    file.keep()?;
    known.there.insert(key, content);
    // The process ends here without a word.
    std::mem::forget(file);
    Ok(())
}

/// A version takes another's place lazily, and then somebody gives back room.
fn live_compacting(disk: &SimDisk, known: &mut Known) -> Result<()> {
    let repo = open(disk)?.lazy();
    put_lazily(&repo, known, &[("/a", 250), ("/b", 99)])?;
    sync(&repo, known)?;
    for size in [120, 130] {
        let new = stage(&repo, known, "/a", size)?;
        let change = replacing(&repo, known, "/a", new)?;
        repo.apply(change).map_err(|not| not.error)?;
        put_lazily(&repo, known, &[("/c", size)])?;
        repo.compact()?;
        replaced(known);
    }
    put_lazily(&repo, known, &[("/last", 10)])?;
    sync(&repo, known)
}

/// A version takes another's place, and a file gets another name, while a sync moves what it has made durable.
fn live_replacing_while_syncing(disk: &SimDisk, known: &mut Known) -> Result<()> {
    let repo = open(disk)?.lazy();
    put_lazily(&repo, known, &[("/a", 250), ("/from", 99)])?;
    sync(&repo, known)?;
    put_lazily(&repo, known, &[("/b", 10), ("/c", 11)])?;
    let new = stage(&repo, known, "/a", 120)?;
    let mut change = replacing(&repo, known, "/a", new)?;
    let from = repo.find(&name("/from"), None)?.expect("it is there");
    let to = repo.link(&from, &name("/to"), None)?;
    let content = known.there[&(from.name, from.version)].clone();
    known.maybe.insert(key(&to), content);
    let renamed = replacing(&repo, known, "/from", to)?;
    change.publish.extend(renamed.publish);
    change.remove.extend(renamed.remove);
    let other = repo.clone();
    disk.at_rename(move || drop(other.apply(change)));
    let synced = repo.sync();
    let idle = disk.forget_rename();
    synced?;
    assert!(!idle, "the sync has moved nothing");
    repo.sync()?;
    replaced(known);
    put_lazily(&repo, known, &[("/last", 10)])?;
    sync(&repo, known)
}

fn stage(repo: &Repo, known: &mut Known, object: &str, size: usize) -> Result<Staged> {
    let content = noise(size, size as u64);
    let mut file = repo.put(&name(object), &short())?;
    file.write_all(&content).map_err(failed)?;
    let staged = file.finish()?;
    known.maybe.insert(key(&staged), content);
    Ok(staged)
}

/// What is to be there instead of the newest version of `object`: from now on there is either.
fn replacing(repo: &Repo, known: &mut Known, object: &str, new: Staged) -> Result<Change> {
    let old = repo.find(&name(object), None)?.expect("it is there");
    let old = (old.name, old.version);
    let content = known.there.remove(&old).expect("known");
    known.maybe.insert(old.clone(), content);
    known.either.push([old.clone(), key(&new)]);
    Ok(Change {
        publish: vec![new],
        remove: vec![old],
        ..Change::default()
    })
}

/// What took another's place is durable, with all that was changed before.
fn replaced(known: &mut Known) {
    for [old, _] in known.either.drain(..) {
        known.maybe.remove(&old);
    }
    known.there.append(&mut known.maybe);
}

fn key(staged: &Staged) -> (Name, u64) {
    let versioned = staged.versioned();
    let version = versioned.last().and_then(|c| c.as_version());
    (versioned.parent(), version.expect("a version"))
}

fn short() -> PutOptions {
    PutOptions {
        segment_bytes: 100,
        ..PutOptions::default()
    }
}

fn failed(error: std::io::Error) -> RepoError {
    RepoError::Io {
        path: "a file".into(),
        error,
    }
}

fn put_lazily(repo: &Repo, known: &mut Known, files: &[(&str, usize)]) -> Result<()> {
    for (object, size) in files {
        let content = noise(*size, *size as u64);
        let mut file = repo.put(&name(object), &short())?;
        file.write_all(&content).map_err(failed)?;
        let key = (name(object), file.version());
        known.maybe.insert(key.clone(), content);
        let staged = file.finish()?;
        repo.publish(vec![staged])?;
        let seen = repo.find(&key.0, None)?.expect("seen at once");
        assert_eq!(seen.version, key.1);
    }
    Ok(())
}

fn sync(repo: &Repo, known: &mut Known) -> Result<()> {
    repo.sync()?;
    known.there.append(&mut known.maybe);
    Ok(())
}

/// What was removed is gone for good; all else is there.
fn acknowledge(known: &mut Known, removed: &str) {
    let removed = name(removed);
    known.there.append(&mut known.maybe);
    known.there.retain(|key, _| key.0 != removed);
}

fn check(disk: &SimDisk, known: &Known, when: &str) {
    let repo = open(disk).unwrap_or_else(|e| panic!("{when}: {e}"));
    let report = repo.verify(&Name::new(), &mut |_| true).expect("read");
    assert_eq!(report.damaged, [], "{when}");
    let mut found = BTreeMap::new();
    repo.walk(&Name::new(), &mut |info| {
        let reader = repo.open_file(&info.name, Some(info.version))?;
        let mut content = vec![0; info.entry.size as usize];
        reader.read_at(0, &mut content)?;
        found.insert((info.name.clone(), info.version), content);
        Ok(())
    })
    .unwrap_or_else(|e| panic!("{when}: {e}"));
    for either in &known.either {
        let left = either.iter().any(|key| found.contains_key(key));
        assert!(left, "{when}: neither of {either:?} is there");
    }
    for (key, content) in &known.there {
        assert_eq!(found.remove(key).as_ref(), Some(content), "{when}: {key:?}");
    }
    for (key, content) in &found {
        assert_eq!(
            known.maybe.get(key),
            Some(content),
            "{when}: {key:?} was never acknowledged"
        );
    }
    // It works on, and keeps nothing that nobody needs.
    put(&repo, &mut Known::default(), &[("/after", 77)]).unwrap_or_else(|e| panic!("{when}: {e}"));
    repo.compact().expect("compacted");
    let versions = repo.status().expect("status").files;
    drop(repo);
    let count = |folder: &str| {
        let files = disk.files();
        files.iter().filter(|path| path.starts_with(folder)).count() as u64
    };
    let contents = count("files") + count("incoming");
    match SMALL_BYTES.get() {
        0 => assert_eq!(contents, versions * 2, "{when}: {:?}", disk.files()),
        small => {
            // What was kept before it was published has files of its own.
            let large = known.there.values().chain(known.maybe.values());
            let large =
                large.filter(|c| c.len() > small as usize || c.len() == 777 || c.len() == 500);
            let most = large.count() as u64 * 2;
            assert!(contents <= most, "{when}: {:?}", disk.files());
            assert!(count("bundles") <= 2, "{when}: {:?}", disk.files());
        }
    }
}

#[test]
fn at_any_moment_of_versions_that_lie_together_too() {
    SMALL_BYTES.set(1000);
    fails_anywhere(live_in_bundles);
}

#[test]
fn at_any_moment_of_a_life_in_which_versions_lie_together_too() {
    SMALL_BYTES.set(300);
    fails_anywhere(live);
    fails_anywhere(live_lazily);
    fails_anywhere(live_compacting);
}

#[test]
fn at_any_moment_the_power_may_fail() {
    fails_anywhere(live);
}

#[test]
fn at_any_moment_of_a_file_system_s_life_too() {
    fails_anywhere(live_lazily);
}

#[test]
fn at_any_moment_of_giving_back_room_too() {
    fails_anywhere(live_compacting);
}

#[test]
fn at_any_moment_of_a_change_while_another_syncs_too() {
    fails_anywhere(live_replacing_while_syncing);
}

#[test]
fn at_any_moment_of_a_large_file_too() {
    fails_anywhere(live_streaming);
}

#[test]
fn at_any_moment_of_a_large_file_of_unknown_size_too() {
    fails_anywhere(live_streaming_on);
}

fn fails_anywhere(live: impl Fn(&SimDisk, &mut Known) -> Result<()>) {
    let whole = SimDisk::default();
    let mut known = Known::default();
    live(&whole, &mut known).expect("nothing fails");
    check(&whole, &known, "without a crash");
    let changes = whole.changes();
    assert!(
        changes > 50,
        "{changes} changes are too few to mean anything"
    );
    let mut crashes = 0;
    for at in 0..changes {
        let disk = SimDisk::default();
        disk.fail_at(at);
        let mut known = Known::default();
        if live(&disk, &mut known).is_ok() {
            continue; // The failing change was one that may fail.
        }
        crashes += 1;
        for seed in 0..3 {
            check(
                &disk.after_crash(at * 3 + seed + 1),
                &known,
                &format!("crash at {at}, {seed}"),
            );
        }
    }
    assert!(crashes > changes / 2, "{crashes} crashes");
}
