//! What waits to be written on a stream face: bounded in bytes, gathered into few writes.
//!
//! Link headers and small packets are copied together into one run of bytes; large packets
//! are kept by reference and go to the kernel from where they lie. One gathered write takes
//! both, in order.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes};

use crate::room::QueueRoom;

/// Payloads up to this many bytes are copied into the run of small bytes.
const INLINE_PAYLOAD: usize = 512;
/// Pieces that one gathered write takes.
pub(crate) const GATHER: usize = 64;
/// Spent small bytes are cleared away at the latest when this many have gathered.
const COMPACT_AT: usize = 64 * 1024;

enum Piece {
    /// This many bytes of the run of small bytes.
    Inline(usize),
    Shared(Bytes),
}

/// A queue of bytes to send, in whole packets.
pub(crate) struct SendQueue {
    pieces: VecDeque<Piece>,
    small: Vec<u8>,
    small_head: usize,
    bytes: usize,
    limit: usize,
    room: QueueRoom,
}

impl SendQueue {
    /// A queue that holds at most `limit` bytes (but always one packet) and what `room` admits.
    pub fn new(limit: usize, room: QueueRoom) -> Self {
        Self {
            pieces: VecDeque::new(),
            small: Vec::new(),
            small_head: 0,
            bytes: 0,
            limit,
            room,
        }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Whether a packet of `len` bytes finds room.
    pub fn has_room(&self, len: usize) -> bool {
        (self.bytes == 0 || self.bytes + len <= self.limit) && self.room.ask(len)
    }

    /// Adds one packet, its link header written by `header`. The caller has asked
    /// [`Self::has_room`]. Returns the bytes added.
    pub fn push(&mut self, header: impl FnOnce(&mut Vec<u8>), payload: Bytes) -> usize {
        let before = self.small.len();
        header(&mut self.small);
        let shared = payload.len() > INLINE_PAYLOAD;
        if !shared {
            self.small.extend_from_slice(&payload);
        }
        let mut added = self.small.len() - before;
        match self.pieces.back_mut() {
            _ if added == 0 => {}
            Some(Piece::Inline(len)) => *len += added,
            _ => self.pieces.push_back(Piece::Inline(added)),
        }
        if shared {
            added += payload.len();
            self.pieces.push_back(Piece::Shared(payload));
        }
        self.bytes += added;
        self.room.take(added);
        added
    }

    /// Adds a short message of the link itself, whatever the limit.
    pub fn push_message(&mut self, message: &[u8]) {
        self.push(|small| small.extend_from_slice(message), Bytes::new());
    }

    /// The next pieces to write, `max` bytes at most; returns how many of `slots` were filled.
    pub fn gather<'a>(&'a self, slots: &mut [IoSlice<'a>; GATHER], mut max: usize) -> usize {
        let mut small = &self.small[self.small_head..];
        let mut filled = 0;
        for (slot, piece) in slots.iter_mut().zip(&self.pieces) {
            if max == 0 {
                break;
            }
            let bytes = match piece {
                Piece::Inline(len) => {
                    let (this, rest) = small.split_at(*len);
                    small = rest;
                    this
                }
                Piece::Shared(bytes) => bytes,
            };
            let taken = bytes.len().min(max);
            *slot = IoSlice::new(&bytes[..taken]);
            max -= taken;
            filled += 1;
        }
        filled
    }

    /// Takes `written` bytes off the front.
    pub fn advance(&mut self, mut written: usize) {
        self.bytes -= written;
        self.room.give_back(written);
        while written > 0 {
            match self.pieces.front_mut() {
                Some(Piece::Inline(len)) => {
                    let taken = written.min(*len);
                    *len -= taken;
                    self.small_head += taken;
                    written -= taken;
                    if *len > 0 {
                        break;
                    }
                }
                Some(Piece::Shared(bytes)) => {
                    let taken = written.min(bytes.len());
                    bytes.advance(taken);
                    written -= taken;
                    if !bytes.is_empty() {
                        break;
                    }
                }
                None => break,
            }
            self.pieces.pop_front();
        }
        if self.small_head == self.small.len() {
            self.small.clear();
            self.small_head = 0;
        } else if self.small_head >= COMPACT_AT {
            self.small.drain(..self.small_head);
            self.small_head = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::NodeRoom;

    fn drain(queue: &mut SendQueue, step: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while !queue.is_empty() {
            let mut slots = [IoSlice::new(&[]); GATHER];
            let filled = queue.gather(&mut slots, usize::MAX);
            let mut taken = 0;
            for slot in &slots[..filled] {
                let n = slot.len().min(step - taken);
                all.extend_from_slice(&slot[..n]);
                taken += n;
            }
            queue.advance(taken);
        }
        all
    }

    #[test]
    fn order_is_kept_whatever_the_kernel_takes() {
        for step in [1, 7, 600, 1500, 100_000] {
            let mut queue = SendQueue::new(1 << 20, NodeRoom::unbounded().queue());
            let mut sent = Vec::new();
            for i in 0..200usize {
                let header = vec![i as u8; i % 5];
                let payload = Bytes::from(vec![!(i as u8); if i % 3 == 0 { 700 } else { i }]);
                sent.extend_from_slice(&header);
                sent.extend_from_slice(&payload);
                assert!(queue.has_room(header.len() + payload.len()));
                queue.push(|small| small.extend_from_slice(&header), payload);
            }
            assert_eq!(queue.bytes(), sent.len());
            assert_eq!(drain(&mut queue, step), sent);
            assert!(queue.small.is_empty() && queue.pieces.is_empty());
        }
    }

    #[test]
    fn bounded_but_one_packet_always_fits() {
        let mut queue = SendQueue::new(1000, NodeRoom::unbounded().queue());
        assert!(queue.has_room(5000));
        queue.push(
            |small| small.extend_from_slice(b"hh"),
            Bytes::from(vec![0; 998]),
        );
        assert!(!queue.has_room(1));
        drain(&mut queue, 100);
        assert!(queue.is_empty() && queue.has_room(5000));
    }
}
