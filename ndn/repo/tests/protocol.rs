//! The repo protocol end to end, without a network: what is asked for is inserted, checked and deleted.

mod common;

use common::commands::{Bench, owner, parameters};
use common::name;
use ndn_packet::{Data, SigningKey};
use ndn_repo::protocol::{Verb, status};

#[test]
fn segments_are_inserted_checked_and_deleted() {
    let mut bench = Bench::owned();
    let prefix = name("/data/v=1");
    bench.produce(&prefix, 99, Some(99), &SigningKey::DigestSha256);
    let done = bench.insert(&parameters(&prefix, Some(0), Some(99)), &owner());
    assert_eq!(
        (done.status, done.inserted, done.end),
        (status::DONE, Some(100), Some(99))
    );
    for (name, data) in &bench.produced {
        assert_eq!(
            bench.repo.packet(name).expect("read").as_ref(),
            Some(data.wire())
        );
    }
    let part = bench.command(
        Verb::Delete,
        &parameters(&prefix, Some(90), Some(95)),
        &owner(),
    );
    assert_eq!((part.status, part.deleted), (status::DONE, Some(6)));
    let rest = bench.command(Verb::Delete, &parameters(&prefix, Some(0), None), &owner());
    assert_eq!((rest.status, rest.deleted), (status::DONE, Some(94)));
    assert_eq!(bench.packets(), 0);
}

#[test]
fn the_end_is_found_where_the_command_does_not_tell_it() {
    let mut bench = Bench::owned();
    let prefix = name("/data/v=1");
    bench.produce(&prefix, 20, Some(20), &SigningKey::DigestSha256);
    let done = bench.insert(&parameters(&prefix, Some(3), None), &owner());
    assert_eq!(
        (done.status, done.start, done.end, done.inserted),
        (status::DONE, Some(3), Some(20), Some(18))
    );
}

#[test]
fn a_single_packet_is_inserted_and_deleted_by_its_name() {
    let mut bench = Bench::owned();
    let single = name("/data/alone");
    let wire = Data::builder(&single)
        .content(b"x")
        .sign(&SigningKey::DigestSha256);
    let data = Data::parse(wire).expect("a packet");
    bench.produced.insert(single.clone(), data.clone());
    bench.produce(&name("/data"), 2, None, &SigningKey::DigestSha256);
    for packet in [&single, &name("/data/seg=1")] {
        let done = bench.insert(&parameters(packet, None, None), &owner());
        assert_eq!(
            (done.status, done.inserted),
            (status::DONE, Some(1)),
            "{packet}"
        );
        assert!(bench.repo.packet(packet).expect("read").is_some());
        let gone = bench.command(Verb::Delete, &parameters(packet, None, None), &owner());
        assert_eq!(
            (gone.status, gone.deleted),
            (status::DONE, Some(1)),
            "{packet}"
        );
    }
}

#[test]
fn a_producer_that_stalls_leaves_nothing() {
    let mut bench = Bench::owned();
    let prefix = name("/data");
    bench.produce(&prefix, 10, None, &SigningKey::DigestSha256);
    let failed = bench.insert(&parameters(&prefix, Some(0), Some(20)), &owner());
    assert_eq!(failed.status, status::NO_END);
    bench.silent = true;
    let failed = bench.insert(&parameters(&prefix, Some(0), Some(20)), &owner());
    assert_eq!(failed.status, status::NO_END);
    let failed = bench.insert(&parameters(&prefix, None, None), &owner());
    assert_eq!(failed.status, status::NO_END);
    assert_eq!(bench.packets(), 0);
}

#[test]
fn a_file_version_is_deleted_by_its_name() {
    use std::io::Write;
    let mut bench = Bench::owned();
    let object = name("/data/file");
    let mut file = bench
        .repo
        .put(&object, &ndn_repo::PutOptions::default())
        .expect("a writer");
    file.write_all(b"some").expect("written");
    let staged = file.finish().expect("whole");
    let info = bench
        .repo
        .publish(vec![staged])
        .expect("published")
        .remove(0);
    let versioned = object.append_version(info.version);
    let gone = bench.command(Verb::Delete, &parameters(&versioned, None, None), &owner());
    assert_eq!((gone.status, gone.deleted), (status::DONE, Some(1)));
    assert_eq!(bench.repo.find(&object, None).expect("read"), None);
}
