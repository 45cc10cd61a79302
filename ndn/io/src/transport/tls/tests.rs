use super::open::{RECORD_COST, SMALL_READ};
use super::records::{Bad, Content, MAX_CONTENT, Records};
use super::*;
use crate::config::LinkOptions;
use crate::credentials::CredentialFiles;
use crate::face::budget::Budget;
use crate::face::budgets::Budgets;
use crate::face::io::Side;
use crate::face::reader::ReadBuffers;
use crate::face::stream::{Progress, StreamFace, Turn};
use crate::rate_limit::PeerLines;
use bytes::Bytes;
use proptest::prelude::*;
use socket2::{Domain, Type};
use std::io::IoSlice;
use std::sync::Arc;

/// Two connections to each other, both open.
fn pair() -> [TlsConn; 2] {
    let files = crate::authority::Authority::new();
    let own = |names: &[&str]| {
        let files = files.host(names);
        Credentials::load(CredentialFiles {
            certificate: files.certificate,
            key: files.key,
            ca: files.ca,
        })
        .expect("credentials")
    };
    let (a, b) = Socket::pair(Domain::UNIX, Type::STREAM, None).expect("sockets");
    for socket in [&a, &b] {
        socket.set_nonblocking(true).expect("a socket");
    }
    let name = ServerName::try_from("listens").expect("a name");
    let client = Handshake::client(own(&["connects"]).client(), name).expect("a client");
    let server = Handshake::server(own(&["listens"]).server()).expect("a server");
    let mut ends = [TlsConn::new(a, client), TlsConn::new(b, server)];
    let mut open = [false; 2];
    while open != [true; 2] {
        for (end, open) in ends.iter_mut().zip(&mut open) {
            end.wire.readable = true;
            *open = end.shake_hands().map(|done| done.expect("good")).is_some();
        }
    }
    ends
}

fn records(end: &mut TlsConn) -> &mut Records {
    match &mut end.state {
        State::Open(open) => &mut open.records,
        _ => panic!("not open"),
    }
}

fn queue(packets: &[Vec<u8>]) -> SendQueue {
    let mut queue = SendQueue::new(usize::MAX, Budget::new(usize::MAX).share(), false);
    for packet in packets {
        queue.push(|_| {}, Bytes::from(packet.clone()));
    }
    queue
}

/// Sends packets one way, read by `sizes` in turn.
fn carry(from: &mut TlsConn, to: &mut TlsConn, packets: &[Vec<u8>], sizes: &[usize]) -> Vec<u8> {
    let mut queue = queue(packets);
    let all: usize = packets.iter().map(Vec::len).sum();
    let (mut heard, mut turn) = (Vec::new(), 0);
    while heard.len() < all {
        from.wire.writable_again();
        from.flush(&mut queue).expect("open");
        to.wire.readable = true;
        let mut buf = vec![0; sizes[turn % sizes.len()]];
        turn += 1;
        let n = to.read(&mut buf).expect("open");
        heard.extend_from_slice(&buf[..n]);
        if let State::Open(open) = &to.state {
            assert!(open.held.len() <= MAX_RECORD, "{}", open.held.len());
        }
    }
    heard
}

#[test]
fn names_are_known_on_both_sides() {
    let [client, server] = pair();
    assert_eq!(client.peer_names(), ["listens"]);
    assert_eq!(server.peer_names(), ["connects"]);
}

#[test]
fn nothing_that_goes_by_it_takes_more_than_its_memory() {
    let [mut client, _server] = pair();
    let packets = vec![vec![7; 60_000]; 100];
    let mut queue = queue(&packets);
    client.flush(&mut queue).expect("open");
    assert!(!queue.is_empty(), "the socket takes less");
    assert!(client.unwritten() > 0 && client.unwritten() <= MEMORY - MAX_RECORD);
}

#[test]
fn keys_change_on_the_way_however_often() {
    let [mut a, mut b] = pair();
    let packets: Vec<Vec<u8>> = (0..60u8).map(|i| vec![i; 10_000]).collect();
    for most in [1, 2, 7] {
        records(&mut a).set_most_sent(most);
        let heard = carry(&mut a, &mut b, &packets, &[100_000]);
        assert_eq!(heard, packets.concat());
    }
    let heard = carry(&mut b, &mut a, &packets, &[100_000]);
    assert_eq!(heard, packets.concat());
}

#[test]
fn an_end_is_told_and_comes_after_all_that_was_sent() {
    let [mut a, mut b] = pair();
    let mut queue = queue(&[vec![1; 5000]]);
    a.flush(&mut queue).expect("open");
    drop(a);
    b.wire.readable = true;
    let mut buf = [0; 10_000];
    assert_eq!(b.read(&mut buf).expect("the rest"), 5000);
    b.wire.readable = true;
    let end = b.read(&mut buf).expect_err("an end");
    assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn what_was_changed_on_the_way_is_refused_and_the_peer_told() {
    let [mut a, mut b] = pair();
    let mut record = records(&mut a).seal(b"hello"[..].into()).expect("sealed");
    *record.last_mut().expect("a tag") ^= 1;
    a.wire.write(&[IoSlice::new(&record)], false).expect("sent");
    b.wire.readable = true;
    let said = b.read(&mut [0; 100]).expect_err("refused").to_string();
    assert!(said.contains("changed on the way"), "{said}");
    a.wire.readable = true;
    let told = a.read(&mut [0; 100]).expect_err("an end").to_string();
    assert!(told.contains("bad_record_mac"), "{told}");
}

/// Bytes of a turn.
const TURN: usize = 256 << 10;

/// Reads a peer's records in turns, as the loop does; how many packets came in each.
fn turns(mut from: TlsConn, mut to: TlsConn, bytes: &[u8], record: usize) -> Vec<usize> {
    let mut sealed = Vec::new();
    for part in bytes.chunks(record) {
        sealed.extend(records(&mut from).seal(part.into()).expect("sealed"));
    }
    let n = from.wire.write(&[IoSlice::new(&sealed)], false);
    assert_eq!(n.expect("sent"), sealed.len(), "the socket takes all");
    to.wire.readable = true;
    let budgets = Budgets::of_one_face(usize::MAX);
    let mut buffers = ReadBuffers::new(&budgets);
    let options = LinkOptions::default();
    let lines = Arc::new(PeerLines::default());
    let mut face = StreamFace::new(Box::new(to), Side::Listener, &options, &budgets, lines);
    let mut packets = Vec::new();
    let mut all = Vec::new();
    loop {
        let mut turn = Turn {
            bytes: TURN,
            read: TURN,
            burst: 1024,
            lent: usize::MAX,
        };
        let progress = face.receive(Duration::ZERO, &mut buffers, &mut turn, &mut packets);
        let is_over = progress.expect("open") == Progress::Drained;
        face.end_turn(Duration::ZERO, &buffers, !is_over);
        all.push(packets.drain(..).count());
        if is_over {
            return all;
        }
    }
}

#[test]
fn a_turn_is_over_sooner_where_records_are_small() {
    let interests = |n: u32| -> Vec<u8> {
        let one = |nonce| {
            let name: ndn_packet::Name = "/a/name".parse().expect("a name");
            ndn_packet::Interest::builder(&name).nonce(nonce).build()
        };
        (0..n).flat_map(|nonce| one(nonce).to_vec()).collect()
    };
    let bytes = interests(340);
    let [from, to] = pair();
    assert_eq!(turns(from, to, &bytes, MAX_CONTENT), [340]);
    let [from, to] = pair();
    let by_turn = turns(from, to, &bytes, 1);
    assert_eq!(by_turn.iter().sum::<usize>(), 340);
    // As many octets, each in a record: they take as many turns as the work that they are, and none opens more of them
    // than are read at once.
    let turns = bytes.len() * RECORD_COST / TURN;
    assert!(turns > 10 && by_turn.len() > turns, "{by_turn:?}");
    let most = SMALL_READ / (records::HEADER + 1 + 1 + 16) * 340 / bytes.len() + 1;
    assert!(by_turn.iter().all(|n| *n <= most), "{by_turn:?}, {most}");
}

#[test]
fn keys_that_are_renewed_all_the_time_end_the_connection() {
    let [mut a, mut b] = pair();
    let renew = |a: &mut TlsConn, b: &mut TlsConn, data: usize| -> Result<(), Bad> {
        let mut told = records(a).rekey().expect("keys");
        records(b).open(&mut told)?;
        let mut data = records(a).seal(vec![0; data][..].into()).expect("sealed");
        records(b).open(&mut data).map(drop)
    };
    // As often as there is a whole record of data for each.
    for _ in 0..100 {
        renew(&mut a, &mut b, MAX_CONTENT).expect("good");
    }
    let renewed = (0..100).take_while(|_| renew(&mut a, &mut b, 1).is_ok());
    assert_eq!(renewed.count(), 32);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Bytes come whole and in order, whatever they are written and read in.
    #[test]
    fn whatever_the_sizes(
        packets in prop::collection::vec(1usize..70_000, 1..12),
        sizes in prop::collection::vec(prop_oneof![1usize..300, 5_000usize..300_000], 1..5),
    ) {
        let [mut a, mut b] = pair();
        let packets: Vec<Vec<u8>> = packets
            .iter()
            .enumerate()
            .map(|(i, len)| (0..*len).map(|at| (at * 31 + i) as u8).collect())
            .collect();
        let heard = carry(&mut a, &mut b, &packets, &sizes);
        prop_assert!(heard == packets.concat());
    }

    /// A record's header is read as rustls writes it, and nothing else is taken for one.
    #[test]
    fn headers(bytes in prop::collection::vec(any::<u8>(), 0..8)) {
        match records::length(&bytes) {
            Ok(None) => prop_assert!(bytes.len() < records::HEADER),
            Ok(Some(len)) => {
                prop_assert!((bytes[0], bytes[1]) == (23, 3) && len <= MAX_RECORD);
                prop_assert_eq!(len, 5 + usize::from(bytes[3]) * 256 + usize::from(bytes[4]));
            }
            Err(_) => prop_assert!(bytes.len() >= records::HEADER),
        }
    }

    /// Messages beside data, whatever is in them: taken, or refused, and never a way around the keys.
    #[test]
    fn messages(
        kind in prop_oneof![Just(rustls::ContentType::Handshake), Just(rustls::ContentType::Alert),
            Just(rustls::ContentType::ApplicationData), Just(rustls::ContentType::ChangeCipherSpec)],
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..40),
            prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(4), Just(24)], 0..12),
        ],
    ) {
        let [mut a, mut b] = pair();
        for (from, to) in [(0, 1), (1, 0)] {
            let [a, b] = [&mut a, &mut b];
            let (from, to) = if (from, to) == (0, 1) { (a, b) } else { (b, a) };
            let mut record = records(from).seal_as(kind, bytes[..].into()).expect("sealed");
            let opened = records(to).open(&mut record);
            let is_key_update = kind == rustls::ContentType::Handshake
                && matches!(bytes[..], [24, 0, 0, 1, 0 | 1]);
            match opened {
                Ok(Content::Data(data)) => {
                    prop_assert_eq!(kind, rustls::ContentType::ApplicationData);
                    prop_assert_eq!(data, &bytes[..]);
                }
                Ok(Content::Closed) => prop_assert!(matches!(bytes[..], [_, 0])),
                Ok(Content::Message) | Err(_) => {}
            }
            // The receiver's next keys are in force exactly where it was told of them.
            let mut next = records(from).seal(b"next"[..].into()).expect("sealed");
            let is_open = records(to).open(&mut next).is_ok();
            prop_assert!(!(is_key_update && is_open));
            if is_key_update {
                return Ok(());
            }
        }
    }
}
