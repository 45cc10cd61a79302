//! Insertions that were interrupted, by their producer or by the repository's end, and go on.

mod common;

use common::commands::{Bench, alice_key, owner, parameters, trust_in_alice};
use common::{SimDisk, name, open};
use ndn_packet::{Name, SigningKey};
use ndn_repo::disk::Disk;
use ndn_repo::protocol::{Believed, InsertLimits, Trust, Verb, status};

/// A bench on a disk, some time after another one was there.
fn again(disk: &SimDisk, trust: Trust, prefix: &Name, last: u64) -> Bench {
    let mut bench = Bench::start(disk, trust, InsertLimits::default());
    bench.sent = 1000;
    bench.produce(prefix, last, None, &SigningKey::DigestSha256);
    bench
}

#[test]
fn an_interrupted_insertion_goes_on_where_it_was() {
    let trust = trust_in_alice("/data", Believed::default());
    let alice = alice_key();
    let mut bench = Bench::start(&SimDisk::default(), trust, InsertLimits::default());
    let prefix = name("/data/v=1");
    let all = parameters(&prefix, Some(0), Some(20));
    let first = |bench: &mut Bench| {
        let asked = std::mem::take(&mut bench.asked);
        asked
            .iter()
            .filter_map(|n| n.last()?.as_segment())
            .min()
            .expect("Interests")
    };
    bench.produce(&prefix, 10, None, &SigningKey::DigestSha256);
    let stopped = bench.insert(&all, &owner());
    assert_eq!(
        (stopped.status, stopped.inserted),
        (status::NO_END, Some(11))
    );
    assert_eq!((bench.packets(), first(&mut bench)), (0, 0));
    // Nobody else goes on with what the owner has begun, and something else is not this.
    bench.insert(&all, &alice);
    assert_eq!(first(&mut bench), 0);
    bench.insert(&parameters(&prefix, Some(0), Some(19)), &owner());
    assert_eq!(first(&mut bench), 0);
    // It stops once more, and then comes to its end.
    bench.produce(&prefix, 15, None, &SigningKey::DigestSha256);
    let stopped = bench.insert(&all, &owner());
    assert_eq!(
        (stopped.status, stopped.inserted),
        (status::NO_END, Some(16))
    );
    assert_eq!((bench.packets(), first(&mut bench)), (0, 11));
    bench.produce(&prefix, 20, None, &SigningKey::DigestSha256);
    // Asked for twice before it is over, it is one insertion.
    let begun = bench.command(Verb::Insert, &all, &owner());
    assert_eq!(
        bench.command(Verb::Insert, &all, &owner()).process,
        begun.process
    );
    let done = bench.insert(&all, &owner());
    assert_eq!(
        (done.status, done.inserted, done.process),
        (status::DONE, Some(21), begun.process)
    );
    assert_eq!(first(&mut bench), 16);
    assert_eq!(bench.packets(), 21);
    for (name, data) in &bench.produced {
        assert_eq!(
            bench.repo.packet(name).expect("read").as_ref(),
            Some(data.wire())
        );
    }
}

#[test]
fn an_insertion_outlives_the_repository() {
    let trust = || Trust::owner(&owner());
    let prefix = name("/data/v=1");
    let all = parameters(&prefix, Some(0), Some(4000));
    let part_files = |disk: &SimDisk| {
        let files = disk.files();
        files
            .iter()
            .filter(|path| path.extension().is_some_and(|e| e == "part"))
            .count()
    };
    // 500 bytes each: more than what is written down at once.
    let interrupted = || {
        let disk = SimDisk::default();
        let mut bench = Bench::start(&disk, trust(), InsertLimits::default());
        bench.produce(&prefix, 3000, None, &SigningKey::DigestSha256);
        let stopped = bench.insert(&all, &owner());
        assert_eq!(stopped.inserted, Some(3001));
        assert_eq!(part_files(&disk), 1);
        (disk, bench)
    };
    let goes_on = |disk: &SimDisk| {
        let mut bench = again(disk, trust(), &prefix, 4000);
        assert_eq!(bench.packets(), 0);
        let done = bench.insert(&all, &owner());
        assert_eq!((done.status, done.inserted), (status::DONE, Some(4001)));
        let asked = bench.asked.iter().filter_map(|n| n.last()?.as_segment());
        let first = asked.min().expect("Interests");
        assert_eq!(bench.packets(), 4001);
        for (name, data) in &bench.produced {
            let packet = bench.repo.packet(name).expect("read");
            assert_eq!(packet.as_ref(), Some(data.wire()));
        }
        let report = bench.repo.verify(&Name::new(), &mut |_| true);
        assert_eq!(report.expect("read").damaged, []);
        drop(bench);
        assert_eq!(part_files(disk), 0);
        first
    };

    // It is stopped, and nothing of what has come travels again.
    let (disk, bench) = interrupted();
    drop(bench);
    assert_eq!(goes_on(&disk), 3001);
    // It is killed: what was in its memory alone does.
    let (disk, bench) = interrupted();
    let first = goes_on(&disk);
    assert!((1500..=3001).contains(&first), "{first}");
    std::mem::forget(bench);
    // The power fails: more may be lost, and whatever is left is right.
    for seed in 0..20 {
        let (disk, bench) = interrupted();
        let disk = disk.after_crash(seed);
        drop(bench);
        let first = goes_on(&disk);
        assert!(first <= 3001, "{first}");
    }
}

#[test]
fn an_insertion_of_before_the_start_is_its_owner_s_and_is_given_up_in_time() {
    let trust = trust_in_alice("/data", Believed::default());
    let prefix = name("/data/v=1");
    let all = parameters(&prefix, Some(0), Some(20));
    let disk = SimDisk::default();
    let mut bench = Bench::start(&disk, trust.clone(), InsertLimits::default());
    bench.produce(&prefix, 10, None, &SigningKey::DigestSha256);
    assert_eq!(bench.insert(&all, &owner()).inserted, Some(11));
    drop(bench);
    let parts = || {
        let files = disk.files();
        let parts = files
            .iter()
            .filter(|f| f.to_string_lossy().contains(".part"));
        parts.cloned().collect::<Vec<_>>()
    };
    assert_eq!(parts().len(), 1);

    // Neither room is given back that it needs, nor does another key go on with it.
    let mut bench = again(&disk, trust.clone(), &prefix, 10);
    bench.repo.compact().expect("compacted");
    let alice = alice_key();
    bench.insert(&all, &alice);
    let asked = bench.asked.iter().filter_map(|n| n.last()?.as_segment());
    assert_eq!(asked.min(), Some(0));
    assert_eq!(parts().len(), 2);
    bench.asked.clear();
    assert_eq!(bench.insert(&all, &owner()).inserted, Some(11));
    let asked = bench.asked.iter().filter_map(|n| n.last()?.as_segment());
    assert_eq!(asked.min(), Some(11));
    drop(bench);

    // What nobody asks for again is gone after a while.
    let limits = InsertLimits::default();
    let mut bench = again(&disk, trust, &prefix, 10);
    bench.server.on_deadline(limits.resume);
    assert_eq!(parts(), Vec::<std::path::PathBuf>::new());
    drop(bench);

    // So is what is not understood; and where nobody takes commands, with the room that it took.
    for path in ["packets/0.part", "packets/1.part"] {
        let file = disk.create(path.as_ref()).expect("a file");
        file.write_at(0, b"TLP1 what is this?").expect("written");
    }
    let repo = open(&disk).expect("a repository");
    assert_eq!(parts(), Vec::<std::path::PathBuf>::new());
    drop(repo);
    let mut bench = again(&disk, Trust::owner(&owner()), &prefix, 10);
    bench.sent = 2000;
    bench.insert(&all, &owner());
    drop(bench);
    assert_eq!(parts().len(), 1);
    let repo = open(&disk).expect("a repository");
    repo.compact().expect("compacted");
    assert_eq!(parts(), Vec::<std::path::PathBuf>::new());
    assert_eq!(repo.status().expect("status").log_bytes, 0);
}

#[test]
fn what_nobody_goes_on_with_is_forgotten() {
    let limits = InsertLimits {
        max_running: 2,
        ..InsertLimits::default()
    };
    let mut bench = Bench::start(&SimDisk::default(), Trust::owner(&owner()), limits.clone());
    let begun = |bench: &mut Bench, n: u64| {
        let prefix = name(&format!("/data/{n}"));
        bench.produce(&prefix, 3, None, &SigningKey::DigestSha256);
        let stopped = bench.insert(&parameters(&prefix, Some(0), Some(9)), &owner());
        assert_eq!(stopped.status, status::NO_END);
        let all = std::mem::take(&mut bench.asked);
        all.iter().filter_map(|n| n.last()?.as_segment()).min()
    };
    for n in 0..3 {
        assert_eq!(begun(&mut bench, n), Some(0));
    }
    // Two are kept, the youngest.
    assert_eq!(begun(&mut bench, 2), Some(4));
    assert_eq!(begun(&mut bench, 0), Some(0));
    bench.now += limits.resume;
    bench.server.on_deadline(bench.now);
    assert_eq!(begun(&mut bench, 2), Some(0));
}
