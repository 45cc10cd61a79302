//! Guarded replicas: read by name by who has a block token's password, and by nobody else.

mod common;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use common::replicas::{Files, random, write};
use common::*;
use ndn_forwarder::FaceScope;
use ndn_io::{App, FaceConfig, FaceUri, Node, NodeConfig};
use ndn_packet::{Data, Interest, Name, NetKind, NetPacket, SigningKey};
use trunkline_native::{
    Answer, Asking, BlockSource, FetchSettings, Granted, HEADER_LEN, KeyId, NamedNode, NativeError,
    NodeSettings, PullSettings, SealedByWrite, Secret, Secrets, SegmentHeader, StreamKind,
    WriteKey, Written,
};

const SEGMENT_BYTES: u32 = 7168;
const TOKEN: (&[u8], &[u8]) = (b"identifier of a token", b"its password");
const SERIAL: u32 = 41;

fn version() -> Name {
    name("/hadoop/blocks/BP-1/7/v=1001")
}

/// What stands in Java's place: a DataNode with one replica and one token.
#[derive(Clone, Default)]
struct DataNode {
    files: Option<(PathBuf, PathBuf, u64)>,
    written: Option<(WriteKey, u32, SealedByWrite)>,
}

struct Guarded {
    source: Arc<BlockSource>,
    state: Arc<Mutex<DataNode>>,
    requests: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("no panic");
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

impl Guarded {
    fn open(node: &NamedNode, files: &Files) -> Self {
        let source = node
            .open_guarded_blocks(&name("/hadoop/blocks"), SEGMENT_BYTES, 8)
            .expect("a source");
        let files = (
            files.block.clone(),
            files.meta.clone(),
            files.data.len() as u64,
        );
        let state = Arc::new(Mutex::new(DataNode {
            files: Some(files),
            written: None,
        }));
        let (requests, stop): (Arc<Mutex<Vec<String>>>, Arc<AtomicBool>) = Default::default();
        let thread = {
            let (source, state) = (source.clone(), state.clone());
            let (requests, stop) = (requests.clone(), stop.clone());
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    match source.next_request(Duration::from_millis(20)) {
                        Ok(Some(request)) => {
                            requests.lock().unwrap().push(request.clone());
                            let state = state.lock().unwrap().clone();
                            resolve(&source, &request, &state);
                        }
                        Ok(None) => {}
                        Err(_) => return,
                    }
                }
            })
        };
        Guarded {
            source,
            state,
            requests,
            stop,
            thread: Some(thread),
        }
    }
}

fn resolve(source: &BlockSource, request: &str, state: &DataNode) {
    let words: Vec<&str> = request.split(' ').collect();
    let known = words[..3] == ["BP-1", "7", "1001"];
    let token = hex(TOKEN.0);
    let (serial, password) = match words[3..] {
        ["write"] => (None, None),
        ["key", serial] => (serial.parse().ok(), None),
        ["token", identifier] if identifier == token => (Some(SERIAL), Secret::new(TOKEN.1)),
        _ => return source.answer(request, None),
    };
    let Some((block, meta, length)) = state.files.as_ref().filter(|_| known) else {
        return source.answer(request, None);
    };
    let secret = Secret::new(b"made with block key 41").expect("a secret");
    let written = state.written.as_ref();
    let answer = Answer {
        block,
        meta,
        length: *length,
        genstamp: 1001,
        secrets: Secrets {
            written: written.map(|(key, segment_bytes, sealed)| Written {
                key,
                segment_bytes: *segment_bytes,
                sealed: *sealed,
            }),
            block_key: serial
                .filter(|serial| *serial == SERIAL)
                .map(|serial| (serial, &secret)),
            password: password.as_ref(),
        },
    };
    source.answer(request, Some(answer));
}

fn granted(reader: &NamedNode) -> Option<Granted> {
    reader
        .content_key(&version(), TOKEN, PATIENCE)
        .expect("no failure")
}

fn segments(granted: &Granted) -> (Name, PullSettings) {
    let facts = granted.metadata;
    let settings = PullSettings {
        first: 0,
        last: Some(facts.length.div_ceil(facts.segment_bytes) - 1),
        segment_bytes: 64_512,
        window: 16,
        live: false,
    };
    (version().append_keyword(granted.id.to_bytes()), settings)
}

fn read(reader: &NamedNode, granted: &Granted) -> Vec<u8> {
    let (prefix, settings) = segments(granted);
    let opener = granted.key.opener(StreamKind::Block);
    let pull = reader
        .open_sealed_pull(&prefix, settings, Some(opener))
        .expect("a pull");
    let mut data = Vec::new();
    for n in 0..=settings.last.expect("known") {
        let content = pull
            .take(n, PATIENCE)
            .expect("no failure")
            .expect("a segment");
        let header = SegmentHeader::decode(&content).expect("a header");
        assert_eq!(header.offset_in_block, data.len() as u64);
        data.extend_from_slice(&content[HEADER_LEN + header.checksums_len()..]);
    }
    data
}

/// The digest over what a write of these files sealed.
fn digest_of(files: &Files, segment_bytes: u32) -> [u8; 32] {
    let length = files.data.len() as u64;
    let open = |path| trunkline_native::Replica::open(&files.block, path, length, 1, segment_bytes);
    let manifest = open(&files.meta).expect("opens").manifest();
    ndn_packet::sha256(&manifest.expect("reads").expect("has checksums"))
}

#[test]
fn who_has_a_token_reads_and_caches_serve_the_next_one() {
    let router = router("tcp://127.0.0.1:0");
    let face = address(&router);
    let (datanode, reader) = (node(&face, "d1"), node_with(&face, |s| s.cs_bytes = 0));
    let files = write("guarded", 1001, random(300_001));
    let guarded = Guarded::open(&datanode, &files);
    let key = granted(&reader).expect("a key");
    assert!(matches!(key.id, KeyId::Replica { serial: SERIAL, .. }));
    assert_eq!(
        (key.metadata.genstamp, key.metadata.length),
        (1001, 300_001)
    );
    assert!(read(&reader, &key) == files.data);
    let first = guarded.source.stats();
    assert_eq!((first.content_keys, first.unproven), (1, 0));
    assert_eq!(first.bytes, 300_001);

    let again = granted(&reader).expect("a key");
    assert_eq!(again, key, "one key for all who read");
    assert!(read(&reader, &again) == files.data);
    assert_eq!(guarded.source.stats().segments, first.segments);
}

/// Any holder serves what another one has given the key of, and has never been asked for it.
#[test]
fn another_holder_seals_alike() {
    let files = write("alike", 1001, random(100_000));
    let (one, two) = (node_alone(), node_alone());
    let (_first, second) = (Guarded::open(&one, &files), Guarded::open(&two, &files));
    let key = granted(&one).expect("a key");
    assert!(read(&two, &key) == files.data);
    let asked = second.requests.lock().unwrap();
    assert!(asked.iter().all(|r| r == "BP-1 7 1001 key 41"), "{asked:?}");
}

#[test]
fn the_writes_own_key_is_given_where_all_of_it_was_sealed() {
    let node = node_alone();
    let files = write("written", 1001, random(100_000));
    let guarded = Guarded::open(&node, &files);
    let write_key = WriteKey::draw().expect("a key");
    // The write was cut otherwise than this DataNode would cut it.
    let cut = 10_240;
    let sealed = SealedByWrite {
        segments: 100_000_u64.div_ceil(cut.into()),
        digest: digest_of(&files, cut),
    };
    guarded.state.lock().unwrap().written = Some((write_key.clone(), cut, sealed));
    let key = granted(&node).expect("a key");
    assert_eq!(
        (key.id, &key.key),
        (KeyId::Write(write_key.id()), &write_key)
    );
    assert_eq!(key.metadata.segment_bytes, u64::from(cut));
    assert!(read(&node, &key) == files.data);

    // Of a write whose tail came otherwise, the block has content that no digest was seen of.
    guarded.state.lock().unwrap().written = Some((
        write_key,
        cut,
        SealedByWrite {
            digest: [1; 32],
            ..sealed
        },
    ));
    guarded.source.invalidate("BP-1", 7);
    let key = granted(&node).expect("a key");
    assert!(matches!(key.id, KeyId::Replica { serial: SERIAL, .. }));
    assert!(read(&node, &key) == files.data);
}

#[test]
fn who_has_no_token_gets_nothing() {
    let node = node_alone();
    let files = write("nothing", 1001, random(50_000));
    let guarded = Guarded::open(&node, &files);
    let key = granted(&node).expect("a key");
    for (token, why) in [
        ((TOKEN.0, &b"forged password"[..]), "another password"),
        ((&b"another identifier"[..], TOKEN.1), "no such token"),
    ] {
        let found = node.content_key(&version(), token, PATIENCE);
        assert_eq!(found.expect("no failure"), None, "{why}");
    }
    let other = name("/hadoop/blocks/BP-1/8/v=1001");
    let found = node.content_key(&other, TOKEN, PATIENCE);
    assert_eq!(found.expect("no failure"), None, "no such block");
    assert!(guarded.source.stats().unproven > 0);

    let settings = FetchSettings {
        must_be_fresh: false,
        can_be_prefix: true,
        rejected: false,
        timeout: PATIENCE,
    };
    let block = name("/hadoop/blocks/BP-1/7");
    let unknown = KeyId::Replica {
        serial: SERIAL,
        gate: [1; 8],
        id: [1; 8],
    };
    for plain in [
        block.append_keyword("metadata"),
        version().append_segment(0),
        version().append_keyword("manifest").append_segment(0),
        version().append_keyword("content-key"),
        version().append_keyword([1; 8]).append_segment(0),
        version()
            .append_keyword(unknown.to_bytes())
            .append_segment(0),
    ] {
        let found = node.fetch(&plain, settings).expect("no failure");
        assert!(found.is_none(), "{plain}");
    }

    // The name of a segment and not its key: ciphertext.
    let (prefix, settings) = segments(&key);
    let pull = node.open_pull(&prefix, settings).expect("a pull");
    assert!(matches!(
        pull.take(0, PATIENCE),
        Err(NativeError::Unverified { .. })
    ));
}

#[test]
fn a_corrupt_replica_is_not_served() {
    let node = node_alone();
    let files = write("corrupt", 1001, random(50_000));
    let _guarded = Guarded::open(&node, &files);
    let key = granted(&node).expect("a key");
    let mut data = files.data.clone();
    data[SEGMENT_BYTES as usize + 5] ^= 1;
    std::fs::write(&files.block, &data).expect("written");
    let (prefix, settings) = segments(&key);
    let opener = key.key.opener(StreamKind::Block);
    let pull = node
        .open_sealed_pull(&prefix, settings, Some(opener))
        .expect("a pull");
    let first = pull.take(0, PATIENCE).expect("no failure");
    assert!(first.is_some(), "what is whole is served");
    let damaged = pull.take(1, Duration::from_secs(1));
    assert!(matches!(damaged, Ok(None)), "{damaged:?}");
}

const STRANGERS: u32 = 2000;

/// Asks for the key of one block after the other, each time with another token.
struct Stranger;

impl App for Stranger {
    fn on_packet(&mut self, _: Duration, _: NetPacket, _: &mut Vec<NetPacket>) {}

    fn on_wake(&mut self, _: Duration, out: &mut Vec<NetPacket>) {
        for n in 0..STRANGERS {
            let identifier = [&n.to_be_bytes()[..], &[7; 2000]].concat();
            let block = name(&format!("/hadoop/blocks/BP-1/{n}/v=1001"));
            let asking = Asking::new(&block, &identifier, b"guess").expect("a request");
            let wire = Interest::builder(asking.name())
                .application_parameters(asking.parameters())
                .must_be_fresh(true)
                .nonce(n)
                .build();
            let interest = Interest::parse(wire).expect("an Interest");
            out.push(NetPacket::interest(interest));
        }
    }
}

#[test]
fn requests_that_wait_are_bounded() {
    let settings = NodeSettings {
        listen: vec!["tcp://127.0.0.1:0".into()],
        ..NodeSettings::new(name("/hadoop"))
    };
    let datanode = NamedNode::open(settings).expect("a node");
    // Nobody answers for Java.
    let source = datanode
        .open_guarded_blocks(&name("/hadoop/blocks"), SEGMENT_BYTES, 8)
        .expect("a source");
    let address = datanode.listening().expect("open")[0].clone();
    let mut link = FaceConfig::new(FaceUri::parse(&address).expect("a URI"));
    link.routes = vec![(name("/hadoop"), 1)];
    link.link.scope = Some(FaceScope::NonLocal);
    let stranger = Node::start(NodeConfig {
        thread_name: "stranger".into(),
        faces: vec![link],
        ..NodeConfig::default()
    })
    .expect("the stranger starts");
    wait_for("the face", || {
        let status = stranger.status().expect("running");
        status
            .faces
            .iter()
            .any(|face| face.up && face.spec.remote_uri.starts_with("tcp"))
    });
    let handle = stranger
        .attach(Box::new(Stranger), "stranger")
        .expect("attached");
    handle.wake();
    wait_for("all requests", || {
        source.stats().interests >= u64::from(STRANGERS)
    });
    let stats = source.stats();
    assert_eq!(stats.asked, 256, "so many wait for Java");
    assert_eq!(stats.nacks, stats.interests - 256, "the others are refused");
}

/// What another asked, asked again: the answer is of no use without the password.
#[test]
fn a_replayed_request_gets_nothing_usable() {
    let router = router("tcp://127.0.0.1:0");
    let face = address(&router);
    let datanode = node(&face, "d1");
    let files = write("replayed", 1001, random(20_000));
    let guarded = Guarded::open(&datanode, &files);
    let asking = Asking::new(&version(), TOKEN.0, TOKEN.1).expect("a request");
    let replayer = node(&face, "replayer");
    let settings = FetchSettings {
        must_be_fresh: true,
        can_be_prefix: false,
        rejected: false,
        timeout: PATIENCE,
    };
    let content = replayer
        .fetch_with(asking.name(), asking.parameters(), settings)
        .expect("no failure")
        .expect("an answer");
    let key = asking.open(&content).expect("its own answer");
    for window in content.windows(16) {
        assert_ne!(window, &key.key.bytes()[..], "the key in plain");
    }
    let other = Asking::new(&version(), TOKEN.0, b"guess").expect("a request");
    assert_eq!(other.open(&content), None);
    let later = Asking::new(&version(), TOKEN.0, TOKEN.1).expect("a request");
    assert_eq!(later.open(&content), None, "of another request");
    assert_eq!(guarded.source.stats().content_keys, 1);
}

/// Answers every Interest at once, with what nobody can open.
struct Liar;

impl App for Liar {
    fn on_packet(&mut self, _: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        if let NetKind::Interest(interest) = packet.packet {
            let name = interest.name().to_name();
            let wire = Data::builder(&name)
                .content(b"the key of all keys, says a stranger")
                .freshness(Duration::from_secs(60))
                .sign(&SigningKey::DigestSha256);
            out.push(NetPacket::data(Data::parse(wire).expect("a Data")));
        }
    }
}

/// Who is first to answer, and has no token's password, is asked past, and shown to who runs the router.
#[test]
fn a_liar_keeps_nobody_from_a_key() {
    let router = router("tcp://127.0.0.1:0");
    let face = address(&router);
    let reader = node(&face, "reader");
    let mut link = FaceConfig::new(FaceUri::parse(&face).expect("a URI"));
    link.link.scope = Some(FaceScope::NonLocal);
    let liar = Node::start(NodeConfig {
        thread_name: "liar".into(),
        faces: vec![link],
        ..NodeConfig::default()
    })
    .expect("the liar starts");
    let handle = liar.attach(Box::new(Liar), "liar").expect("attached");
    handle.register(&name("/hadoop/blocks")).expect("a route");
    // While it is alone the router learns that it has all of the block.
    wait_for("the liar to be believed", || {
        reader
            .content_key(&version(), TOKEN, Duration::from_secs(1))
            .is_err()
    });
    let shown = || -> u64 {
        let faces = router.status().expect("running").faces;
        faces.iter().map(|face| face.packets.rejected).sum()
    };
    let datanode = node(&face, "d1");
    let files = write("lied", 1001, random(20_000));
    let _guarded = Guarded::open(&datanode, &files);
    wait_for("a key", || {
        let found = reader.content_key(&version(), TOKEN, Duration::from_secs(5));
        found.is_ok_and(|granted| granted.is_some())
    });
    // The reader tells the router of each lie without waiting, and may be led past the liar from then on.
    wait_for("the liar to be shown", || shown() > 0);
}
