//! What strangers may send: it is counted, and nobody else suffers.

mod common;

use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::{TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use common::{client, eventually, faces, fetch, listen, node, prefix, serve, uri};
use ndn_forwarder::FaceScope;
use ndn_io::{ClientOptions, MemoryConfig, Node, NodeConfig};
use ndn_packet::lp::types::MAX_PACKET_SIZE;
use ndn_packet::{Data, Interest, MAX_PACKET, MAX_STREAM_PACKET, SigningKey, tlv};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

fn address(node: &Node) -> std::net::SocketAddr {
    let endpoint = node.listening()[0].endpoint().expect("an address");
    endpoint.resolve().expect("an address")
}

fn interest(segment: u64) -> Vec<u8> {
    Interest::builder(&prefix().append_segment(segment))
        .nonce(segment as u32)
        .build()
        .to_vec()
}

struct Noise(u64);

impl Noise {
    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut next = || {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 32) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    /// Something that begins well.
    fn mangled(&mut self) -> Vec<u8> {
        let mut frame = interest(1);
        let noise = self.bytes(8);
        for pair in noise.chunks(2) {
            let at = pair[0] as usize % frame.len();
            frame[at] = pair[1];
        }
        frame
    }
}

#[test]
fn noise_on_streams() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.sock");
    let place = format!("unix://{}", path.display());
    let node = node(vec![listen("tcp://127.0.0.1:0"), listen(&place)]);
    let _source = serve(&node, 1000);
    let mut good = client(&uri(&place), &ClientOptions::default());
    let mut noise = Noise(88172645463325252);
    for round in 0..150 {
        let bytes = match round % 3 {
            0 => noise.bytes(3000),
            1 => (0..20).flat_map(|_| noise.mangled()).collect(),
            _ => [&[0x64, 0xfd, 0x20, 0x00][..], &noise.bytes(0x2000)].concat(),
        };
        // The node may close the face before all is written.
        let _ = TcpStream::connect(address(&node))
            .unwrap()
            .write_all(&bytes);
        let _ = UnixStream::connect(&path).unwrap().write_all(&bytes);
    }
    fetch(&mut good, 100, 1000, 8);
    eventually("the noisy are gone", || faces(&node).len() == 1);
}

#[test]
fn malformed_frames_are_counted_and_the_face_stays() {
    let node = node(vec![listen("tcp://127.0.0.1:0")]);
    let _source = serve(&node, 100);
    let mut stream = TcpStream::connect(address(&node)).unwrap();
    stream.write_all(&[0x05, 0x02, 0x07, 0x00]).unwrap();
    stream.write_all(&[0x99, 0x00]).unwrap();
    let mut oversized = Vec::new();
    tlv::write_tlv(&mut oversized, 0x06, &vec![0; 100_000]);
    stream.write_all(&oversized).unwrap();
    stream.write_all(&interest(3)).unwrap();
    // A stranger hears the answer and nothing before it.
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).unwrap();
    assert!(matches!(answer[0], 0x06 | 0x64), "{answer:?}");
    let face = &faces(&node)[0];
    assert_eq!((face.link.malformed, face.link.oversize_in), (2, 1));
    // No length is that large: the stream has lost its frames.
    stream
        .write_all(&[0x06, 0xff, 0x7f, 0, 0, 0, 0, 0, 0, 0])
        .unwrap();
    eventually("closed", || faces(&node).is_empty());
}

/// The loop sleeps until a packet that has begun is whole; what comes behind it is noticed, however little that is.
#[test]
fn packets_that_trickle_in_are_answered() {
    let node = node(vec![listen("tcp://127.0.0.1:0")]);
    let _source = serve(&node, 100);
    let mut stream = TcpStream::connect(address(&node)).unwrap();
    stream.set_nodelay(true).unwrap();
    let unsolicited = Data::builder(&"/nobody/asked".parse().unwrap())
        .content(&[7; 8000])
        .sign(&SigningKey::DigestSha256);
    for segment in 0..40 {
        let asked = interest(segment);
        let both = [&unsolicited[..], &asked].concat();
        // The last piece is a part of the Interest, all of it, or more than that.
        let end =
            both.len() - [1, asked.len() / 2, asked.len(), asked.len() + 500][segment as usize % 4];
        for piece in both[..end].chunks(1 + 997 * (1 + segment as usize % 3)) {
            stream.write_all(piece).unwrap();
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(2));
        stream.write_all(&both[end..]).unwrap();
        let mut answer = [0; 2];
        stream.read_exact(&mut answer).unwrap();
        assert!(matches!(answer, [0x06 | 0x64, 0..0xfd]), "{answer:?}");
        let mut rest = vec![0; answer[1].into()];
        stream.read_exact(&mut rest).unwrap();
    }
}

/// Who begins a large packet and goes no further has its memory for a while only; the face stays.
#[test]
fn large_packets_that_do_not_go_on_are_given_up() {
    let node = node(vec![listen("tcp://127.0.0.1:0")]);
    let _source = serve(&node, 100);
    let mut stream = TcpStream::connect(address(&node)).unwrap();
    let most = (MAX_STREAM_PACKET as u32).to_be_bytes();
    stream.write_all(&idle(MAX_PACKET_SIZE, &most)).unwrap();
    eventually("jumbo packets are agreed", || {
        faces(&node).first().is_some_and(|face| face.jumbo)
    });
    let mut large = Vec::new();
    tlv::write_tlv(&mut large, 0x06, &vec![0; 1_000_000]);
    let (begun, rest) = large.split_at(300_000);
    stream.write_all(begun).unwrap();
    let held = || {
        let memory = node.status().unwrap().memory;
        let part = memory.iter().find(|(part, _)| *part == "reassembly");
        part.unwrap().1.bytes
    };
    eventually("it has memory", || held() == large.len());
    eventually("others may have it", || held() == 0);
    stream.write_all(rest).unwrap();
    stream.write_all(&interest(3)).unwrap();
    eventually("what comes next is taken", || {
        let face = &faces(&node)[0];
        (face.link.reassembly_drops, face.link.malformed) == (1, 0) && face.link.out_bytes > 100
    });
}

#[test]
fn noise_in_datagrams() {
    let mut listener = listen("udp://127.0.0.1:0");
    listener.max_faces = 10;
    listener.max_faces_per_address = Some(10);
    let node = node(vec![listener]);
    let _source = serve(&node, 1000);
    let mut good = client(&node.listening()[0], &ClientOptions::default());
    let mut noise = Noise(1234567);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..500 {
        socket.send_to(&noise.bytes(100), address(&node)).unwrap();
        socket.send_to(&noise.mangled(), address(&node)).unwrap();
        // Fragments of packets that never become whole.
        let mut fragment = Vec::new();
        tlv::write_tlv(&mut fragment, 0x51, &noise.bytes(8));
        tlv::write_tlv(&mut fragment, 0x52, &[0]);
        tlv::write_tlv(&mut fragment, 0x53, &[40]);
        tlv::write_tlv(&mut fragment, 0x50, &noise.bytes(1000));
        let mut frame = Vec::new();
        tlv::write_tlv(&mut frame, 0x64, &fragment);
        socket.send_to(&frame, address(&node)).unwrap();
    }
    for _ in 0..50 {
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        other.send_to(&interest(1), address(&node)).unwrap();
    }
    fetch(&mut good, 100, 1000, 8);
    let listener = &node.status().unwrap().listeners[0];
    assert_eq!(listener.open_faces, 10);
    assert!(listener.refused > 0);
    let own = socket.local_addr().unwrap().port();
    let noisy = faces(&node)
        .into_iter()
        .find(|face| face.spec.remote_uri.ends_with(&format!(":{own}")))
        .expect("a face");
    assert!(noisy.link.malformed > 0, "{:?}", noisy.link);
    eventually("fragments are given up", || {
        faces(&node)
            .iter()
            .any(|f| f.id == noisy.id && f.link.reassembly_drops > 100)
    });
}

#[test]
fn a_malformed_datagram_of_a_stranger_makes_no_face() {
    let node = node(vec![listen("udp://127.0.0.1:0")]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let listener = || node.status().unwrap().listeners[0].clone();
    let mut cut = interest(1);
    cut.truncate(cut.len() - 1);
    for (n, bad) in [&[0x99; 64][..], &[0x05], &cut].iter().enumerate() {
        socket.send_to(bad, address(&node)).unwrap();
        eventually("it is counted", || listener().malformed == n as u64 + 1);
        assert_eq!((listener().open_faces, faces(&node).len()), (0, 0));
    }
    socket.send_to(&interest(1), address(&node)).unwrap();
    eventually("an Interest makes one", || faces(&node).len() == 1);
}

/// TCP by loopback is local where the listener's address or its setting says so, and not at one for all addresses.
#[test]
fn who_listens_on_all_addresses_takes_nobody_for_local() {
    for (place, said, expected) in [
        ("tcp://0.0.0.0:0", None, FaceScope::NonLocal),
        ("tcp://0.0.0.0:0", Some(FaceScope::Local), FaceScope::Local),
        ("tcp://127.0.0.1:0", None, FaceScope::Local),
        (
            "tcp://127.0.0.1:0",
            Some(FaceScope::NonLocal),
            FaceScope::NonLocal,
        ),
    ] {
        let mut listener = listen(place);
        listener.link.scope = said;
        let node = node(vec![listener]);
        let _peer = TcpStream::connect(("127.0.0.1", address(&node).port())).unwrap();
        eventually("a face", || faces(&node).len() == 1);
        assert_eq!(faces(&node)[0].spec.scope, expected, "{place}, {said:?}");
    }
}

/// An idle packet with one field of number `typ`.
fn idle(typ: u32, value: &[u8]) -> Vec<u8> {
    let (mut field, mut frame) = (Vec::new(), Vec::new());
    tlv::write_tlv(&mut field, typ, value);
    tlv::write_tlv(&mut frame, 0x64, &field);
    frame
}

const SHM_OFFER: u32 = 0x3b8;
const SHM_SWITCH: u32 = 0x3bc;
const SHM_PACKETS: u32 = 0x39c;
const LENT: u32 = 0x3a0;

#[test]
fn offers_of_memory_that_are_none() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.sock");
    let node = node(vec![listen(&format!("unix://{}", path.display()))]);
    let _source = serve(&node, 100);
    let offer = idle(SHM_OFFER, &(1u32 << 20).to_be_bytes());
    let file = tempfile::tempfile().unwrap();
    file.set_len(4096 + (2 << 20)).unwrap();
    let memory = rustix::fs::memfd_create("t", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    for descriptor in [None, Some(file.as_fd()), Some(memory.as_fd())] {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream
            .write_all(&idle(MAX_PACKET_SIZE, &[0, 1, 4, 0]))
            .unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let list = descriptor.map(|d| [d]);
        if let Some(list) = &list {
            control.push(SendAncillaryMessage::ScmRights(list));
        }
        let slice = [IoSlice::new(&offer)];
        rustix::net::sendmsg(&stream, &slice, &mut control, SendFlags::empty()).unwrap();
        // A switch to memory that was never agreed on changes nothing either.
        stream.write_all(&idle(SHM_SWITCH, &[])).unwrap();
        stream.write_all(&interest(1)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let mut answer = vec![0; 60];
        stream.read_exact(&mut answer).unwrap();
        assert!(!faces(&node)[0].shared_memory);
        drop(stream);
        eventually("closed", || faces(&node).is_empty());
    }
}

/// What a peer says of memory that it does not bring is nobody's place.
#[test]
fn offers_of_memory_take_no_place_before_it_comes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.sock");
    let node = node(vec![listen(&format!("unix://{}", path.display()))]);
    let _source = serve(&node, 100);
    let taken = || {
        let memory = node.status().unwrap().memory;
        let part = memory.iter().find(|(part, _)| *part == "faces").unwrap();
        part.1.bytes
    };
    let streams: Vec<UnixStream> = [1u32 << 20, 64 << 20, 120 << 20, u32::MAX]
        .iter()
        .flat_map(|ring_bytes| std::iter::repeat_n(ring_bytes, 8))
        .map(|ring_bytes| {
            let mut stream = UnixStream::connect(&path).unwrap();
            stream
                .write_all(&idle(MAX_PACKET_SIZE, &[0, 1, 4, 0]))
                .unwrap();
            stream
                .write_all(&idle(SHM_OFFER, &ring_bytes.to_be_bytes()))
                .unwrap();
            stream.write_all(&interest(1)).unwrap();
            let mut answer = vec![0; 60];
            stream.read_exact(&mut answer).unwrap();
            stream
        })
        .collect();
    assert!(taken() < streams.len() * (128 << 10), "{} bytes", taken());
}

#[test]
fn packets_that_nobody_has_lent() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.sock");
    let place = format!("unix://{}", path.display());
    let node = node(vec![listen(&place), listen("udp://127.0.0.1:0")]);
    let _source = serve(&node, 1000);
    let mut good = client(&uri(&place), &ClientOptions::default());
    let lent = idle(LENT, &[0, 0, 0, 0, 0xfc, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(&lent).unwrap();
    eventually("closed", || faces(&node).len() == 1);
    // With rings, and memory that others could write to.
    let memory = |bytes, seals| {
        let flags = rustix::fs::MemfdFlags::CLOEXEC | rustix::fs::MemfdFlags::ALLOW_SEALING;
        let memory = rustix::fs::memfd_create("t", flags).unwrap();
        rustix::fs::ftruncate(&memory, bytes).unwrap();
        rustix::fs::fcntl_add_seals(&memory, seals).unwrap();
        memory
    };
    let seals = rustix::fs::SealFlags::SHRINK | rustix::fs::SealFlags::GROW;
    let rings = memory(4096 + (128 << 10), seals);
    let packets = memory(1 << 20, seals);
    let mut fields = Vec::new();
    tlv::write_tlv(&mut fields, SHM_OFFER, &(64u32 << 10).to_be_bytes());
    tlv::write_tlv(&mut fields, SHM_PACKETS, &(1u32 << 20).to_be_bytes());
    let mut both = Vec::new();
    tlv::write_tlv(&mut both, 0x64, &fields);
    let mut stream = UnixStream::connect(&path).unwrap();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [rings.as_fd(), packets.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&files));
    let slice = [IoSlice::new(&both)];
    rustix::net::sendmsg(&stream, &slice, &mut control, SendFlags::empty()).unwrap();
    stream.write_all(&lent).unwrap();
    eventually("closed", || faces(&node).len() == 1);
    // By datagrams there is no memory to lend from.
    let port = node.listening()[1].endpoint().unwrap().port;
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(&interest(1), ("127.0.0.1", port)).unwrap();
    eventually("a face", || faces(&node).len() == 2);
    socket.send_to(&lent, ("127.0.0.1", port)).unwrap();
    eventually("counted", || {
        faces(&node).iter().any(|face| face.link.malformed == 1)
    });
    fetch(&mut good, 100, 1000, 8);
}

/// Sends an offer of memory with these descriptors beside it.
fn offer(stream: &UnixStream, ring_bytes: u32, descriptors: &[BorrowedFd<'_>]) -> bool {
    let offer = idle(SHM_OFFER, &ring_bytes.to_be_bytes());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let slice = [IoSlice::new(&offer)];
    // The node may have closed the face already.
    rustix::net::sendmsg(stream, &slice, &mut control, SendFlags::NOSIGNAL).is_ok()
}

#[test]
fn a_peer_that_rings_without_end_does_not_hold_the_loop() {
    const RING: u32 = 64 << 10;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.sock");
    let place = format!("unix://{}", path.display());
    let node = node(vec![listen(&place)]);
    let _source = serve(&node, 1000);
    let mut good = client(&uri(&place), &ClientOptions::default());
    let memory = rustix::fs::memfd_create(
        "t",
        rustix::fs::MemfdFlags::CLOEXEC | rustix::fs::MemfdFlags::ALLOW_SEALING,
    )
    .unwrap();
    rustix::fs::ftruncate(&memory, 4096 + 2 * u64::from(RING)).unwrap();
    let seals = rustix::fs::SealFlags::SHRINK | rustix::fs::SealFlags::GROW;
    rustix::fs::fcntl_add_seals(&memory, seals).unwrap();
    let mut stream = UnixStream::connect(&path).unwrap();
    offer(&stream, RING, &[memory.as_fd()]);
    stream.write_all(&idle(SHM_SWITCH, &[])).unwrap();
    eventually("by memory", || faces(&node).iter().any(|f| f.shared_memory));
    let ringing = std::thread::spawn(move || {
        let start = Instant::now();
        while start.elapsed().as_secs() < 15 && stream.write_all(&[0; 1 << 20]).is_ok() {}
        start.elapsed()
    });
    let start = Instant::now();
    fetch(&mut good, 1000, 1000, 8);
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
    let rang = ringing.join().unwrap();
    assert!(rang.as_secs() < 10, "the ringer is shown out: {rang:?}");
}

/// A socket that would wait for a while when it is closed: its peer does not read.
fn lingering() -> (TcpStream, TcpStream) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (peer, _) = listener.accept().unwrap();
    sender.set_nonblocking(true).unwrap();
    while sender.write(&[0; 1 << 16]).is_ok() {}
    rustix::net::sockopt::set_socket_linger(&sender, Some(Duration::from_secs(20))).unwrap();
    (sender, peer)
}

#[test]
fn descriptors_that_wait_on_close_do_not_hold_the_loop() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.sock");
    let node = node(vec![listen(&format!("unix://{}", path.display()))]);
    let _source = serve(&node, 100);
    let answers = |what: &str| {
        let start = Instant::now();
        node.status().unwrap();
        assert!(
            start.elapsed().as_secs() < 10,
            "{what}: {:?}",
            start.elapsed()
        );
    };
    // Beside an offer, more than one at once, left unread when the face is closed for what came
    // before, and more than anybody asks for.
    for case in 0..4 {
        let mut stream = UnixStream::connect(&path).unwrap();
        let waiting: Vec<_> = (0..[1, 2, 2, 5][case]).map(|_| lingering()).collect();
        if case == 2 {
            stream
                .write_all(&[0x06, 0xff, 0x7f, 0, 0, 0, 0, 0, 0, 0])
                .unwrap();
        }
        let descriptors: Vec<_> = waiting.iter().map(|(socket, _)| socket.as_fd()).collect();
        let sent = offer(&stream, 1 << 20, &descriptors);
        for (socket, _) in &waiting {
            if !sent {
                rustix::net::sockopt::set_socket_linger(socket, None).unwrap();
            }
        }
        let _peers: Vec<_> = waiting.into_iter().map(|(_, peer)| peer).collect();
        std::thread::sleep(Duration::from_millis(100));
        answers("sent");
        drop(stream);
        std::thread::sleep(Duration::from_millis(100));
        answers("left");
        eventually("closed", || faces(&node).is_empty());
    }
}

#[test]
fn a_peer_that_reads_nothing_costs_a_bounded_queue() {
    let mut listener = listen("tcp://127.0.0.1:0");
    listener.link.send_queue_bytes = 1 << 20;
    let node = node(vec![listener]);
    let _source = serve(&node, 8000);
    let mut greedy = TcpStream::connect(address(&node)).unwrap();
    greedy
        .set_write_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let start = Instant::now();
    for segment in 0..20_000 {
        if greedy.write_all(&interest(segment)).is_err() || start.elapsed().as_secs() > 20 {
            break;
        }
    }
    eventually("drops", || faces(&node)[0].link.queue_drops > 0);
    let face = &faces(&node)[0];
    assert!(face.queued_bytes <= 1 << 20);
    assert_eq!(
        face.link.marks, 0,
        "nothing is marked below the threshold of 2 MiB"
    );
    // Others are served meanwhile.
    fetch(
        &mut client(&node.listening()[0], &ClientOptions::default()),
        100,
        8000,
        8,
    );
}

#[test]
fn peers_that_read_nothing_cost_a_bound_together_and_leave_room_for_others() {
    const ROOM: usize = 1 << 20;
    let node = Node::start(NodeConfig {
        listeners: vec![listen("tcp://127.0.0.1:0")],
        memory: MemoryConfig {
            send_queues_bytes: ROOM,
            ..MemoryConfig::default()
        },
        ..NodeConfig::default()
    })
    .unwrap();
    let _source = serve(&node, 8000);
    let mut all: Vec<TcpStream> = (0..6)
        .map(|_| TcpStream::connect(address(&node)).unwrap())
        .collect();
    for greedy in &mut all {
        greedy.set_nonblocking(true).unwrap();
    }
    let queues = || node.status().unwrap().forwarder.queues;
    let mut segment = 0;
    eventually("packets are refused", || {
        for _ in 0..200 {
            for greedy in &mut all {
                let _ = greedy.write(&interest(segment));
            }
            segment += 1;
        }
        queues().refused > 1000
    });
    let held: Vec<usize> = faces(&node).iter().map(|face| face.queued_bytes).collect();
    assert!(held.iter().sum::<usize>() <= ROOM);
    assert!(
        held.iter().all(|&bytes| bytes <= (ROOM + MAX_PACKET) / 2),
        "nobody takes it all: {held:?}"
    );
    assert_eq!(queues().capacity_bytes, ROOM);
    fetch(
        &mut client(&node.listening()[0], &ClientOptions::default()),
        100,
        8000,
        8,
    );
    drop(all);
    eventually("the room is given back", || queues().bytes == 0);
}

#[test]
fn long_queues_are_marked() {
    let mut listener = listen("tcp://127.0.0.1:0");
    listener.link.mark_threshold_bytes = 100_000;
    let node = node(vec![listener]);
    let _source = serve(&node, 8000);
    let mut slow = TcpStream::connect(address(&node)).unwrap();
    for segment in 0..5_000 {
        slow.write_all(&interest(segment)).unwrap();
        if segment % 1000 == 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    eventually("marks", || faces(&node)[0].link.marks > 0);
}
