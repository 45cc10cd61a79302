//! What waits to be written on a stream face: bounded in bytes, gathered into few writes.
//!
//! Link headers and small packets are copied together into one run of bytes; large packets
//! are kept by reference and go to the kernel from where they lie. One gathered write takes
//! both.
//!
//! Where `overtaking` is allowed, small packets go before large ones: an Interest does not wait
//! behind megabytes of Data that go the same way, or the Data that it asks for comes so much later.
//! They go before them only with about as many bytes as the large ones send themselves: nobody
//! keeps Data back for long by sending small packets.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes};

use crate::face::budget::Share;
use crate::face::chunk::SMALL_FRAME;

/// Payloads up to this many bytes are small: they are copied into blocks of small bytes.
const INLINE_PAYLOAD: usize = 512;
/// Up to this many bytes they are copied, too, but do not overtake: kept by reference they would hold on to the block
/// of small frames that they were received in.
const COPIED_PAYLOAD: usize = SMALL_FRAME;
/// Bytes of small packets that may overtake before a byte of large ones is written: the Interests
/// of some pulls at once.
const MOST_OVERTAKING: usize = 64 << 10;
/// Pieces that one gathered write takes.
pub(crate) const GATHER: usize = 64;
/// No link header is longer.
const MOST_HEADER: usize = 128;
/// Size of a block of small bytes. Whole blocks are given back as soon as they are written: a queue that was long once
/// keeps nothing of it.
const BLOCK_BYTES: usize = 16 * 1024;
/// An empty queue keeps this many bytes and entries for the next packets.
const KEPT_BYTES: usize = 2048;
const KEPT_ENTRIES: usize = 64;

enum Piece {
    /// This many of the small bytes, all in one block.
    Inline(u32),
    Shared(Bytes),
}

/// Bytes in their order.
#[derive(Default)]
struct Lane {
    pieces: VecDeque<Piece>,
    /// Small bytes, of which the first `head` of the first block are written.
    blocks: VecDeque<Vec<u8>>,
    head: usize,
    /// Bytes of all blocks, spare ones included.
    block_bytes: usize,
    /// Bytes of shared payloads.
    shared_bytes: usize,
}

impl Lane {
    /// Adds a packet; returns its bytes.
    fn push(&mut self, header: impl FnOnce(&mut Vec<u8>), payload: Bytes) -> usize {
        let shared = payload.len() > COPIED_PAYLOAD;
        let wanted = MOST_HEADER + if shared { 0 } else { payload.len() };
        let fits = self
            .blocks
            .back()
            .is_some_and(|block| block.len() + wanted <= BLOCK_BYTES);
        if !fits {
            self.blocks.push_back(Vec::new());
        }
        let Some(block) = self.blocks.back_mut() else {
            return 0;
        };
        let (before, capacity) = (block.len(), block.capacity());
        header(block);
        if !shared {
            block.extend_from_slice(&payload);
        }
        self.block_bytes += block.capacity() - capacity;
        let small = block.len() - before;
        match self.pieces.back_mut() {
            _ if small == 0 => {}
            Some(Piece::Inline(len)) if fits => *len += small as u32,
            _ => self.pieces.push_back(Piece::Inline(small as u32)),
        }
        if !shared {
            return small;
        }
        let large = payload.len();
        self.shared_bytes += large;
        self.pieces.push_back(Piece::Shared(payload));
        small + large
    }

    fn slices(&self) -> impl Iterator<Item = &[u8]> {
        let mut blocks = self.blocks.iter();
        let mut small: &[u8] = blocks.next().map_or(&[], |block| &block[self.head..]);
        self.pieces.iter().map(move |piece| match piece {
            Piece::Inline(len) => {
                while small.is_empty()
                    && let Some(next) = blocks.next()
                {
                    small = next;
                }
                let (this, rest) = small.split_at((*len as usize).min(small.len()));
                small = rest;
                this
            }
            Piece::Shared(bytes) => bytes,
        })
    }

    /// Takes `written` bytes off the front.
    fn advance(&mut self, mut written: usize) {
        while written > 0 {
            match self.pieces.front_mut() {
                Some(Piece::Inline(len)) => {
                    let taken = written.min(*len as usize);
                    *len -= taken as u32;
                    let left = *len > 0;
                    written -= taken;
                    self.advance_small(taken);
                    if left {
                        break;
                    }
                }
                Some(Piece::Shared(bytes)) => {
                    let taken = written.min(bytes.len());
                    bytes.advance(taken);
                    self.shared_bytes -= taken;
                    written -= taken;
                    if !bytes.is_empty() {
                        break;
                    }
                }
                None => break,
            }
            self.pieces.pop_front();
        }
        if self.pieces.is_empty() && self.pieces.capacity() > KEPT_ENTRIES {
            self.pieces = VecDeque::new();
        }
    }

    fn advance_small(&mut self, taken: usize) {
        while let Some(block) = self.blocks.front()
            && self.head == block.len()
        {
            self.drop_block();
        }
        self.head += taken;
        let alone = self.blocks.len() == 1;
        if let Some(block) = self.blocks.front_mut()
            && self.head == block.len()
        {
            if alone && block.capacity() <= KEPT_BYTES {
                block.clear();
                self.head = 0;
            } else {
                self.drop_block();
            }
        }
    }

    fn drop_block(&mut self) {
        if let Some(block) = self.blocks.pop_front() {
            self.block_bytes -= block.capacity();
        }
        self.head = 0;
    }

    /// Bytes of memory that it takes; what an empty one keeps is the face's.
    fn memory(&self) -> usize {
        if self.pieces.is_empty() {
            return 0;
        }
        self.block_bytes + self.shared_bytes + self.pieces.capacity() * size_of::<Piece>()
    }
}

/// A queue of bytes to send, in whole packets.
///
/// ```text
///   written next ──▶ rest of the packet begun │ small ones │ the others
///                            (large)          (express)      (large)
/// ```
/// A small packet that may no longer overtake is one of the others.
pub(crate) struct SendQueue {
    large: Lane,
    /// Lengths of the packets in `large`, but for the one begun; none where nothing overtakes.
    lengths: VecDeque<u32>,
    /// Bytes left of the first packet in `large`, part of which is written.
    begun: usize,
    express: Box<Lane>,
    express_bytes: usize,
    overtaking: bool,
    /// Bytes that may still overtake what is in `large`: used up by small packets, given back by
    /// what of `large` is written.
    may_overtake: usize,
    bytes: usize,
    limit: usize,
    share: Share,
}

impl SendQueue {
    /// A queue that holds at most `limit` bytes (but always one packet) and what `share` admits; `overtaking` lets small
    /// packets go first.
    pub fn new(limit: usize, share: Share, overtaking: bool) -> Self {
        Self {
            large: Lane::default(),
            lengths: VecDeque::new(),
            begun: 0,
            express: Box::default(),
            express_bytes: 0,
            overtaking,
            may_overtake: MOST_OVERTAKING,
            bytes: 0,
            limit,
            share,
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
        (self.bytes == 0 || self.bytes + len <= self.limit) && self.share.admits(len)
    }

    /// Adds one packet, its link header written by `header`. The caller has asked
    /// [`Self::has_room`]. Returns the bytes added.
    pub fn push(&mut self, header: impl FnOnce(&mut Vec<u8>), payload: Bytes) -> usize {
        let is_small = payload.len() <= INLINE_PAYLOAD;
        let added = if self.overtaking && is_small && self.may_overtake > 0 {
            let added = self.express.push(header, payload);
            self.express_bytes += added;
            if self.has_large() {
                self.may_overtake = self.may_overtake.saturating_sub(added);
            }
            added
        } else {
            let added = self.large.push(header, payload);
            if self.overtaking {
                self.lengths.push_back(added as u32);
            }
            added
        };
        self.bytes += added;
        self.share.set(self.memory());
        added
    }

    /// Bytes of memory that it takes.
    fn memory(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
        self.large.memory() + self.express.memory() + self.lengths.capacity() * size_of::<u32>()
    }

    /// Adds a short message of the link itself, whatever the limit.
    pub fn push_message(&mut self, message: &[u8]) {
        self.push(|small| small.extend_from_slice(message), Bytes::new());
    }

    /// The next pieces to write, `max` bytes at most; returns how many of `slots` were filled.
    pub fn gather<'a>(&'a self, slots: &mut [IoSlice<'a>; GATHER], max: usize) -> usize {
        let mut left = max;
        let mut filled = fill(slots, &mut left, self.large.slices(), 0, self.begun);
        filled += fill(
            &mut slots[filled..],
            &mut left,
            self.express.slices(),
            0,
            usize::MAX,
        );
        let rest = self.large.slices();
        filled
            + fill(
                &mut slots[filled..],
                &mut left,
                rest,
                self.begun,
                usize::MAX,
            )
    }

    /// Takes `written` bytes off the front, of what [`Self::gather`] has given since the last push.
    pub fn advance(&mut self, written: usize) {
        self.bytes -= written;
        let finishing = written.min(self.begun);
        self.advance_large(finishing);
        let express = (written - finishing).min(self.express_bytes);
        self.express.advance(express);
        self.express_bytes -= express;
        self.advance_large(written - finishing - express);
        if self.is_empty() && self.lengths.capacity() > KEPT_ENTRIES {
            self.lengths = VecDeque::new();
        }
        self.share.set(self.memory());
    }

    fn has_large(&self) -> bool {
        self.begun > 0 || !self.lengths.is_empty()
    }

    fn advance_large(&mut self, written: usize) {
        self.large.advance(written);
        self.may_overtake = (self.may_overtake + written).min(MOST_OVERTAKING);
        let mut left = written;
        while left > 0 {
            if self.begun == 0 {
                let Some(next) = self.lengths.pop_front() else {
                    return;
                };
                self.begun = next as usize;
            }
            let taken = left.min(self.begun);
            self.begun -= taken;
            left -= taken;
        }
    }
}

/// Fills slots with `slices` from `skip` bytes on, `take` bytes of them and `left` at most; returns how many slots.
fn fill<'a>(
    slots: &mut [IoSlice<'a>],
    left: &mut usize,
    slices: impl Iterator<Item = &'a [u8]>,
    mut skip: usize,
    mut take: usize,
) -> usize {
    let mut filled = 0;
    for slice in slices {
        if filled == slots.len() || take == 0 || *left == 0 {
            break;
        }
        if skip >= slice.len() {
            skip -= slice.len();
            continue;
        }
        let slice = &slice[skip..];
        skip = 0;
        let taken = slice.len().min(take).min(*left);
        slots[filled] = IoSlice::new(&slice[..taken]);
        filled += 1;
        take -= taken;
        *left -= taken;
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::budget::Budget;

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
            let mut queue = SendQueue::new(1 << 20, Budget::new(usize::MAX).share(), false);
            let mut sent = Vec::new();
            for i in 0..200usize {
                let header = vec![i as u8; i % 5];
                let payload = Bytes::from(vec![!(i as u8); [1700, i, 700][i % 3]]);
                sent.extend_from_slice(&header);
                sent.extend_from_slice(&payload);
                assert!(queue.has_room(header.len() + payload.len()));
                queue.push(|small| small.extend_from_slice(&header), payload);
            }
            assert_eq!(queue.bytes(), sent.len());
            assert_eq!(drain(&mut queue, step), sent);
            assert!(queue.large.pieces.is_empty());
            assert!(queue.large.block_bytes <= KEPT_BYTES && queue.large.shared_bytes == 0);
        }
    }

    #[test]
    fn bounded_but_one_packet_always_fits() {
        let mut queue = SendQueue::new(1000, Budget::new(usize::MAX).share(), true);
        assert!(queue.has_room(5000));
        queue.push(
            |small| small.extend_from_slice(b"hh"),
            Bytes::from(vec![0; 998]),
        );
        assert!(!queue.has_room(1));
        drain(&mut queue, 100);
        assert!(queue.is_empty() && queue.has_room(5000));
    }

    #[test]
    fn what_a_queue_takes_is_counted_and_given_back() {
        let budget = Budget::new(1 << 20);
        for (len, overtaking) in [(27, true), (27, false), (1000, true), (5000, true)] {
            let mut queue = SendQueue::new(usize::MAX, budget.share(), overtaking);
            while queue.has_room(len) {
                queue.push(|small| small.extend_from_slice(b"hh"), vec![0; len].into());
            }
            let most = queue.memory();
            assert!(most >= queue.bytes() && most <= 1 << 20, "{most}");
            assert_eq!(budget.used(), most);
            let half = queue.bytes() / 2;
            while queue.bytes() > half {
                take(&mut queue, 1 << 16);
            }
            assert!(
                queue.memory() < most * 3 / 4,
                "{} of {most}",
                queue.memory()
            );
            drain(&mut queue, usize::MAX);
            assert_eq!(budget.used(), 0);
        }
    }

    /// What one write of `step` bytes at most takes.
    fn take(queue: &mut SendQueue, step: usize) -> Vec<u8> {
        let mut slots = [IoSlice::new(&[]); GATHER];
        let filled = queue.gather(&mut slots, step);
        let bytes = slots[..filled].iter().flat_map(|slot| slot.to_vec());
        let bytes: Vec<u8> = bytes.collect();
        queue.advance(bytes.len());
        bytes
    }

    #[test]
    fn small_packets_go_before_large_ones_that_have_not_begun() {
        let mut queue = SendQueue::new(1 << 20, Budget::new(usize::MAX).share(), true);
        let mut push = |byte: u8, len| queue.push(|_| {}, Bytes::from(vec![byte; len]));
        push(1, 1000);
        push(2, 1000);
        push(3, 20);
        assert_eq!(take(&mut queue, 5), [3; 5]);
        assert_eq!(
            take(&mut queue, 25),
            [[3; 15].as_slice(), &[1; 10]].concat()
        );
        queue.push(|small| small.push(4), Bytes::from_static(&[4; 9]));
        let rest = take(&mut queue, usize::MAX);
        assert_eq!(rest, [[1; 990].as_slice(), &[4; 10], &[2; 1000]].concat());
        assert!(queue.is_empty());
    }

    #[test]
    fn small_packets_do_not_keep_large_ones_back_for_ever() {
        let mut queue = SendQueue::new(1 << 20, Budget::new(usize::MAX).share(), true);
        let large = 100 * 1000;
        for _ in 0..100 {
            queue.push(|_| {}, Bytes::from(vec![1; 1000]));
        }
        let (mut written, mut of_large) = (0, 0);
        let most = MOST_OVERTAKING + 500 + 2 * large;
        while of_large < large {
            // As many small ones come as the link takes away.
            queue.push(|_| {}, Bytes::from(vec![2; 500]));
            let bytes = take(&mut queue, 500);
            written += bytes.len();
            of_large += bytes.iter().filter(|&&byte| byte == 1).count();
            assert!(written <= most, "{of_large} of {written} bytes");
        }
        assert!(written > MOST_OVERTAKING + large, "small ones go first");
        drain(&mut queue, 1500);
        assert!(queue.is_empty() && !queue.has_large());
    }

    /// Packets are a length and that many bytes of their number: what was mixed up does not parse.
    #[test]
    fn no_packet_is_split_by_one_that_overtakes() {
        for step in [1, 7, 33, 600, 1500] {
            let mut queue = SendQueue::new(1 << 20, Budget::new(usize::MAX).share(), true);
            let mut wire = Vec::new();
            for i in 0..120u8 {
                let len: u16 = if i % 3 == 0 { 900 } else { 20 };
                let payload = Bytes::from(vec![i; usize::from(len)]);
                queue.push(|small| small.extend_from_slice(&len.to_be_bytes()), payload);
                wire.extend(take(&mut queue, step));
            }
            wire.extend(drain(&mut queue, step));
            assert!(queue.is_empty() && queue.begun == 0 && queue.lengths.is_empty());
            let (mut at, mut numbers) = (0, Vec::new());
            while at < wire.len() {
                let len = usize::from(u16::from_be_bytes([wire[at], wire[at + 1]]));
                let body = &wire[at + 2..at + 2 + len];
                assert!(body.iter().all(|&b| b == body[0]), "mixed up at {at}");
                numbers.push(body[0]);
                at += 2 + len;
            }
            for large in [true, false] {
                let of_kind: Vec<_> = numbers.iter().filter(|&n| (n % 3 == 0) == large).collect();
                assert!(of_kind.is_sorted(), "order within a kind is kept");
            }
            numbers.sort_unstable();
            assert_eq!(numbers, (0..120).collect::<Vec<u8>>());
        }
    }
}
