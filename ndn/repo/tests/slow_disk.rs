//! A disk whose syncs hang: what is there is answered all the same, and nothing is said to be done that is not durable.

mod common;

use std::sync::mpsc::{RecvTimeoutError, channel};

use common::commands::{Bench, UNIX_MS, decode, owner, parameters};
use common::{PATIENCE, SimDisk, ask, name, open};
use ndn_packet::{Interest, Name, SigningKey};
use ndn_repo::protocol::{InsertLimits, Parameters, Trust, Verb, command, status};

/// Runs a test on a thread of its own: one that waits for the disk fails, and does not hang.
fn without_waiting(test: impl FnOnce() + Send + 'static) {
    let (done, ended) = channel();
    let thread = std::thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    match ended.recv_timeout(PATIENCE) {
        Err(RecvTimeoutError::Timeout) => panic!("the serving thread waits for the disk"),
        _ => thread.join().expect("no panic"),
    }
}

fn bench(disk: &SimDisk) -> Bench {
    Bench::start(disk, Trust::owner(&owner()), InsertLimits::default())
}

fn signed(verb: Verb, parameters: &Parameters, n: u64) -> Interest {
    let wire = command(&name("/repo"), verb, parameters, &owner(), UNIX_MS + n, n);
    Interest::parse(wire).expect("an Interest")
}

fn check(bench: &mut Bench, process: Option<u64>) -> u64 {
    let about = Parameters {
        process,
        ..Parameters::default()
    };
    bench.command(Verb::InsertCheck, &about, &owner()).status
}

/// Whether the packet outlives a crash in this moment.
fn is_durable(disk: &SimDisk, name: &Name) -> bool {
    let repo = open(&disk.after_crash(1)).expect("a repository");
    repo.packet(name).expect("read").is_some()
}

#[test]
fn interests_are_answered_while_a_commit_hangs() {
    without_waiting(|| {
        let disk = SimDisk::default();
        let mut bench = bench(&disk);
        let (old, new) = (name("/old/v=1"), name("/new/v=1"));
        let (first, last) = (old.append_segment(0), new.append_segment(99));
        for prefix in [&old, &new] {
            bench.produce(prefix, 99, Some(99), &SigningKey::DigestSha256);
        }
        bench.insert(&parameters(&old, Some(0), Some(99)), &owner());
        let begun = bench.command(Verb::Insert, &parameters(&new, Some(0), Some(99)), &owner());
        // More comes than a log has room for, and all of it is written while nothing can be synced.
        disk.hang(true);
        while bench.fetch() {}
        disk.until_a_sync_hangs();
        assert_eq!(check(&mut bench, begun.process), status::GOES_ON);
        assert!(ask(&bench.repo, &first, false).expect("read").is_some());
        assert!(ask(&bench.repo, &old, true).expect("read").is_some());
        assert!(ask(&bench.repo, &last, false).expect("read").is_none());
        assert!(!is_durable(&disk, &last));
        disk.hang(false);
        bench.run();
        assert_eq!(check(&mut bench, begun.process), status::DONE);
        assert!(is_durable(&disk, &last));
        assert!(ask(&bench.repo, &last, false).expect("read").is_some());
    });
}

#[test]
fn a_command_is_answered_once_it_is_durable() {
    without_waiting(|| {
        let disk = SimDisk::default();
        let mut bench = bench(&disk);
        let (prefix, first) = (name("/data/v=1"), name("/data/v=1/seg=0"));
        bench.produce(&prefix, 9, Some(9), &SigningKey::DigestSha256);
        bench.insert(&parameters(&prefix, Some(0), Some(9)), &owner());
        disk.hang(true);
        let delete = signed(Verb::Delete, &parameters(&prefix, Some(0), Some(4)), 100);
        bench.send(&delete);
        disk.until_a_sync_hangs();
        assert!(ask(&bench.repo, &first, false).expect("read").is_some());
        assert_eq!(bench.poll_response(), None);
        // It is sent again, as its answer is late: that is the same command.
        bench.send(&delete);
        assert_eq!(bench.poll_response(), None);
        disk.hang(false);
        let told = bench.response(&delete);
        assert_eq!((told.status, told.deleted), (status::DONE, Some(5)));
        assert_eq!(bench.poll_response(), None);
        assert!(!is_durable(&disk, &first));
        assert!(is_durable(&disk, &name("/data/v=1/seg=5")));
        assert_eq!(bench.server.counters().replayed, 0);
        // Now that it is answered, it is an old one.
        bench.send(&delete);
        assert_eq!(bench.response(&delete).status, status::UNAUTHORIZED);
    });
}

#[test]
fn what_waits_for_the_disk_is_bounded_and_keeps_its_order() {
    without_waiting(|| {
        let disk = SimDisk::default();
        let mut bench = bench(&disk);
        let prefix = name("/data/v=1");
        bench.produce(&prefix, 9, Some(9), &SigningKey::DigestSha256);
        let begun = bench.command(
            Verb::Insert,
            &parameters(&prefix, Some(0), Some(9)),
            &owner(),
        );
        disk.hang(true);
        while bench.fetch() {}
        disk.until_a_sync_hangs();
        // Each deletes one segment of what is committed now, over and over.
        let deletions: Vec<Interest> = (0..200)
            .map(|n| {
                signed(
                    Verb::Delete,
                    &parameters(&prefix, Some(0), Some(n % 10)),
                    100 + n,
                )
            })
            .collect();
        for deletion in &deletions {
            bench.send(deletion);
        }
        let refused: Vec<_> = std::iter::from_fn(|| bench.poll_response()).collect();
        assert_eq!(refused.len(), 200 - 64);
        for (data, deletion) in refused.iter().zip(&deletions[64..]) {
            assert_eq!(data.name(), deletion.name());
            assert_eq!(decode(data).status, status::BUSY);
        }
        disk.hang(false);
        for (n, deletion) in deletions[..64].iter().enumerate() {
            let told = bench.response(deletion);
            let deleted = if n < 10 { 1 } else { 0 };
            assert_eq!(
                (told.status, told.deleted),
                (status::DONE, Some(deleted)),
                "{n}"
            );
        }
        assert_eq!(check(&mut bench, begun.process), status::DONE);
        assert_eq!(bench.packets(), 0);
    });
}
