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
use crate::face::io::DatagramIo;
use crate::face::link::Link;
use crate::face::send_budget::QueueShare;

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
    /// `first_sequence` is best a random number: the peer must not take the fragments of this
    /// face for those of one before it.
    pub fn new(
        port: Arc<dyn DatagramIo>,
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
