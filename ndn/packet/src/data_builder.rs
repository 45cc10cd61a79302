//! Making Data packets: one buffer, content written in place, one pass of the digest.

use crate::pieces::sha256_pieces;
use crate::tlv::{self, types};
use crate::{AsComponent, ComponentBuf, KeyLocatorRef, Name, Signer, signature_type};
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

    /// Content of `len` bytes that `fill` writes in place in the packet's buffer, all of it; comes last before `sign`.
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

    /// Bytes of the whole packet but for its outer header, and room for that, where `tail` bytes follow the content.
    fn sizes(&self, content_len: usize, tail: usize) -> (usize, usize) {
        let meta = self.meta_info_len();
        let body = self.name.wire_len()
            + if meta > 0 {
                tlv::tlv_len(types::META_INFO, meta)
            } else {
                0
            }
            + tlv::tlv_len(types::CONTENT, content_len)
            + tail;
        (body, tlv::tlv_len(types::DATA, body) - body)
    }

    /// The one place where a packet is begun: a buffer for the whole of it, with all that precedes the content. `fill`
    /// appends exactly `len` bytes of content; `tail` is the greatest length of what follows it.
    pub(crate) fn begin<E>(
        self,
        len: usize,
        tail: usize,
        fill: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<Begun, E> {
        let (body, room) = self.sizes(len, tail);
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
        let info = SignatureInfo::of(signer);
        let mut begun = self.begin(len, info.tail_len(signer), fill)?;
        info.put(&mut begun.buf);
        let mut space = [0; 252];
        let signature = sign(&begun.buf[begun.room..], signer, &mut space);
        tlv::write_tlv(&mut begun.buf, types::SIGNATURE_VALUE, signature);
        Ok(begun.end())
    }

    /// As [`Self::make`], in memory of the caller's; all but the content is put together beside it. What is too large for
    /// the memory is made without it.
    fn make_in<S, M, E>(
        self,
        signer: &S,
        len: usize,
        mut memory: M,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Bytes, E>
    where
        S: Signer + ?Sized,
        M: AsRef<[u8]> + AsMut<[u8]> + Send + 'static,
    {
        let info = SignatureInfo::of(signer);
        let (body, room) = self.sizes(len, info.tail_len(signer));
        let Some(packet) = memory.as_mut().get_mut(..room + body) else {
            return self.make(signer, len, in_place(len, fill));
        };
        let mut head = BytesMut::with_capacity(body - len);
        self.put_head(&mut head, len);
        let content = room + head.len();
        packet[room..content].copy_from_slice(&head);
        fill(&mut packet[content..content + len])?;
        let mut tail = head;
        tail.clear();
        info.put(&mut tail);
        let signed = content + len + tail.len();
        packet[content + len..signed].copy_from_slice(&tail);
        tail.clear();
        let mut space = [0; 252];
        let signature = sign(&packet[room..signed], signer, &mut space);
        tlv::write_tlv(&mut tail, types::SIGNATURE_VALUE, signature);
        let end = signed + tail.len();
        packet[signed..end].copy_from_slice(&tail);
        let start = put_outer_header(&mut packet[..end], room);
        Ok(Bytes::from_owner(memory).slice(start..end))
    }
}

/// The SignatureInfo of a packet.
struct SignatureInfo<'a> {
    signature_type: u64,
    locator: Option<KeyLocatorRef<'a>>,
}

impl<'a> SignatureInfo<'a> {
    fn of<S: Signer + ?Sized>(signer: &'a S) -> Self {
        SignatureInfo {
            signature_type: signer.signature_type(),
            locator: signer.key_locator(),
        }
    }

    fn value_len(&self) -> usize {
        tlv::nonneg_tlv_len(types::SIGNATURE_TYPE, self.signature_type)
            + self.locator.as_ref().map_or(0, |l| l.wire_len())
    }

    /// The greatest length of what follows the content.
    fn tail_len<S: Signer + ?Sized>(&self, signer: &S) -> usize {
        tlv::tlv_len(types::SIGNATURE_INFO, self.value_len())
            + tlv::tlv_len(types::SIGNATURE_VALUE, signer.max_signature_len())
    }

    fn put(&self, buf: &mut BytesMut) {
        tlv::write_header(buf, types::SIGNATURE_INFO, self.value_len());
        tlv::write_nonneg_tlv(buf, types::SIGNATURE_TYPE, self.signature_type);
        if let Some(locator) = &self.locator {
            locator.encode(buf);
        }
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
        let start = put_outer_header(&mut self.buf, self.room);
        self.buf.advance(start);
        self.buf.freeze()
    }
}

/// Writes the outer header right before the body, which begins at `room` and fills the rest of the packet; returns where
/// the header begins.
fn put_outer_header(packet: &mut [u8], room: usize) -> usize {
    let body = packet.len() - room;
    let start = room - (tlv::tlv_len(types::DATA, body) - body);
    tlv::write_header(&mut &mut packet[start..room], types::DATA, body);
    start
}

/// No signature is 253 bytes or longer, so its length takes one byte.
type Signature = [u8; 252];

/// Puts the signature over `signed` into `to`; returns its bytes.
fn sign<'a, S>(signed: &[u8], signer: &S, to: &'a mut Signature) -> &'a [u8]
where
    S: Signer + ?Sized,
{
    let mut space = &mut to[..];
    signer.sign(&[signed], &mut space);
    let unused = space.len();
    &to[..to.len() - unused]
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

    /// The signed packet, made in `memory` if there is any and it is large enough. `fill` has to write all of the content:
    /// what lay in the memory before is still there.
    ///
    /// # Errors
    /// As [`Self::sign`].
    pub fn sign_in<S, M>(self, signer: &S, memory: Option<M>) -> Result<Bytes, E>
    where
        S: Signer + ?Sized,
        M: AsRef<[u8]> + AsMut<[u8]> + Send + 'static,
    {
        match memory {
            Some(memory) => self.builder.make_in(signer, self.len, memory, self.fill),
            None => self.sign(signer),
        }
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
