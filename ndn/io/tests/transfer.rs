//! Bytes arrive whole over every kind of face.

mod common;

use std::net::UdpSocket;
use std::time::Duration;

use common::{client, eventually, faces, fetch, listen, node, serve, uri};
use ndn_io::{ClientOptions, ListenConfig};
use ndn_packet::{Interest, NetKind};

fn options(jumbo: bool, shared_memory: bool) -> ClientOptions {
    let mut options = ClientOptions::default();
    options.link.jumbo = jumbo;
    options.link.shared_memory = shared_memory;
    options
}

/// Above what datagrams take, and near the most that streams do.
const LARGE: usize = 1_040_000;

/// How many segments to fetch, and how many at once: they are to fit into a send queue.
fn count(segment_bytes: usize) -> (u64, usize) {
    if segment_bytes == LARGE {
        (100, 8)
    } else {
        (2000, 64)
    }
}

fn over_unix(jumbo: bool, shared_memory: bool, segment_bytes: usize) {
    let dir = tempfile::tempdir().unwrap();
    let face = format!("unix://{}/f.sock", dir.path().display());
    let node = node(vec![listen(&face)]);
    let _source = serve(&node, segment_bytes);
    let mut client = client(&uri(&face), &options(jumbo, shared_memory));
    let (segments, window) = count(segment_bytes);
    fetch(&mut client, segments, segment_bytes, window);
    let face = &faces(&node)[0];
    assert_eq!(face.jumbo, jumbo);
    assert_eq!(face.shared_memory, shared_memory);
    assert_eq!((face.link.queue_drops, face.link.malformed), (0, 0));
    drop(client);
    eventually("the face goes with its peer", || faces(&node).is_empty());
}

#[test]
fn unix_by_socket() {
    over_unix(false, false, 8000);
    over_unix(true, false, 64512);
    over_unix(true, false, LARGE);
}

#[test]
fn unix_by_shared_memory() {
    over_unix(true, true, 8000);
    over_unix(true, true, 64512);
    over_unix(true, true, LARGE);
    over_unix(false, true, 100);
}

#[test]
fn shared_memory_with_a_ring_smaller_than_what_waits() {
    let dir = tempfile::tempdir().unwrap();
    let face = format!("unix://{}/f.sock", dir.path().display());
    let node = node(vec![listen(&face)]);
    let _source = serve(&node, 64512);
    let mut options = options(true, true);
    options.link.ring_bytes = 64 << 10;
    let mut client = client(&uri(&face), &options);
    fetch(&mut client, 1000, 64512, 64);
    assert!(faces(&node)[0].shared_memory);
}

#[test]
fn shared_memory_needs_both() {
    let dir = tempfile::tempdir().unwrap();
    let face = format!("unix://{}/f.sock", dir.path().display());
    let mut listener = listen(&face);
    listener.link.shared_memory = false;
    let node = node(vec![listener]);
    let _source = serve(&node, 1000);
    let mut client = client(&uri(&face), &options(true, true));
    fetch(&mut client, 100, 1000, 10);
    assert!(!faces(&node)[0].shared_memory && faces(&node)[0].jumbo);
}

#[test]
fn tcp() {
    for segment_bytes in [8000, 64512, 516_096, LARGE] {
        let node = node(vec![listen("tcp://127.0.0.1:0")]);
        let _source = serve(&node, segment_bytes);
        let mut client = client(&node.listening()[0], &options(true, true));
        let (segments, window) = count(segment_bytes);
        fetch(&mut client, segments / 2, segment_bytes, window.min(16));
        assert!(faces(&node)[0].jumbo && !faces(&node)[0].shared_memory);
    }
}

#[test]
fn udp_in_datagrams_and_in_fragments() {
    for (segment_bytes, mtu) in [
        (1000, None),
        (8000, None),
        (64512, None),
        (64512, Some(9000)),
    ] {
        let mut listener = listen("udp://127.0.0.1:0");
        listener.link.mtu = mtu;
        let node = node(vec![listener]);
        let _source = serve(&node, segment_bytes);
        let mut client = client(&node.listening()[0], &options(true, true));
        fetch(&mut client, 300, segment_bytes, 8);
        let face = &faces(&node)[0];
        assert!(face.jumbo);
        assert_eq!(face.spec.mtu, Some(mtu.unwrap_or(1472) as u64));
    }
}

#[test]
fn udp_over_ipv6() {
    let node = node(vec![listen("udp://[::1]:0")]);
    let _source = serve(&node, 8000);
    let mut client = client(&node.listening()[0], &options(true, true));
    fetch(&mut client, 100, 8000, 8);
}

#[test]
fn udp_with_loss_is_made_good_by_the_consumer() {
    let node = node(vec![listen("udp://127.0.0.1:0")]);
    let _source = serve(&node, 8000);
    let mut options = options(true, true);
    // A receive buffer of a few packets against a window of many: the kernel drops.
    options.link.socket_buffer_bytes = 20_000;
    let mut client = client(&node.listening()[0], &options);
    let stats = fetch(&mut client, 200, 8000, 32);
    assert!(stats.retransmitted > 0, "{stats:?}");
}

#[test]
fn no_jumbo_without_agreement() {
    let mut listener = listen("tcp://127.0.0.1:0");
    listener.link.jumbo = false;
    too_large(listener, 30_000);
}

#[test]
fn nothing_above_64_kib_by_datagrams_or_a_short_queue() {
    too_large(listen("udp://127.0.0.1:0"), 70_000);
    let mut listener = listen("tcp://127.0.0.1:0");
    listener.link.send_queue_bytes = 66_560;
    too_large(listener, 70_000);
}

/// Whoever asks for a segment that the listener's face does not take is told so.
fn too_large(listener: ListenConfig, segment_bytes: usize) {
    let node = node(vec![listener]);
    let source = serve(&node, segment_bytes);
    let mut client = client(&node.listening()[0], &options(false, false));
    let name = common::prefix().append_segment(0);
    let interest = Interest::parse(Interest::builder(&name).nonce(7).build()).unwrap();
    let answer = client
        .ask(interest, Duration::from_secs(30))
        .unwrap()
        .expect("an answer");
    assert!(
        matches!(&answer.packet, NetKind::Nack { interest, .. } if interest.nonce() == Some(7)),
        "{answer:?}"
    );
    assert_eq!(faces(&node)[0].link.oversize_out, 1);
    drop(source);
    let prefix = common::prefix();
    node.with_forwarder(move |forwarder, _| forwarder.erase_cs(&prefix))
        .unwrap();
    let _source = serve(&node, 8000);
    fetch(&mut client, 10, 8000, 10);
}

#[test]
fn idle_udp_faces_are_closed() {
    let mut listener = listen("udp://127.0.0.1:0");
    listener.idle_timeout = Duration::from_millis(200);
    let node = node(vec![listener]);
    let endpoint = node.listening()[0].endpoint().expect("an address");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let interest = ndn_packet::Interest::builder(&common::prefix())
        .nonce(1)
        .build();
    socket
        .send_to(&interest, endpoint.resolve().unwrap())
        .unwrap();
    eventually("a face on demand", || faces(&node).len() == 1);
    eventually("its end", || faces(&node).is_empty());
    assert_eq!(node.status().unwrap().listeners[0].open_faces, 0);
}
