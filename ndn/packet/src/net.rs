//! One network-layer packet with its link-layer fields: what forwarder, faces and applications exchange.

use crate::lp::{LpPacket, NackReason, PitToken};
use crate::tlv::{self, types};
use crate::{Data, DecodeError, Interest, NameRef};
use bytes::Bytes;

/// An Interest or a Data packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packet {
    /// An Interest.
    Interest(Interest),
    /// A Data packet.
    Data(Data),
}

impl Packet {
    /// Reads the packet that fills `wire`.
    ///
    /// # Errors
    /// [`DecodeError::UnknownCritical`] when it is neither Interest nor Data, else as their `parse`.
    pub fn parse(wire: Bytes) -> Result<Self, DecodeError> {
        match tlv::read_header(&wire)?.0 {
            types::INTEREST => Interest::parse(wire).map(Packet::Interest),
            types::DATA => Data::parse(wire).map(Packet::Data),
            other => Err(DecodeError::UnknownCritical(other)),
        }
    }

    /// The whole packet.
    pub fn wire(&self) -> &Bytes {
        match self {
            Packet::Interest(interest) => interest.wire(),
            Packet::Data(data) => data.wire(),
        }
    }

    /// The name.
    pub fn name(&self) -> NameRef<'_> {
        match self {
            Packet::Interest(interest) => interest.name(),
            Packet::Data(data) => data.name(),
        }
    }
}

/// What a [`NetPacket`] is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetKind {
    /// An Interest.
    Interest(Interest),
    /// A Data packet.
    Data(Data),
    /// An Interest that came back.
    Nack {
        /// Why.
        reason: NackReason,
        /// The Interest.
        interest: Interest,
    },
}

/// One network-layer packet with its link-layer fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetPacket {
    /// The packet.
    pub packet: NetKind,
    /// Token of the PIT entry at the receiver of an answer.
    pub pit_token: Option<PitToken>,
    /// Congestion mark, 0 and absent both meaning none.
    pub congestion_mark: Option<u64>,
    /// Face that the packet came from (toward local applications only).
    pub incoming_face: Option<u64>,
    /// Face that an Interest is to go to (from local applications only).
    pub next_hop_face: Option<u64>,
    /// The Data is not to be cached.
    pub no_cache: bool,
    /// The Interest is not to be used for discovery by self-learning.
    pub non_discovery: bool,
    /// Wire of a prefix announcement that came with the Data.
    pub prefix_announcement: Option<Bytes>,
    /// Whoever sent the Interest has had Data of this name that did not verify, and asks for other.
    pub rejected: bool,
}

impl NetPacket {
    /// A packet without link-layer fields.
    pub fn new(packet: NetKind) -> Self {
        NetPacket {
            packet,
            pit_token: None,
            congestion_mark: None,
            incoming_face: None,
            next_hop_face: None,
            no_cache: false,
            non_discovery: false,
            prefix_announcement: None,
            rejected: false,
        }
    }

    /// An Interest without link-layer fields.
    pub fn interest(interest: Interest) -> Self {
        Self::new(NetKind::Interest(interest))
    }

    /// A Data packet without link-layer fields.
    pub fn data(data: Data) -> Self {
        Self::new(NetKind::Data(data))
    }

    /// A Nack without further link-layer fields.
    pub fn nack(reason: NackReason, interest: Interest) -> Self {
        Self::new(NetKind::Nack { reason, interest })
    }

    /// The same packet with this PIT token.
    #[must_use]
    pub fn with_pit_token(mut self, token: Option<PitToken>) -> Self {
        self.pit_token = token;
        self
    }

    /// Reads the packet in a bare or link-layer frame that is not a fragment; `None` for an idle one (no packet in it).
    ///
    /// # Errors
    /// As [`NetPacket::from_lp`] and [`LpPacket::decode`].
    pub fn decode(frame: Bytes) -> Result<Option<Self>, DecodeError> {
        Self::from_lp(LpPacket::decode(frame)?)
    }

    /// Reads the packet in `lp`, which is whole or reassembled; `None` for an idle one.
    ///
    /// # Errors
    /// [`DecodeError::Invalid`] for a fragment, or a Nack that holds no Interest; else as [`Packet::parse`].
    pub fn from_lp(lp: LpPacket) -> Result<Option<Self>, DecodeError> {
        if lp.frag_count > 1 {
            return Err(DecodeError::Invalid(
                "LpPacket: a fragment, where a whole packet is required",
            ));
        }
        let Some(fragment) = lp.fragment else {
            return Ok(None);
        };
        let packet = match (Packet::parse(fragment)?, lp.nack) {
            (Packet::Interest(interest), None) => NetKind::Interest(interest),
            (Packet::Interest(interest), Some(reason)) => NetKind::Nack { reason, interest },
            (Packet::Data(data), None) => NetKind::Data(data),
            (Packet::Data(_), Some(_)) => {
                return Err(DecodeError::Invalid("Nack: it holds a Data packet"));
            }
        };
        Ok(Some(NetPacket {
            packet,
            pit_token: lp.pit_token,
            congestion_mark: lp.congestion_mark,
            incoming_face: lp.incoming_face,
            next_hop_face: lp.next_hop_face,
            no_cache: lp.cache_policy_no_cache,
            non_discovery: lp.non_discovery,
            prefix_announcement: lp.prefix_announcement,
            rejected: lp.rejected,
        }))
    }

    /// The link-layer packet that carries this one, unfragmented; shares the bytes.
    pub fn to_lp(&self) -> LpPacket {
        LpPacket {
            fragment: Some(self.wire().clone()),
            nack: self.nack_reason(),
            pit_token: self.pit_token,
            congestion_mark: self.congestion_mark,
            incoming_face: self.incoming_face,
            next_hop_face: self.next_hop_face,
            cache_policy_no_cache: self.no_cache,
            non_discovery: self.non_discovery,
            prefix_announcement: self.prefix_announcement.clone(),
            rejected: self.rejected,
            ..LpPacket::default()
        }
    }

    /// Whether its way is congested: NDNLPv2's CongestionMark is there, and is not 0.
    pub fn is_marked(&self) -> bool {
        self.congestion_mark.is_some_and(|mark| mark > 0)
    }

    /// Wire of the Interest or Data.
    pub fn wire(&self) -> &Bytes {
        match &self.packet {
            NetKind::Interest(interest) | NetKind::Nack { interest, .. } => interest.wire(),
            NetKind::Data(data) => data.wire(),
        }
    }

    /// Name of the Interest or Data.
    pub fn name(&self) -> NameRef<'_> {
        match &self.packet {
            NetKind::Interest(interest) | NetKind::Nack { interest, .. } => interest.name(),
            NetKind::Data(data) => data.name(),
        }
    }

    /// Reason of a Nack.
    pub fn nack_reason(&self) -> Option<NackReason> {
        match self.packet {
            NetKind::Nack { reason, .. } => Some(reason),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    #[test]
    fn fields_go_to_the_link_layer_and_back() {
        let interest = Interest::parse(hex("0505 0703080141")).unwrap();
        let data = Data::parse(hex("0610 0703080141 1502cafe 16031b0100 1700")).unwrap();
        let packets = [
            NetPacket::interest(interest.clone()),
            NetPacket::data(data),
            NetPacket::nack(NackReason::Congestion, interest),
        ];
        for packet in packets {
            assert_eq!(
                NetPacket::decode(packet.to_lp().encode()),
                Ok(Some(packet.clone()))
            );
            let full = NetPacket {
                congestion_mark: Some(1),
                incoming_face: Some(300),
                next_hop_face: Some(301),
                no_cache: true,
                non_discovery: true,
                prefix_announcement: Some(hex("0600")),
                rejected: true,
                ..packet.with_pit_token(Some(PitToken::from_u48(5)))
            };
            assert_eq!(
                NetPacket::decode(full.to_lp().encode()),
                Ok(Some(full.clone()))
            );
            assert_eq!(
                full.to_lp().fragment.unwrap().as_ptr(),
                full.wire().as_ptr()
            );
        }
    }

    #[test]
    fn a_mark_of_zero_is_none() {
        let interest = Interest::parse(hex("0505 0703080141")).unwrap();
        let marked = |congestion_mark| {
            let bare = NetPacket::interest(interest.clone());
            let packet = NetPacket {
                congestion_mark,
                ..bare
            };
            packet.is_marked()
        };
        assert_eq!(
            [None, Some(0), Some(1), Some(300)].map(marked),
            [false, false, true, true]
        );
    }

    #[test]
    fn what_is_no_packet() {
        assert_eq!(NetPacket::decode(hex("6400")), Ok(None), "idle");
        let fragment = NetPacket::decode(hex("6412 5108 0000000000000000 530102 5003 050100"));
        assert!(matches!(fragment, Err(DecodeError::Invalid(_))));
        let nacked_data =
            NetPacket::decode(hex("6414 fd032000 500e 060c 0703080141 16031b0100 1700"));
        assert_eq!(
            nacked_data,
            Err(DecodeError::Invalid("Nack: it holds a Data packet"))
        );
        assert_eq!(
            NetPacket::decode(hex("6402 5000")),
            Ok(None),
            "an empty fragment is none"
        );
        assert_eq!(
            NetPacket::decode(hex("6404 5002 0700")),
            Err(DecodeError::UnknownCritical(7))
        );
    }
}
