//! Finalized replicas served from their files and read over a router.

mod common;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use common::replicas::{Resolver, crc32c, random, write};
use common::*;
use trunkline_native::{
    BlockMetadata, DEFAULT_SEGMENT_BYTES, FetchSettings, HEADER_LEN, NamedNode, NodeSettings,
    PullSettings, SegmentHeader, Verify,
};

const BLOCK: &str = "/hadoop/blocks/BP-1/7";

fn metadata(reader: &NamedNode) -> Option<BlockMetadata> {
    reader
        .block_metadata(&name(BLOCK).append_keyword("metadata"), PATIENCE)
        .expect("no failure")
}

/// Reads block 7 as a client does: metadata, then all segments, each checked
/// against its checksums.
fn read(reader: &NamedNode) -> (BlockMetadata, Vec<u8>) {
    read_and(reader, |_| {})
}

/// The same, doing something before each segment.
fn read_and(reader: &NamedNode, mut before: impl FnMut(u64)) -> (BlockMetadata, Vec<u8>) {
    let facts = metadata(reader).expect("metadata");
    let last = facts.length.div_ceil(facts.segment_bytes).max(1) - 1;
    let settings = PullSettings {
        first: 0,
        last: Some(last),
        segment_bytes: 64_512,
        window: 16,
        live: false,
    };
    let pull = reader
        .open_pull(&name(BLOCK).append_version(facts.genstamp), settings)
        .expect("a pull");
    let mut data = Vec::new();
    for n in 0..=last {
        before(n);
        let content = pull
            .take(n, PATIENCE)
            .expect("no failure")
            .expect("a segment");
        let header = SegmentHeader::decode(&content).expect("a header");
        assert_eq!(header.offset_in_block, data.len() as u64);
        assert_eq!(content.len(), HEADER_LEN + header.body_len());
        let (sums, bytes) = content[HEADER_LEN..].split_at(header.checksums_len());
        for (chunk, sum) in bytes.chunks(512).zip(sums.chunks(4)) {
            assert_eq!(crc32c(chunk).to_be_bytes(), sum);
        }
        data.extend_from_slice(bytes);
    }
    (facts, data)
}

#[test]
fn a_block_is_read_and_read_again_from_a_cache() {
    let router = router("tcp://127.0.0.1:0");
    let face = address(&router);
    let (datanode, reader) = (node(&face, "d1"), node_with(&face, |s| s.cs_bytes = 0));
    let source = datanode
        .open_blocks(&name("/hadoop/blocks"), DEFAULT_SEGMENT_BYTES, 8)
        .expect("a source");
    let resolver = Resolver::start(&source);
    let files = write("cache", 1001, random(3_000_001));
    resolver.add(&files, 1001);

    let (facts, data) = read(&reader);
    assert!(facts.manifest_digest.is_some());
    assert_eq!(
        BlockMetadata {
            manifest_digest: None,
            ..facts
        },
        BlockMetadata {
            genstamp: 1001,
            length: 3_000_001,
            segment_bytes: 64_512,
            checksum_type: 2,
            bytes_per_checksum: 512,
            manifest_digest: None,
        }
    );
    assert!(data == files.data);
    let first = source.stats();
    assert_eq!((first.segments, first.bytes), (47, 3_000_001));
    assert_eq!(
        first.asked, 1,
        "one question for the metadata and all segments"
    );
    assert_eq!((first.open_replicas, first.read_errors), (1, 0));

    std::thread::sleep(Duration::from_millis(300));
    let (_, again) = read(&reader);
    assert!(again == files.data);
    assert_eq!(
        source.stats().segments,
        first.segments,
        "the router's cache gave all of them"
    );
    let hits = router.status().expect("running").forwarder.cs_hits;
    assert!(hits >= 47, "{hits} hits");
}

#[test]
fn a_block_that_nobody_has_is_refused_at_once() {
    let router = router("tcp://127.0.0.1:0");
    let face = address(&router);
    let (datanode, reader) = (node(&face, "d1"), node(&face, "reader"));
    let source = datanode
        .open_blocks(&name("/hadoop/blocks"), DEFAULT_SEGMENT_BYTES, 8)
        .expect("a source");
    let resolver = Resolver::start(&source);
    let started = Instant::now();
    assert_eq!(metadata(&reader), None);
    assert!(
        started.elapsed() < PATIENCE / 4,
        "took {:?}",
        started.elapsed()
    );
    assert!(resolver.asked.load(Ordering::Relaxed) > 0);

    // Finalized a moment later, it is found.
    let files = write("later", 1, random(1000));
    resolver.add(&files, 1);
    assert_eq!(read(&reader).1, files.data);

    // A write's own streams are never asked of Java.
    let asked = resolver.asked.load(Ordering::Relaxed);
    let stream = name(BLOCK)
        .append_version(1)
        .append_keyword("stream")
        .append_generic("12345678")
        .append_segment(0);
    let settings = FetchSettings {
        must_be_fresh: false,
        can_be_prefix: false,
        rejected: false,
        timeout: PATIENCE,
    };
    assert!(
        reader
            .fetch(&stream, settings)
            .expect("no failure")
            .is_none()
    );
    assert_eq!(resolver.asked.load(Ordering::Relaxed), asked);
}

#[test]
fn an_append_makes_another_generation() {
    let node = NamedNode::open(NodeSettings::new(name("/hadoop"))).expect("a node alone");
    let source = node
        .open_blocks(&name("/hadoop/blocks"), DEFAULT_SEGMENT_BYTES, 8)
        .expect("a source");
    let resolver = Resolver::start(&source);
    let short = write("append-1", 1001, random(100_000));
    resolver.add(&short, 1001);
    assert_eq!(read(&node).1, short.data);

    let long = write("append-2", 1002, random(200_000));
    resolver.add(&long, 1002);
    source.invalidate("BP-1", 7);
    // Metadata may come out of the cache until it is stale.
    wait_for("the new generation", || {
        metadata(&node).is_some_and(|facts| facts.genstamp == 1002)
    });
    assert_eq!(read(&node).1, long.data);

    // The old generation is refused, in caches or not asked for with freshness.
    let old = name(BLOCK).append_version(1001).append_segment(5);
    let settings = FetchSettings {
        must_be_fresh: false,
        can_be_prefix: false,
        rejected: false,
        timeout: PATIENCE,
    };
    assert!(node.fetch(&old, settings).expect("no failure").is_none());
}

#[test]
fn a_newer_generation_is_looked_up_without_invalidation() {
    // A single fetch takes what is signed; segments are, where digests are asked for.
    let settings = NodeSettings {
        verify: Verify::Digest,
        ..NodeSettings::new(name("/hadoop"))
    };
    let node = NamedNode::open(settings).expect("a node alone");
    let source = node
        .open_blocks(&name("/hadoop/blocks"), DEFAULT_SEGMENT_BYTES, 8)
        .expect("a source");
    let resolver = Resolver::start(&source);
    let first = write("newer-1", 1, random(1000));
    resolver.add(&first, 1);
    assert_eq!(read(&node).0.genstamp, 1);
    let second = write("newer-2", 2, random(2000));
    resolver.add(&second, 2);
    std::thread::sleep(Duration::from_millis(250));
    let segment = name(BLOCK).append_version(2).append_segment(0);
    let settings = FetchSettings {
        must_be_fresh: false,
        can_be_prefix: false,
        rejected: false,
        timeout: PATIENCE,
    };
    let content = node
        .fetch(&segment, settings)
        .expect("no failure")
        .expect("the newer generation");
    assert_eq!(content.len(), HEADER_LEN + 4 * 4 + 2000);
}

#[test]
fn files_that_are_gone_are_no_replica() {
    let node = NamedNode::open(NodeSettings::new(name("/hadoop"))).expect("a node alone");
    let source = node
        .open_blocks(&name("/hadoop/blocks"), DEFAULT_SEGMENT_BYTES, 8)
        .expect("a source");
    let resolver = Resolver::start(&source);
    let files = write("gone", 1, random(1000));
    resolver.add(&files, 1);
    drop(files);
    assert_eq!(metadata(&node), None);

    // Shorter than Java says: the segment does not read and is refused.
    let short = write("truncated", 1, random(1000));
    resolver.add(&short, 1);
    std::fs::OpenOptions::new()
        .write(true)
        .open(&short.block)
        .expect("the block")
        .set_len(10)
        .expect("shorter");
    let segment = name(BLOCK).append_version(1).append_segment(0);
    let settings = FetchSettings {
        must_be_fresh: false,
        can_be_prefix: false,
        rejected: false,
        timeout: PATIENCE,
    };
    assert!(
        node.fetch(&segment, settings)
            .expect("no failure")
            .is_none()
    );
    assert!(source.stats().read_errors > 0);
}

#[test]
fn several_sources_of_one_prefix_on_one_node() {
    let node = NamedNode::open(NodeSettings::new(name("/hadoop"))).expect("a node alone");
    let open = || {
        node.open_blocks(&name("/hadoop/blocks"), DEFAULT_SEGMENT_BYTES, 8)
            .expect("a source")
    };
    let sources = [open(), open(), open()];
    let resolvers = sources.each_ref().map(Resolver::start);
    let files = write("several", 9, random(500_000));
    resolvers[1].add(&files, 9);
    assert_eq!(read(&node).1, files.data);
    let flooded: u64 = sources.iter().map(|source| source.stats().interests).sum();
    assert!(
        flooded < 8 + 3 * 4,
        "self-learning floods the first Interests only: {flooded}"
    );
    assert_eq!(sources[1].stats().bytes, 500_000);
}

#[test]
fn closing_wakes_the_resolver() {
    let node = NamedNode::open(NodeSettings::new(name("/hadoop"))).expect("a node alone");
    let source = node
        .open_blocks(&name("/hadoop/blocks"), DEFAULT_SEGMENT_BYTES, 8)
        .expect("a source");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| source.next_request(PATIENCE));
        std::thread::sleep(Duration::from_millis(50));
        source.close();
        assert!(waits.join().expect("no panic").is_err());
    });
    assert_eq!(metadata(&node), None);
}

#[test]
fn a_router_that_restarts_in_mid_read() {
    let mut running = Some(router("tcp://127.0.0.1:0"));
    let face = address(running.as_ref().expect("it runs"));
    let (datanode, reader) = (node(&face, "d1"), node(&face, "reader"));
    let source = datanode
        .open_blocks(&name("/hadoop/blocks"), DEFAULT_SEGMENT_BYTES, 8)
        .expect("a source");
    let resolver = Resolver::start(&source);
    let files = write("restart", 5, random(4_000_000));
    resolver.add(&files, 5);
    let (_, data) = read_and(&reader, |n| {
        if n == 20 {
            drop(running.take());
            std::thread::sleep(Duration::from_millis(200));
            running = Some(router(&face));
        }
    });
    assert!(data == files.data);
}
