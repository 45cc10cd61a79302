//! Data packets: a view over their bytes.

#[cfg(test)]
mod tests;

use crate::compact;
use crate::tlv::{self, Order, Reader, Span, types};
use crate::{
    Component, DataBuilder, DecodeError, KeyLocatorRef, Name, NameRef, SignatureInfo, sha256,
    signature_type,
};
use bytes::Bytes;
use std::time::Duration;

/// ContentType numbers.
pub mod content_type {
    /// Payload.
    pub const BLOB: u64 = 0;
    /// Another name (delegations).
    pub const LINK: u64 = 1;
    /// Public key or certificate.
    pub const KEY: u64 = 2;
    /// Application-level Nack.
    pub const NACK: u64 = 3;
    /// Announcement of a prefix.
    pub const PREFIX_ANNOUNCEMENT: u64 = 5;
}

/// A Data packet; cloning shares the bytes. Parsing looks at element headers only, never at the content.
#[derive(Clone)]
pub struct Data {
    wire: Bytes,
    /// Value of the Name.
    name: Span,
    /// Value of the Content.
    content: Span,
    /// Value of FinalBlockId, one component.
    final_block_id: Span,
    /// Value of SignatureInfo.
    signature_info: Span,
    /// Value of SignatureValue.
    signature_value: Span,
    /// Start of the Name element up to SignatureValue.
    signed: Span,
    content_type: u64,
    freshness_ms: Option<u64>,
    signature_type: u64,
}

impl Data {
    /// Starts a new Data packet named `name`.
    pub fn builder(name: &Name) -> DataBuilder<'_> {
        DataBuilder::new(name)
    }

    /// Reads a Data packet that fills `wire`.
    ///
    /// # Errors
    /// [`DecodeError`] when the packet breaks a rule of Packet Format 0.3. The signature is not checked.
    pub fn parse(wire: Bytes) -> Result<Self, DecodeError> {
        let outer = tlv::read_whole(&wire, types::DATA)?;
        let mut data = Data {
            name: Span::default(),
            content: Span::default(),
            final_block_id: Span::default(),
            signature_info: Span::default(),
            signature_value: Span::default(),
            signed: Span::default(),
            content_type: content_type::BLOB,
            freshness_ms: None,
            signature_type: 0,
            wire: Bytes::new(),
        };
        data.read(&wire, outer.value_start)?;
        data.wire = wire;
        Ok(data)
    }

    fn read(&mut self, wire: &[u8], start: usize) -> Result<(), DecodeError> {
        let mut reader = Reader::within(wire, start, wire.len());
        let name = reader.next()?.ok_or(DecodeError::Missing("Name"))?;
        if name.typ != types::NAME {
            return Err(DecodeError::UnexpectedType {
                expected: types::NAME,
                found: name.typ,
            });
        }
        NameRef::from_value(name.value)?;
        self.name = Span::new(name.value_start, name.end);
        let mut order = Order::default();
        while let Some(e) = reader.next()? {
            let value = Span::new(e.value_start, e.end);
            match e.typ {
                types::META_INFO if order.take(e.typ, 1)? => self.read_meta_info(wire, value)?,
                types::CONTENT if order.take(e.typ, 2)? => self.content = value,
                types::SIGNATURE_INFO if order.take(e.typ, 3)? => {
                    self.signature_type = SignatureInfo::parse(e.value, false)?.signature_type;
                    self.signature_info = value;
                }
                types::SIGNATURE_VALUE if order.take(e.typ, 4)? => {
                    self.signature_value = value;
                    self.signed = Span::new(name.start, e.start);
                }
                _ => Order::unknown(e.typ)?,
            }
        }
        if self.signature_info.is_absent() {
            return Err(DecodeError::Missing("SignatureInfo"));
        }
        if self.signature_value.is_absent() {
            return Err(DecodeError::Missing("SignatureValue"));
        }
        Ok(())
    }

    fn read_meta_info(&mut self, wire: &[u8], span: Span) -> Result<(), DecodeError> {
        let mut reader = Reader::within(wire, span.start as usize, span.end as usize);
        let mut order = Order::default();
        while let Some(e) = reader.next()? {
            match e.typ {
                types::CONTENT_TYPE if order.take(e.typ, 1)? => self.content_type = e.nonneg()?,
                types::FRESHNESS_PERIOD if order.take(e.typ, 2)? => {
                    self.freshness_ms = Some(e.nonneg()?)
                }
                types::FINAL_BLOCK_ID if order.take(e.typ, 3)? => {
                    if NameRef::from_value(e.value)?.len() != 1 {
                        return Err(DecodeError::Invalid(
                            "FinalBlockId: one name component is required",
                        ));
                    }
                    self.final_block_id = Span::new(e.value_start, e.end);
                }
                _ => Order::unknown(e.typ)?,
            }
        }
        Ok(())
    }

    /// The whole packet.
    pub fn wire(&self) -> &Bytes {
        &self.wire
    }

    /// A copy whose bytes are its own, so that it does not keep a larger buffer alive; nothing is parsed again.
    ///
    /// Of a packet of up to 5,000 bytes the count of users lies right in front of the bytes: on the cache line of the
    /// first of them.
    pub fn compact(&self) -> Data {
        Data {
            wire: compact::copy(&self.wire),
            ..self.clone()
        }
    }

    /// Bytes of memory that [`Data::compact`] allocates for a packet of so many bytes.
    pub fn compact_bytes(wire_len: usize) -> usize {
        compact::footprint(wire_len)
    }

    /// The name.
    pub fn name(&self) -> NameRef<'_> {
        NameRef::from_checked(self.name.of(&self.wire))
    }

    /// The name as an owned value that shares (and keeps alive) the packet's buffer.
    pub fn name_owned(&self) -> Name {
        Name::from_checked(self.wire.slice(self.name.range()))
    }

    /// The content, shared; empty when the packet has none.
    pub fn content(&self) -> Bytes {
        self.wire.slice(self.content.range())
    }

    /// The content, borrowed; empty when the packet has none.
    pub fn content_slice(&self) -> &[u8] {
        self.content.of(&self.wire)
    }

    /// The content type, one of [`content_type`] or another number.
    pub fn content_type(&self) -> u64 {
        self.content_type
    }

    /// How long the packet is fresh after it came, if stated.
    pub fn freshness(&self) -> Option<Duration> {
        self.freshness_ms.map(Duration::from_millis)
    }

    /// Last component of the last segment's name, if stated.
    pub fn final_block_id(&self) -> Option<Component<'_>> {
        NameRef::from_checked(self.final_block_id.of(&self.wire)).get(0)
    }

    /// Whether FinalBlockId equals the last component of the name: this is the last segment.
    pub fn is_final_block(&self) -> bool {
        self.final_block_id()
            .is_some_and(|f| self.name().last() == Some(f))
    }

    /// SignatureType number, one of [`signature_type`] or another number.
    pub fn signature_type(&self) -> u64 {
        self.signature_type
    }

    /// SignatureInfo.
    pub fn signature_info(&self) -> SignatureInfo<'_> {
        SignatureInfo::parse(self.signature_info.of(&self.wire), false)
            .expect("checked when the packet was parsed")
    }

    /// TLV-VALUE of SignatureInfo.
    pub(crate) fn signature_info_value(&self) -> &[u8] {
        self.signature_info.of(&self.wire)
    }

    /// Whether nothing stands between SignatureInfo and SignatureValue.
    pub(crate) fn signature_info_ends_signed(&self) -> bool {
        self.signature_info.end == self.signed.end
    }

    /// KeyLocator of the signature.
    pub fn key_locator(&self) -> Option<KeyLocatorRef<'_>> {
        self.signature_info().key_locator
    }

    /// What the signature covers: from Name up to, without, SignatureValue.
    pub fn signed_portion(&self) -> &[u8] {
        self.signed.of(&self.wire)
    }

    /// SignatureValue.
    pub fn signature_value(&self) -> &[u8] {
        self.signature_value.of(&self.wire)
    }

    /// Whether the packet is signed with DigestSha256 and the digest is right: one pass of SHA-256 over the packet.
    pub fn verify_digest(&self) -> bool {
        self.signature_type == signature_type::DIGEST_SHA256
            && sha256(self.signed_portion()) == self.signature_value()
    }

    /// SHA-256 of the whole packet: one pass over it.
    pub fn implicit_digest(&self) -> [u8; 32] {
        sha256(&self.wire)
    }

    /// The name followed by the implicit digest: one pass of SHA-256 over the packet.
    pub fn full_name(&self) -> Name {
        self.name().append(Component {
            typ: types::IMPLICIT_SHA256_DIGEST,
            value: &self.implicit_digest(),
        })
    }
}

impl std::fmt::Debug for Data {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Data")
            .field("name", &self.name())
            .field("content_type", &self.content_type)
            .field("freshness", &self.freshness())
            .field("content_len", &self.content.range().len())
            .field("signature_type", &self.signature_type)
            .finish()
    }
}

impl PartialEq for Data {
    fn eq(&self, other: &Self) -> bool {
        self.wire == other.wire
    }
}

impl Eq for Data {}
