//! Small makers of packets that more than one file here needs.

use bytes::Bytes;
use ndn_packet::{Data, Interest, NackReason, NetPacket, PitToken};

/// The answer to an Interest that carried `token`.
pub(crate) fn data(wire: Bytes, token: Option<PitToken>) -> Option<NetPacket> {
    match Data::parse(wire) {
        Ok(data) => Some(NetPacket::data(data).with_pit_token(token)),
        Err(error) => {
            tracing::error!(%error, "a Data packet of our own does not parse");
            None
        }
    }
}

/// Says that nobody here has what was asked.
pub(crate) fn nack(reason: NackReason, interest: Interest, token: Option<PitToken>) -> NetPacket {
    NetPacket::nack(reason, interest).with_pit_token(token)
}
