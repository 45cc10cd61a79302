//! Type-length-value: VAR-NUMBERs, non-negative integers, elements, type numbers.
//!
//! Source: NDN Packet Format 0.3, "TLV encoding" and "type number assignments".

use crate::DecodeError;
use bytes::BufMut;

/// Type numbers of NDN Packet Format 0.3.
pub mod types {
    /// Interest packet.
    pub const INTEREST: u32 = 0x05;
    /// Data packet.
    pub const DATA: u32 = 0x06;
    /// Name.
    pub const NAME: u32 = 0x07;
    /// Name component: SHA-256 digest of the whole Data packet.
    pub const IMPLICIT_SHA256_DIGEST: u16 = 0x01;
    /// Name component: SHA-256 digest of an Interest's parameters.
    pub const PARAMETERS_SHA256_DIGEST: u16 = 0x02;
    /// Name component: plain bytes.
    pub const GENERIC_COMPONENT: u16 = 0x08;
    /// Name component: keyword, `32=` in a URI.
    pub const KEYWORD_COMPONENT: u16 = 0x20;
    /// Name component: segment number, `seg=`.
    pub const SEGMENT_COMPONENT: u16 = 0x32;
    /// Name component: byte offset, `off=`.
    pub const BYTE_OFFSET_COMPONENT: u16 = 0x34;
    /// Name component: version, `v=`.
    pub const VERSION_COMPONENT: u16 = 0x36;
    /// Name component: timestamp in microseconds since the Unix epoch, `t=`.
    pub const TIMESTAMP_COMPONENT: u16 = 0x38;
    /// Name component: sequence number, `seq=`.
    pub const SEQUENCE_COMPONENT: u16 = 0x3a;
    /// Interest: the Data name may be longer.
    pub const CAN_BE_PREFIX: u32 = 0x21;
    /// Interest: no stale Data.
    pub const MUST_BE_FRESH: u32 = 0x12;
    /// Interest: names of delegations.
    pub const FORWARDING_HINT: u32 = 0x1e;
    /// Interest: four random bytes.
    pub const NONCE: u32 = 0x0a;
    /// Interest: lifetime in milliseconds.
    pub const INTEREST_LIFETIME: u32 = 0x0c;
    /// Interest: hops left.
    pub const HOP_LIMIT: u32 = 0x22;
    /// Interest: parameters of the application.
    pub const APPLICATION_PARAMETERS: u32 = 0x24;
    /// Interest: signature info.
    pub const INTEREST_SIGNATURE_INFO: u32 = 0x2c;
    /// Interest: signature value.
    pub const INTEREST_SIGNATURE_VALUE: u32 = 0x2e;
    /// Data: meta info.
    pub const META_INFO: u32 = 0x14;
    /// Data: content.
    pub const CONTENT: u32 = 0x15;
    /// Data: signature info.
    pub const SIGNATURE_INFO: u32 = 0x16;
    /// Data: signature value.
    pub const SIGNATURE_VALUE: u32 = 0x17;
    /// MetaInfo: content type.
    pub const CONTENT_TYPE: u32 = 0x18;
    /// MetaInfo: freshness period in milliseconds.
    pub const FRESHNESS_PERIOD: u32 = 0x19;
    /// MetaInfo: last component of the last segment's name.
    pub const FINAL_BLOCK_ID: u32 = 0x1a;
    /// SignatureInfo: signature type.
    pub const SIGNATURE_TYPE: u32 = 0x1b;
    /// SignatureInfo: where the key is.
    pub const KEY_LOCATOR: u32 = 0x1c;
    /// KeyLocator: digest of the key.
    pub const KEY_DIGEST: u32 = 0x1d;
    /// InterestSignatureInfo: nonce.
    pub const SIGNATURE_NONCE: u32 = 0x26;
    /// InterestSignatureInfo: time in milliseconds since the Unix epoch.
    pub const SIGNATURE_TIME: u32 = 0x28;
    /// InterestSignatureInfo: sequence number.
    pub const SIGNATURE_SEQ_NUM: u32 = 0x2a;
    /// SignatureInfo of a certificate: validity period.
    pub const VALIDITY_PERIOD: u32 = 0xfd;
    /// ValidityPeriod: first moment, `YYYYMMDDThhmmss`.
    pub const NOT_BEFORE: u32 = 0xfe;
    /// ValidityPeriod: last moment, `YYYYMMDDThhmmss`.
    pub const NOT_AFTER: u32 = 0xff;
    /// NDNLPv2 packet.
    pub const LP_PACKET: u32 = 0x64;
}

/// Reads a VAR-NUMBER at the start of `buf`: its value and how many bytes it took.
///
/// # Errors
/// [`DecodeError::Truncated`] when `buf` is too short, [`DecodeError::NonMinimal`] for a longer form than needed.
#[inline]
pub fn read_var(buf: &[u8]) -> Result<(u64, usize), DecodeError> {
    match *buf {
        [] => Err(DecodeError::Truncated),
        [b, ..] if b < 253 => Ok((u64::from(b), 1)),
        [253, a, b, ..] => minimal(u64::from(u16::from_be_bytes([a, b])), 253, 3),
        [254, a, b, c, d, ..] => minimal(u64::from(u32::from_be_bytes([a, b, c, d])), 1 << 16, 5),
        [255, a, b, c, d, e, f, g, h, ..] => {
            minimal(u64::from_be_bytes([a, b, c, d, e, f, g, h]), 1 << 32, 9)
        }
        _ => Err(DecodeError::Truncated),
    }
}

#[inline]
fn minimal(value: u64, least: u64, len: usize) -> Result<(u64, usize), DecodeError> {
    if value < least {
        Err(DecodeError::NonMinimal)
    } else {
        Ok((value, len))
    }
}

/// Writes `value` as a VAR-NUMBER in its shortest form.
#[inline]
pub fn write_var(buf: &mut impl BufMut, value: u64) {
    if value < 253 {
        buf.put_u8(value as u8);
    } else if value < 1 << 16 {
        buf.put_u8(253);
        buf.put_u16(value as u16);
    } else if value < 1 << 32 {
        buf.put_u8(254);
        buf.put_u32(value as u32);
    } else {
        buf.put_u8(255);
        buf.put_u64(value);
    }
}

/// How many bytes [`write_var`] writes for `value`.
#[inline]
pub const fn var_len(value: u64) -> usize {
    if value < 253 {
        1
    } else if value < 1 << 16 {
        3
    } else if value < 1 << 32 {
        5
    } else {
        9
    }
}

/// How many bytes an element of this type has whose value is `len` bytes long.
#[inline]
pub const fn tlv_len(typ: u32, len: usize) -> usize {
    var_len(typ as u64) + var_len(len as u64) + len
}

/// Writes type and length of an element; the `len` bytes of value must follow.
#[inline]
pub fn write_header(buf: &mut impl BufMut, typ: u32, len: usize) {
    write_var(buf, u64::from(typ));
    write_var(buf, len as u64);
}

/// Writes a whole element.
#[inline]
pub fn write_tlv(buf: &mut impl BufMut, typ: u32, value: &[u8]) {
    write_header(buf, typ, value.len());
    buf.put_slice(value);
}

/// How many bytes a NonNegativeInteger takes: 1, 2, 4 or 8.
#[inline]
pub const fn nonneg_len(value: u64) -> usize {
    if value < 1 << 8 {
        1
    } else if value < 1 << 16 {
        2
    } else if value < 1 << 32 {
        4
    } else {
        8
    }
}

/// Writes a NonNegativeInteger (the value only).
#[inline]
pub fn write_nonneg(buf: &mut impl BufMut, value: u64) {
    match nonneg_len(value) {
        1 => buf.put_u8(value as u8),
        2 => buf.put_u16(value as u16),
        4 => buf.put_u32(value as u32),
        _ => buf.put_u64(value),
    }
}

/// Writes an element whose value is a NonNegativeInteger.
#[inline]
pub fn write_nonneg_tlv(buf: &mut impl BufMut, typ: u32, value: u64) {
    write_header(buf, typ, nonneg_len(value));
    write_nonneg(buf, value);
}

/// How many bytes [`write_nonneg_tlv`] writes.
#[inline]
pub const fn nonneg_tlv_len(typ: u32, value: u64) -> usize {
    tlv_len(typ, nonneg_len(value))
}

/// Reads a NonNegativeInteger that fills `value` (1, 2, 4 or 8 bytes, any of which may be more than needed).
///
/// # Errors
/// [`DecodeError::NonMinimal`] for another length.
#[inline]
pub fn read_nonneg(value: &[u8]) -> Result<u64, DecodeError> {
    match *value {
        [a] => Ok(u64::from(a)),
        [a, b] => Ok(u64::from(u16::from_be_bytes([a, b]))),
        [a, b, c, d] => Ok(u64::from(u32::from_be_bytes([a, b, c, d]))),
        [a, b, c, d, e, f, g, h] => Ok(u64::from_be_bytes([a, b, c, d, e, f, g, h])),
        _ => Err(DecodeError::NonMinimal),
    }
}

/// Reads type and length at the start of `buf`: type, TLV-LENGTH, size of both together.
///
/// # Errors
/// As [`read_var`]; [`DecodeError::TypeOutOfRange`] for type 0 or above 2^32-1.
#[inline]
pub fn read_header(buf: &[u8]) -> Result<(u32, u64, usize), DecodeError> {
    let (typ, a) = read_var(buf)?;
    if typ == 0 || typ > u64::from(u32::MAX) {
        return Err(DecodeError::TypeOutOfRange(typ));
    }
    let (len, b) = read_var(&buf[a..])?;
    Ok((typ as u32, len, a + b))
}

/// Size in bytes of the first whole element in a stream's buffer; `None` while it is incomplete.
///
/// # Errors
/// Those of [`read_header`] except truncation, and [`DecodeError::TooLarge`] as soon as the header claims more than
/// `max` bytes. A stream face cannot go on after an error: it has lost where packets begin.
#[inline]
pub fn frame_len(buf: &[u8], max: usize) -> Result<Option<usize>, DecodeError> {
    match read_header(buf) {
        Ok((_, len, header)) => {
            let whole = len.saturating_add(header as u64);
            if whole > max as u64 {
                return Err(DecodeError::TooLarge { len: whole, max });
            }
            Ok((whole <= buf.len() as u64).then_some(whole as usize))
        }
        Err(DecodeError::Truncated) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Whether an element of this type may not be ignored when unknown (type 31 or less, or odd).
#[inline]
pub const fn is_critical(typ: u32) -> bool {
    typ <= 31 || typ & 1 == 1
}

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
