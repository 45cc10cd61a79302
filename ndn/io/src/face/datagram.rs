//! A face over datagrams: link service, fragments, and the send queue toward one peer (or group).

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ndn_packet::NetPacket;
use ndn_packet::lp::{Fragmenter, LpPacket};

use crate::config::LinkOptions;
use crate::face::backlog::Backlog;
use crate::face::budget::Share;
use crate::face::budgets::Budgets;
use crate::face::io::DatagramIo;
use crate::face::link::Link;

/// Datagrams that were sent are cleared away at the latest when this many bytes of them have gathered, and are half of
/// the queue.
const COMPACT_AT: usize = 64 * 1024;
/// An empty queue keeps this many bytes and entries for the next datagrams.
const KEPT_BYTES: usize = 2048;
const KEPT_ENTRIES: usize = 64;
/// Largest payload of one send, and of one datagram.
const MAX_SEND_BYTES: usize = 65507;

/// One datagram face: link service and send queue toward one peer (or group).
pub(crate) struct DatagramFace {
    pub link: Link,
    pub peer: SocketAddr,
    /// What it speaks from.
    port: Arc<dyn DatagramIo>,
    backlog: Backlog,
    /// Datagrams at the front that go out one by one: sent together, the system refused them.
    singly: usize,
    mtu: usize,
    queue: DatagramQueue,
    fragmenter: Fragmenter,
    pieces: Vec<LpPacket>,
}

impl DatagramFace {
    /// Both numbers are best random: the peer must not take the fragments of this face for those
    /// of one before it, and only who receives at the peer's address may know the challenge.
    pub fn new(
        port: Arc<dyn DatagramIo>,
        peer: SocketAddr,
        options: &LinkOptions,
        budgets: &Budgets,
        [first_sequence, challenge]: [u64; 2],
    ) -> Self {
        let incomplete = budgets.reassembly.share();
        let share = budgets.send_queues.share();
        Self {
            link: Link::by_datagrams(options, challenge, incomplete),
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

    /// Differentiated services code point of what is sent.
    pub fn dscp(&self) -> Option<u8> {
        self.port.dscp()
    }

    /// Changes the largest datagram payload, in bytes.
    pub fn set_mtu(&mut self, mtu: usize) {
        self.mtu = mtu.clamp(576, MAX_SEND_BYTES);
    }

    /// Bytes waiting to be sent.
    pub fn queued(&self) -> usize {
        self.queue.bytes()
    }

    /// Queues what we say of ourselves, if there is room for it; false where there is nothing to
    /// say. `asks` where it is not said in answer.
    pub fn say_hello(&mut self, asks: bool) -> bool {
        let Some(hello) = self.link.hello(false, asks) else {
            return false;
        };
        let hello = hello.encode();
        if self.queue.has_room(hello.len()) {
            self.queue.push(&[&hello]);
        }
        true
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
        while self.port.is_writable() && !self.queue.is_empty() {
            let most = match self.singly {
                0 => self.port.max_batch(),
                _ => 1,
            };
            let (contents, segment) = self.queue.front(most);
            let len = contents.len();
            match self.port.send(self.peer, contents, segment) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
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
    lengths: VecDeque<u32>,
    limit: usize,
    share: Share,
}

impl DatagramQueue {
    fn new(limit: usize, share: Share) -> Self {
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
        self.reserve(parts.iter().map(|part| part.len()).sum());
        let before = self.bytes.len();
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.pushed(before);
    }

    fn push_packet(&mut self, lp: &LpPacket) -> usize {
        let payload = lp.fragment.as_deref().unwrap_or_default();
        self.reserve(lp.header_len(payload.len()) + payload.len());
        let before = self.bytes.len();
        lp.put_header(&mut self.bytes, payload.len());
        self.bytes.extend_from_slice(payload);
        self.pushed(before)
    }

    /// Makes room by a part of what there is: what is counted is not to jump.
    fn reserve(&mut self, len: usize) {
        if self.bytes.capacity() - self.bytes.len() < len {
            let more = len.max(self.bytes.len() / 4).max(KEPT_BYTES);
            self.bytes.reserve_exact(more);
        }
    }

    fn pushed(&mut self, before: usize) -> usize {
        let added = self.bytes.len() - before;
        self.lengths.push_back(added as u32);
        self.share.set(self.memory());
        added
    }

    /// Bytes of memory that it takes; what an empty one keeps is the face's.
    fn memory(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
        self.bytes.capacity() + self.lengths.capacity() * size_of::<u32>()
    }

    /// The longest run from the front that one send takes: datagrams of one size, the last of
    /// them perhaps shorter. Returns the run and that size.
    fn front(&self, max_segments: usize) -> (&[u8], usize) {
        let segment = self.lengths.front().map_or(0, |&len| len as usize);
        let mut total = 0;
        for len in self.lengths.iter().take(max_segments) {
            let len = *len as usize;
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
        while sent > 0 {
            let Some(len) = self.lengths.pop_front() else {
                break;
            };
            sent -= (len as usize).min(sent);
        }
        if self.lengths.is_empty() {
            self.head = 0;
            self.bytes.clear();
            if self.bytes.capacity() > KEPT_BYTES {
                self.bytes = Vec::new();
            }
            if self.lengths.capacity() > KEPT_ENTRIES {
                self.lengths = VecDeque::new();
            }
        } else if self.head >= COMPACT_AT.max(self.bytes.len() / 2) {
            self.bytes.drain(..self.head);
            self.head = 0;
            self.bytes.shrink_to(self.bytes.len() * 2);
        }
        self.share.set(self.memory());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::budget::Budget;

    #[test]
    fn runs_of_equal_datagrams() {
        let mut queue = DatagramQueue::new(1 << 20, Budget::new(usize::MAX).share());
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
