//! What is sealed, on its way to its taker: each piece is copied, opened, checked and handed on before the next.

use super::{Expected, Refusal, Undelivered, first};
use crate::seal::{Forged, Opener};
use crate::segment::{HEADER_LEN, SegmentHeader};
use crate::verify::Chunks;

impl From<Forged> for Refusal {
    fn from(_: Forged) -> Self {
        Refusal::Forged
    }
}

impl<E> From<Forged> for Undelivered<E> {
    fn from(forged: Forged) -> Self {
        Undelivered::Refused(forged.into())
    }
}

/// As [`Expected::deliver`], of what `opener` opens. The pieces up to the last
/// checksum are handed on together, since what binds them to a write covers them all.
pub(super) fn deliver<E>(
    expected: &Expected<'_>,
    opener: &Opener,
    content: &[u8],
    room: &mut Vec<u8>,
    put: &mut impl FnMut(usize, &[u8]) -> Result<(), E>,
) -> Result<usize, Undelivered<E>> {
    let name = expected.prefix.append_segment(expected.segment);
    let mut way = Way {
        expected,
        room,
        held: 0,
        chunks: None,
    };
    let len = opener.open_pieces(name.value(), expected.segment, content, |at, piece| {
        way.go_on(at, piece, put)
    })?;
    way.end(len, put)?;
    Ok(len)
}

struct Way<'a> {
    expected: &'a Expected<'a>,
    room: &'a mut Vec<u8>,
    /// Bytes from the front that `room` has, of what is not handed on yet.
    held: usize,
    /// What checks the data, once all that precedes them was handed on; `None` within
    /// where there is nothing to check them by.
    chunks: Option<Option<Chunks>>,
}

impl Way<'_> {
    fn go_on<E>(
        &mut self,
        at: usize,
        piece: &[u8],
        put: &mut impl FnMut(usize, &[u8]) -> Result<(), E>,
    ) -> Result<(), Undelivered<E>> {
        if let Some(chunks) = &mut self.chunks {
            if chunks
                .as_mut()
                .is_some_and(|chunks| !chunks.take(self.room, piece))
            {
                return Err(Refusal::Damaged.into());
            }
            return put(at, piece).map_err(Undelivered::Stopped);
        }
        self.held = at + piece.len();
        first(self.room, self.held)[at..].copy_from_slice(piece);
        match SegmentHeader::decode(&self.room[..self.held]) {
            Ok(header) if HEADER_LEN + header.checksums_len() <= self.held => {
                self.hand_on(Some(&header), put)
            }
            _ => Ok(()),
        }
    }

    /// Hands on what is held.
    fn hand_on<E>(
        &mut self,
        header: Option<&SegmentHeader>,
        put: &mut impl FnMut(usize, &[u8]) -> Result<(), E>,
    ) -> Result<(), Undelivered<E>> {
        let held = &self.room[..self.held];
        self.expected.bind(held)?;
        // Who takes by a digest has the checksums of its record to check by.
        let header = header.filter(|_| self.expected.digest.is_none());
        let mut chunks = header.and_then(Chunks::new);
        if let (Some(chunks), Some(header)) = (&mut chunks, header) {
            let data = &held[HEADER_LEN + header.checksums_len()..];
            if !chunks.take(held, data) {
                return Err(Refusal::Damaged.into());
            }
        }
        put(0, held).map_err(Undelivered::Stopped)?;
        self.chunks = Some(chunks);
        Ok(())
    }

    /// The content was as long.
    fn end<E>(
        mut self,
        len: usize,
        put: &mut impl FnMut(usize, &[u8]) -> Result<(), E>,
    ) -> Result<(), Undelivered<E>> {
        match self.chunks.take() {
            Some(Some(chunks)) => match chunks.are_all(self.room, len) {
                true => Ok(()),
                false => Err(Refusal::Damaged.into()),
            },
            Some(None) => Ok(()),
            // No segment, or one that ends before its data.
            None if self.expected.digest.is_none()
                && SegmentHeader::decode(&self.room[..len]).is_ok() =>
            {
                Err(Refusal::Damaged.into())
            }
            None => self.hand_on(None, put),
        }
    }
}
