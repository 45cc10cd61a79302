//! A small network in one process: a router and nodes around it.

#![allow(dead_code)] // each test file uses its part

pub mod replicas;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ndn_forwarder::{FaceScope, StrategyKind};
use ndn_io::{FaceUri, ListenConfig, Node, NodeConfig};
use ndn_packet::Name;
use trunkline_native::{
    ChecksumType, HEADER_LEN, NamedNode, NativeError, NodeSettings, Pull, PullSettings,
    SegmentHeader, StreamProducer,
};

/// Data bytes of a full segment.
pub const SEGMENT: usize = trunkline_native::DEFAULT_SEGMENT_BYTES as usize;
/// Checksums and data of a full segment.
pub const BODY: usize = SEGMENT / 512 * 516;

pub fn name(uri: &str) -> Name {
    uri.parse().expect("a name")
}

/// A router that knows nothing but where to listen.
pub fn router(listen: &str) -> Node {
    let mut listener = ListenConfig::new(FaceUri::parse(listen).expect("a URI"));
    listener.link.scope = Some(FaceScope::NonLocal);
    let mut config = NodeConfig {
        thread_name: "router".into(),
        listeners: vec![listener],
        ..NodeConfig::default()
    };
    for prefix in ["/hadoop/blocks", "/hadoop/datanodes"] {
        config
            .strategies
            .push((name(prefix), StrategyKind::SelfLearning));
    }
    Node::start(config).expect("the router starts")
}

/// Where a router listens.
pub fn address(router: &Node) -> String {
    router.listening()[0].to_string()
}

pub fn node_with(face: &str, change: impl FnOnce(&mut NodeSettings)) -> Arc<NamedNode> {
    let mut settings = NodeSettings::new(name("/hadoop"));
    settings.face = Some(face.to_owned());
    settings.cs_bytes = 4 << 20;
    change(&mut settings);
    NamedNode::open(settings).expect("the node starts")
}

pub fn node(face: &str, called: &str) -> Arc<NamedNode> {
    node_with(face, |settings| settings.name = called.to_owned())
}

/// The header of full segment `n`.
pub fn header(n: u64) -> SegmentHeader {
    SegmentHeader {
        checksum: ChecksumType::Crc32c,
        bytes_per_checksum: 512,
        data_len: SEGMENT as u32,
        offset_in_block: n * SEGMENT as u64,
    }
}

/// A node without a router.
pub fn node_alone() -> Arc<NamedNode> {
    NamedNode::open(NodeSettings::new(name("/hadoop"))).expect("a node alone")
}

/// Content of segment `n`: its header, its checksums and bytes that no other
/// segment has.
pub fn fill(n: u64, content: &mut [u8]) {
    fill_as(0, n, content);
}

/// The same with bytes that no other write has.
pub fn fill_as(write: u64, n: u64, content: &mut [u8]) {
    let header = header(n);
    content[..HEADER_LEN].copy_from_slice(&header.encode());
    let (sums, data) = content[HEADER_LEN..].split_at_mut(header.checksums_len());
    let mut x = (n ^ write << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for word in data.chunks_mut(8) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        word.copy_from_slice(&x.to_le_bytes()[..word.len()]);
    }
    for (sum, chunk) in sums.chunks_mut(4).zip(data.chunks(512)) {
        let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, chunk) as u32;
        sum.copy_from_slice(&crc.to_be_bytes());
    }
}

/// Whether `content` is what [`fill`] makes.
pub fn check(n: u64, content: &[u8]) {
    let mut expected = vec![0; HEADER_LEN + BODY];
    fill(n, &mut expected);
    assert!(content == expected, "segment {n} has other bytes");
}

/// Waits until `done`, for ten seconds at most.
pub fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(10);
    while !done() {
        assert!(Instant::now() < until, "{what} did not happen within 10 s");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The status of a node, read back.
pub fn status(node: &NamedNode) -> serde_json::Value {
    serde_json::from_str(&node.status().expect("a status")).expect("JSON")
}

/// A number of the face to the router.
pub fn uplink(node: &NamedNode, what: &str) -> u64 {
    let status = status(node);
    let id = &status["router"]["face"];
    let faces = status["faces"].as_array().expect("faces");
    let face = faces
        .iter()
        .find(|face| &face["id"] == id)
        .expect("its face");
    face[what].as_u64().expect("a number")
}

/// How long a test waits for what must come.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A pull of a stream that is being made.
pub fn live(window: usize) -> PullSettings {
    PullSettings {
        first: 0,
        last: None,
        segment_bytes: 64_512,
        window,
        live: true,
    }
}

/// Publishes segment `n` as [`fill`] makes it.
pub fn publish(producer: &StreamProducer, n: u64) {
    let mut content = vec![0; HEADER_LEN + BODY];
    fill(n, &mut content);
    publish_content(producer, n, &content).expect("published");
}

/// Publishes this as segment `n`.
pub fn publish_content(
    producer: &StreamProducer,
    n: u64,
    content: &[u8],
) -> Result<(), NativeError> {
    producer.publish(n, content.len(), ChecksumType::Crc32c, false, |at, part| {
        part.copy_from_slice(&content[at..at + part.len()]);
        Ok(())
    })
}

/// Takes segments 0 to `count` and checks their bytes.
pub fn take_all(pull: &Pull, count: u64) {
    for n in 0..count {
        pull.known(n);
        let content = pull
            .take(n, PATIENCE)
            .expect("no failure")
            .unwrap_or_else(|| panic!("no segment {n}"));
        check(n, &content);
    }
}
