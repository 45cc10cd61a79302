//! What the tests of real faces have in common.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod apps;
pub mod authority;
pub mod tls;

use std::sync::Arc;
use std::time::{Duration, Instant};

use apps::{Reader, Source};
use ndn_endpoint::{Consumer, ConsumerConfig, ConsumerStats, FixedConfig};
use ndn_io::{
    AppHandle, Client, ClientOptions, FaceStatus, FaceUri, ListenConfig, Node, NodeConfig,
};
use ndn_packet::Name;

/// The stream that [`serve`] serves.
pub fn prefix() -> Name {
    "/test/v=1".parse().expect("a name")
}

pub fn uri(text: &str) -> FaceUri {
    FaceUri::parse(text).expect("a face URI")
}

/// A node that listens at these places.
pub fn node(listeners: Vec<ListenConfig>) -> Node {
    Node::start(NodeConfig {
        listeners,
        ..NodeConfig::default()
    })
    .expect("a node")
}

pub fn listen(text: &str) -> ListenConfig {
    ListenConfig::new(uri(text))
}

/// An in-process producer of segments of this size.
pub fn serve(node: &Node, segment_bytes: usize) -> AppHandle {
    let app = node
        .attach(Box::new(Source::new(segment_bytes)), "source")
        .expect("an app");
    app.register(&prefix()).expect("a route");
    app
}

pub fn client(uri: &FaceUri, options: &ClientOptions) -> Client {
    let mut client = Client::connect(uri, options).expect("a connection");
    if options.link.jumbo {
        client.settle(Duration::from_secs(2)).expect("a face");
    }
    client
}

/// A reader of `segments` segments that checks every byte.
pub fn reader(
    segments: u64,
    segment_bytes: usize,
    window: usize,
    now: Duration,
) -> Reader<impl FnMut(u64, &[u8]) + Send> {
    let mut config = ConsumerConfig::new(prefix());
    config.last = Some(segments - 1);
    config.congestion = std::sync::Arc::new(FixedConfig::new(window));
    let source = Arc::new(Source::new(segment_bytes));
    Reader::new(Consumer::new(config, now), move |segment, content| {
        assert!(
            content == source.content(segment),
            "segment {segment} is garbled"
        );
    })
}

/// Fetches through `client`, checking every byte.
pub fn fetch(
    client: &mut Client,
    segments: u64,
    segment_bytes: usize,
    window: usize,
) -> ConsumerStats {
    let mut reader = reader(segments, segment_bytes, window, client.now());
    let start = Instant::now();
    client
        .run(&mut reader, |reader| {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "{:?}",
                reader.consumer.stats()
            );
            reader.consumer.is_done()
        })
        .expect("the face stays");
    assert_eq!(reader.consumer.failure(), None);
    assert_eq!(reader.bytes, segments as usize * segment_bytes);
    reader.consumer.stats()
}

/// Waits until `condition` holds.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "never happened: {what}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The node's faces that lead out of the process.
pub fn faces(node: &Node) -> Vec<FaceStatus> {
    let mut faces = node.status().expect("a running node").faces;
    faces.retain(|face| !face.spec.remote_uri.starts_with("internal://"));
    faces
}
