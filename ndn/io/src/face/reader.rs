//! Cuts the frames of a byte stream out of large chunks, without copying the large ones.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ndn_packet::{DecodeError, MAX_JUMBO_PACKET, tlv};

use crate::face::budget::Share;
use crate::face::budgets::Budgets;
use crate::face::chunk::{Chunk, ChunkPool, Hold, SmallFrames};
use crate::memory::packets::{CHUNK_BYTES, PacketMemory, Size};

/// A batch of frames below this many bytes is copied out, so that the chunk can be used on:
/// at most this part of a chunk is wasted by what is cut from it.
const FREEZE_FROM: usize = CHUNK_BYTES / 4;
/// A frame above the agreed size is skipped up to this length; beyond, it is no frame at all.
const MAX_SKIP: u64 = 16 << 20;

/// Bytes read at once behind a frame that had memory of its own: the next one is likely to want some, too, and what has
/// been read of it by then is copied there.
const AFTER_LARGE: usize = 4096;

/// Readers that may keep a chunk from turn to turn: 8 MiB in all. The others keep the beginning of a frame alone.
const HOLDERS: usize = 32;

/// The buffers that all readers of a loop share.
pub(crate) struct ReadBuffers {
    pub pool: ChunkPool,
    /// For packets that a peer has lent.
    packets: ChunkPool,
    /// For packets above the size that datagrams have, however they come.
    large: ChunkPool,
    pub small: SmallFrames,
    /// What the chunks lie in, where local peers may be lent packets.
    pub memory: Option<Arc<PacketMemory>>,
}

impl ReadBuffers {
    /// Chunks within the budget; where packets hold on to most of it, they are copied out.
    pub fn new(budgets: &Budgets) -> Self {
        let (memory, budget) = (budgets.memory.as_ref(), &budgets.receive_buffers);
        // A small budget is not to be used up by what nobody uses.
        let idle_large = (budget.capacity() / (24 * Size::Large.bytes())).min(16);
        Self {
            pool: ChunkPool::within(memory, Size::Chunk, 16, budget),
            packets: ChunkPool::within(memory, Size::Packet, 128, budget),
            large: ChunkPool::within(memory, Size::Large, idle_large, budget),
            small: SmallFrames::default(),
            memory: budgets.memory.clone(),
        }
    }

    /// The pool of pieces for one packet of so many bytes.
    pub fn of_packets(&self, bytes: usize) -> &ChunkPool {
        match Size::for_packet(bytes) {
            Size::Large => &self.large,
            _ => &self.packets,
        }
    }
}

/// Reads one stream, in turns. Between turns it keeps the beginning of a frame at most, or it is one of the few that
/// keep a chunk with frames still to be cut. A frame that no datagram would hold is read into memory of its own, within
/// what incomplete packets may take.
pub(crate) struct FrameReader {
    state: State,
    /// What its frame takes of the bytes of incomplete packets.
    incomplete: Share,
    /// The last frame was one with memory of its own.
    after_large: bool,
    /// Bytes of a frame that is passed over that are still to come.
    skip: usize,
    /// It is passed over since there is no memory for it.
    no_room: bool,
    /// Its chunk is one of the few that are kept from turn to turn.
    hold: Option<Hold>,
}

enum State {
    /// Nothing is held.
    Empty,
    /// The beginning of a frame, while nothing more comes.
    Begun(Box<[u8]>),
    /// A chunk whose first bytes (the number) are filled, with no whole frame before `at`.
    Filling {
        chunk: Chunk,
        at: usize,
        filled: usize,
    },
    /// A full chunk being cut; `at` is where the next frame begins.
    Cutting { bytes: Bytes, at: usize },
    /// The first bytes (`filled`) of a frame of `len`, with memory of its own; `since` the end of a turn.
    Large {
        chunk: Chunk,
        filled: usize,
        len: usize,
        since: Option<Duration>,
    },
}

/// What stands at the reader's place in the stream.
pub(crate) enum Next {
    Frame(Bytes),
    /// A frame above the limit was passed over.
    Oversize,
    /// A frame was passed over for which there is no memory now.
    NoRoom,
    /// No whole frame: read on.
    More,
}

impl FrameReader {
    /// A reader that takes memory for incomplete frames out of `incomplete`.
    pub fn new(incomplete: Share) -> Self {
        Self {
            state: State::Empty,
            incomplete,
            after_large: false,
            skip: 0,
            no_room: false,
            hold: None,
        }
    }

    /// Whether whole frames may be left in the chunk at a turn's end. Where too many readers do so already, this one
    /// reads little at once and cuts all of it.
    pub fn may_keep(&self, pool: &ChunkPool) -> bool {
        let is_large = matches!(self.state, State::Large { .. });
        is_large || self.hold.is_some() || pool.budget().holders() < HOLDERS
    }

    /// Ends a turn. `more` says that frames may lie in the chunk uncut; else there is the beginning of one at most.
    pub fn end_turn(&mut self, now: Duration, pool: &ChunkPool, more: bool) {
        if self.hold.is_none() {
            let most = if more { HOLDERS } else { HOLDERS / 2 };
            self.hold = pool.budget().hold(most);
        }
        match &mut self.state {
            State::Empty | State::Begun(_) => self.hold = None,
            State::Large { since, .. } => {
                since.get_or_insert(now);
                self.hold = None;
            }
            State::Filling { filled: 0, .. } => self.clear_chunk(),
            State::Filling { chunk, at, filled } if self.hold.is_none() => {
                let begun = chunk.as_ref()[*at..*filled].into();
                self.state = State::Begun(begun);
            }
            State::Cutting { bytes, at } if self.hold.is_none() => {
                let begun = bytes[*at..].into();
                self.state = State::Begun(begun);
            }
            State::Filling { .. } | State::Cutting { .. } => {}
        }
    }

    fn clear_chunk(&mut self) {
        self.state = State::Empty;
        self.hold = None;
    }

    /// Spare bytes to read into, `most` of them; never none.
    pub fn spare(&mut self, pool: &ChunkPool, mut most: usize) -> &mut [u8] {
        if self.after_large && matches!(self.state, State::Empty) {
            most = most.min(AFTER_LARGE);
        }
        if matches!(self.state, State::Empty | State::Begun(_)) {
            let mut chunk = pool.take();
            let mut filled = 0;
            if let State::Begun(begun) = &self.state {
                filled = begun.len();
                chunk.as_mut()[..filled].copy_from_slice(begun);
            }
            self.state = State::Filling {
                chunk,
                at: 0,
                filled,
            };
        }
        match &mut self.state {
            State::Filling { chunk, filled, .. } => {
                let spare = &mut chunk.as_mut()[*filled..];
                let most = most.min(spare.len());
                &mut spare[..most]
            }
            State::Large {
                chunk, filled, len, ..
            } => {
                let spare = &mut chunk.as_mut()[*filled..*len];
                let most = most.min(spare.len());
                &mut spare[..most]
            }
            // `next` has said `More` before anybody reads on, and that leaves no chunk uncut.
            State::Empty | State::Begun(_) | State::Cutting { .. } => &mut [],
        }
    }

    /// `n` bytes were read into the spare ones.
    pub fn filled(&mut self, n: usize) {
        if let State::Filling { filled, .. } | State::Large { filled, .. } = &mut self.state {
            *filled += n;
        }
    }

    /// Forgets what is held: the rest of what was read is no frame.
    pub fn clear(&mut self) {
        self.clear_chunk();
        self.incomplete.set(0);
        self.skip = 0;
    }

    /// The next frame, at most `limit` bytes long.
    ///
    /// # Errors
    /// The bytes are no TLV stream; there is no way to find the next frame.
    pub fn next(&mut self, limit: usize, buffers: &mut ReadBuffers) -> Result<Next, DecodeError> {
        let held = match &self.state {
            State::Empty | State::Begun(_) => return Ok(Next::More),
            State::Large { filled, len, .. } if filled < len => return Ok(Next::More),
            State::Large { .. } => return Ok(Next::Frame(self.whole(&buffers.large))),
            State::Filling { chunk, at, filled } => &chunk.as_ref()[*at..*filled],
            State::Cutting { bytes, at } => &bytes[*at..],
        };
        if self.skip > 0 {
            let skipped = self.skip.min(held.len());
            self.skip -= skipped;
            self.advance(skipped);
            if self.skip > 0 {
                self.compact(buffers);
                return Ok(Next::More);
            }
            return Ok(if std::mem::take(&mut self.no_room) {
                Next::NoRoom
            } else {
                Next::Oversize
            });
        }
        let len = match tlv::frame_len(held, limit) {
            Ok(Some(len)) => len,
            Ok(None) => {
                let len = tlv::announced_len(held).unwrap_or(0) as usize;
                if len > MAX_JUMBO_PACKET {
                    return self.begin_large(len, limit, buffers);
                }
                self.compact(buffers);
                return Ok(Next::More);
            }
            Err(DecodeError::TooLarge { len, .. }) if len <= MAX_SKIP => {
                self.skip = len as usize;
                return self.next(limit, buffers);
            }
            Err(error) => return Err(error),
        };
        let frame = if SmallFrames::takes(len) {
            buffers.small.copy(&held[..len])
        } else {
            self.slice(len, &buffers.pool)
        };
        self.after_large = false;
        self.advance(len);
        Ok(Next::Frame(frame))
    }

    /// Gives the frame that begins here, of `len` bytes, memory of its own; where there is none it is passed over.
    fn begin_large(
        &mut self,
        len: usize,
        limit: usize,
        buffers: &mut ReadBuffers,
    ) -> Result<Next, DecodeError> {
        if !self.incomplete.grows_within_half(len) {
            self.pass_over(len);
            return self.next(limit, buffers);
        }
        let mut chunk = buffers.large.take_for(len);
        let begun = match &self.state {
            State::Filling { chunk, at, filled } => &chunk.as_ref()[*at..*filled],
            State::Cutting { bytes, at } => &bytes[*at..],
            State::Empty | State::Begun(_) | State::Large { .. } => &[],
        };
        let filled = begun.len();
        chunk.as_mut()[..filled].copy_from_slice(begun);
        self.state = State::Large {
            chunk,
            filled,
            len,
            since: None,
        };
        Ok(Next::More)
    }

    /// Bytes that come next and are no use alone: what is missing of the frame that has begun; 1 where none has, its
    /// length is not there, or it is passed over.
    pub fn missing(&self) -> usize {
        let held = match &self.state {
            State::Large { filled, len, .. } => return (len - filled).max(1),
            State::Empty => &[],
            State::Begun(begun) => &begun[..],
            State::Filling { chunk, at, filled } => &chunk.as_ref()[*at..*filled],
            State::Cutting { bytes, at } => &bytes[*at..],
        };
        if self.skip > 0 {
            return 1; // what is passed over is not to lie in the kernel, either
        }
        let len = tlv::announced_len(held).unwrap_or(1);
        usize::try_from(len).map_or(1, |len| len.saturating_sub(held.len()).max(1))
    }

    /// Since when a turn has ended amid a frame with memory of its own.
    pub fn large_since(&self) -> Option<Duration> {
        match self.state {
            State::Large { since, .. } => since,
            _ => None,
        }
    }

    /// Gives up the memory of such a frame: what is still to come of it is passed over.
    pub fn give_up_large(&mut self) {
        if let State::Large { filled, len, .. } = self.state {
            self.state = State::Empty;
            self.incomplete.set(0);
            self.pass_over(len - filled);
        }
    }

    /// There is no memory for the frame of which so many bytes are still to come.
    fn pass_over(&mut self, bytes: usize) {
        (self.skip, self.no_room, self.after_large) = (bytes, true, false);
    }

    /// The frame that had memory of its own, all of which has come.
    fn whole(&mut self, pool: &ChunkPool) -> Bytes {
        self.incomplete.set(0);
        self.after_large = true;
        match std::mem::replace(&mut self.state, State::Empty) {
            State::Large { chunk, len, .. } if pool.is_stretched() => {
                Bytes::copy_from_slice(&chunk.as_ref()[..len])
            }
            State::Large { chunk, len, .. } => chunk.freeze(len),
            _ => Bytes::new(),
        }
    }

    fn slice(&mut self, len: usize, pool: &ChunkPool) -> Bytes {
        match &self.state {
            State::Filling { chunk, at, filled }
                if *filled < FREEZE_FROM || pool.is_stretched() =>
            {
                Bytes::copy_from_slice(&chunk.as_ref()[*at..*at + len])
            }
            State::Filling { .. } => {
                if let State::Filling { chunk, at, filled } =
                    std::mem::replace(&mut self.state, State::Empty)
                {
                    self.state = State::Cutting {
                        bytes: chunk.freeze(filled),
                        at,
                    };
                }
                self.slice(len, pool)
            }
            State::Cutting { bytes, at } => bytes.slice(*at..*at + len),
            State::Empty | State::Begun(_) | State::Large { .. } => Bytes::new(),
        }
    }

    fn advance(&mut self, len: usize) {
        match &mut self.state {
            State::Filling { at, .. } | State::Cutting { at, .. } => *at += len,
            State::Empty | State::Begun(_) | State::Large { .. } => {}
        }
    }

    /// Brings the beginning of an incomplete frame to the front of a chunk with room behind.
    fn compact(&mut self, buffers: &ReadBuffers) {
        self.state = match std::mem::replace(&mut self.state, State::Empty) {
            State::Filling { at, filled, .. } if at == filled => State::Empty,
            State::Filling {
                mut chunk,
                at,
                filled,
            } => {
                chunk.as_mut().copy_within(at..filled, 0);
                State::Filling {
                    chunk,
                    at: 0,
                    filled: filled - at,
                }
            }
            State::Cutting { bytes, at } if at == bytes.len() => State::Empty,
            State::Cutting { bytes, at } => {
                let rest = &bytes[at..];
                let mut chunk = buffers.pool.take();
                chunk.as_mut()[..rest.len()].copy_from_slice(rest);
                State::Filling {
                    chunk,
                    at: 0,
                    filled: rest.len(),
                }
            }
            state @ (State::Empty | State::Begun(_) | State::Large { .. }) => state,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::budget::Budget;
    use crate::face::chunk::READING_BYTES;
    use ndn_packet::MAX_STREAM_PACKET;

    fn frame(len: usize, fill: u8) -> Vec<u8> {
        let mut out = Vec::new();
        tlv::write_tlv(&mut out, 6, &vec![fill; len]);
        out
    }

    /// Feeds `stream` in reads of the given sizes and returns the frames' fill bytes and sizes.
    fn cut(stream: &[u8], reads: &[usize], limit: usize) -> (Vec<(u8, usize)>, usize) {
        let budgets = Budgets::of_one_face(usize::MAX);
        let mut buffers = ReadBuffers::new(&budgets);
        let mut reader = FrameReader::new(budgets.reassembly.share());
        let (mut frames, mut oversize) = (Vec::new(), 0);
        let (mut at, mut turn) = (0, 0);
        let mut begins = 0;
        while at < stream.len() {
            let spare = reader.spare(&buffers.pool, usize::MAX);
            let n = reads[turn % reads.len()]
                .min(spare.len())
                .min(stream.len() - at);
            assert!(n > 0);
            spare[..n].copy_from_slice(&stream[at..at + n]);
            reader.filled(n);
            (at, turn) = (at + n, turn + 1);
            loop {
                match reader.next(limit, &mut buffers).unwrap() {
                    Next::Frame(f) => frames.push((f[f.len() - 1], f.len())),
                    Next::Oversize => oversize += 1,
                    Next::NoRoom => panic!("no bound"),
                    Next::More => break,
                }
            }
            let len = |from: &[u8]| tlv::announced_len(from).map(|len| len as usize);
            while let Some(len) = len(&stream[begins..at]).filter(|len| begins + len <= at) {
                begins += len;
            }
            let begun = &stream[begins..at];
            let missing = len(begun).map_or(1, |len| len - begun.len());
            let passed_over = reader.skip > 0;
            assert_eq!(reader.missing(), if passed_over { 1 } else { missing });
        }
        assert!(matches!(reader.state, State::Empty));
        (frames, oversize)
    }

    #[test]
    fn frames_come_whole_however_they_are_read() {
        let mut stream = Vec::new();
        let mut expected = Vec::new();
        for i in 0..400usize {
            let wire = frame([10, 900, 8000, 30_000, 65_000][i % 5], i as u8);
            expected.push((i as u8, wire.len()));
            stream.extend_from_slice(&wire);
        }
        for reads in [
            &[CHUNK_BYTES][..],
            &[1000],
            &[70_000, 3, 200_000],
            &[65_536],
        ] {
            let (frames, oversize) = cut(&stream, reads, 66_560);
            assert_eq!((frames, oversize), (expected.clone(), 0));
        }
    }

    #[test]
    fn large_frames_come_whole_with_small_ones_between_them() {
        let mut stream = Vec::new();
        let mut expected = Vec::new();
        for i in 0..60usize {
            let wire = frame(
                [516_096, 10, 66_600, 1_000_000, 300_000, 8000][i % 6],
                i as u8,
            );
            expected.push((i as u8, wire.len()));
            stream.extend_from_slice(&wire);
        }
        for reads in [&[CHUNK_BYTES][..], &[5000], &[70_000, 3, 200_000]] {
            let (frames, oversize) = cut(&stream, reads, MAX_STREAM_PACKET);
            assert_eq!((frames, oversize), (expected.clone(), 0));
        }
    }

    #[test]
    fn large_frames_that_do_not_go_on_take_what_incomplete_packets_may() {
        let budgets = Budgets {
            reassembly: Budget::new(16 << 20),
            ..Budgets::of_one_face(usize::MAX)
        };
        let mut buffers = ReadBuffers::new(&budgets);
        let wire = frame(1_000_000, 7);
        let part = &wire[..3000];
        let mut readers: Vec<_> = (0..20)
            .map(|_| FrameReader::new(budgets.reassembly.share()))
            .collect();
        for reader in &mut readers {
            reader.spare(&buffers.pool, usize::MAX)[..part.len()].copy_from_slice(part);
            reader.filled(part.len());
            let next = reader.next(MAX_STREAM_PACKET, &mut buffers);
            assert!(matches!(next, Ok(Next::More)));
            reader.end_turn(Duration::ZERO, &buffers.pool, false);
        }
        assert_eq!(buffers.large.live(), 8);
        assert_eq!(budgets.reassembly.used(), 8 * wire.len());
        let feed = |reader: &mut FrameReader, buffers: &mut ReadBuffers, mut rest: &[u8]| {
            let mut got = Vec::new();
            while !rest.is_empty() {
                let spare = reader.spare(&buffers.pool, usize::MAX);
                let n = spare.len().min(rest.len());
                spare[..n].copy_from_slice(&rest[..n]);
                reader.filled(n);
                rest = &rest[n..];
                loop {
                    match reader.next(MAX_STREAM_PACKET, buffers).unwrap() {
                        Next::More => break,
                        next => got.push(next),
                    }
                }
            }
            got
        };
        let more = [&wire[part.len()..], &frame(10, 1)].concat();
        for (i, reader) in readers.iter_mut().enumerate() {
            let got = feed(reader, &mut buffers, &more);
            let [first, Next::Frame(second)] = &got[..] else {
                panic!("{} of {i}", got.len())
            };
            match first {
                Next::Frame(first) => assert!(i < 8 && first[..] == wire[..]),
                Next::NoRoom => assert!(i >= 8),
                _ => panic!("{i}"),
            }
            assert_eq!(second.len(), 12);
            reader.end_turn(Duration::ZERO, &buffers.pool, false);
        }
        assert_eq!((budgets.reassembly.used(), buffers.large.live()), (0, 0));
        let [Next::Frame(again)] = &feed(&mut readers[19], &mut buffers, &wire)[..] else {
            panic!("there is room again")
        };
        assert_eq!(again[..], wire[..]);
    }

    #[test]
    fn a_large_frame_that_is_given_up_is_passed_over() {
        let budgets = Budgets::of_one_face(usize::MAX);
        let mut buffers = ReadBuffers::new(&budgets);
        let mut reader = FrameReader::new(budgets.reassembly.share());
        let stream = [frame(500_000, 1), frame(10, 2)].concat();
        let (mut got, mut rest) = (Vec::new(), &stream[..]);
        while !rest.is_empty() {
            let n = reader.spare(&buffers.pool, 70_000).len().min(rest.len());
            reader.spare(&buffers.pool, n)[..n].copy_from_slice(&rest[..n]);
            reader.filled(n);
            rest = &rest[n..];
            loop {
                match reader.next(MAX_STREAM_PACKET, &mut buffers).unwrap() {
                    Next::More => break,
                    Next::NoRoom => got.push(0),
                    Next::Frame(frame) => got.push(frame[2]),
                    Next::Oversize => panic!("it is not too large"),
                }
            }
            if rest.len() < 250_000 {
                reader.give_up_large();
                assert_eq!((budgets.reassembly.used(), buffers.large.live()), (0, 0));
                assert_eq!(reader.large_since(), None);
            }
        }
        assert_eq!(got, [0, 2]);
    }

    #[test]
    fn readers_without_number_that_wait_for_the_rest_of_a_frame_hold_few_chunks() {
        let budgets = Budgets::of_one_face(usize::MAX);
        let budget = &budgets.receive_buffers;
        let mut buffers = ReadBuffers::new(&budgets);
        let wire = frame(5000, 7);
        let mut readers: Vec<_> = (0..1000)
            .map(|_| FrameReader::new(budgets.reassembly.share()))
            .collect();
        for part in [&wire[..1], &wire[1..4000]] {
            for reader in &mut readers {
                reader.spare(&buffers.pool, usize::MAX)[..part.len()].copy_from_slice(part);
                reader.filled(part.len());
                assert!(matches!(reader.next(8800, &mut buffers), Ok(Next::More)));
                reader.end_turn(Duration::ZERO, &buffers.pool, false);
            }
            assert!(budget.used() <= READING_BYTES, "{}", budget.used());
        }
        for reader in &mut readers {
            let part = &wire[4000..];
            reader.spare(&buffers.pool, usize::MAX)[..part.len()].copy_from_slice(part);
            reader.filled(part.len());
            let Ok(Next::Frame(got)) = reader.next(8800, &mut buffers) else {
                panic!("no frame")
            };
            assert_eq!(got[..], wire[..]);
            assert!(matches!(reader.next(8800, &mut buffers), Ok(Next::More)));
            reader.end_turn(Duration::ZERO, &buffers.pool, false);
        }
        assert_eq!(budget.holders(), 0);
    }

    #[test]
    fn oversized_frames_are_passed_over() {
        let stream = [frame(100, 1), frame(1_000_000, 2), frame(100, 3)].concat();
        for reads in [&[CHUNK_BYTES][..], &[999]] {
            let (frames, oversize) = cut(&stream, reads, 8800);
            assert_eq!(frames.iter().map(|f| f.0).collect::<Vec<_>>(), [1, 3]);
            assert_eq!(oversize, 1);
        }
    }

    #[test]
    fn kept_packets_hold_a_bounded_number_of_chunks() {
        let budgets = Budgets::of_one_face(READING_BYTES + 8 * CHUNK_BYTES);
        let mut buffers = ReadBuffers::new(&budgets);
        let mut reader = FrameReader::new(budgets.reassembly.share());
        let one = frame(5000, 1);
        let many = one.repeat(CHUNK_BYTES / one.len());
        let mut kept = Vec::new();
        for round in 0..100 {
            reader.spare(&buffers.pool, usize::MAX)[..many.len()].copy_from_slice(&many);
            reader.filled(many.len());
            let mut first = true;
            while let Next::Frame(frame) = reader.next(8800, &mut buffers).unwrap() {
                if std::mem::take(&mut first) {
                    kept.push(frame);
                }
            }
            assert_eq!(kept.len(), round + 1);
        }
        assert!(kept.iter().all(|frame| frame[..] == one[..]));
        assert!(buffers.pool.live() <= 10, "{}", buffers.pool.live());
        drop(kept);
        assert_eq!(buffers.pool.live(), 0);
    }

    #[test]
    fn no_stream_of_frames() {
        let budgets = Budgets::of_one_face(usize::MAX);
        let mut buffers = ReadBuffers::new(&budgets);
        for bytes in [
            &[0x06, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff][..],
            &[0, 0],
            &[0x06, 0xfd, 0, 1],
        ] {
            let mut reader = FrameReader::new(budgets.reassembly.share());
            reader.spare(&buffers.pool, usize::MAX)[..bytes.len()].copy_from_slice(bytes);
            reader.filled(bytes.len());
            assert!(reader.next(8800, &mut buffers).is_err(), "{bytes:?}");
        }
    }
}
