//! Segments of a file that are signed together.

use std::ops::Range;

use bytes::Bytes;
use ndn_packet::{Batch, MAX_JUMBO_PACKET, MAX_PACKET, Name, SigningKey};

use super::{File, Piece};

/// Most segments that have one signature together.
const MAX_BATCH: u64 = 64;

/// Bytes of content that they have at most, all of which has to be at hand before the first is signed.
const MAX_BATCH_BYTES: u64 = 512 << 10;

/// What a packet has around name and content, beside what is signed with: a segment number and its length twice, and the
/// headers of eight elements.
const AROUND: usize = 96;

impl File {
    /// Which segments have one signature by `key` together, the `n`th among them; `None` beyond the last, and where packets
    /// would become longer by it than faces take.
    pub fn batch(&self, n: u64, key: &SigningKey) -> Option<Range<u64>> {
        let segment_bytes = self.segmenter.segment_bytes();
        let size = (MAX_BATCH_BYTES / segment_bytes).clamp(1, MAX_BATCH);
        let first = n / size * size;
        let beyond = self.segmenter.last().saturating_add(1);
        let batch = first..beyond.min(first.saturating_add(size));
        let plain = self.versioned().wire_len() as u64 + segment_bytes + AROUND as u64;
        let most = match plain <= MAX_PACKET as u64 {
            true => MAX_PACKET,
            false => MAX_JUMBO_PACKET,
        };
        let tail = Batch::tail_len(key, size as usize) as u64;
        (n < beyond && plain + tail <= most as u64).then_some(batch)
    }

    /// Where the bytes of a batch are.
    pub fn batch_pieces(&self, batch: &Range<u64>) -> Option<Vec<Piece>> {
        let first = self.segmenter.range(batch.start)?;
        let last = self.segmenter.range(batch.end.checked_sub(1)?)?;
        self.pieces_in(first.start..last.end)
    }

    /// The segments of a batch, with the bytes of its `pieces`, whose block segments are `contents`, one for each.
    ///
    /// # Errors
    /// The name of a block segment that does not have the bytes it should.
    pub fn signed_batch(
        &self,
        batch: &Range<u64>,
        pieces: &[Piece],
        contents: &[Bytes],
        key: &SigningKey,
    ) -> Result<Vec<Bytes>, Name> {
        let mut bytes = Vec::with_capacity(pieces.len());
        for (piece, content) in pieces.iter().zip(contents) {
            bytes.push(piece.of(content).ok_or_else(|| piece.name.clone())?);
        }
        let mut bytes = bytes.into_iter();
        let mut left: &[u8] = &[];
        let mut packets = Batch::new(key, (batch.end - batch.start) as usize);
        for n in batch.clone() {
            let fill = |_, mut place: &mut [u8]| -> Result<(), Name> {
                while !place.is_empty() {
                    if left.is_empty() {
                        left = bytes.next().ok_or_else(|| self.versioned().clone())?;
                    }
                    let len = left.len().min(place.len());
                    let (this, rest) = place.split_at_mut(len);
                    let (these, more) = left.split_at(len);
                    this.copy_from_slice(these);
                    (place, left) = (rest, more);
                }
                Ok(())
            };
            self.segmenter.join(n, &mut packets, fill)?;
        }
        Ok(packets.sign())
    }
}
