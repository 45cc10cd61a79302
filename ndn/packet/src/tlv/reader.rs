//! Walking over elements, and the evolvability rules.

use super::{is_critical, read_header, read_nonneg};
use crate::DecodeError;

/// One element of a buffer that a [`Reader`] walks over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element<'a> {
    /// TLV-TYPE.
    pub typ: u32,
    /// TLV-VALUE.
    pub value: &'a [u8],
    /// Where the element (its TLV-TYPE) begins in the reader's buffer.
    pub start: usize,
    /// Where its value begins in the reader's buffer.
    pub value_start: usize,
    /// Where it ends in the reader's buffer.
    pub end: usize,
}

impl Element<'_> {
    /// The value as NonNegativeInteger.
    ///
    /// # Errors
    /// [`DecodeError::BadLength`] when the value is not 1, 2, 4 or 8 bytes long.
    pub fn nonneg(&self) -> Result<u64, DecodeError> {
        read_nonneg(self.value).map_err(|_| DecodeError::BadLength {
            typ: self.typ,
            len: self.value.len(),
        })
    }
}

/// Walks over the elements of a buffer, looking at their headers only.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    buf: &'a [u8],
    pos: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the start of `buf`.
    pub fn new(buf: &'a [u8]) -> Self {
        Reader { buf, pos: 0 }
    }

    /// A reader of the elements in `buf[start..end]`, whose offsets count from the start of `buf`.
    pub(crate) fn within(buf: &'a [u8], start: usize, end: usize) -> Self {
        Reader {
            buf: &buf[..end],
            pos: start,
        }
    }

    /// The next element, `None` at the end.
    ///
    /// # Errors
    /// Those of [`read_header`]; [`DecodeError::Truncated`] when the value reaches beyond the buffer.
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Element<'a>>, DecodeError> {
        if self.pos == self.buf.len() {
            return Ok(None);
        }
        let rest = &self.buf[self.pos..];
        let (typ, len, header) = read_header(rest)?;
        if len > (rest.len() - header) as u64 {
            return Err(DecodeError::Truncated);
        }
        let start = self.pos;
        let value_start = start + header;
        let end = value_start + len as usize;
        self.pos = end;
        Ok(Some(Element {
            typ,
            value: &self.buf[value_start..end],
            start,
            value_start,
            end,
        }))
    }
}

/// The evolvability rules for a sequence of elements with a fixed order.
///
/// Each recognized type has a rank; [`Order::take`] says whether the element at hand counts.
#[derive(Default)]
pub(crate) struct Order(u8);

impl Order {
    /// `Ok(true)`: use the element. `Ok(false)`: ignore it (recognized, not critical, out of order).
    #[inline]
    pub(crate) fn take(&mut self, typ: u32, rank: u8) -> Result<bool, DecodeError> {
        if rank > self.0 {
            self.0 = rank;
            Ok(true)
        } else if is_critical(typ) {
            Err(DecodeError::OutOfOrder(typ))
        } else {
            Ok(false)
        }
    }

    /// Refuses an unknown critical element; passes over any other.
    #[inline]
    pub(crate) fn unknown(typ: u32) -> Result<(), DecodeError> {
        if is_critical(typ) {
            Err(DecodeError::UnknownCritical(typ))
        } else {
            Ok(())
        }
    }
}

/// The element that fills `buf` from start to end.
pub(crate) fn read_whole(buf: &[u8], expected: u32) -> Result<Element<'_>, DecodeError> {
    const MAX: usize = u32::MAX as usize; // offsets are kept in 32 bits
    if buf.len() > MAX {
        return Err(DecodeError::TooLarge {
            len: buf.len() as u64,
            max: MAX,
        });
    }
    let element = Reader::new(buf).next()?.ok_or(DecodeError::Truncated)?;
    if element.typ != expected {
        return Err(DecodeError::UnexpectedType {
            expected,
            found: element.typ,
        });
    }
    if element.end != buf.len() {
        return Err(DecodeError::TrailingBytes(buf.len() - element.end));
    }
    Ok(element)
}

/// A part of a packet's wire, as offsets; `start == end == 0` is an absent one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Span {
            start: start as u32,
            end: end as u32,
        }
    }

    pub(crate) fn of(self, wire: &[u8]) -> &[u8] {
        &wire[self.range()]
    }

    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    /// No part of a packet starts at offset 0, so this tells an absent one from an empty one.
    pub(crate) fn is_absent(self) -> bool {
        self.end == 0
    }
}
