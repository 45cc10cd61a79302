//! Writes whose segments are sealed: who has the key gets them, who has it not
//! gets nothing, and forges nothing.

mod common;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use common::*;
use ndn_forwarder::FaceScope;
use ndn_io::{App, FaceConfig, FaceUri, Node, NodeConfig};
use ndn_packet::{Data, Name, NetKind, NetPacket, SigningKey};
use trunkline_native::{
    HEADER_LEN, KEY_ID_LEN, NamedNode, NativeError, Pull, PullSettings, Retain, SegmentDigest,
    StreamKind, StreamProducer, WriteKey,
};

const COUNT: u64 = 24;

fn content(n: u64) -> Vec<u8> {
    let mut content = vec![0; HEADER_LEN + BODY];
    fill(n, &mut content);
    content
}

fn sealed_name(key: &WriteKey) -> Name {
    let id: [u8; KEY_ID_LEN] = key.id();
    name("/hadoop/blocks/BP-1/900/v=1001").append_keyword(id)
}

fn produce(node: &NamedNode, key: &WriteKey) -> Arc<StreamProducer> {
    let sealer = key.sealer(StreamKind::Block);
    let retain = Retain {
        segments: 128,
        segment_bytes: 64_512,
    };
    node.open_sealed_producer(&sealed_name(key), retain, Some(sealer))
        .expect("a producer")
}

fn pull_with(node: &NamedNode, name: &Name, key: &WriteKey) -> Arc<Pull> {
    node.open_sealed_pull(name, live(16), Some(key.opener(StreamKind::Block)))
        .expect("a pull")
}

fn take_all_bound(pull: &Pull) {
    for n in 0..COUNT {
        pull.known(n);
        let digest = SegmentDigest::of(&content(n)).expect("a segment");
        let taken = pull
            .take_bound(n, Some(digest), PATIENCE)
            .expect("no failure")
            .unwrap_or_else(|| panic!("no segment {n}"));
        check(n, &taken);
    }
}

/// By the Unix socket segments are sealed in memory that the router is lent.
#[test]
fn a_pipeline_opens_what_its_writer_sealed() {
    let socket = std::env::temp_dir().join(format!("trunkline-sealed-{}.sock", std::process::id()));
    for listen in ["tcp://127.0.0.1:0", &format!("unix://{}", socket.display())] {
        pipeline(listen);
    }
}

fn pipeline(listen: &str) {
    let router = router(listen);
    let face = address(&router);
    let key = WriteKey::draw().expect("a key");
    let nodes = ["d1", "d2", "d3"].map(|called| node(&face, called));
    let pulls = nodes
        .each_ref()
        .map(|node| pull_with(node, &sealed_name(&key), &key));
    let client = node(&face, "client");
    let producer = produce(&client, &key);
    thread::scope(|scope| {
        for pull in &pulls {
            scope.spawn(|| take_all_bound(pull));
        }
        (0..COUNT).for_each(|n| publish(&producer, n));
    });
    for pull in &pulls {
        assert_eq!(pull.stats().expect("open").rejected, 0);
    }
    check(3, &producer.kept(3).expect("kept, and opened again"));

    // Whoever asks without the key sees no more than how much there is.
    let raw = nodes[0]
        .open_pull(&sealed_name(&key), live(4))
        .expect("a pull");
    assert!(matches!(
        raw.take(3, PATIENCE),
        Err(NativeError::Unverified { .. })
    ));
}

#[test]
fn what_was_sealed_with_another_key_is_refused() {
    let node = node_alone();
    let (key, other) = (WriteKey::draw().unwrap(), WriteKey::draw().unwrap());
    let producer = produce(&node, &key);
    publish(&producer, 0);
    let pull = pull_with(&node, &sealed_name(&key), &other);
    pull.known(0);
    assert!(matches!(
        pull.take(0, PATIENCE),
        Err(NativeError::Unverified { .. })
    ));
    let stream = node
        .open_sealed_pull(
            &sealed_name(&key),
            live(4),
            Some(key.opener(StreamKind::Stream)),
        )
        .expect("a pull");
    assert!(matches!(
        stream.take(0, PATIENCE),
        Err(NativeError::Unverified { .. })
    ));
    take_all(&pull_with(&node, &sealed_name(&key), &key), 1);
}

/// Forged segments lie in the router's cache when the write comes to them.
#[test]
fn forged_segments_cost_a_retry() {
    let router = router("tcp://127.0.0.1:0");
    let face = address(&router);
    let key = WriteKey::draw().expect("a key");
    let prefix = sealed_name(&key);
    {
        let (forger, accomplice) = (node(&face, "forger"), node(&face, "accomplice"));
        // Their checksums match, and they are not sealed.
        let producer = forger.open_producer(&prefix, 128).expect("a producer");
        (0..COUNT).for_each(|n| publish(&producer, n));
        let pull = accomplice.open_pull(&prefix, live(16)).expect("a pull");
        take_all(&pull, COUNT);
    }
    let nodes = ["d1", "d2", "d3"].map(|called| node(&face, called));
    let pulls = nodes.each_ref().map(|node| pull_with(node, &prefix, &key));
    let client = node(&face, "client");
    let producer = produce(&client, &key);
    thread::scope(|scope| {
        for pull in &pulls {
            scope.spawn(|| take_all_bound(pull));
        }
        (0..COUNT).for_each(|n| publish(&producer, n));
    });
    let rejected = |node: &NamedNode| status(node)["pulls"]["rejected"].as_u64();
    assert!(
        nodes.iter().any(|node| rejected(node) > Some(0)),
        "none of the forged ones was seen"
    );
}

/// Answers everything, at once, with segments of its own.
struct Forger;

impl App for Forger {
    fn on_packet(&mut self, _: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        let token = packet.pit_token;
        let NetKind::Interest(interest) = packet.packet else {
            return;
        };
        let name = interest.name().to_name();
        let segment = name.last().and_then(|last| last.as_segment()).unwrap_or(0);
        let wire = Data::builder(&name)
            .content(&content(segment ^ 1))
            .sign(&SigningKey::Null);
        let data = Data::parse(wire).expect("a packet");
        out.push(NetPacket::data(data).with_pit_token(token));
    }
}

/// It sits beside the producer, and nobody takes what it makes: who gets nothing else is told so,
/// and asks for the bodies on the control connection.
#[test]
fn a_forger_who_answers_everything_is_never_believed() {
    let router = router("tcp://127.0.0.1:0");
    let face = address(&router);
    let mut link = FaceConfig::new(FaceUri::parse(&face).expect("a URI"));
    link.link.scope = Some(FaceScope::NonLocal);
    let stranger = Node::start(NodeConfig {
        thread_name: "stranger".into(),
        faces: vec![link],
        ..NodeConfig::default()
    })
    .expect("the stranger starts");
    let handle = stranger
        .attach(Box::new(Forger), "forger")
        .expect("attached");
    handle
        .register(&name("/hadoop/blocks"))
        .expect("registered");

    let key = WriteKey::draw().expect("a key");
    let client = node(&face, "client");
    let producer = produce(&client, &key);
    (0..COUNT).for_each(|n| publish(&producer, n));
    let datanode = node(&face, "d1");
    for n in 0..COUNT {
        let settings = PullSettings {
            first: n,
            ..live(1)
        };
        let opener = key.opener(StreamKind::Block);
        let pull = datanode
            .open_sealed_pull(&sealed_name(&key), settings, Some(opener))
            .expect("a pull");
        pull.known(n);
        match pull.take(n, PATIENCE) {
            Ok(taken) => check(n, &taken.unwrap_or_else(|| panic!("no segment {n}"))),
            Err(NativeError::Unverified { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_number_is_sealed_once() {
    let node = node_alone();
    let producer = produce(&node, &WriteKey::draw().unwrap());
    publish(&producer, 0);
    publish(&producer, 4);
    for again in [4, 2] {
        let refused = publish_content(&producer, again, &[1; HEADER_LEN + BODY]);
        assert!(refused.is_err(), "segment {again}");
    }
    check(4, &producer.kept(4).expect("the first one is kept"));
}
