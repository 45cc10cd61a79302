//! A request to management, read from an Interest.

use crate::face::FaceId;
use ndn_packet::{Component, Interest, Name, NetKind, NetPacket, PitToken};

/// A request that management got.
#[derive(Debug, Clone)]
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
    /// `None` when the Interest is none. Its name must be one of management's: a forwarding hint may have led it here.
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
        let scope = [b"localhost".as_slice(), b"localhop"];
        let is_of = |at, word| name.get(at) == Some(Component::generic(word));
        if !scope.iter().any(|scope| is_of(0, scope)) || !is_of(1, b"nfd") {
            return None;
        }
        let (module, verb) = (text(2)?, text(3)?);
        let localhop = is_of(0, b"localhop");
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
