//! The link-layer packet.

#[cfg(test)]
mod tests;

use super::types as lp;
use super::{Lent, NackReason, PitToken};
use crate::DecodeError;
use crate::tlv::{self, Element, Reader, types};
use bytes::{BufMut, Bytes, BytesMut};

/// A link-layer packet: header fields and a fragment. A bare Interest or Data is one without header fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LpPacket {
    /// The packet or a piece of it; `None` in an idle packet, which carries header fields only.
    pub fragment: Option<Bytes>,
    /// Sequence number of this fragment.
    pub sequence: Option<u64>,
    /// Index of this fragment, from 0.
    pub frag_index: u64,
    /// Number of fragments of the packet, at least 1.
    pub frag_count: u64,
    /// Token for the answer.
    pub pit_token: Option<PitToken>,
    /// The fragment is an Interest that came back, for this reason.
    pub nack: Option<NackReason>,
    /// Congestion mark, 0 and absent both meaning none.
    pub congestion_mark: Option<u64>,
    /// Face that the packet came from (toward local applications only).
    pub incoming_face: Option<u64>,
    /// Face that an Interest is to go to (from local applications only).
    pub next_hop_face: Option<u64>,
    /// The Data is not to be cached.
    pub cache_policy_no_cache: bool,
    /// The Interest is not to be used for discovery by self-learning.
    pub non_discovery: bool,
    /// Wire of the Data packet that announces a prefix.
    pub prefix_announcement: Option<Bytes>,
    /// Whoever sent the Interest has had Data of this name that did not verify, and asks for other.
    pub rejected: bool,
    /// Greatest packet in bytes that the sender of this header takes: how two faces agree to jumbo packets.
    pub max_packet_size: Option<u64>,
    /// Where the fragment lies, in the place of the fragment itself: in memory that both ends of the face see.
    pub lent: Option<Lent>,
}

impl Default for LpPacket {
    fn default() -> Self {
        LpPacket {
            fragment: None,
            sequence: None,
            frag_index: 0,
            frag_count: 1,
            pit_token: None,
            nack: None,
            congestion_mark: None,
            incoming_face: None,
            next_hop_face: None,
            cache_policy_no_cache: false,
            non_discovery: false,
            prefix_announcement: None,
            rejected: false,
            max_packet_size: None,
            lent: None,
        }
    }
}

impl LpPacket {
    /// A packet without header fields.
    pub fn bare(packet: Bytes) -> Self {
        LpPacket {
            fragment: Some(packet),
            ..LpPacket::default()
        }
    }

    /// Reads the link-layer packet, or bare Interest or Data, that fills `frame`. The fragment shares its bytes.
    ///
    /// # Errors
    /// [`DecodeError`] for a malformed header or an unknown header field outside the range that is ignored
    /// (800 to 959, divisible by 4). The fragment is not looked at.
    pub fn decode(frame: Bytes) -> Result<Self, DecodeError> {
        let (typ, _, _) = tlv::read_header(&frame)?;
        match typ {
            types::INTEREST | types::DATA => {
                tlv::read_whole(&frame, typ)?;
                return Ok(LpPacket::bare(frame));
            }
            types::LP_PACKET => {}
            other => return Err(DecodeError::UnknownCritical(other)),
        }
        let start = tlv::read_whole(&frame, types::LP_PACKET)?.value_start;
        let mut packet = LpPacket::default();
        let mut reader = Reader::within(&frame, start, frame.len());
        let mut seen = 0u32;
        let mut fragment = None;
        while let Some(e) = reader.next()? {
            if fragment.is_some() {
                return Err(DecodeError::OutOfOrder(e.typ));
            }
            let Some(bit) = field_bit(e.typ) else {
                ignorable(e.typ)?;
                continue;
            };
            if seen & bit != 0 {
                return Err(DecodeError::OutOfOrder(e.typ));
            }
            seen |= bit;
            if e.typ == lp::FRAGMENT {
                fragment = Some((e.value_start, e.end));
            } else {
                packet.read_field(&e, &frame)?;
            }
        }
        packet.fragment = fragment
            .filter(|(start, end)| start < end)
            .map(|(start, end)| frame.slice(start..end));
        packet.check_fragmentation()?;
        Ok(packet)
    }

    fn read_field(&mut self, e: &Element<'_>, frame: &Bytes) -> Result<(), DecodeError> {
        match e.typ {
            lp::SEQUENCE => {
                let bytes = e.value.try_into().map_err(|_| DecodeError::BadLength {
                    typ: e.typ,
                    len: e.value.len(),
                })?;
                self.sequence = Some(u64::from_be_bytes(bytes));
            }
            lp::FRAG_INDEX => self.frag_index = e.nonneg()?,
            lp::FRAG_COUNT => self.frag_count = e.nonneg()?,
            lp::PIT_TOKEN => self.pit_token = Some(PitToken::new(e.value)?),
            lp::NACK => self.nack = Some(nack_reason(e.value)?),
            lp::INCOMING_FACE_ID => self.incoming_face = Some(e.nonneg()?),
            lp::NEXT_HOP_FACE_ID => self.next_hop_face = Some(e.nonneg()?),
            lp::CACHE_POLICY => self.cache_policy_no_cache = no_cache(e.value)?,
            lp::CONGESTION_MARK => self.congestion_mark = Some(e.nonneg()?),
            lp::NON_DISCOVERY if e.value.is_empty() => self.non_discovery = true,
            lp::REJECTED if e.value.is_empty() => self.rejected = true,
            lp::NON_DISCOVERY | lp::REJECTED => {
                return Err(DecodeError::BadLength {
                    typ: e.typ,
                    len: e.value.len(),
                });
            }
            lp::PREFIX_ANNOUNCEMENT => {
                tlv::read_whole(e.value, types::DATA)?;
                self.prefix_announcement = Some(frame.slice(e.value_start..e.end));
            }
            lp::MAX_PACKET_SIZE => self.max_packet_size = Some(e.nonneg()?),
            lp::LENT => self.lent = Some(Lent::decode(e.value)?),
            _ => {}
        }
        Ok(())
    }

    fn check_fragmentation(&self) -> Result<(), DecodeError> {
        if self.frag_count == 0 || self.frag_index >= self.frag_count {
            return Err(DecodeError::Invalid("FragIndex or FragCount"));
        }
        if self.frag_count > 1 && (self.sequence.is_none() || self.fragment.is_none()) {
            return Err(DecodeError::Missing("Sequence or Fragment of a fragment"));
        }
        Ok(())
    }

    /// Whether any header field is set; if not, the fragment can go bare.
    pub fn has_header(&self) -> bool {
        self.fields_len() > 0
    }

    pub(super) fn fields_len(&self) -> usize {
        let number = |typ, value: Option<u64>| value.map_or(0, |v| tlv::nonneg_tlv_len(typ, v));
        self.sequence.map_or(0, |_| tlv::tlv_len(lp::SEQUENCE, 8))
            + number(
                lp::FRAG_INDEX,
                (self.frag_count > 1).then_some(self.frag_index),
            )
            + number(
                lp::FRAG_COUNT,
                (self.frag_count > 1).then_some(self.frag_count),
            )
            + self
                .pit_token
                .map_or(0, |t| tlv::tlv_len(lp::PIT_TOKEN, t.as_slice().len()))
            + self
                .nack
                .map_or(0, |r| tlv::tlv_len(lp::NACK, nack_value_len(r)))
            + number(lp::INCOMING_FACE_ID, self.incoming_face)
            + number(lp::NEXT_HOP_FACE_ID, self.next_hop_face)
            + if self.cache_policy_no_cache {
                tlv::tlv_len(lp::CACHE_POLICY, NO_CACHE_LEN)
            } else {
                0
            }
            + number(lp::CONGESTION_MARK, self.congestion_mark)
            + if self.non_discovery {
                tlv::tlv_len(lp::NON_DISCOVERY, 0)
            } else {
                0
            }
            + self
                .prefix_announcement
                .as_ref()
                .map_or(0, |a| tlv::tlv_len(lp::PREFIX_ANNOUNCEMENT, a.len()))
            + if self.rejected {
                tlv::tlv_len(lp::REJECTED, 0)
            } else {
                0
            }
            + number(lp::MAX_PACKET_SIZE, self.max_packet_size)
            + self
                .lent
                .map_or(0, |_| tlv::tlv_len(lp::LENT, Lent::WIRE_LEN))
    }

    /// Size in bytes of all that precedes a fragment of `fragment_len` bytes; 0 for a bare packet.
    pub fn header_len(&self, fragment_len: usize) -> usize {
        let fields = self.fields_len();
        if fields == 0 && fragment_len > 0 {
            return 0;
        }
        let fragment = if fragment_len > 0 {
            tlv::tlv_len(lp::FRAGMENT, fragment_len)
        } else {
            0
        };
        tlv::tlv_len(types::LP_PACKET, fields + fragment) - fragment_len
    }

    /// Writes all that precedes a fragment of `fragment_len` bytes, which must follow: nothing for a bare packet.
    pub fn put_header(&self, buf: &mut impl BufMut, fragment_len: usize) {
        let fields = self.fields_len();
        if fields == 0 && fragment_len > 0 {
            return;
        }
        let fragment = if fragment_len > 0 {
            tlv::tlv_len(lp::FRAGMENT, fragment_len)
        } else {
            0
        };
        tlv::write_header(buf, types::LP_PACKET, fields + fragment);
        self.put_fields(buf);
        if fragment_len > 0 {
            tlv::write_header(buf, lp::FRAGMENT, fragment_len);
        }
    }

    fn put_fields(&self, buf: &mut impl BufMut) {
        if let Some(sequence) = self.sequence {
            tlv::write_tlv(buf, lp::SEQUENCE, &sequence.to_be_bytes());
        }
        if self.frag_count > 1 {
            tlv::write_nonneg_tlv(buf, lp::FRAG_INDEX, self.frag_index);
            tlv::write_nonneg_tlv(buf, lp::FRAG_COUNT, self.frag_count);
        }
        if let Some(token) = self.pit_token {
            tlv::write_tlv(buf, lp::PIT_TOKEN, token.as_slice());
        }
        if let Some(reason) = self.nack {
            tlv::write_header(buf, lp::NACK, nack_value_len(reason));
            if reason != NackReason::None {
                tlv::write_nonneg_tlv(buf, lp::NACK_REASON, reason.code());
            }
        }
        let mut number = |typ, value: Option<u64>| {
            if let Some(value) = value {
                tlv::write_nonneg_tlv(buf, typ, value);
            }
        };
        number(lp::INCOMING_FACE_ID, self.incoming_face);
        number(lp::NEXT_HOP_FACE_ID, self.next_hop_face);
        if self.cache_policy_no_cache {
            tlv::write_header(buf, lp::CACHE_POLICY, NO_CACHE_LEN);
            tlv::write_nonneg_tlv(buf, lp::CACHE_POLICY_TYPE, 1);
        }
        if let Some(mark) = self.congestion_mark {
            tlv::write_nonneg_tlv(buf, lp::CONGESTION_MARK, mark);
        }
        if self.non_discovery {
            tlv::write_header(buf, lp::NON_DISCOVERY, 0);
        }
        if let Some(announcement) = &self.prefix_announcement {
            tlv::write_tlv(buf, lp::PREFIX_ANNOUNCEMENT, announcement);
        }
        if self.rejected {
            tlv::write_header(buf, lp::REJECTED, 0);
        }
        if let Some(size) = self.max_packet_size {
            tlv::write_nonneg_tlv(buf, lp::MAX_PACKET_SIZE, size);
        }
        if let Some(lent) = self.lent {
            tlv::write_tlv(buf, lp::LENT, &lent.encode());
        }
    }

    /// All that precedes a fragment of `fragment_len` bytes, so that header and fragment can be written as two slices;
    /// empty for a bare packet.
    pub fn encode_header(&self, fragment_len: usize) -> Bytes {
        let mut buf = BytesMut::with_capacity(self.header_len(fragment_len));
        self.put_header(&mut buf, fragment_len);
        buf.freeze()
    }

    /// The whole packet in one buffer; a bare packet is shared, not copied.
    pub fn encode(&self) -> Bytes {
        let fragment = self.fragment.as_ref().filter(|f| !f.is_empty());
        match fragment {
            Some(fragment) if !self.has_header() => fragment.clone(),
            _ => {
                let len = fragment.map_or(0, |f| f.len());
                let mut buf = BytesMut::with_capacity(self.header_len(len) + len);
                self.put_header(&mut buf, len);
                if let Some(fragment) = fragment {
                    buf.put_slice(fragment);
                }
                buf.freeze()
            }
        }
    }
}

/// Size of the CachePolicyType element in a CachePolicy.
const NO_CACHE_LEN: usize = tlv::nonneg_tlv_len(lp::CACHE_POLICY_TYPE, 1);

fn nack_value_len(reason: NackReason) -> usize {
    match reason {
        NackReason::None => 0,
        reason => tlv::nonneg_tlv_len(lp::NACK_REASON, reason.code()),
    }
}

/// One bit for each known field that may not be repeated.
fn field_bit(typ: u32) -> Option<u32> {
    let index = match typ {
        lp::FRAGMENT => 0,
        lp::SEQUENCE => 1,
        lp::FRAG_INDEX => 2,
        lp::FRAG_COUNT => 3,
        lp::PIT_TOKEN => 4,
        lp::NACK => 5,
        lp::INCOMING_FACE_ID => 6,
        lp::NEXT_HOP_FACE_ID => 7,
        lp::CACHE_POLICY => 8,
        lp::CONGESTION_MARK => 9,
        lp::NON_DISCOVERY => 10,
        lp::PREFIX_ANNOUNCEMENT => 11,
        lp::MAX_PACKET_SIZE => 12,
        lp::REJECTED => 13,
        lp::LENT => 14,
        _ => return None,
    };
    Some(1 << index)
}

/// Passes over a header field that may be ignored when unknown.
fn ignorable(typ: u32) -> Result<(), DecodeError> {
    if (800..=959).contains(&typ) && typ & 3 == 0 {
        Ok(())
    } else {
        Err(DecodeError::UnknownCritical(typ))
    }
}

fn nack_reason(value: &[u8]) -> Result<NackReason, DecodeError> {
    let mut reader = Reader::new(value);
    let mut reason = NackReason::None;
    while let Some(e) = reader.next()? {
        match e.typ {
            lp::NACK_REASON => reason = NackReason::from_code(e.nonneg()?),
            other => ignorable(other)?,
        }
    }
    Ok(reason)
}

fn no_cache(value: &[u8]) -> Result<bool, DecodeError> {
    let mut reader = Reader::new(value);
    let mut policy = None;
    while let Some(e) = reader.next()? {
        match e.typ {
            lp::CACHE_POLICY_TYPE => policy = Some(e.nonneg()?),
            other => ignorable(other)?,
        }
    }
    policy
        .map(|p| p == 1)
        .ok_or(DecodeError::Missing("CachePolicyType"))
}
