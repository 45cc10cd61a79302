//! Reading and writing the small elements that the protocol is made of.

use bytes::BytesMut;
use ndn_packet::tlv::{self, Element, Reader, types as packet};
use ndn_packet::{DecodeError, Name, NameRef};

/// Calls `f` with each element of a value.
pub(super) fn each<'a>(
    value: &'a [u8],
    mut f: impl FnMut(Element<'a>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let mut reader = Reader::new(value);
    while let Some(element) = reader.next()? {
        f(element)?;
    }
    Ok(())
}

/// The value of the element of this type that `bytes` begin with.
pub(super) fn value_of<'a>(
    bytes: &'a [u8],
    typ: u32,
    what: &'static str,
) -> Result<&'a [u8], DecodeError> {
    let element = Reader::new(bytes)
        .next()?
        .ok_or(DecodeError::Missing(what))?;
    if element.typ == typ {
        Ok(element.value)
    } else {
        Err(DecodeError::UnexpectedType {
            expected: typ,
            found: element.typ,
        })
    }
}

/// A name from its TLV-VALUE.
pub(super) fn name(value: &[u8]) -> Result<Name, DecodeError> {
    Ok(NameRef::from_value(value)?.to_name())
}

/// The name in an element that holds a Name element.
pub(super) fn nested_name(value: &[u8]) -> Result<Name, DecodeError> {
    name(value_of(value, packet::NAME, "Name")?)
}

/// Text; what is no UTF-8 is shown as such.
pub(super) fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

/// Writes a number.
pub(super) fn put(buf: &mut BytesMut, typ: u32, number: u64) {
    tlv::write_nonneg_tlv(buf, typ, number);
}

/// Writes a number, if there is one.
pub(super) fn put_some(buf: &mut BytesMut, typ: u32, number: Option<u64>) {
    if let Some(number) = number {
        put(buf, typ, number);
    }
}

/// Writes a text.
pub(super) fn put_text(buf: &mut BytesMut, typ: u32, text: &str) {
    tlv::write_tlv(buf, typ, text.as_bytes());
}

/// Writes an element that holds a Name element.
pub(super) fn put_nested_name(buf: &mut BytesMut, typ: u32, name: &Name) {
    tlv::write_header(buf, typ, name.wire_len());
    name.encode(buf);
}

/// Writes an element whose value `f` writes.
pub(super) fn put_nested(buf: &mut BytesMut, typ: u32, f: impl FnOnce(&mut BytesMut)) {
    let mut value = BytesMut::new();
    f(&mut value);
    tlv::write_tlv(buf, typ, &value);
}
