//! Commands and packets that are refused: by trust, by bounds, for want of room.

mod common;

use common::commands::{Bench, UNIX_MS, alice_key, owner, parameters, trust_in_alice};
use common::{SimDisk, name};
use ndn_packet::{Data, Interest, SigningKey, content_type};
use ndn_repo::protocol::{
    Believed, CommandCounters, InsertLimits, Parameters, Response, Trust, Verb, command, status,
};

#[test]
fn a_producer_that_lies_about_its_end() {
    // It says that it has more than it has: nothing comes of it.
    let mut bench = Bench::owned();
    bench.produce(&name("/more"), 5, Some(1 << 60), &SigningKey::DigestSha256);
    let failed = bench.insert(&parameters(&name("/more"), Some(0), None), &owner());
    assert_eq!(failed.status, status::NO_END);
    assert_eq!(bench.packets(), 0);
    // It says that it has less than the command: that is what there is, and the response tells it.
    bench.produce(&name("/less"), 20, Some(5), &SigningKey::DigestSha256);
    let done = bench.insert(&parameters(&name("/less"), Some(0), Some(20)), &owner());
    assert_eq!(
        (done.status, done.end, done.inserted),
        (status::DONE, Some(5), Some(6))
    );
    // It never comes to an end: it is stopped.
    let limits = InsertLimits {
        max_bytes: 10_000,
        ..InsertLimits::default()
    };
    let mut bench = Bench::start(&SimDisk::default(), Trust::owner(&owner()), limits);
    bench.produce(&name("/endless"), 500, None, &SigningKey::DigestSha256);
    let failed = bench.insert(&parameters(&name("/endless"), Some(0), None), &owner());
    assert_eq!(failed.status, status::NO_END);
    assert_eq!(bench.packets(), 0);
}

#[test]
fn packets_that_are_not_believed_are_not_kept() {
    let alice = alice_key();
    for (believed, by_digest, by_alice, by_stranger) in [
        (Believed::Sound, true, true, false),
        (Believed::Signed, false, true, false),
        (Believed::Any, true, true, true),
    ] {
        let trust = trust_in_alice("/data", believed);
        let mut bench = Bench::start(&SimDisk::default(), trust, InsertLimits::default());
        for (key, kept) in [
            (SigningKey::DigestSha256, by_digest),
            (alice_key(), by_alice),
            (SigningKey::hmac_sha256(b"a stranger"), by_stranger),
        ] {
            bench.produce(&name("/data"), 3, Some(3), &key);
            let told = bench.insert(&parameters(&name("/data"), Some(0), Some(3)), &alice);
            let expected = if kept {
                status::DONE
            } else {
                status::UNTRUSTED_DATA
            };
            assert_eq!(told.status, expected, "{believed:?} {key:?}");
        }
    }
}

#[test]
fn a_refusal_that_nobody_trusted_has_signed_ends_no_insertion() {
    let alice = alice_key();
    let prefix = name("/data");
    let trust = trust_in_alice("/data", Believed::Signed);
    let mut bench = Bench::start(&SimDisk::default(), trust, InsertLimits::default());
    let command = parameters(&prefix, Some(0), Some(9));
    let refusal = |key: &SigningKey| {
        let wire = Data::builder(&prefix.append_segment(3))
            .content_type(content_type::NACK)
            .sign(key);
        Data::parse(wire).expect("a packet")
    };
    for stranger in [SigningKey::DigestSha256, SigningKey::hmac_sha256(b"eve")] {
        bench.produce(&prefix, 9, Some(9), &alice);
        let forged = refusal(&stranger);
        bench.forged.insert(forged.name_owned(), forged);
        let done = bench.insert(&command, &alice);
        assert_eq!((done.status, done.inserted), (status::DONE, Some(10)));
        assert!(bench.forged.is_empty());
    }
    // The producer itself may.
    let genuine = refusal(&alice);
    bench.produced.insert(genuine.name_owned(), genuine);
    let failed = bench.insert(&command, &alice);
    assert_eq!(failed.status, status::NO_END);
}

#[test]
fn who_may_not_is_refused_and_counted() {
    let disk = SimDisk::default();
    let trust = trust_in_alice("/alice", Believed::default());
    let alice = alice_key();
    let mut bench = Bench::start(&disk, trust.clone(), InsertLimits::default());
    let some = parameters(&name("/alice/x"), Some(0), Some(0));
    let refused = |bench: &mut Bench, verb, parameters: &Parameters, key: &SigningKey| {
        let response = bench.command(verb, parameters, key);
        assert_eq!(
            response,
            Response::of(status::UNAUTHORIZED),
            "{verb:?} {key:?}"
        );
    };
    refused(
        &mut bench,
        Verb::Insert,
        &some,
        &SigningKey::hmac_sha256(b"mallory"),
    );
    refused(&mut bench, Verb::Insert, &some, &SigningKey::DigestSha256);
    refused(&mut bench, Verb::Delete, &some, &alice);
    refused(
        &mut bench,
        Verb::Insert,
        &parameters(&name("/bob"), Some(0), Some(0)),
        &alice,
    );
    let unsigned = name("/repo/insert").append_generic(some.encode());
    let response = bench.raw(Interest::builder(&unsigned).build());
    assert_eq!(response.status, status::UNAUTHORIZED);
    let nonsense = name("/repo/insert").append_generic(b"nonsense");
    assert_eq!(
        bench.raw(Interest::builder(&nonsense).build()).status,
        status::MALFORMED
    );
    let backward = parameters(&name("/alice/x"), Some(2), Some(1));
    assert_eq!(
        bench.command(Verb::Insert, &backward, &alice).status,
        status::MALFORMED
    );

    let wire = command(
        &name("/repo"),
        Verb::Insert,
        &some,
        &alice,
        UNIX_MS + 500,
        7,
    );
    let begun = bench.raw(wire.clone());
    assert_eq!(begun.status, status::BEGUN);
    assert_eq!(
        bench.raw(wire.clone()).status,
        status::UNAUTHORIZED,
        "replayed"
    );
    let old = command(
        &name("/repo"),
        Verb::Insert,
        &some,
        &alice,
        UNIX_MS - 120_000,
        8,
    );
    assert_eq!(
        bench.raw(old).status,
        status::UNAUTHORIZED,
        "of another time"
    );
    let check = Parameters {
        process: begun.process,
        ..Parameters::default()
    };
    let others = bench.command(Verb::InsertCheck, &check, &owner());
    assert_eq!(
        others.status,
        status::NO_SUCH_PROCESS,
        "alice's is not told to others"
    );
    assert_eq!(
        bench.server.counters(),
        CommandCounters {
            taken: 2,
            unsigned: 1,
            wrong_signature: 2,
            replayed: 2,
            forbidden: 2,
            malformed: 2,
        }
    );
    drop(bench);
    let mut bench = Bench::start(&disk, trust, InsertLimits::default());
    assert_eq!(
        bench.raw(wire).status,
        status::UNAUTHORIZED,
        "replayed after a restart"
    );
}

#[test]
fn nothing_is_taken_under_a_name_that_is_served_from_elsewhere() {
    let limits = InsertLimits {
        closed: Some(name("/data/cluster")),
        ..InsertLimits::default()
    };
    let mut bench = Bench::start(&SimDisk::default(), Trust::owner(&owner()), limits);
    for (prefix, last, expected) in [
        ("/data/cluster/v=1", Some(3), status::FAILED),
        ("/data/cluster", None, status::FAILED),
        ("/data/v=1", Some(3), status::DONE),
        ("/data/clusters", None, status::NO_END),
    ] {
        let prefix = name(prefix);
        bench.produce(&prefix, 3, Some(3), &SigningKey::DigestSha256);
        let told = bench.insert(&parameters(&prefix, last.map(|_| 0), last), &owner());
        assert_eq!(told.status, expected, "{prefix}");
    }
    assert_eq!(bench.packets(), 4);
    assert!(
        bench
            .asked
            .iter()
            .all(|n| !name("/data/cluster").is_prefix_of(n))
    );
}

#[test]
fn too_many_insertions_and_a_full_disk_are_said() {
    let limits = InsertLimits {
        max_running: 2,
        ..InsertLimits::default()
    };
    let disk = SimDisk::default();
    let mut bench = Bench::start(&disk, Trust::owner(&owner()), limits);
    bench.produce(&name("/data"), 99, Some(99), &SigningKey::DigestSha256);
    for (first, expected) in [
        (0, status::BEGUN),
        (1, status::BEGUN),
        (2, status::BUSY),
        (1, status::BEGUN),
    ] {
        let some = parameters(&name("/data"), Some(first), Some(99));
        let told = bench.command(Verb::Insert, &some, &owner());
        assert_eq!(told.status, expected, "{first}");
    }
    bench.run();
    let before = bench.produced.clone();
    // More than the index's file may give back.
    bench.produce(&name("/big"), 4999, Some(4999), &SigningKey::DigestSha256);
    disk.set_capacity(disk.used() + 20_000);
    let failed = bench.insert(&parameters(&name("/big"), Some(0), Some(4999)), &owner());
    assert_eq!(failed.status, status::FAILED);
    for (name, data) in &before {
        assert_eq!(
            bench.repo.packet(name).expect("read").as_ref(),
            Some(data.wire())
        );
    }
}
