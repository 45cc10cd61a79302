//! A name that came again: caches hold what it stood for before.

mod common;

use std::sync::Arc;
use std::thread;

use common::*;
use trunkline_native::{
    ChecksumType, HEADER_LEN, NamedNode, NativeError, Pull, SegmentDigest, StreamProducer,
};

const COUNT: u64 = 40;

/// Content of segment `n` as some write made it.
fn content(write: u64, n: u64) -> Vec<u8> {
    let mut content = vec![0; HEADER_LEN + BODY];
    fill_as(write, n, &mut content);
    content
}

fn digest(write: u64, n: u64) -> SegmentDigest {
    SegmentDigest::of(&content(write, n)).expect("a segment")
}

fn publish_all(producer: &StreamProducer, write: u64) {
    for n in 0..COUNT {
        let done: Result<(), NativeError> = producer.publish(
            n,
            HEADER_LEN + BODY,
            ChecksumType::Crc32c,
            false,
            |content| {
                fill_as(write, n, content);
                Ok(())
            },
        );
        done.expect("published");
    }
}

fn take_bound(pull: &Pull, write: u64) {
    for n in 0..COUNT {
        pull.known(n);
        let taken = pull
            .take_bound(n, Some(digest(write, n)), PATIENCE)
            .expect("no failure")
            .unwrap_or_else(|| panic!("no segment {n}"));
        assert!(
            taken == content(write, n),
            "segment {n} is of another write"
        );
    }
}

/// A router that holds the segments of write 1, which has ended.
fn after_an_old_write() -> (ndn_io::Node, String, ndn_packet::Name) {
    let router = router("tcp://127.0.0.1:0");
    let face = address(&router);
    let prefix = name("/hadoop/blocks/BP-1/500/v=1001");
    let (old, reader) = (node(&face, "old"), node(&face, "reader"));
    let producer = old.open_producer(&prefix, 128).expect("a producer");
    publish_all(&producer, 1);
    let pull = reader.open_pull(&prefix, live(16)).expect("a pull");
    take_bound(&pull, 1);
    (router, face, prefix)
}

fn open(nodes: &[Arc<NamedNode>], prefix: &ndn_packet::Name) -> Vec<Arc<Pull>> {
    nodes
        .iter()
        .map(|node| node.open_pull(prefix, live(16)).expect("a pull"))
        .collect()
}

#[test]
fn replicas_of_a_new_write_are_the_new_bytes() {
    let (_router, face, prefix) = after_an_old_write();
    let nodes: Vec<_> = ["d1", "d2", "d3"]
        .iter()
        .map(|called| node(&face, called))
        .collect();
    let unbound = open(&nodes[..1], &prefix);
    let stale = unbound[0].take(0, PATIENCE).expect("no failure");
    assert!(
        stale.expect("segment 0") == content(1, 0),
        "the cache holds the old one"
    );
    drop(unbound);

    let pulls = open(&nodes, &prefix);
    let client = node(&face, "client");
    let producer = client.open_producer(&prefix, 128).expect("a producer");
    thread::scope(|scope| {
        for pull in &pulls {
            scope.spawn(|| take_bound(pull, 2));
        }
        publish_all(&producer, 2);
    });
    for pull in &pulls {
        // The first old one shows it for all: the rest is asked for past the caches at once.
        let rejected = pull.stats().expect("open").rejected;
        assert!(rejected <= 16, "{rejected} of {COUNT} had to be rejected");
    }
}

#[test]
fn one_that_nobody_has_is_an_error_of_its_own() {
    let (_router, face, prefix) = after_an_old_write();
    let (client, datanode) = (node(&face, "client"), node(&face, "d1"));
    let producer = client.open_producer(&prefix, 128).expect("a producer");
    publish_all(&producer, 2);
    let pull = datanode.open_pull(&prefix, live(16)).expect("a pull");
    let error = pull
        .take_bound(0, Some(digest(3, 0)), PATIENCE)
        .expect_err("neither write is it");
    assert!(matches!(error, NativeError::Unverified { .. }), "{error}");
}

#[test]
fn what_is_kept_can_be_had_back() {
    let node = node_alone();
    let prefix = name("/hadoop/blocks/BP-1/501/v=1");
    let producer = node.open_producer(&prefix, 128).expect("a producer");
    publish_all(&producer, 1);
    producer.acknowledge(9);
    assert_eq!(producer.kept(9), None);
    assert!(producer.kept(10).expect("it is kept") == content(1, 10));
    assert_eq!(producer.kept(COUNT), None);
}
