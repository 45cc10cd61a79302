//! Cuts the frames of a byte stream out of large chunks, without copying the large ones.

use bytes::Bytes;
use ndn_packet::{DecodeError, tlv};

use crate::face::chunk::{Chunk, ChunkPool, SmallFrames};

/// Size of the chunks that streams are read into.
pub(crate) const CHUNK_BYTES: usize = 256 * 1024;
/// A batch of frames below this many bytes is copied out, so that the chunk can be used on:
/// at most this part of a chunk is wasted by what is cut from it.
const FREEZE_FROM: usize = CHUNK_BYTES / 4;
/// A frame above the agreed size is skipped up to this length; beyond, it is no frame at all.
const MAX_SKIP: u64 = 16 << 20;

/// The buffers that all readers of a loop share.
pub(crate) struct ReadBuffers {
    pub pool: ChunkPool,
    pub small: SmallFrames,
}

impl ReadBuffers {
    /// Chunks of `max_live_bytes` may be held on to by packets; beyond, packets are copied.
    pub fn new(max_live_bytes: usize) -> Self {
        Self {
            pool: ChunkPool::new(CHUNK_BYTES, 64, max_live_bytes),
            small: SmallFrames::default(),
        }
    }
}

/// Reads one stream.
pub(crate) struct FrameReader {
    state: State,
    /// Bytes of a frame above the limit that are still to come.
    skip: usize,
}

enum State {
    /// Nothing is held.
    Empty,
    /// A chunk whose first bytes (the number) are filled, with no whole frame before `at`.
    Filling {
        chunk: Chunk,
        at: usize,
        filled: usize,
    },
    /// A full chunk being cut; `at` is where the next frame begins.
    Cutting { bytes: Bytes, at: usize },
}

/// What stands at the reader's place in the stream.
pub(crate) enum Next {
    Frame(Bytes),
    /// A frame above the limit was passed over.
    Oversize,
    /// No whole frame: read on.
    More,
}

impl FrameReader {
    pub fn new() -> Self {
        Self {
            state: State::Empty,
            skip: 0,
        }
    }

    /// Spare bytes to read into; never none.
    pub fn spare(&mut self, pool: &ChunkPool) -> &mut [u8] {
        if let State::Empty = self.state {
            self.state = State::Filling {
                chunk: pool.take(),
                at: 0,
                filled: 0,
            };
        }
        match &mut self.state {
            State::Filling { chunk, filled, .. } => &mut chunk.as_mut()[*filled..],
            // `next` has said `More` before anybody reads on, and that leaves no chunk uncut.
            State::Empty | State::Cutting { .. } => &mut [],
        }
    }

    /// `n` bytes were read into the spare ones.
    pub fn filled(&mut self, n: usize) {
        if let State::Filling { filled, .. } = &mut self.state {
            *filled += n;
        }
    }

    /// Gives an unused chunk back while nothing comes.
    pub fn rest(&mut self) {
        if let State::Filling { filled: 0, .. } = self.state {
            self.state = State::Empty;
        }
    }

    /// Forgets what is held: the rest of what was read is no frame.
    pub fn clear(&mut self) {
        self.state = State::Empty;
        self.skip = 0;
    }

    /// The next frame, at most `limit` bytes long.
    ///
    /// # Errors
    /// The bytes are no TLV stream; there is no way to find the next frame.
    pub fn next(&mut self, limit: usize, buffers: &mut ReadBuffers) -> Result<Next, DecodeError> {
        let held = match &self.state {
            State::Empty => return Ok(Next::More),
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
            return Ok(Next::Oversize);
        }
        let len = match tlv::frame_len(held, limit) {
            Ok(Some(len)) => len,
            Ok(None) => {
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
            self.large(len, &buffers.pool)
        };
        self.advance(len);
        Ok(Next::Frame(frame))
    }

    fn large(&mut self, len: usize, pool: &ChunkPool) -> Bytes {
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
                self.large(len, pool)
            }
            State::Cutting { bytes, at } => bytes.slice(*at..*at + len),
            State::Empty => Bytes::new(),
        }
    }

    fn advance(&mut self, len: usize) {
        match &mut self.state {
            State::Filling { at, .. } | State::Cutting { at, .. } => *at += len,
            State::Empty => {}
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
            State::Empty => State::Empty,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(len: usize, fill: u8) -> Vec<u8> {
        let mut out = Vec::new();
        tlv::write_tlv(&mut out, 6, &vec![fill; len]);
        out
    }

    /// Feeds `stream` in reads of the given sizes and returns the frames' fill bytes and sizes.
    fn cut(stream: &[u8], reads: &[usize], limit: usize) -> (Vec<(u8, usize)>, usize) {
        let mut buffers = ReadBuffers::new(usize::MAX);
        let mut reader = FrameReader::new();
        let (mut frames, mut oversize) = (Vec::new(), 0);
        let (mut at, mut turn) = (0, 0);
        while at < stream.len() {
            let spare = reader.spare(&buffers.pool);
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
                    Next::More => break,
                }
            }
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
        let mut buffers = ReadBuffers::new(8 * CHUNK_BYTES);
        let mut reader = FrameReader::new();
        let one = frame(5000, 1);
        let many = one.repeat(CHUNK_BYTES / one.len());
        let mut kept = Vec::new();
        for round in 0..100 {
            reader.spare(&buffers.pool)[..many.len()].copy_from_slice(&many);
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
        let mut buffers = ReadBuffers::new(usize::MAX);
        for bytes in [
            &[0x06, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff][..],
            &[0, 0],
            &[0x06, 0xfd, 0, 1],
        ] {
            let mut reader = FrameReader::new();
            reader.spare(&buffers.pool)[..bytes.len()].copy_from_slice(bytes);
            reader.filled(bytes.len());
            assert!(reader.next(8800, &mut buffers).is_err(), "{bytes:?}");
        }
    }
}
