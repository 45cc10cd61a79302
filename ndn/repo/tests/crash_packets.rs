//! The power fails at every change that inserting, removing and compacting packets makes to the disk.

mod common;

use std::collections::BTreeMap;

use common::{SimDisk, name, noise, open};
use ndn_packet::{Data, Name, SigningKey};
use ndn_repo::{Repo, Result};

/// Packets by name: those that must be there, and those that may be there or not.
#[derive(Default)]
struct Known {
    there: BTreeMap<Name, Data>,
    /// All of these, or none.
    maybe: BTreeMap<Name, Data>,
}

fn packet(name: &Name, len: usize) -> Data {
    let wire = Data::builder(name)
        .content(&noise(len, len as u64))
        .sign(&SigningKey::DigestSha256);
    Data::parse(wire).expect("a packet")
}

fn insert(
    repo: &Repo,
    known: &mut Known,
    prefix: &str,
    segments: std::ops::Range<u64>,
) -> Result<()> {
    let prefix = name(prefix);
    let mut insertion = repo.insert(&prefix, true);
    for n in segments {
        let packet = packet(&prefix.append_segment(n), 700 + n as usize);
        insertion.push(&packet)?;
        known.maybe.insert(packet.name().to_name(), packet);
    }
    insertion.commit()?;
    known.there.append(&mut known.maybe);
    Ok(())
}

fn remove(repo: &Repo, known: &mut Known, prefix: &str, first: u64, last: u64) -> Result<()> {
    let prefix = name(prefix);
    for n in first..=last {
        if let Some((name, packet)) = known.there.remove_entry(&prefix.append_segment(n)) {
            known.maybe.insert(name, packet);
        }
    }
    repo.remove_packets(&prefix, Some((first, last)))?;
    known.maybe.clear();
    Ok(())
}

/// What was to be changed can't be read any more: it goes, and no other change suffers.
#[test]
fn a_change_of_what_the_disk_has_lost_hinders_no_start() {
    use ndn_repo::disk::Disk;

    let disk = SimDisk::default();
    let mut known = Known::default();
    let repo = open(&disk).expect("a repository");
    insert(&repo, &mut known, "/a", 0..20).expect("inserted");
    drop(repo);
    let old = disk.files();
    let repo = open(&disk).expect("a repository");
    remove(&repo, &mut known, "/a", 3, 7).expect("removed");
    insert(&repo, &mut known, "/b", 0..4).expect("inserted");
    std::mem::forget(repo); // the process is killed
    let disk = disk.after_crash(1);
    for log in old.iter().filter(|path| path.starts_with("packets")) {
        disk.remove(log).expect("a log");
    }
    let repo = open(&disk).expect("it starts");
    let there = |name: &str| repo.packet(&common::name(name)).ok().flatten().is_some();
    assert!(there("/b/seg=0") && there("/b/seg=3"));
    assert!(!there("/a/seg=0"), "its log is gone");
    // A running repository is no different.
    remove(&repo, &mut known, "/a", 1, 2).expect("there is nothing of it");
    insert(&repo, &mut known, "/a", 4..6).expect("inserted");
    insert(&repo, &mut known, "/b", 4..6).expect("inserted");
    drop(repo);
    let repo = open(&disk).expect("it starts again");
    for name in ["/b/seg=5", "/a/seg=5"] {
        assert!(repo.packet(&common::name(name)).expect("read").is_some());
    }
    let report = repo.verify(&Name::new(), &mut |_| true).expect("read");
    assert_eq!(report.damaged, []);
}

fn live(disk: &SimDisk, known: &mut Known) -> Result<()> {
    let repo = open(disk)?;
    insert(&repo, known, "/a", 0..20)?;
    insert(&repo, known, "/b", 5..9)?;
    // Left behind: it must never be seen.
    repo.insert(&name("/never"), true)
        .push(&packet(&name("/never/seg=0"), 9))?;
    remove(&repo, known, "/a", 3, 7)?;
    insert(&repo, known, "/a", 20..160)?;
    drop(repo);
    let repo = open(disk)?;
    remove(&repo, known, "/a", 20, 150)?;
    insert(&repo, known, "/c", 0..3)?;
    repo.compact()?;
    insert(&repo, known, "/b", 9..12)
}

fn check(disk: &SimDisk, known: &Known, when: &str) {
    let repo = open(disk).unwrap_or_else(|e| panic!("{when}: {e}"));
    let report = repo.verify(&Name::new(), &mut |_| true).expect("read");
    assert_eq!(report.damaged, [], "{when}");
    let mut found = 0;
    let mut here = |packets: &BTreeMap<Name, Data>| {
        let count = packets
            .iter()
            .filter(|(name, packet)| match repo.packet(name).expect("read") {
                Some(wire) => {
                    assert_eq!(&wire, packet.wire(), "{when}: {name}");
                    true
                }
                None => false,
            })
            .count();
        found += count as u64;
        count
    };
    assert_eq!(
        here(&known.there),
        known.there.len(),
        "{when}: acknowledged and gone"
    );
    let maybe = here(&known.maybe);
    assert!(
        maybe == 0 || maybe == known.maybe.len(),
        "{when}: {maybe} of {}",
        known.maybe.len()
    );
    assert_eq!(report.packets, found, "{when}: there is more than was put");
    // It works on, and what is put now outlives the next crash.
    let mut after = Known::default();
    insert(&repo, &mut after, "/after", 0..3).unwrap_or_else(|e| panic!("{when}: {e}"));
    let later = disk.after_crash(7);
    drop(repo);
    let repo = open(&later).unwrap_or_else(|e| panic!("{when}, again: {e}"));
    for name in known.there.keys().chain(after.there.keys()) {
        assert!(
            repo.packet(name).expect("read").is_some(),
            "{when}, again: {name}"
        );
    }
    assert_eq!(
        repo.packet(&name("/never/seg=0")).expect("read"),
        None,
        "{when}"
    );
}

#[test]
fn at_any_moment_the_power_may_fail() {
    let whole = SimDisk::default();
    let mut known = Known::default();
    live(&whole, &mut known).expect("nothing fails");
    check(&whole, &known, "without a crash");
    let changes = whole.changes();
    assert!(
        changes > 60,
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
        for seed in 0..2 {
            check(
                &disk.after_crash(at * 2 + seed + 1),
                &known,
                &format!("crash at {at}, {seed}"),
            );
        }
    }
    assert!(crashes > changes / 2, "{crashes} crashes");
}
