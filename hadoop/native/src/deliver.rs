//! A segment's content on its way from the packet to its taker: copied, verified
//! where it was copied to, and handed on from there. So what a taker has is what
//! was verified, whatever becomes of the packet meanwhile (see [`own`]).
//!
//! | segment | copied and verified |
//! |---|---|
//! | open, with checksums | some chunks at a time |
//! | sealed | a piece at a time, as it was sealed; [`opened`] |
//! | open, guarded by its packet's digest | with its packet |
//!
//! A copy of a few chunks lies in the processor's nearest cache. To hand it on
//! costs as much as to verify in Java's own array, within a critical section of
//! JNI, which would hold up the garbage collector: 64 KiB, copied and verified,
//! take 4.6 µs either way. To verify them in the packet took 3.9, and with a copy
//! of all 64 KiB they take 7.

mod opened;

use ndn_packet::{Data, Name};

use crate::own;
use crate::seal::Opener;
use crate::segment::{HEADER_LEN, SegmentDigest, SegmentHeader};
use crate::verify::{Verify, chunks_match};

/// Data that is copied and verified at a time, in bytes; a chunk at least. With
/// 2 KiB calls of JNI tell, 16 KiB leave the nearest cache.
const PIECE_BYTES: usize = 4096;

/// Why what came under a name is not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It does not match its own checksums or digest.
    Damaged,
    /// It is what the name stands for in another write.
    Another,
    /// Whoever made it has not the write's key, or it was changed since.
    Forged,
}

/// Why a delivery came to no end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Undelivered<E> {
    /// The segment is not what it should be.
    Refused(Refusal),
    /// The taker would not have it.
    Stopped(E),
}

impl<E> From<Refusal> for Undelivered<E> {
    fn from(refusal: Refusal) -> Self {
        Undelivered::Refused(refusal)
    }
}

/// What a segment must be.
pub(crate) struct Expected<'a> {
    /// The stream's name.
    pub prefix: &'a Name,
    /// Number of the segment.
    pub segment: u64,
    /// What open segments are verified by.
    pub verify: Verify,
    /// What opens the segment where it is sealed.
    pub opener: Option<&'a Opener>,
    /// Its digest, where the taker knows it.
    pub digest: Option<SegmentDigest>,
}

impl Expected<'_> {
    /// Hands the content to `put` in pieces, each with where in the content it
    /// begins, from front to end; `room` is for the copy. The length of the
    /// content.
    ///
    /// # Errors
    /// When the segment is refused: what was put until then is void, verified as
    /// each piece is. When `put` fails.
    pub fn deliver<E>(
        &self,
        data: &Data,
        room: &mut Vec<u8>,
        put: &mut impl FnMut(usize, &[u8]) -> Result<(), E>,
    ) -> Result<usize, Undelivered<E>> {
        let content = data.content_slice();
        if let Some(opener) = self.opener {
            return opened::deliver(self, opener, content, room, put);
        }
        let front = &content[..content.len().min(HEADER_LEN)];
        let front = own::copied(front, first(room, front.len()));
        match SegmentHeader::decode(front) {
            Ok(header) if self.verify.is_up_to_checksums(&header, data) => {
                self.in_pieces(&header, data, room, put)
            }
            _ => self.with_packet(data, put),
        }
    }

    /// `room` has the header already.
    fn in_pieces<E>(
        &self,
        header: &SegmentHeader,
        packet: &Data,
        room: &mut Vec<u8>,
        put: &mut impl FnMut(usize, &[u8]) -> Result<(), E>,
    ) -> Result<usize, Undelivered<E>> {
        let content = packet.content_slice();
        if content.len() != HEADER_LEN + header.body_len() {
            return Err(Refusal::Damaged.into());
        }
        let (front, data) = content.split_at(HEADER_LEN + header.checksums_len());
        let chunk = header.bytes_per_checksum as usize;
        let chunks = (PIECE_BYTES / chunk).max(1);
        let longest = data.len().min(chunk * chunks);
        let own = first(room, front.len() + longest);
        let (own_front, own_piece) = own.split_at_mut(front.len());
        own::copied(&front[HEADER_LEN..], &mut own_front[HEADER_LEN..]);
        put(0, own_front).map_err(Undelivered::Stopped)?;
        let sums = own_front[HEADER_LEN..].chunks(chunks * header.checksum.size());
        let mut at = front.len();
        for (sums, piece) in sums.zip(data.chunks(chunk * chunks)) {
            let piece = own::copied(piece, &mut own_piece[..piece.len()]);
            if chunks_match(header, sums, piece) != Some(true) {
                return Err(Refusal::Damaged.into());
            }
            put(at, piece).map_err(Undelivered::Stopped)?;
            at += piece.len();
        }
        self.bind(own_front)?;
        self.is_still_named(packet)?;
        Ok(at)
    }

    fn with_packet<E>(
        &self,
        data: &Data,
        put: &mut impl FnMut(usize, &[u8]) -> Result<(), E>,
    ) -> Result<usize, Undelivered<E>> {
        let data = own::data(data)
            .filter(|data| self.verify.accepts(data))
            .ok_or(Refusal::Damaged)?;
        let content = data.content_slice();
        self.is_still_named(&data)?;
        self.bind(content)?;
        put(0, content).map_err(Undelivered::Stopped)?;
        Ok(content.len())
    }

    /// Whether the packet is still there, where no digest tells: its memory may
    /// have become another packet's, whose checksums are right as well.
    fn is_still_named(&self, packet: &Data) -> Result<(), Refusal> {
        if self.digest.is_some() {
            return Ok(());
        }
        let name = self.prefix.append_segment(self.segment);
        let there = packet.name().value();
        let mut own = vec![0; there.len()];
        if own::copied(there, &mut own) != name.value() {
            return Err(Refusal::Another);
        }
        Ok(())
    }

    /// Whether it is the write's that the taker wants; the header and checksums
    /// of a segment will do.
    fn bind(&self, content: &[u8]) -> Result<(), Refusal> {
        match self.digest {
            Some(digest) if SegmentDigest::of(content) != Some(digest) => Err(Refusal::Another),
            _ => Ok(()),
        }
    }
}

/// The first bytes of `room`, which grows as needed.
fn first(room: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if room.len() < len {
        room.resize(len, 0);
    }
    &mut room[..len]
}

#[cfg(test)]
mod tests;
