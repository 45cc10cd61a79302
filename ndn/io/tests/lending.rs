//! Packets lent between processes of one host: they arrive whole, whoever copies or keeps them.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::apps::{Reader, Source};
use common::{client, eventually, faces, fetch, listen, node, prefix, uri};
use ndn_endpoint::{Consumer, ConsumerConfig, FixedConfig};
use ndn_io::{
    App, AppHandle, ClientOptions, FaceConfig, FaceStatus, Lend, LinkOptions, Node, NodeConfig,
    PacketBuffers,
};
use ndn_packet::{Data, NetKind, NetPacket, SigningKey};

const SEGMENT: usize = 64_512;

/// [`Source`], whose packets are made where they can be lent.
struct Lending {
    source: Source,
    buffers: PacketBuffers,
}

impl App for Lending {
    fn on_packet(&mut self, _: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        let NetKind::Interest(interest) = &packet.packet else {
            return;
        };
        let name = interest.name_owned();
        let segment = name.last().and_then(|c| c.as_segment()).unwrap_or(0);
        let content = self.source.content(segment);
        let wire = Data::builder(&name)
            .content_with(content.len(), |to| {
                to.copy_from_slice(content);
                Ok::<(), ()>(())
            })
            .sign_in(
                &SigningKey::DigestSha256,
                self.buffers.take(content.len() + 1024),
            )
            .unwrap();
        let data = Data::parse(wire).unwrap();
        out.push(NetPacket::data(data).with_pit_token(packet.pit_token));
    }
}

struct Place {
    _dir: tempfile::TempDir,
    uri: String,
}

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let uri = format!("unix://{}/f.sock", dir.path().display());
    Place { _dir: dir, uri }
}

/// A node with a face to the router at `place`, and memory to make packets in.
fn neighbour(place: &Place, made_packets_bytes: usize, keep_lent: bool, asks: bool) -> Node {
    let face = FaceConfig {
        link: LinkOptions {
            lend: Lend::Anyone,
            keep_lent,
            ..LinkOptions::default()
        },
        routes: asks.then(|| (prefix(), 1)).into_iter().collect(),
        ..FaceConfig::new(uri(&place.uri))
    };
    Node::start(NodeConfig {
        faces: vec![face],
        made_packets_bytes,
        ..NodeConfig::default()
    })
    .unwrap()
}

/// A node with a producer that lends what it makes.
fn produce(place: &Place, made_packets_bytes: usize) -> (Node, AppHandle) {
    produce_segments(place, made_packets_bytes, SEGMENT)
}

fn produce_segments(place: &Place, made_packets_bytes: usize, bytes: usize) -> (Node, AppHandle) {
    let node = neighbour(place, made_packets_bytes, false, false);
    let app = Lending {
        source: Source::new(bytes),
        buffers: node.packet_buffers().unwrap(),
    };
    let app = node.attach(Box::new(app), "source").unwrap();
    app.register(&prefix()).unwrap();
    (node, app)
}

fn by_memory(router: &Node) -> usize {
    let faces = faces(router);
    faces.iter().filter(|face| face.shared_memory).count()
}

/// Has the router ask its first face for the stream.
fn route(router: &Node) {
    router
        .with_forwarder(|forwarder, _| {
            let mut faces = forwarder.faces();
            let first = faces.find(|(_, spec, ..)| !spec.remote_uri.starts_with("internal"));
            let id = first.unwrap().0;
            drop(faces);
            forwarder.add_route(&prefix(), id, 1).unwrap();
        })
        .unwrap();
}

fn lent(face: &FaceStatus) -> (bool, bool) {
    assert_eq!((face.link.malformed, face.link.queue_drops), (0, 0));
    (face.link.lent > 0, face.link.borrowed > 0)
}

#[test]
fn what_an_application_makes_is_lent_to_its_router_and_on_to_a_client() {
    let place = place();
    let router = node(vec![listen(&place.uri)]);
    // Memory for few: what more is made goes by ring.
    let (_producer, _app) = produce(&place, 10 * (68 << 10));
    eventually("a face in shared memory", || by_memory(&router) == 1);
    route(&router);
    let mut client = client(&uri(&place.uri), &ClientOptions::default());
    fetch(&mut client, 2000, SEGMENT, 64);
    let faces = faces(&router);
    assert_eq!(lent(&faces[0]), (false, true), "by the producer");
    assert_eq!(lent(&faces[1]), (true, false), "to the client");
}

#[test]
fn large_packets_are_lent_as_well() {
    let place = place();
    let router = node(vec![listen(&place.uri)]);
    let (_producer, _app) = produce_segments(&place, 8 << 20, 516_096);
    eventually("a face in shared memory", || by_memory(&router) == 1);
    route(&router);
    let mut client = client(&uri(&place.uri), &ClientOptions::default());
    fetch(&mut client, 400, 516_096, 8);
    let faces = faces(&router);
    // As many as there is memory for: its own store holds on to them.
    assert!(faces[0].link.borrowed > 5, "{:?}", faces[0].link);
    assert!(faces[1].link.lent > 300, "{:?}", faces[1].link);
}

#[test]
fn what_is_kept_where_it_lies_is_whole_and_let_go() {
    let place = place();
    let router = node(vec![listen(&place.uri)]);
    let (producer, app) = produce(&place, 8 << 20);
    eventually("a face in shared memory", || by_memory(&router) == 1);
    route(&router);
    let keeper = neighbour(&place, 0, true, true);
    eventually("another one", || by_memory(&router) == 2);
    // More than there are places, so that what is kept must be let go.
    let segments = 3000;
    let mut config = ConsumerConfig::new(prefix());
    config.last = Some(segments - 1);
    config.congestion = Arc::new(FixedConfig::new(64));
    let source = Source::new(SEGMENT);
    let (read, all_read) = std::sync::mpsc::channel();
    let now = keeper.with_forwarder(|_, now| now).unwrap();
    let reader = Reader::new(Consumer::new(config, now), move |segment, content| {
        assert!(content == source.content(segment), "{segment} is garbled");
        if segment == segments - 1 {
            read.send(()).unwrap();
        }
    });
    let reader = keeper.attach(Box::new(reader), "reader").unwrap();
    reader.wake();
    all_read.recv_timeout(Duration::from_secs(60)).unwrap();
    let (own, theirs) = (faces(&keeper), faces(&router));
    assert_eq!(lent(&own[0]), (false, true));
    assert_eq!(own[0].link.borrowed, theirs[1].link.lent);
    assert!(theirs[1].link.lent > segments / 2, "{:?}", theirs[1].link);
    // But for the first, which may have come before that was agreed.
    let stored = keeper.status().unwrap().forwarder.cs_entries as u64;
    assert_eq!(stored, segments - own[0].link.borrowed);
    drop((reader, app, producer));
}

#[test]
fn nobody_is_lent_what_is_not_to_be() {
    let place = place();
    let mut listener = listen(&place.uri);
    listener.link.lend = Lend::Nobody;
    let router = node(vec![listener]);
    let (_producer, _app) = produce(&place, 8 << 20);
    eventually("a face in shared memory", || by_memory(&router) == 1);
    route(&router);
    let mut client = client(&uri(&place.uri), &ClientOptions::default());
    fetch(&mut client, 500, SEGMENT, 64);
    let faces = faces(&router);
    assert_eq!(
        lent(&faces[0]),
        (false, true),
        "the producer lends all the same"
    );
    assert_eq!(lent(&faces[1]), (false, false));
}
