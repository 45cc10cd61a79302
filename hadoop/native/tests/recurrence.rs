//! A name that came again: caches hold what it stood for before.

mod common;

use std::sync::Arc;
use std::thread;

use common::replicas::{Files, Resolver, random, write};
use common::*;
use trunkline_native::{
    BlockMetadata, BlockSource, HEADER_LEN, NamedNode, NativeError, Pull, PullSettings,
    SegmentDigest, SegmentHeader, StreamProducer,
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
        publish_content(producer, n, &content(write, n)).expect("published");
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

/// A DataNode that serves `data` as block 7, generation 1001.
struct DataNode {
    node: Arc<NamedNode>,
    files: Files,
    _resolver: Resolver,
    _source: Arc<BlockSource>,
}

fn datanode(face: &str, called: &str, data: Vec<u8>) -> DataNode {
    let node = node(face, called);
    let source = node
        .open_blocks(&name("/hadoop/blocks"), SEGMENT as u32, 8)
        .expect("a source");
    let resolver = Resolver::start(&source);
    let files = write(called, 1001, data);
    resolver.add(&files, 1001);
    DataNode {
        node,
        files,
        _resolver: resolver,
        _source: source,
    }
}

/// Reads block 7 as a client does.
fn read(reader: &NamedNode, block: &ndn_packet::Name, facts: &BlockMetadata) -> Vec<u8> {
    let manifest = reader
        .block_manifest(block, facts, PATIENCE)
        .expect("no failure")
        .expect("a manifest");
    let last = facts.length.div_ceil(facts.segment_bytes) - 1;
    let settings = PullSettings {
        last: Some(last),
        live: false,
        ..live(16)
    };
    let pull = reader
        .open_pull(&block.append_version(facts.genstamp), settings)
        .expect("a pull");
    let mut data = Vec::new();
    for (n, digest) in manifest.as_chunks().0.iter().enumerate() {
        let content = pull
            .take_bound(n as u64, Some(SegmentDigest(*digest)), PATIENCE)
            .expect("no failure")
            .expect("a segment");
        let header = SegmentHeader::decode(&content).expect("a header");
        data.extend_from_slice(&content[HEADER_LEN + header.checksums_len()..]);
    }
    data
}

#[test]
fn a_reader_gets_the_bytes_that_the_metadata_tells_of() {
    let router = router("tcp://127.0.0.1:0");
    let face = address(&router);
    let block = name("/hadoop/blocks/BP-1/7");
    let reader = node_with(&face, |settings| settings.cs_bytes = 0);
    let facts = || {
        reader
            .block_metadata(&block.append_keyword("metadata"), PATIENCE)
            .expect("no failure")
    };
    let old = datanode(&face, "old-replica", random(2_000_001));
    let first = facts().expect("metadata");
    assert!(read(&reader, &block, &first) == old.files.data);
    old.node.close();
    drop(old);

    // The same name, length and generation stamp, other bytes.
    let mut data = random(2_000_001);
    data.iter_mut().for_each(|byte| *byte ^= 0x55);
    let new = datanode(&face, "new-replica", data);
    let mut found = None;
    wait_for("its metadata is told", || {
        found = facts().filter(|facts| facts.manifest_digest != first.manifest_digest);
        found.is_some()
    });
    let facts = found.expect("metadata");
    assert_eq!(facts.length, first.length);
    assert!(read(&reader, &block, &facts) == new.files.data);
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
