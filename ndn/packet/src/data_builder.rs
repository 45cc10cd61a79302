//! Making Data packets: one buffer, content written in place, one pass of the digest.

use crate::pieces::sha256_pieces;
use crate::tlv::{self, types};
use crate::{AsComponent, ComponentBuf, Name, Signer, signature_type};
use bytes::{Buf, Bytes, BytesMut};
use std::convert::Infallible;
use std::time::Duration;

/// Makes a Data packet; see [`crate::Data::builder`].
#[derive(Debug, Clone)]
#[must_use]
pub struct DataBuilder<'a> {
    name: &'a Name,
    content_type: u64,
    freshness: Option<Duration>,
    final_block_id: Option<ComponentBuf>,
    content: &'a [u8],
}

/// Makes a Data packet whose content is written in place; see [`DataBuilder::content_with`].
#[must_use]
pub struct DataWriter<'a, F> {
    pub(crate) builder: DataBuilder<'a>,
    pub(crate) len: usize,
    pub(crate) fill: F,
}

impl<'a> DataBuilder<'a> {
    /// A packet named `name` with default fields and empty content.
    pub fn new(name: &'a Name) -> Self {
        DataBuilder {
            name,
            content_type: 0,
            freshness: None,
            final_block_id: None,
            content: &[],
        }
    }

    /// The content type, one of [`crate::content_type`]; BLOB when not set.
    pub fn content_type(mut self, content_type: u64) -> Self {
        self.content_type = content_type;
        self
    }

    /// How long the packet is fresh after it came, sent in whole milliseconds.
    pub fn freshness(mut self, freshness: Duration) -> Self {
        self.freshness = Some(freshness);
        self
    }

    /// Last component of the last segment's name.
    pub fn final_block_id(mut self, component: impl AsComponent) -> Self {
        self.final_block_id = Some(component.as_component().to_owned());
        self
    }

    /// The content, copied once into the packet.
    pub fn content<'b>(self, content: &'b [u8]) -> DataBuilder<'b>
    where
        'a: 'b,
    {
        DataBuilder { content, ..self }
    }

    /// Content of `len` bytes that `fill` writes in place in the packet's buffer (zeroed before); comes last before `sign`.
    pub fn content_with<E, F>(self, len: usize, fill: F) -> DataWriter<'a, F>
    where
        F: FnOnce(&mut [u8]) -> Result<(), E>,
    {
        DataWriter {
            builder: self,
            len,
            fill,
        }
    }

    /// The signed packet.
    pub fn sign<S: Signer + ?Sized>(self, signer: &S) -> Bytes {
        let content = self.content;
        let made = self.make(signer, content.len(), |buf| {
            buf.extend_from_slice(content);
            Ok::<(), Infallible>(())
        });
        match made {
            Ok(wire) => wire,
            Err(never) => match never {},
        }
    }

    /// The SignatureValue that [`crate::SigningKey::DigestSha256`] would give this packet with this content, without
    /// putting the packet together: one pass over the content, no copy of it.
    pub fn digest(&self, content: &[u8]) -> [u8; 32] {
        let mut head = BytesMut::with_capacity(self.name.wire_len() + 64);
        self.put_head(&mut head, content.len());
        let mut info = [0; 5];
        let mut tail = &mut info[..];
        tlv::write_header(&mut tail, types::SIGNATURE_INFO, 3);
        tlv::write_nonneg_tlv(
            &mut tail,
            types::SIGNATURE_TYPE,
            signature_type::DIGEST_SHA256,
        );
        sha256_pieces(&[&head, content, &info])
    }

    /// All that precedes the content's bytes, but for the outer header.
    fn put_head(&self, buf: &mut BytesMut, content_len: usize) {
        self.name.encode(buf);
        let meta = self.meta_info_len();
        if meta > 0 {
            self.put_meta_info(buf, meta);
        }
        tlv::write_header(buf, types::CONTENT, content_len);
    }

    fn meta_info_len(&self) -> usize {
        let freshness = self
            .freshness_ms()
            .map_or(0, |f| tlv::nonneg_tlv_len(types::FRESHNESS_PERIOD, f));
        let content_type = if self.content_type == 0 {
            0
        } else {
            tlv::nonneg_tlv_len(types::CONTENT_TYPE, self.content_type)
        };
        let last = self.final_block_id.as_ref().map_or(0, |c| {
            tlv::tlv_len(types::FINAL_BLOCK_ID, c.as_component().wire_len())
        });
        content_type + freshness + last
    }

    fn freshness_ms(&self) -> Option<u64> {
        self.freshness
            .map(|f| u64::try_from(f.as_millis()).unwrap_or(u64::MAX))
    }

    fn put_meta_info(&self, buf: &mut BytesMut, len: usize) {
        tlv::write_header(buf, types::META_INFO, len);
        if self.content_type != 0 {
            tlv::write_nonneg_tlv(buf, types::CONTENT_TYPE, self.content_type);
        }
        if let Some(freshness) = self.freshness_ms() {
            tlv::write_nonneg_tlv(buf, types::FRESHNESS_PERIOD, freshness);
        }
        if let Some(last) = &self.final_block_id {
            let c = last.as_component();
            tlv::write_header(buf, types::FINAL_BLOCK_ID, c.wire_len());
            tlv::write_tlv(buf, u32::from(c.typ), c.value);
        }
    }

    /// The one place where a packet is begun: a buffer for the whole of it, with all that precedes the content. `fill`
    /// appends exactly `len` bytes of content; `tail` is the greatest length of what follows it.
    pub(crate) fn begin<E>(
        self,
        len: usize,
        tail: usize,
        fill: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<Begun, E> {
        let meta = self.meta_info_len();
        let body = self.name.wire_len()
            + if meta > 0 {
                tlv::tlv_len(types::META_INFO, meta)
            } else {
                0
            }
            + tlv::tlv_len(types::CONTENT, len)
            + tail;
        let room = tlv::tlv_len(types::DATA, body) - body;
        let mut buf = BytesMut::with_capacity(room + body);
        buf.resize(room, 0);
        self.put_head(&mut buf, len);
        fill(&mut buf)?;
        Ok(Begun { buf, room })
    }

    fn make<S: Signer + ?Sized, E>(
        self,
        signer: &S,
        len: usize,
        fill: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<Bytes, E> {
        let locator = signer.key_locator();
        let info = tlv::nonneg_tlv_len(types::SIGNATURE_TYPE, signer.signature_type())
            + locator.as_ref().map_or(0, |l| l.wire_len());
        let tail = tlv::tlv_len(types::SIGNATURE_INFO, info)
            + tlv::tlv_len(types::SIGNATURE_VALUE, signer.max_signature_len());
        let mut begun = self.begin(len, tail, fill)?;
        let buf = &mut begun.buf;
        tlv::write_header(buf, types::SIGNATURE_INFO, info);
        tlv::write_nonneg_tlv(buf, types::SIGNATURE_TYPE, signer.signature_type());
        if let Some(locator) = locator {
            locator.encode(buf);
        }
        put_signature(buf, begun.room, signer);
        Ok(begun.end())
    }
}

/// A packet in the making, from Name on.
///
/// The buffer is allocated for the longest signature that the signer makes; a shorter one (ECDSA) can shorten the
/// outer header, which is why the header is written last, right before the body.
pub(crate) struct Begun {
    pub(crate) buf: BytesMut,
    /// Where the Name begins; before it is room for the outer header.
    pub(crate) room: usize,
}

impl Begun {
    /// The packet, which has all its elements now.
    pub(crate) fn end(mut self) -> Bytes {
        let body = self.buf.len() - self.room;
        let header = tlv::tlv_len(types::DATA, body) - body;
        let start = self.room - header;
        tlv::write_header(&mut &mut self.buf[start..self.room], types::DATA, body);
        self.buf.advance(start);
        self.buf.freeze()
    }
}

/// Appends the SignatureValue over `buf[signed_from..]`. No signature is 253 bytes or longer, so its length takes one byte.
fn put_signature<S: Signer + ?Sized>(buf: &mut BytesMut, signed_from: usize, signer: &S) {
    let mut signature = [0; 252];
    let mut space = &mut signature[..];
    signer.sign(&[&buf[signed_from..]], &mut space);
    let unused = space.len();
    tlv::write_tlv(buf, types::SIGNATURE_VALUE, &signature[..252 - unused]);
}

impl<E, F> DataWriter<'_, F>
where
    F: FnOnce(&mut [u8]) -> Result<(), E>,
{
    /// The signed packet.
    ///
    /// # Errors
    /// What the writer of the content returned.
    pub fn sign<S: Signer + ?Sized>(self, signer: &S) -> Result<Bytes, E> {
        let (len, fill) = (self.len, self.fill);
        self.builder.make(signer, len, in_place(len, fill))
    }
}

/// Writes content of `len` bytes at the end of a buffer.
pub(crate) fn in_place<E>(
    len: usize,
    fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
) -> impl FnOnce(&mut BytesMut) -> Result<(), E> {
    move |buf: &mut BytesMut| {
        let start = buf.len();
        buf.resize(start + len, 0);
        fill(&mut buf[start..])
    }
}
