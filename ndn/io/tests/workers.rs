//! A node of several workers: whatever thread has a face and whatever worker has a name, they find each other.

mod common;

use std::time::Duration;

use common::apps::{Reader, Source};
use common::{client, eventually, faces, listen, uri};
use ndn_endpoint::{Consumer, ConsumerConfig};
use ndn_forwarder::FaceId;
use ndn_forwarder::mgmt::ControlParameters;
use ndn_io::{AppHandle, Client, ClientOptions, FaceUri, ListenConfig, Node, NodeConfig};
use ndn_packet::{Interest, Name, NetKind, SigningKey};

const WORKERS: usize = 3;

fn node(listeners: Vec<ListenConfig>) -> Node {
    let mut config = NodeConfig {
        listeners,
        ..NodeConfig::default()
    };
    config.workers.count = WORKERS;
    Node::start(config).expect("a node")
}

/// Names with homes at all workers.
fn object(n: usize) -> Name {
    format!("/many/{n}/v=1").parse().expect("a name")
}

fn serve_all(node: &Node) -> AppHandle {
    let source = Box::new(Source::new(3000));
    let app = node.attach(source, "source").expect("an app");
    app.register(&"/many".parse().expect("a name"))
        .expect("a route");
    app
}

fn fetch(client: &mut Client, name: Name, segments: u64) {
    let mut config = ConsumerConfig::new(name);
    config.last = Some(segments - 1);
    let source = Source::new(3000);
    let consumer = Consumer::new(config, client.now());
    let mut reader = Reader::new(consumer, move |segment, content: &[u8]| {
        assert!(content == source.content(segment), "segment {segment}");
    });
    let until = client.now() + Duration::from_secs(60);
    let now = client.epoch();
    let is_done = |reader: &mut Reader<_>| {
        assert!(now.elapsed() < until, "{:?}", reader.consumer.stats());
        reader.consumer.is_done()
    };
    client.run(&mut reader, is_done).expect("the face stays");
    assert_eq!(reader.consumer.failure(), None);
    assert_eq!(reader.bytes, segments as usize * 3000);
}

/// Which threads have faces.
fn loops(node: &Node) -> Vec<usize> {
    let mut loops: Vec<usize> = faces(node).iter().map(|f| f.id.worker(WORKERS)).collect();
    loops.sort_unstable();
    loops.dedup();
    loops
}

fn connect(node: &Node, at: usize) -> Client {
    client(&node.listening()[at], &ClientOptions::default())
}

#[test]
fn bytes_arrive_by_every_thread_and_are_counted_once() {
    let dir = tempfile::tempdir().unwrap();
    let unix = format!("unix://{}/f.sock", dir.path().display());
    let node = node(vec![
        listen(&unix),
        listen("tcp://127.0.0.1:0"),
        listen("udp://127.0.0.1:0"),
    ]);
    let _source = serve_all(&node);
    let readers: Vec<_> = (0..9)
        .map(|n| {
            let mut reader = connect(&node, n % 3);
            std::thread::spawn(move || {
                for object_at in 0..6 {
                    fetch(&mut reader, object((n + object_at) % 8), 200);
                }
                reader
            })
        })
        .collect();
    let readers: Vec<Client> = readers.into_iter().map(|r| r.join().unwrap()).collect();
    assert_eq!(loops(&node), [0, 1, 2]);

    let status = node.status().unwrap();
    let (to_readers, jumbo) = faces(&node).iter().fold((0, 0), |(data, jumbo), face| {
        assert_eq!(face.packets.pending_in, 0, "{:?}", face.spec);
        (
            data + face.packets.out_data,
            jumbo + usize::from(face.jumbo),
        )
    });
    assert!(to_readers >= 9 * 6 * 200, "{to_readers}");
    assert_eq!(jumbo, 9, "agreed by whatever thread");
    assert_eq!(status.forwarder.cs_entries, 8 * 200, "each is cached once");
    assert_eq!(status.forwarder.pit_entries, 0);
    assert!(status.forwarder.cs_hits >= 9 * 6 * 200 - 2 * 8 * 200);
    let part = |name| {
        status
            .memory
            .iter()
            .find(|(part, _)| *part == name)
            .unwrap()
            .1
    };
    let config = ndn_forwarder::Config::default();
    let store = part("content_store");
    assert_eq!(store.capacity_bytes, config.cs_capacity_bytes);
    assert_eq!(store.bytes, status.forwarder.cs_bytes);
    assert_eq!(part("faces").capacity_bytes, 256 << 20);

    drop(readers);
    eventually("faces by streams go with their peers", || {
        faces(&node)
            .iter()
            .all(|f| f.spec.remote_uri.starts_with("udp"))
    });
    let listeners = node.status().unwrap().listeners;
    assert!(
        listeners[..2]
            .iter()
            .all(|listener| listener.open_faces == 0)
    );
}

/// As soon as a route is said to be there, all workers have it; and as soon as its face has gone, none.
#[test]
fn routes_are_everywhere_once_they_are_anywhere() {
    let node = node(vec![listen("tcp://127.0.0.1:0")]);
    let mut readers: Vec<Client> = (0..WORKERS).map(|_| connect(&node, 0)).collect();
    for round in 0..30 {
        let prefix = object(round).parent();
        let mut server = connect(&node, 0);
        server.register(&prefix).unwrap();
        let waker = server.waker();
        let serving = std::thread::spawn(move || {
            let mut served = 0;
            let mut source = Source::new(3000);
            server.run(&mut source, |_| {
                served += 1;
                served > 1 && STOP.with_round(round)
            })
        });
        for reader in &mut readers {
            fetch(reader, object(round), 3);
        }
        STOP.set(round);
        waker.wake();
        serving.join().unwrap().unwrap();
        eventually("the server's face goes", || faces(&node).len() == WORKERS);
        let name = prefix.append_segment(7);
        for reader in &mut readers {
            let interest = Interest::builder(&name).nonce(round as u32).build();
            let interest = Interest::parse(interest).unwrap();
            let answer = reader.ask(interest, Duration::from_secs(10)).unwrap();
            let answer = answer.expect("an answer").packet;
            assert!(matches!(answer, NetKind::Nack { .. }), "{answer:?}");
        }
    }
}

/// The last round that is over.
struct Stop(std::sync::atomic::AtomicUsize);

static STOP: Stop = Stop(std::sync::atomic::AtomicUsize::new(0));

impl Stop {
    fn set(&self, round: usize) {
        self.0.store(round + 1, std::sync::atomic::Ordering::SeqCst);
    }

    fn with_round(&self, round: usize) -> bool {
        self.0.load(std::sync::atomic::Ordering::SeqCst) > round
    }
}

fn command(
    client: &mut Client,
    module: &str,
    verb: &str,
    p: &ControlParameters,
) -> ControlParameters {
    let answer = client
        .command(module, verb, p, &SigningKey::DigestSha256)
        .unwrap();
    assert_eq!(answer.code, 200, "{module}/{verb}: {}", answer.text);
    answer.body
}

#[test]
fn management_reaches_every_worker_and_every_thread() {
    let dir = tempfile::tempdir().unwrap();
    let face: FaceUri = uri(&format!("unix://{}/f.sock", dir.path().display()));
    let node = node(vec![listen(&face.to_string())]);
    let source = serve_all(&node);
    let mut readers: Vec<Client> = (0..WORKERS).map(|_| connect(&node, 0)).collect();
    for (n, reader) in readers.iter_mut().enumerate() {
        fetch(reader, object(n), 50);
        fetch(reader, object(n + 10), 50);
    }
    let manager = &mut readers[1];
    let many = ControlParameters {
        name: Some("/many".parse().unwrap()),
        count: Some(100),
        ..Default::default()
    };
    let erased = command(manager, "cs", "erase", &many).count;
    assert_eq!(erased, Some(100), "no more than it was told to");
    let all = ControlParameters {
        count: None,
        ..many
    };
    assert_eq!(command(manager, "cs", "erase", &all).count, Some(200));
    assert_eq!(node.status().unwrap().forwarder.cs_entries, 0);

    let off = ControlParameters {
        capacity: Some(0),
        ..Default::default()
    };
    assert_eq!(command(manager, "cs", "config", &off).capacity, Some(0));
    fetch(&mut readers[0], object(3), 50);
    assert_eq!(node.status().unwrap().forwarder.cs_entries, 0);

    // A face of each thread is changed, and closed.
    let ids: Vec<FaceId> = faces(&node).iter().map(|face| face.id).collect();
    for id in ids {
        let update = ControlParameters {
            face_id: Some(id.0),
            default_congestion_threshold: Some(77_777),
            ..Default::default()
        };
        command(&mut readers[1], "faces", "update", &update);
    }
    for face in faces(&node) {
        assert_eq!(face.spec.default_congestion_threshold, Some(77_777));
        assert!(face.jumbo && face.spec.max_packet_bytes > Some(60_000));
    }
    fetch(&mut readers[2], object(4), 50);
    let own = loops(&node);
    assert_eq!(own, [0, 1, 2]);
    let others: Vec<FaceId> = faces(&node).iter().map(|face| face.id).collect();
    for id in others {
        let destroy = ControlParameters {
            face_id: Some(id.0),
            ..Default::default()
        };
        // One of them is the manager's own: its answer may be lost with it.
        let _ = readers[1].command("faces", "destroy", &destroy, &SigningKey::DigestSha256);
    }
    drop(readers);
    eventually("all have gone", || faces(&node).is_empty());
    drop(source);
    node.shutdown();
    assert!(!dir.path().join("f.sock").exists());
}
