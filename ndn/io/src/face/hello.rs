//! What two Trunkline faces tell each other in idle link packets: how large a packet each
//! takes, and whether the bytes may go through shared memory.
//!
//! An idle LpPacket (one without a fragment) means nothing to any forwarder, and the fields'
//! numbers lie where NDNLPv2 tells a stranger to skip what it does not know. Whoever connects
//! speaks first; whoever listens answers, so that a stranger who connects hears nothing new.
//!
//! ```text
//! connector                                        listener
//!    | -- max packet, shared memory: able ------------> |
//!    | <--- max packet, shared memory: able, packets -- |
//!    | -- offer of ring bytes, packets, takes --------> |  Unix faces only
//!    | <---------------------------- switch, takes ---- |  listener's bytes now in ring 1
//!    | -- switch -------------------------------------> |  connector's bytes now in ring 0
//! ```
//! Beside an offer of rings, and beside that of the memory of packets, comes its file; beside both, the rings' first. Whoever
//! takes that memory is lent packets in it from then on, see `transport::lending`.
//!
//! Where any step is left out the face stays as it is: 8800 bytes, by socket. Faces by datagrams prove their addresses
//! besides, see `address_proof`.

use bytes::Bytes;
use ndn_packet::DecodeError;
use ndn_packet::lp::types::MAX_PACKET_SIZE;
use ndn_packet::tlv::{self, Reader, types};

/// The sender can use shared memory on this face.
const SHM_ABLE: u32 = 0x3b4;
/// The sender has made shared memory; the value is the bytes of one ring.
const SHM_OFFER: u32 = 0x3b8;
/// The sender's bytes after this packet go through its ring.
const SHM_SWITCH: u32 = 0x3bc;

/// The sender's packets lie in memory that it offers; the value is the bytes of it.
const SHM_PACKETS: u32 = 0x39c;
/// The sender takes the memory of packets that it was offered.
const SHM_TAKES: u32 = 0x398;

/// A number that the receiver is to bring back, on faces by datagrams.
const CHALLENGE: u32 = 0x3a8;
/// The number of the receiver's last challenge.
const ECHO: u32 = 0x3ac;

/// Idle packets of this size at most are looked into.
pub(crate) const MAX_HELLO_BYTES: usize = 64;

/// The Trunkline fields of an idle packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Hello {
    /// Largest packet that the sender takes, in bytes.
    pub max_packet: Option<u64>,
    pub shm_able: bool,
    /// Bytes of one ring.
    pub shm_offer: Option<u64>,
    pub shm_switch: bool,
    /// Bytes of the memory of packets.
    pub shm_packets: Option<u64>,
    pub shm_takes: bool,
    /// See [`crate::face::address_proof`].
    pub challenge: Option<u64>,
    pub echo: Option<u64>,
}

impl Hello {
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = Vec::with_capacity(MAX_HELLO_BYTES);
        if let Some(challenge) = self.challenge {
            tlv::write_nonneg_tlv(&mut fields, CHALLENGE, challenge);
        }
        if let Some(echo) = self.echo {
            tlv::write_nonneg_tlv(&mut fields, ECHO, echo);
        }
        if let Some(max) = self.max_packet {
            tlv::write_nonneg_tlv(&mut fields, MAX_PACKET_SIZE, max);
        }
        if self.shm_able {
            tlv::write_header(&mut fields, SHM_ABLE, 0);
        }
        if let Some(ring_bytes) = self.shm_offer {
            tlv::write_nonneg_tlv(&mut fields, SHM_OFFER, ring_bytes);
        }
        if self.shm_switch {
            tlv::write_header(&mut fields, SHM_SWITCH, 0);
        }
        if let Some(bytes) = self.shm_packets {
            tlv::write_nonneg_tlv(&mut fields, SHM_PACKETS, bytes);
        }
        if self.shm_takes {
            tlv::write_header(&mut fields, SHM_TAKES, 0);
        }
        let mut packet = Vec::with_capacity(fields.len() + 4);
        tlv::write_tlv(&mut packet, types::LP_PACKET, &fields);
        packet
    }

    /// Reads the fields of an idle packet that has been decoded as such.
    pub fn decode(frame: &Bytes) -> Result<Self, DecodeError> {
        let (_, _, start) = tlv::read_header(frame)?;
        let mut hello = Self::default();
        let mut reader = Reader::new(&frame[start..]);
        while let Some(element) = reader.next()? {
            match element.typ {
                MAX_PACKET_SIZE => hello.max_packet = Some(element.nonneg()?),
                SHM_ABLE => hello.shm_able = true,
                SHM_OFFER => hello.shm_offer = Some(element.nonneg()?),
                SHM_SWITCH => hello.shm_switch = true,
                SHM_PACKETS => hello.shm_packets = Some(element.nonneg()?),
                SHM_TAKES => hello.shm_takes = true,
                CHALLENGE => hello.challenge = Some(element.nonneg()?),
                ECHO => hello.echo = Some(element.nonneg()?),
                _ => {}
            }
        }
        Ok(hello)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndn_packet::lp::LpPacket;

    #[test]
    fn round_trip_and_harmless_to_strangers() {
        for hello in [
            Hello {
                max_packet: Some(66560),
                shm_able: true,
                ..Hello::default()
            },
            Hello {
                shm_offer: Some(1 << 20),
                ..Hello::default()
            },
            Hello {
                shm_switch: true,
                ..Hello::default()
            },
            Hello {
                max_packet: Some(66560),
                shm_able: true,
                shm_offer: Some(64 << 20),
                shm_switch: true,
                shm_packets: Some(1 << 40),
                shm_takes: true,
                ..Hello::default()
            },
            Hello {
                max_packet: Some(66560),
                challenge: Some(u64::MAX),
                echo: Some(u64::MAX - 1),
                ..Hello::default()
            },
            Hello::default(),
        ] {
            let wire = Bytes::from(hello.encode());
            assert!(wire.len() <= MAX_HELLO_BYTES);
            assert_eq!(Hello::decode(&wire).unwrap(), hello);
            // To a decoder of NDNLPv2 it is an idle packet.
            assert_eq!(LpPacket::decode(wire).unwrap().fragment, None);
        }
    }
}
