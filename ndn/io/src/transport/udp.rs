//! UDP: sockets read and written in batches (recvmmsg, GRO, GSO by quinn-udp), and the faces
//! that share them.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use ndn_packet::NetPacket;
use ndn_packet::lp::{Fragmenter, LpPacket};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use socket2::Socket;

use crate::config::LinkOptions;
use crate::face::backlog::{self, Backlog};
use crate::face::chunk::{Chunk, ChunkPool, SmallFrames};
use crate::face::link::Link;
use crate::face::send_budget::QueueShare;

/// One buffer takes the largest datagram, or what the kernel has coalesced.
const BUFFER_BYTES: usize = 64 * 1024;
/// What arrives in a buffer is copied out of it up to this size.
const FREEZE_FROM: usize = BUFFER_BYTES / 4;
/// What a call and a datagram cost beside their bytes, in bytes that could be read meanwhile:
/// a flood of empty datagrams is to use its turn up as well.
const CALL_COST: usize = 4096;
const DATAGRAM_COST: usize = 256;
/// Largest payload of one GSO send, and of one datagram.
const MAX_SEND_BYTES: usize = 65507;

/// Buffers for receiving, shared by all UDP sockets of a loop.
pub(crate) struct UdpBuffers {
    pool: ChunkPool,
    chunks: Vec<Chunk>,
    metas: [RecvMeta; BATCH_SIZE],
}

impl UdpBuffers {
    /// Chunks of `max_live_bytes` may be held on to by packets; beyond, packets are copied.
    pub fn new(max_live_bytes: usize) -> Self {
        let pool = ChunkPool::new(BUFFER_BYTES, 4 * BATCH_SIZE, max_live_bytes);
        Self {
            pool,
            chunks: Vec::new(),
            metas: [RecvMeta::default(); BATCH_SIZE],
        }
    }
}

/// A UDP socket, of one face or of a listener with many. Used by one loop's thread alone.
pub(crate) struct UdpPort {
    socket: Socket,
    state: UdpSocketState,
    /// The socket may have something to read.
    readable: AtomicBool,
    writable: AtomicBool,
}

impl UdpPort {
    pub fn new(socket: Socket) -> io::Result<Self> {
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        Ok(Self {
            socket,
            state,
            readable: AtomicBool::new(false),
            writable: AtomicBool::new(true),
        })
    }

    pub fn raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let address = self.socket.local_addr()?;
        address
            .as_socket()
            .ok_or_else(|| io::Error::other("a UDP socket without an IP address"))
    }

    fn send(&self, peer: SocketAddr, contents: &[u8], segment: usize) -> io::Result<()> {
        let transmit = Transmit {
            destination: peer,
            ecn: None,
            contents,
            segment_size: (contents.len() > segment).then_some(segment),
            src_ip: None,
        };
        self.state
            .try_send(UdpSockRef::from(&self.socket), &transmit)
    }

    /// Bytes that the kernel has not given to the network yet.
    fn untaken(&self) -> usize {
        backlog::untaken(self.socket.as_fd())
    }

    /// What the poll said.
    pub fn on_event(&self, event: &mio::event::Event) {
        if event.is_readable() || event.is_error() {
            self.readable.store(true, Relaxed);
        }
        if event.is_writable() {
            self.writable.store(true, Relaxed);
        }
    }

    /// Whether there may be something to read.
    pub fn is_readable(&self) -> bool {
        self.readable.load(Relaxed)
    }

    /// Receives one batch and hands on its datagrams; returns what that cost, in bytes: those
    /// received, and more for each datagram. Whether there may be more, [`Self::is_readable`] tells.
    pub fn receive(
        &self,
        buffers: &mut UdpBuffers,
        small: &mut SmallFrames,
        mut sink: impl FnMut(SocketAddr, Bytes),
    ) -> usize {
        if !self.is_readable() {
            return 0;
        }
        buffers
            .chunks
            .resize_with(BATCH_SIZE, || buffers.pool.take());
        let mut chunks = buffers.chunks.iter_mut();
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] = std::array::from_fn(|_| {
            IoSliceMut::new(chunks.next().map_or(&mut [], |chunk| chunk.as_mut()))
        });
        let received = self.state.recv(
            UdpSockRef::from(&self.socket),
            &mut slices,
            &mut buffers.metas,
        );
        let count = match received {
            Ok(count) => count,
            Err(error) => {
                // An ICMP error of an earlier datagram is reported once and is no end: the
                // peer may be restarting.
                let more = error.kind() != io::ErrorKind::WouldBlock;
                self.readable.store(more, Relaxed);
                return CALL_COST;
            }
        };
        // Fewer than asked for: the socket is empty, and what comes later is a new event.
        self.readable.store(count == BATCH_SIZE, Relaxed);
        let mut cost = CALL_COST;
        for i in 0..count {
            let RecvMeta {
                addr, len, stride, ..
            } = buffers.metas[i];
            let stride = stride.max(1);
            cost += len + DATAGRAM_COST * len.div_ceil(stride).max(1);
            if len == 0 {
                continue;
            }
            if buffers.pool.is_stretched() {
                let bytes = &buffers.chunks[i].as_ref()[..len];
                bytes
                    .chunks(stride)
                    .for_each(|datagram| sink(addr, Bytes::copy_from_slice(datagram)));
                continue;
            }
            let whole = if len < FREEZE_FROM {
                Bytes::copy_from_slice(&buffers.chunks[i].as_ref()[..len])
            } else {
                let fresh = buffers.pool.take();
                std::mem::replace(&mut buffers.chunks[i], fresh).freeze(len)
            };
            for start in (0..len).step_by(stride) {
                let datagram = whole.slice(start..len.min(start + stride));
                let moved = SmallFrames::takes(datagram.len());
                sink(
                    addr,
                    if moved {
                        small.copy(&datagram)
                    } else {
                        datagram
                    },
                );
            }
        }
        cost
    }
}

/// One UDP face: link service and send queue toward one peer (or group).
pub(crate) struct UdpFace {
    pub link: Link,
    pub peer: SocketAddr,
    /// What it speaks from.
    port: Arc<UdpPort>,
    backlog: Backlog,
    /// Datagrams at the front that go out one by one: sent together, the system refused them.
    singly: usize,
    mtu: usize,
    queue: DatagramQueue,
    fragmenter: Fragmenter,
    pieces: Vec<LpPacket>,
}

impl UdpFace {
    /// `first_sequence` is best a random number: the peer must not take the fragments of this
    /// face for those of one before it.
    pub fn new(
        port: Arc<UdpPort>,
        peer: SocketAddr,
        options: &LinkOptions,
        share: QueueShare,
        first_sequence: u64,
    ) -> Self {
        Self {
            link: Link::new(options, true),
            peer,
            port,
            backlog: Backlog::default(),
            singly: 0,
            mtu: options.mtu_for(peer.ip().to_canonical().is_ipv4()),
            queue: DatagramQueue::new(options.send_queue_bytes, share),
            fragmenter: Fragmenter::new(first_sequence),
            pieces: Vec::new(),
        }
    }

    /// Largest datagram payload in bytes.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// Changes the largest datagram payload, in bytes.
    pub fn set_mtu(&mut self, mtu: usize) {
        self.mtu = mtu.clamp(576, MAX_SEND_BYTES);
    }

    /// Bytes waiting to be sent.
    pub fn queued(&self) -> usize {
        self.queue.bytes()
    }

    /// Queues what we say of ourselves; false where there is nothing to say.
    pub fn say_hello(&mut self) -> bool {
        let hello = self.link.hello(false);
        if let Some(hello) = hello {
            self.queue.push(&[&hello.encode()]);
        }
        hello.is_some()
    }

    /// Puts a packet into the send queue, or drops and counts it.
    pub fn send(&mut self, now: Duration, packet: &NetPacket) {
        let (port, threshold) = (&self.port, self.link.mark_threshold());
        let waiting = self
            .backlog
            .total(now, self.queue.bytes(), threshold, || port.untaken());
        let Some(lp) = self.link.wrap(now, packet, waiting) else {
            return;
        };
        let len = packet.wire().len();
        if !self.queue.has_room(len + lp.header_len(len)) {
            self.link.counters.queue_drops += 1;
            return;
        }
        if len + lp.header_len(len) <= self.mtu {
            let added = self.queue.push_packet(&lp);
            self.link.counters.out_bytes += added as u64;
            return;
        }
        match self.fragmenter.fragment(lp, self.mtu, &mut self.pieces) {
            Ok(()) => {
                for piece in self.pieces.drain(..) {
                    let added = self.queue.push_packet(&piece);
                    self.link.counters.out_bytes += added as u64;
                }
            }
            Err(_) => self.link.counters.oversize_out += 1,
        }
    }

    /// What the poll said of the socket that it speaks from.
    pub fn on_event(&self, event: &mio::event::Event) {
        self.port.on_event(event);
    }

    /// Writes what goes without waiting. Datagrams of one size go together; where the system
    /// refuses that, they go one by one, and one that is refused is dropped: the network may do
    /// that as well.
    pub fn flush(&mut self) {
        while self.port.writable.load(Relaxed) && !self.queue.is_empty() {
            let most = match self.singly {
                0 => self.port.state.max_gso_segments(),
                _ => 1,
            };
            let (contents, segment) = self.queue.front(most);
            let len = contents.len();
            match self.port.send(self.peer, contents, segment) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.port.writable.store(false, Relaxed);
                    return;
                }
                Err(_) if len > segment => {
                    self.link.counters.send_errors += 1;
                    self.singly = len.div_ceil(segment);
                    continue;
                }
                Err(_) => self.link.counters.send_errors += 1,
                Ok(()) => self.backlog.wrote(len),
            }
            self.singly = self.singly.saturating_sub(1);
            self.queue.advance(len);
        }
    }
}

/// Datagrams in one run of bytes, so that equal ones go out by one GSO send.
struct DatagramQueue {
    bytes: Vec<u8>,
    head: usize,
    lengths: VecDeque<usize>,
    limit: usize,
    share: QueueShare,
}

impl DatagramQueue {
    fn new(limit: usize, share: QueueShare) -> Self {
        Self {
            bytes: Vec::new(),
            head: 0,
            lengths: VecDeque::new(),
            limit,
            share,
        }
    }

    fn bytes(&self) -> usize {
        self.bytes.len() - self.head
    }

    fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    fn has_room(&self, len: usize) -> bool {
        (self.is_empty() || self.bytes() + len <= self.limit) && self.share.admits(len)
    }

    fn push(&mut self, parts: &[&[u8]]) {
        let before = self.bytes.len();
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        let added = self.bytes.len() - before;
        self.lengths.push_back(added);
        self.share.take(added);
    }

    fn push_packet(&mut self, lp: &LpPacket) -> usize {
        let payload = lp.fragment.as_deref().unwrap_or_default();
        let before = self.bytes.len();
        lp.put_header(&mut self.bytes, payload.len());
        self.bytes.extend_from_slice(payload);
        let added = self.bytes.len() - before;
        self.lengths.push_back(added);
        self.share.take(added);
        added
    }

    /// The longest run from the front that one send takes: datagrams of one size, the last of
    /// them perhaps shorter. Returns the run and that size.
    fn front(&self, max_segments: usize) -> (&[u8], usize) {
        let segment = self.lengths.front().copied().unwrap_or(0);
        let mut total = 0;
        for &len in self.lengths.iter().take(max_segments) {
            if len > segment || total + len > MAX_SEND_BYTES {
                break;
            }
            total += len;
            if len < segment {
                break;
            }
        }
        (&self.bytes[self.head..self.head + total], segment)
    }

    fn advance(&mut self, mut sent: usize) {
        self.head += sent;
        self.share.give_back(sent);
        while sent > 0 {
            let Some(len) = self.lengths.pop_front() else {
                break;
            };
            sent -= len.min(sent);
        }
        if self.lengths.is_empty() {
            self.bytes.clear();
            self.head = 0;
        } else if self.head >= 1 << 20 {
            self.bytes.drain(..self.head);
            self.head = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::send_budget::SendBudget;
    use ndn_packet::{Data, Name, SigningKey};

    #[test]
    fn empty_datagrams_use_a_turn_up() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        socket.set_nonblocking(true).unwrap();
        let port = UdpPort::new(socket.into()).unwrap();
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..BATCH_SIZE {
            sender.send_to(&[], address).unwrap();
        }
        port.readable.store(true, Relaxed);
        let (mut buffers, mut small) = (UdpBuffers::new(1 << 30), SmallFrames::default());
        let mut cost = 0;
        while port.is_readable() {
            cost += port.receive(&mut buffers, &mut small, |_, _| panic!("nothing in it"));
        }
        assert!(cost >= BATCH_SIZE * DATAGRAM_COST + CALL_COST, "{cost}");
    }

    fn data(byte: u8) -> NetPacket {
        let name: Name = "/a".parse().unwrap();
        let wire = Data::builder(&name)
            .content(&[byte; 1000])
            .sign(&SigningKey::DigestSha256);
        NetPacket::data(Data::parse(wire).unwrap())
    }

    fn face(peer: SocketAddr, options: &LinkOptions) -> UdpFace {
        let socket = crate::transport::socket::connect_udp(peer, None, 0).unwrap();
        let port = Arc::new(UdpPort::new(socket).unwrap());
        let share = SendBudget::new(usize::MAX).share();
        UdpFace::new(port, peer, options, share, 1)
    }

    #[test]
    fn datagrams_that_are_refused_together_go_one_by_one() {
        let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = peer.local_addr().unwrap();
        let mut face = face(address, &LinkOptions::default());
        drop(peer);
        // Nobody is there: the host says so, and the next send hears it.
        face.send(Duration::ZERO, &data(1));
        face.flush();
        assert!(face.queue.is_empty() && face.link.counters.send_errors == 0);
        let peer = std::net::UdpSocket::bind(address).unwrap();
        peer.set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        (0..5).for_each(|_| face.send(Duration::ZERO, &data(2)));
        assert_eq!(face.queue.lengths.len(), 5);
        face.flush();
        assert!(face.queue.is_empty());
        assert_eq!(face.link.counters.send_errors, 1);
        for _ in 0..5 {
            assert!(peer.recv(&mut [0; 2000]).unwrap() > 1000);
        }
    }

    #[test]
    fn runs_of_equal_datagrams() {
        let mut queue = DatagramQueue::new(1 << 20, SendBudget::new(usize::MAX).share());
        for len in [100, 100, 40, 100, 200, 50, 30_000, 30_000, 30_000] {
            queue.push(&[&vec![len as u8; len]]);
        }
        let mut runs = Vec::new();
        while !queue.is_empty() {
            let (run, segment) = queue.front(64);
            let len = run.len();
            runs.push((len, segment));
            queue.advance(len);
        }
        assert_eq!(
            runs,
            [
                (240, 100),
                (100, 100),
                (250, 200),
                (60_000, 30_000),
                (30_000, 30_000)
            ]
        );
        queue.push(&[&[0; 10]]);
        queue.push(&[&[0; 10]]);
        assert_eq!(queue.front(1).0.len(), 10);
    }
}
