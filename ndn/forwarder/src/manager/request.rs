//! A request to management, read from an Interest.

use crate::face::FaceId;
use ndn_packet::{Component, Interest, Name, NetKind, NetPacket, PitToken};

/// A request that management got.
pub(crate) struct Request {
    pub(crate) interest: Interest,
    pub(crate) name: Name,
    /// Our own, to be brought back by the answer.
    pub(crate) token: Option<PitToken>,
    /// Where it came from.
    pub(crate) face: FaceId,
    /// It is for a neighbour's forwarder, not for that of the same host.
    pub(crate) localhop: bool,
    pub(crate) module: String,
    pub(crate) verb: String,
}

impl Request {
    /// `None` when the Interest is none.
    pub(crate) fn new(packet: NetPacket) -> Option<Self> {
        let NetKind::Interest(interest) = packet.packet else {
            return None;
        };
        let name = interest.name_owned();
        let text = |n| {
            Some(
                std::str::from_utf8(name.get(n)?.as_generic()?)
                    .ok()?
                    .to_owned(),
            )
        };
        let (module, verb) = (text(2)?, text(3)?);
        let localhop = name.get(0) == Some(Component::generic(b"localhop"));
        let face = FaceId(packet.incoming_face?);
        Some(Request {
            interest,
            name,
            token: packet.pit_token,
            face,
            localhop,
            module,
            verb,
        })
    }
}
