//! Type-length-value: VAR-NUMBERs, non-negative integers, elements, type numbers.
//!
//! Source: NDN Packet Format 0.3, "TLV encoding" and "type number assignments".

mod reader;
pub mod types;

pub use reader::{Element, Reader};
pub(crate) use reader::{Order, Span, read_whole};

use crate::DecodeError;
use bytes::BufMut;

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

/// Size in bytes that the element at the start of a stream's buffer says it has, whether or not all of it is there; `None`
/// where not even that is.
#[inline]
pub fn announced_len(buf: &[u8]) -> Option<u64> {
    let (_, len, header) = read_header(buf).ok()?;
    Some(len.saturating_add(header as u64))
}

/// Whether an element of this type may not be ignored when unknown (type 31 or less, or odd).
#[inline]
pub const fn is_critical(typ: u32) -> bool {
    typ <= 31 || typ & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn var_numbers_take_their_shortest_form() {
        let forms: [(u64, &[u8]); 8] = [
            (0, &[0]),
            (252, &[252]),
            (253, &[253, 0, 253]),
            (65535, &[253, 255, 255]),
            (65536, &[254, 0, 1, 0, 0]),
            (u64::from(u32::MAX), &[254, 255, 255, 255, 255]),
            (1 << 32, &[255, 0, 0, 0, 1, 0, 0, 0, 0]),
            (u64::MAX, &[255; 9]),
        ];
        for (value, wire) in forms {
            let mut buf = Vec::new();
            write_var(&mut buf, value);
            assert_eq!(buf, wire);
            assert_eq!(var_len(value), wire.len());
            assert_eq!(read_var(wire), Ok((value, wire.len())));
            for cut in 0..wire.len() {
                assert_eq!(read_var(&wire[..cut]), Err(DecodeError::Truncated));
            }
        }
        for longer in [
            &[253, 0, 252][..],
            &[254, 0, 0, 255, 255],
            &[255, 0, 0, 0, 0, 255, 255, 255, 255],
        ] {
            assert_eq!(read_var(longer), Err(DecodeError::NonMinimal));
        }
    }

    #[test]
    fn numbers_have_one_two_four_or_eight_bytes() {
        for (value, wire) in [
            (0, &[0][..]),
            (255, &[255]),
            (256, &[1, 0]),
            (65536, &[0, 1, 0, 0]),
            (1 << 32, &[0, 0, 0, 1, 0, 0, 0, 0]),
        ] {
            let mut buf = Vec::new();
            write_nonneg(&mut buf, value);
            assert_eq!(buf, wire);
            assert_eq!(read_nonneg(wire), Ok(value));
        }
        assert_eq!(
            read_nonneg(&[0, 0, 0, 1]),
            Ok(1),
            "more bytes than needed are allowed"
        );
        for len in [0, 3, 5, 6, 7, 9] {
            assert_eq!(read_nonneg(&vec![0; len]), Err(DecodeError::NonMinimal));
        }
    }

    #[test]
    fn a_frame_is_found_in_a_stream() {
        let frame = [0x05, 0x03, 1, 2, 3, 0x06];
        for cut in 0..5 {
            assert_eq!(frame_len(&frame[..cut], 8800), Ok(None));
        }
        assert_eq!(frame_len(&frame, 8800), Ok(Some(5)));
        assert_eq!(frame_len(&frame, 5), Ok(Some(5)));
        assert_eq!(
            frame_len(&frame[..2], 4),
            Err(DecodeError::TooLarge { len: 5, max: 4 })
        );
        let endless = [0x06, 255, 255, 255, 255, 255, 255, 255, 255, 255];
        assert_eq!(
            frame_len(&endless, 8800),
            Err(DecodeError::TooLarge {
                len: u64::MAX,
                max: 8800
            })
        );
        assert_eq!(
            frame_len(&[0, 0], 8800),
            Err(DecodeError::TypeOutOfRange(0))
        );
        assert_eq!(
            frame_len(&[6, 253, 0, 1, 0], 8800),
            Err(DecodeError::NonMinimal)
        );
    }

    #[test]
    fn low_and_odd_types_are_critical() {
        assert!(is_critical(0x18) && is_critical(0x1f) && is_critical(0x21) && is_critical(0xfd));
        assert!(!is_critical(0x20) && !is_critical(0x22) && !is_critical(0xfc));
    }
}
