//! Faces, listeners and applications come and go, and say why.

mod common;

use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use common::{client, eventually, faces, fetch, listen, node, prefix, serve, uri};
use ndn_forwarder::FacePersistency;
use ndn_io::{
    App, AppHandle, Client, ClientError, ClientOptions, FaceConfig, MemoryConfig, Node, NodeConfig,
    NodeError, StartError,
};
use ndn_packet::NetPacket;

fn connecting(face: FaceConfig) -> Node {
    Node::start(NodeConfig {
        faces: vec![face],
        ..NodeConfig::default()
    })
    .unwrap()
}

/// A free TCP port, as far as one can tell.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

#[test]
fn a_permanent_face_comes_back() {
    let place = format!("tcp://127.0.0.1:{}", free_port());
    let mut face = FaceConfig::new(uri(&place));
    face.reconnect = (Duration::from_millis(20), Duration::from_millis(100));
    face.routes = vec![(prefix(), 1)];
    let near = connecting(face);
    assert!(!faces(&near)[0].up);
    let id = faces(&near)[0].id;
    for round in 0..3u64 {
        let far = node(vec![listen(&place)]);
        let _source = serve(&far, 1000);
        eventually("up", || faces(&near)[0].up);
        let reader = common::reader(50, 1000, 8, near.status().unwrap().uptime);
        let shared = Arc::new(Mutex::new(reader));
        let app = near
            .attach(Box::new(Shared(shared.clone())), "reader")
            .unwrap();
        app.wake();
        eventually("read", || shared.lock().unwrap().consumer.is_done());
        assert_eq!(shared.lock().unwrap().bytes, 50_000);
        let erase = prefix();
        near.with_forwarder(move |forwarder, _| forwarder.erase_cs(&erase))
            .unwrap();
        assert_eq!(faces(&near)[0].link.reconnects, round);
        far.shutdown();
        eventually("down", || !faces(&near)[0].up);
        assert_eq!(
            faces(&near)[0].id,
            id,
            "the face is the same one all the time"
        );
    }
}

/// An application that a test looks into.
struct Shared<A>(Arc<Mutex<A>>);

impl<A: App> App for Shared<A> {
    fn on_packet(&mut self, now: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        self.0.lock().unwrap().on_packet(now, packet, out);
    }
    fn on_wake(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        self.0.lock().unwrap().on_wake(now, out);
    }
    fn deadline(&self) -> Option<Duration> {
        self.0.lock().unwrap().deadline()
    }
    fn on_deadline(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        self.0.lock().unwrap().on_deadline(now, out);
    }
}

#[test]
fn a_persistent_face_goes_when_its_peer_does() {
    let far = node(vec![listen("tcp://127.0.0.1:0")]);
    let mut face = FaceConfig::new(far.listening()[0].clone());
    face.persistency = FacePersistency::Persistent;
    let near = connecting(face);
    eventually("up", || faces(&near).first().is_some_and(|face| face.up));
    far.shutdown();
    eventually("gone", || faces(&near).is_empty());
}

#[test]
fn nodes_speak_over_every_kind_of_face() {
    let dir = tempfile::tempdir().unwrap();
    let unix = format!("unix://{}/f.sock", dir.path().display());
    for (place, segment_bytes) in [
        (unix.as_str(), 64512),
        ("tcp://127.0.0.1:0", 64512),
        ("udp://127.0.0.1:0", 64512),
        ("udp://[::1]:0", 8000),
    ] {
        let far = node(vec![listen(place)]);
        let _source = serve(&far, segment_bytes);
        let mut face = FaceConfig::new(far.listening()[0].clone());
        face.routes = vec![(prefix(), 1)];
        face.local_bind = place.contains("127").then(|| "127.0.0.9".parse().unwrap());
        let near = connecting(face);
        eventually("jumbo agreed", || faces(&near)[0].jumbo);
        if place.contains("127") {
            assert!(faces(&near)[0].spec.local_uri.contains("127.0.0.9"));
        }
        let reader = common::reader(200, segment_bytes, 4, near.status().unwrap().uptime);
        let shared = Arc::new(Mutex::new(reader));
        let app = near
            .attach(Box::new(Shared(shared.clone())), "reader")
            .unwrap();
        app.wake();
        eventually("read", || shared.lock().unwrap().consumer.is_done());
        assert_eq!(shared.lock().unwrap().bytes, 200 * segment_bytes);
    }
}

#[test]
fn nodes_on_a_multicast_link_hear_each_other() {
    let open = || {
        let mut face = FaceConfig::new(uri("udp://224.0.23.170:36363"));
        face.local_bind = Some("127.0.0.1".parse().unwrap());
        face.routes = vec![(prefix(), 1)];
        connecting(face)
    };
    let (near, far) = (open(), open());
    let _source = serve(&far, 8000);
    let reader = common::reader(100, 8000, 4, near.status().unwrap().uptime);
    let shared = Arc::new(Mutex::new(reader));
    let app = near
        .attach(Box::new(Shared(shared.clone())), "reader")
        .unwrap();
    app.wake();
    eventually("read", || shared.lock().unwrap().consumer.is_done());
    let face = &faces(&near)[0];
    assert_eq!(face.spec.link_type, ndn_forwarder::LinkType::MultiAccess);
    assert_eq!(face.link.malformed, 0);
}

#[test]
fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.sock");
    let place = format!("unix://{}", path.display());
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let first = node(vec![listen(&place)]);
    let _source = serve(&first, 100);
    fetch(
        &mut client(&uri(&place), &ClientOptions::default()),
        10,
        100,
        2,
    );

    let config = || NodeConfig {
        listeners: vec![listen(&place)],
        ..NodeConfig::default()
    };
    let Err(error) = Node::start(config()) else {
        panic!("two nodes on one socket")
    };
    let text = error.to_string();
    assert!(matches!(error, StartError::Listen { .. }));
    assert!(
        text.contains(&place) && text.contains("a live process listens there"),
        "{text}"
    );
    fetch(
        &mut client(&uri(&place), &ClientOptions::default()),
        10,
        100,
        2,
    );

    first.shutdown();
    assert!(!path.exists(), "the socket is removed with its node");
    std::fs::write(&path, "precious").unwrap();
    let text = Node::start(config()).err().expect("an error").to_string();
    assert!(text.contains("no socket"), "{text}");
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}

#[test]
fn a_taken_port_and_a_missing_folder_are_named() {
    let taken = node(vec![listen("tcp://127.0.0.1:0")]);
    let place = taken.listening()[0].to_string();
    let config = |place: &str| NodeConfig {
        listeners: vec![listen(place)],
        ..NodeConfig::default()
    };
    let text = Node::start(config(&place))
        .err()
        .expect("an error")
        .to_string();
    assert!(
        text.contains(&place) && text.contains("choose another port"),
        "{text}"
    );
    let text = Node::start(config("unix:///no/such/folder/s"))
        .err()
        .expect("an error")
        .to_string();
    assert!(text.contains("correct the path"), "{text}");
    let text = Node::start(config("udp://192.0.2.1:0"))
        .err()
        .expect("an error")
        .to_string();
    assert!(text.contains("an address that this host has"), "{text}");
}

#[test]
fn all_mistakes_are_named_at_once() {
    let mut face = FaceConfig::new(uri("tcp://127.0.0.1:0"));
    face.local_bind = Some("::1".parse().unwrap());
    face.link.mtu = Some(10);
    face.link.ring_bytes = 100_000;
    let mut listener = listen("tcp://localhost:1");
    listener.link.send_queue_bytes = 1;
    let config = NodeConfig {
        listeners: vec![listener],
        faces: vec![face],
        memory: MemoryConfig {
            send_queues_bytes: 1000,
            receive_buffers_bytes: 1000,
            reassembly_bytes: 1000,
            faces_bytes: 1000,
            ..MemoryConfig::default()
        },
        ..NodeConfig::default()
    };
    let text = config.validate().unwrap_err().to_string();
    for part in [
        "mtu",
        "port 0",
        "local_bind",
        "ring_bytes",
        "literal address",
        "send_queue_bytes",
        "send_queues_bytes",
        "receive_buffers_bytes",
        "reassembly_bytes",
        "faces_bytes",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert_eq!(text.lines().count(), 10);
}

#[test]
fn a_listener_takes_so_many_and_no_more() {
    let mut listener = listen("tcp://127.0.0.1:0");
    listener.max_faces = 2;
    listener.max_faces_per_address = Some(2);
    let node = node(vec![listener]);
    let _source = serve(&node, 100);
    let place = node.listening()[0].clone();
    let mut options = ClientOptions::default();
    let kept = [client(&place, &options), client(&place, &options)];
    options.link.jumbo = false;
    let mut third = client(&place, &options);
    let mut reader = common::reader(1, 100, 1, third.now());
    let Err(ClientError::Lost { uri, .. }) = third.run(&mut reader, |_| false) else {
        panic!("a third face")
    };
    assert_eq!(uri, place);
    assert_eq!(node.status().unwrap().listeners[0].refused, 1);
    drop(kept);
    eventually("room again", || {
        node.status().unwrap().listeners[0].open_faces == 0
    });
    fetch(&mut client(&place, &ClientOptions::default()), 10, 100, 2);
}

struct Sleeper {
    wakes: Arc<AtomicU32>,
    gate: mpsc::Receiver<()>,
}

impl App for Sleeper {
    fn on_packet(&mut self, _: Duration, _: NetPacket, _: &mut Vec<NetPacket>) {}
    fn on_wake(&mut self, _: Duration, _: &mut Vec<NetPacket>) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
        let _ = self.gate.recv();
    }
}

#[test]
fn wakes_are_gathered_and_never_lost() {
    let node = node(vec![]);
    let wakes = Arc::new(AtomicU32::new(0));
    let (open, gate) = mpsc::channel();
    let app = node
        .attach(
            Box::new(Sleeper {
                wakes: wakes.clone(),
                gate,
            }),
            "sleeper",
        )
        .unwrap();
    app.wake();
    eventually("the first wake", || wakes.load(Ordering::SeqCst) == 1);
    let waker = app.waker();
    for _ in 0..100 {
        waker.wake();
    }
    open.send(()).unwrap();
    eventually("the second wake", || wakes.load(Ordering::SeqCst) == 2);
    drop(open);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(wakes.load(Ordering::SeqCst), 2);
    let id = app.face_id();
    assert!(
        node.status()
            .unwrap()
            .faces
            .iter()
            .any(|face| face.id == id)
    );
    drop(app);
    assert!(node.status().unwrap().faces.is_empty());
    waker.wake();
}

/// Calls back into the node from the loop's own thread.
struct Confused(
    Arc<Mutex<Option<AppHandle>>>,
    mpsc::Sender<Result<(), NodeError>>,
);

impl App for Confused {
    fn on_packet(&mut self, _: Duration, _: NetPacket, _: &mut Vec<NetPacket>) {}
    fn on_wake(&mut self, _: Duration, _: &mut Vec<NetPacket>) {
        if let Some(handle) = &*self.0.lock().unwrap() {
            let _ = self.1.send(handle.register(&prefix()));
        }
    }
}

#[test]
fn waiting_for_oneself_is_refused() {
    let node = node(vec![]);
    let slot = Arc::new(Mutex::new(None));
    let (tell, told) = mpsc::channel();
    let app = node
        .attach(Box::new(Confused(slot.clone(), tell)), "confused")
        .unwrap();
    let waker = app.waker();
    *slot.lock().unwrap() = Some(app);
    waker.wake();
    assert_eq!(told.recv().unwrap(), Err(NodeError::OnLoopThread));
    let app = slot.lock().unwrap().take().unwrap();
    assert_eq!(app.register(&prefix()), Ok(()));
    assert_eq!(app.unregister(&prefix()), Ok(true));
    assert_eq!(app.unregister(&prefix()), Ok(false));
    node.shutdown();
    assert_eq!(app.register(&prefix()), Err(NodeError::Stopped));
}

#[test]
fn a_client_hears_that_its_forwarder_has_gone() {
    let dir = tempfile::tempdir().unwrap();
    let place = uri(&format!("unix://{}/f.sock", dir.path().display()));
    let Err(error) = Client::connect(&place, &ClientOptions::default()) else {
        panic!("nobody")
    };
    assert!(error.to_string().contains("start the forwarder"), "{error}");
    let node = node(vec![listen(&place.to_string())]);
    for shared_memory in [false, true] {
        let mut options = ClientOptions::default();
        options.link.shared_memory = shared_memory;
        client(&place, &options);
    }
    let mut connected = client(&place, &ClientOptions::default());
    node.shutdown();
    let mut reader = common::reader(1, 1, 1, connected.now());
    let error = connected.run(&mut reader, |_| false).unwrap_err();
    assert!(matches!(error, ClientError::Lost { .. }), "{error}");
}

#[test]
fn the_clock_of_a_client_goes_on_in_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let place = uri(&format!("unix://{}/f.sock", dir.path().display()));
    let node = node(vec![listen(&place.to_string())]);
    let _source = serve(&node, 100);
    let mut first = client(&place, &ClientOptions::default());
    fetch(&mut first, 10, 100, 4);
    let (epoch, before) = (first.epoch(), first.now());
    drop(first);
    let mut next = client(&place, &ClientOptions::default()).with_epoch(epoch);
    assert!(next.now() >= before);
    fetch(&mut next, 10, 100, 4);
    node.shutdown();
}

/// Counts how often it is woken.
struct Woken(u32);

impl App for Woken {
    fn on_packet(&mut self, _: Duration, _: NetPacket, _: &mut Vec<NetPacket>) {}

    fn on_wake(&mut self, _: Duration, _: &mut Vec<NetPacket>) {
        self.0 += 1;
    }
}

#[test]
fn other_threads_wake_what_a_client_drives() {
    let dir = tempfile::tempdir().unwrap();
    let place = uri(&format!("unix://{}/f.sock", dir.path().display()));
    let _node = node(vec![listen(&place.to_string())]);
    let mut connected = client(&place, &ClientOptions::default());
    let waker = connected.waker();
    let (woken, seen) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        // Each wake-up is seen before the next one: none is lost, and none is another's.
        while seen.recv().is_ok() {
            waker.wake();
        }
    });
    let mut app = Woken(0);
    let mut told = 0;
    let done = |app: &mut Woken| {
        if app.0 > told {
            told = app.0;
            woken.send(()).unwrap();
        }
        app.0 == 100
    };
    connected.run(&mut app, done).unwrap();
    drop(woken);
    thread.join().unwrap();
}
