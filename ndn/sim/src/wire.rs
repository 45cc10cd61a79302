//! What packets weigh on a link: framing, and content that is left out.
//!
//! A simulated segment of 64 KiB is a packet of some hundred bytes: the cores see names, tables and digests as ever, and
//! its content says how long the content would be. Links are charged the packet as it would be.

use ndn_forwarder::{FaceSpec, Forwarder};
use ndn_packet::tlv::{self, types};
use ndn_packet::{ComponentBuf, Data, Interest, Name, NetKind, NetPacket, SigningKey};

/// How payload becomes frames, and what is sent back for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wire {
    /// Payload bytes a frame carries.
    pub payload: u64,
    /// Header bytes of each frame.
    pub header: u64,
    /// Payload bytes for which one bare acknowledgement comes back; 0 for none.
    pub acked: u64,
}

impl Wire {
    /// TCP over IPv4 on Ethernet of 1500 bytes: 14 + 20 + 32 bytes of headers, and one acknowledgement for up to
    /// 64 KiB, which receivers take in at once (GRO).
    pub const ETHERNET: Wire = Wire {
        payload: 1448,
        header: 66,
        acked: 65_160,
    };
    /// The same with segmentation offload, as virtual links between namespaces count: frames of up to 64 KiB.
    pub const OFFLOAD: Wire = Wire {
        payload: 65_160,
        header: 66,
        acked: 65_160,
    };
    /// Payload alone.
    pub const BARE: Wire = Wire {
        payload: u64::MAX,
        header: 0,
        acked: 0,
    };

    /// Bytes on a link for so much payload; a frame goes even for none.
    pub fn bytes(&self, payload: u64) -> u64 {
        payload + payload.div_ceil(self.payload).max(1) * self.header
    }

    /// Bytes of the acknowledgements for so much payload, one at least.
    pub fn ack_bytes(&self, payload: u64) -> u64 {
        match self.acked {
            0 => 0,
            each => payload.div_ceil(each).max(1) * self.header,
        }
    }

    /// Bytes of the largest frame.
    pub(crate) fn frame(&self) -> u64 {
        self.payload.saturating_add(self.header).min(1 << 16)
    }
}

impl Default for Wire {
    fn default() -> Self {
        Self::ETHERNET
    }
}

/// Bytes that stand for a content of any length.
const STAND_IN: usize = 8;

/// A Data packet whose content of `len` bytes is left out. `last` is the stream's last segment, where it is to be told.
pub fn elided_data(name: &Name, len: u64, last: Option<u64>) -> bytes::Bytes {
    let stand_in = len.to_be_bytes();
    let builder = Data::builder(name)
        .freshness(std::time::Duration::from_secs(3600))
        .content(&stand_in);
    match last {
        Some(last) => builder.final_block_id(ComponentBuf::segment(last)),
        None => builder,
    }
    .sign(&SigningKey::DigestSha256)
}

/// Bytes of a packet with its link-layer header as it would travel, content and all.
pub fn packet_bytes(packet: &NetPacket) -> u64 {
    let there = packet.wire().len();
    let whole = match &packet.packet {
        NetKind::Data(data) => whole_data(data),
        NetKind::Interest(_) | NetKind::Nack { .. } => there,
    };
    let header = packet.to_lp().header_len(whole);
    (whole + header) as u64
}

/// Bytes of a Data with its content put back.
fn whole_data(data: &Data) -> usize {
    let there = data.wire().len();
    let Ok(stand_in) = <[u8; STAND_IN]>::try_from(data.content_slice()) else {
        return there;
    };
    let content = u64::from_be_bytes(stand_in) as usize;
    // A packet of less than 253 bytes has headers of two bytes, as its stand-in has.
    let outer = if there < 255 { 2 } else { 4 };
    let value = there - outer - tlv::tlv_len(types::CONTENT, STAND_IN);
    tlv::tlv_len(types::DATA, value + tlv::tlv_len(types::CONTENT, content))
}

/// The capacity with which a content store holds as many packets under `prefix` without their content of `content` bytes
/// as one of `whole` bytes holds with it. Of a store that copies nothing: no packet here is part of a larger buffer.
pub fn elided_capacity(whole: usize, prefix: &Name, content: u64) -> usize {
    // What a packet costs beside its own bytes is told by a forwarder that takes in two of them.
    let mut forwarder = Forwarder::new(ndn_forwarder::Config {
        cs_copy_below_bytes: 0,
        ..ndn_forwarder::Config::default()
    });
    let now = std::time::Duration::ZERO;
    let below = forwarder.add_face(now, FaceSpec::local("sim://", "sim://"));
    let above = forwarder.add_face(now, FaceSpec::local("sim://", "sim://"));
    let mut held = [0; 2];
    let mut bytes = (0, 0);
    for (segment, held) in held.iter_mut().enumerate() {
        let name = prefix.append_segment(segment as u64);
        let (Ok(interest), Ok(data)) = (
            Interest::parse(Interest::builder(&name).nonce(segment as u32).build()),
            Data::parse(elided_data(&name, content, None)),
        ) else {
            return whole;
        };
        bytes = (data.wire().len(), whole_data(&data));
        if forwarder.add_route(prefix, above, 0).is_err() {
            return whole;
        }
        forwarder.receive(now, below, NetPacket::interest(interest));
        forwarder.receive(now, above, NetPacket::data(data));
        *held = forwarder.status().cs_bytes;
    }
    let cost = held[1] - held[0];
    whole / (cost - bytes.0 + bytes.1) * cost
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndn_packet::PitToken;

    #[test]
    fn a_packet_without_content_weighs_as_with_it() {
        let names = [
            "/hadoop/blocks/BP-1/1073741825/v=1001/seg=7",
            "/a/seg=1",
            &format!("/{}/seg=1", "x".repeat(300)),
        ];
        for name in names {
            let name: Name = name.parse().expect("a name");
            for len in [0usize, 8, 252, 253, 8000, 65_040, 70_000] {
                let whole = Data::builder(&name)
                    .freshness(std::time::Duration::from_secs(3600))
                    .final_block_id(ComponentBuf::segment(9))
                    .content(&vec![1; len])
                    .sign(&SigningKey::DigestSha256);
                let short = elided_data(&name, len as u64, Some(9));
                let token = Some(PitToken::from_u48(7));
                let packet = |wire| {
                    NetPacket::data(Data::parse(wire).expect("well formed")).with_pit_token(token)
                };
                assert_eq!(
                    packet_bytes(&packet(short)) as usize,
                    packet(whole).to_lp().encode().len(),
                    "{len} bytes under {name}"
                );
            }
        }
    }

    #[test]
    fn a_store_holds_as_many_packets_as_it_would() {
        let prefix: Name = "/hadoop/blocks/BP-1/1073741825/v=1001"
            .parse()
            .expect("a name");
        assert_eq!(elided_capacity(0, &prefix, 65_040), 0);
        let packets = (256 << 20) / 65_600;
        let capacity = elided_capacity(256 << 20, &prefix, 65_040);
        assert!(
            (200 * packets..600 * packets).contains(&capacity),
            "{capacity}"
        );
    }

    #[test]
    fn interests_weigh_what_they_are() {
        let name: Name = "/a/b".parse().expect("a name");
        let interest =
            Interest::parse(Interest::builder(&name).nonce(1).build()).expect("well formed");
        let packet = NetPacket::interest(interest);
        assert_eq!(
            packet_bytes(&packet) as usize,
            packet.to_lp().encode().len()
        );
    }

    #[test]
    fn frames_are_counted() {
        assert_eq!(Wire::ETHERNET.bytes(0), 66);
        assert_eq!(Wire::ETHERNET.bytes(1448), 1514);
        assert_eq!(Wire::ETHERNET.bytes(1449), 1449 + 132);
        assert_eq!(Wire::ETHERNET.ack_bytes(65_160), 66);
        assert_eq!(Wire::ETHERNET.ack_bytes(65_161), 132);
        assert_eq!(
            (Wire::BARE.bytes(65_000), Wire::BARE.ack_bytes(65_000)),
            (65_000, 0)
        );
    }
}
